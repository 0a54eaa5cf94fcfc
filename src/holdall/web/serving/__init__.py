"""The web application that serves files and takes uploads: see `holdall.web.create_app`.

Needs the extra ``web`` (Starlette). Each module has the routes of one kind of thing; `app` puts them together.
"""

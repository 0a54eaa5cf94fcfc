"""The web application that serves files and accepts uploads: see `holdall.web.create_app`.

It needs the extra ``web`` (Starlette). Each module has the routes for one kind of resource; `app` combines them.
"""

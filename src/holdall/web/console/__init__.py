"""The console: pages on which people look after a database in a browser. See `holdall.web.Console`.

It needs the extra ``web`` (Starlette, Jinja2). `section` has the list of sections; each section is a module with its
pages. `app` answers a page only to people who have signed in, and a change only with the session's CSRF token.
"""

"""The application: all routes in one list, under the path that the URLs of attachments have."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from holdall import AsyncDatabase, Database
from holdall.attachments import Accept
from holdall.errors import ConfigurationError
from holdall.web.console.settings import Console
from holdall.web.serving import artifact, blob, direct_upload, disk, tus
from holdall.web.serving.access import Access, Authorize, Csrf
from holdall.web.serving.picture import Pictures
from holdall.web.serving.refusal import HANDLERS
from holdall.web.serving.site import Site

__all__ = ["create_app"]


def create_app(
    db: Database | AsyncDatabase,
    *,
    authorize: Authorize | None = None,
    csrf: Csrf | None = None,
    accept: Accept | None = None,
    artifacts: bool = False,
    console: Console | None = None,
) -> Starlette:
    """An ASGI application that serves the files of a database and accepts uploads, both direct and resumable (tus).

    Mount it at the path of the attachments' URLs (their setting ``path``), as in ``app.mount("/attachments",
    create_app(db))``, or at the root. ``authorize(request, asked)`` decides on each request for a blob, an upload or an
    artifact, see `Asked`; without it, every signed URL works for everyone. ``csrf(request)`` decides whether a request
    may start an upload; without it, pages of other origins may not. Both may be async. ``accept`` limits the size and
    the type of uploads. ``artifacts=True`` also serves artifacts, and needs ``authorize``. ``console`` adds the pages
    on which people look after the database, see `Console`; they have their own sign-in.
    """
    if artifacts and authorize is None:
        raise ConfigurationError(
            "create_app(artifacts=True) needs authorize: without it, artifacts would be served to everyone",
            hint="decide who may download them: create_app(db, artifacts=True, authorize=...)",
        )
    own = db.aio if isinstance(db, Database) else db
    site = Site(own, Pictures(own), Access(authorize, csrf), accept or Accept())
    routes: list[BaseRoute] = [
        *blob.list_routes(site),
        *disk.list_routes(site),
        *direct_upload.list_routes(site),
        *tus.list_routes(site),
        *(artifact.list_routes(site) if artifacts else []),
    ]
    mounts: list[BaseRoute] = [Mount(own.blobs.settings.path, routes=routes)]
    if console is not None:
        try:
            from holdall.web.console.app import create_console
        except ModuleNotFoundError as error:
            if error.name != "jinja2":
                raise
            raise ConfigurationError(
                "the console needs Jinja2", hint='install it with: pip install "holdall[web]"'
            ) from error
        mounts.append(Mount(console.path, create_console(own, console, site.pictures)))
    return Starlette(routes=[*routes, *mounts], exception_handlers=dict(HANDLERS))

"""The application: all routes in one list, where the attachments' URLs lead."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from holdall import AsyncDatabase, Database
from holdall.attachments import Accept
from holdall.errors import ConfigurationError
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
) -> Starlette:
    """The ASGI application that serves the files of a database and takes uploads, direct and resumable (tus) ones.

    Mount it where the attachments' URLs lead (their setting ``path``): ``app.mount("/attachments", create_app(db))``;
    or at the root. ``authorize(request, asked)`` decides about each request for a blob, an upload or an artifact, see
    `Asked`; without it every signed URL is good for everyone. ``csrf(request)`` decides whether a request may begin an
    upload; without it, pages of other origins may not. Both may be async. ``accept`` limits the size and the type of
    what clients upload. ``artifacts=True`` also serves artifacts, and needs ``authorize``.
    """
    if artifacts and authorize is None:
        raise ConfigurationError(
            "artifacts would be served to everyone: their URLs are not signed",
            hint="decide who may have them: create_app(db, artifacts=True, authorize=...)",
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
    at_root = Mount(own.blobs.settings.path, routes=routes)
    return Starlette(routes=[*routes, at_root], exception_handlers=dict(HANDLERS))

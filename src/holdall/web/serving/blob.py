"""Blobs and their representations at signed URLs: as a redirect to their service, or through the application."""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdall import AsyncDatabase
from holdall.attachments import Blob, SignedFile
from holdall.web.serving.access import Asked
from holdall.web.serving.refusal import not_found
from holdall.web.serving.reply import Served, reply_with
from holdall.web.serving.site import Site

Disposition: TypeAlias = Literal["inline", "attachment"]

_CENTURY = 100 * 365 * 24 * 3600
_FRESH = 300


def list_routes(site: Site) -> list[Route]:
    """The routes for blobs and representations."""
    return [
        Route(f"/{kind}/{{rest:path}}", partial(_show, site, kind)) for kind in ("blobs", "representations")
    ]


async def _show(site: Site, kind: str, request: Request) -> Response:
    blobs = site.db.blobs
    rest = quote(request.path_params["rest"], safe="/")
    found = await blobs.find_by_url(f"{blobs.settings.path}/{kind}/{rest}")
    if found is None:
        raise not_found()
    picture = found.representation
    await site.access.check(request, Asked("view", found.blob, picture))
    blob = found.blob if picture is None else await site.pictures.get(picture)
    wish: Disposition = "attachment" if request.query_params.get("disposition") == "attachment" else "inline"
    if found.proxied:
        audience, seconds = _audience(site, request), _limit(_CENTURY, found)
        caching = f"{audience}, max-age={seconds}, immutable"
        return await reply_with_blob(request, site.db, blob, wish, caching)
    seconds = _limit(_FRESH, found)
    url = await blobs.url(blob, expires=max(1, seconds), disposition=wish)
    return RedirectResponse(url, 302, {"Cache-Control": f"private, max-age={seconds}"})


def _limit(seconds: int, found: SignedFile) -> int:
    """The given seconds, but at most as long as the URL is valid: a cache must not outlive it."""
    if found.expires_in is None:
        return seconds
    return max(0, min(seconds, int(found.expires_in.total_seconds())))


async def reply_with_blob(
    request: Request, db: AsyncDatabase, blob: Blob, wish: Disposition, cache_control: str
) -> Response:
    """The reply with a blob's bytes; it is shown in the browser only if its type cannot run scripts there."""
    delivery = blob.delivery(wish)
    file = Served(
        size=blob.byte_size,
        etag=f'"{blob.id}"',  # its bytes never change
        modified=blob.created_at,
        content_type=delivery.content_type,
        disposition=delivery.disposition,
        cache_control=cache_control,
        stream=lambda start, size: db.blobs.stream(blob, start=start, size=size),
    )
    return await reply_with(request, file)


def _audience(site: Site, request: Request) -> str:
    """Which caches may store a reply: only the client's, if a hook decides who sees it or a session sets a cookie."""
    session = request.scope.get("session")
    leaves_cookie = getattr(session, "modified", bool(session))
    return "private" if site.access.authorize is not None or leaves_cookie else "public"

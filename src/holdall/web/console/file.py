"""Stored files, for people who have signed in: downloads, and small pictures for pages."""

from __future__ import annotations

from starlette.responses import Response

from holdall import Variant
from holdall.attachments import Blob
from holdall.web.console.visit import RefusedVisitError, Visit
from holdall.web.serving.blob import Disposition, reply_with_blob

_THUMBNAIL = Variant(resize_to_limit=(320, 320))
_SHOWN_BY_BROWSERS = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}
_LARGEST_ORIGINAL = 4 * 1000 * 1000


def has_thumbnail(blob: Blob, *, read_only: bool) -> bool:
    """Whether a page can show a small picture of a file. A read-only console makes none: it shows small originals."""
    if not read_only and blob.is_representable:
        return True
    return blob.content_type in _SHOWN_BY_BROWSERS and blob.byte_size <= _LARGEST_ORIGINAL


async def send_file(visit: Visit) -> Response:
    """Send a file as a download; with ``?view=1`` in the browser, if its type cannot run scripts there."""
    blob = await _find(visit)
    wish: Disposition = "inline" if visit.query("view") == "1" else "attachment"
    return await reply_with_blob(visit.request, visit.db, blob, wish, "no-store")


async def send_thumbnail(visit: Visit) -> Response:
    """Send a small picture of a file."""
    blob = await _find(visit)
    if not has_thumbnail(blob, read_only=visit.desk.read_only):
        raise RefusedVisitError(404, "There is no picture of this file.")
    if not visit.desk.read_only and blob.is_representable:
        blob = await visit.db.blobs.representation(blob, _THUMBNAIL)
    return await reply_with_blob(visit.request, visit.db, blob, "inline", "no-store")


async def _find(visit: Visit) -> Blob:
    return await visit.db.blobs.find(str(visit.request.path_params["id"]))

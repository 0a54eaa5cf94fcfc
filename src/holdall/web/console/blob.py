"""Blobs: the stored files of the table or of one owner, and one file with its references and pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable

from starlette.responses import Response

from holdall.attachments import Attachment, Blob
from holdall.models import describe_model
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import Visit

_SIZE = 48
_MOST_SCANNED = 2_000


async def _list(visit: Visit) -> Response:
    kind, id = visit.query("type"), visit.query("owner")
    if kind and id:
        owned = [each.blob async for each in visit.db.blobs.list(kind, id)]
        return _show_list(visit, owned[:_SIZE], None, complete=len(owned) <= _SIZE)
    page = await visit.db.blobs.scan(
        limit=_SIZE, after=visit.query("after") or None, most_scanned=_MOST_SCANNED
    )
    next_url = None if page.next is None else visit.url("blobs", after=page.next)
    return _show_list(visit, page.blobs, next_url, complete=page.complete, scanned=page.scanned)


def _show_list(
    visit: Visit, blobs: Iterable[Blob], next_url: str | None, *, complete: bool, scanned: int | None = None
) -> Response:
    return visit.render(
        "blobs.html",
        blobs=list(blobs),
        kinds=[
            facts["name"] for facts in map(describe_model, visit.desk.models.values()) if facts["attachments"]
        ],
        next_url=next_url,
        complete=complete,
        scanned=scanned,
        title="Files",
    )


async def _show(visit: Visit) -> Response:
    blobs = visit.db.blobs
    blob = await blobs.find(visit.query("id"))
    return visit.render(
        "blob.html",
        blob=blob,
        references=[(each, _link_owner(visit, each)) for each in await blobs.attachments(blob)],
        pictures=await blobs.pictures(blob),
        metadata=json.dumps(blob.metadata, ensure_ascii=False, indent=2, default=str)
        if blob.metadata
        else None,
        title=str(blob.filename)[:200],
    )


def _link_owner(visit: Visit, attachment: Attachment) -> str:
    """Return the URL of the files of the owner, on the page that lists them."""
    return visit.url("blobs", type=attachment.record_type, owner=attachment.record_id)


SECTION = Section("blobs", "Files", "file", (Page("/blobs", _list), Page("/blobs/blob", _show)))

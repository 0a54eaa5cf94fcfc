"""Blobs: the stored files of the table or of one owner, and one file with its references and pictures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import Response

from holdall import Model
from holdall.attachments import Attachment, Blob
from holdall.errors import HoldallError
from holdall.models import describe_model
from holdall.web.console.item import link_item
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import Visit

_SIZE = 48
_REFERENCES = 50
_MOST_SCANNED = 2_000


async def _list(visit: Visit) -> Response:
    kind, id = visit.query("type"), visit.query("owner")
    if kind and id:
        return await _list_owned(visit, kind, id)
    page = await visit.db.blobs.scan(
        limit=_SIZE, after=visit.query("after") or None, most_scanned=_MOST_SCANNED
    )
    next_url = None if page.next is None else visit.url("blobs", after=page.next)
    return _show_list(visit, page.blobs, next_url, complete=page.complete, scanned=page.scanned)


async def _list_owned(visit: Visit, kind: str, id: str) -> Response:
    """List the files of one owner."""
    name, _, last = visit.query("after").rpartition("/")
    after = (name, last) if name and last else None
    found = [each async for each in visit.db.blobs.list(kind, id, after=after, limit=_SIZE + 1)]
    owned, next_url = found[:_SIZE], None
    if len(found) > _SIZE:
        next_url = visit.url("blobs", type=kind, owner=id, after=f"{owned[-1].name}/{owned[-1].id}")
    return _show_list(visit, [each.blob for each in owned], next_url, complete=True)


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
    found = await blobs.attachments(blob, limit=_REFERENCES + 1)
    return visit.render(
        "blob.html",
        blob=blob,
        references=await _list_references(visit, found[:_REFERENCES]),
        is_cut=len(found) > _REFERENCES,
        pictures=await blobs.pictures(blob),
        metadata=json.dumps(blob.metadata, ensure_ascii=False, indent=2, default=str)
        if blob.metadata
        else None,
        title=str(blob.filename)[:200],
    )


@dataclass(frozen=True, slots=True)
class Reference:
    """An attachment of a file, the URL of its owner, and the URL of all files of this owner.

    ``url`` leads to an item or, from a picture, to the file that it was made of; it is None for other owners.
    """

    attachment: Attachment
    url: str | None
    files_url: str


async def _list_references(visit: Visit, attachments: Sequence[Attachment]) -> list[Reference]:
    shown = {describe_model(model)["name"]: name for name, model in visit.desk.models.items()}
    owned = [each for each in attachments if each.record_type in shown]
    owners: dict[str, Model | None] = {}
    with suppress(HoldallError):  # without the owners, there are only no links to them
        owners = dict(zip([each.id for each in owned], await visit.db.blobs.owners(owned), strict=True))
    found = []
    for each in attachments:
        url, owner = None, owners.get(each.id)
        if each.source_id is not None:
            url = visit.url("blobs", "blob", id=each.source_id)
        elif owner is not None:
            url = link_item(visit, shown[each.record_type], owner.key)
        files_url = visit.url("blobs", type=each.record_type, owner=each.record_id)
        found.append(Reference(each, url, files_url))
    return found


SECTION = Section("blobs", "Files", "file", (Page("/blobs", _list), Page("/blobs/blob", _show)))

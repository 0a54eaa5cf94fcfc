"""The stored attachments of owners: reads rows, slots and blobs, in parallel, and updates a blob's row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from holdall.attachments.blob.blob import Blob
from holdall.attachments.home import Home, Owner
from holdall.attachments.record import AttachmentRow, BlobRow, ReferenceRecord, Slot
from holdall.core.context import Context
from holdall.core.expressions import UpdateAction
from holdall.core.frozen import replace
from holdall.errors import RecordNotFound
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import RecordPages, fetch, fetch_all


async def read_rows(
    context: Context, home: Home, owner: Owner, name: str, slot: Slot | None = None
) -> list[AttachmentRow]:
    """Read the attachments of an owner under a name, in key order.

    In mode B, the list may lag behind. So the rows that it shows, and the row that the slot names, are read once more
    by their keys.
    """
    rows = await list_rows(context, home, owner, name)
    if home.layout.mode == "A":
        return rows
    named = [] if slot is None else locate_named(home, owner, name, slot)
    return await confirm_rows(context, [*rows, *named])


async def list_rows(
    context: Context, home: Home, owner: Owner, name: str | None = None
) -> list[AttachmentRow]:
    """Read the attachments of an owner, or those under one name, as the list shows them."""
    query = home.attachments(owner, name)
    rows = await RecordPages(context.port, AttachmentRow, query, home.layout.address_of).read_all()
    return [row for row in rows if row.entity in (None, "Attachment")]


def locate_named(home: Home, owner: Owner, name: str, slot: Slot) -> list[AttachmentRow]:
    """The attachment that a slot names; it is not read."""
    if slot.attachment_id is None:
        return []
    return [AttachmentRow(home.attachment(owner, name, slot.attachment_id))]


async def confirm_rows(context: Context, rows: Sequence[AttachmentRow]) -> list[AttachmentRow]:
    """Read attachments again by their keys; return those that exist, each once."""
    places = {row.address.identity: row for row in rows}
    found = await fetch_all(context.port, list(places.values()))
    return [row for row in found if row.is_stored and row.entity in (None, "Attachment")]


async def read_named(
    context: Context, home: Home, owner: Owner, name: str, ids: Sequence[str]
) -> list[AttachmentRow]:
    """Read the attachments of an owner and name with these ids."""
    wanted = [AttachmentRow(home.attachment(owner, name, id)) for id in ids]
    found = await fetch_all(context.port, wanted)
    return [row for row in found if row.is_stored and row.owner == owner and row.name == name]


async def read_slots(context: Context, home: Home, wanted: Sequence[tuple[Owner, str]]) -> list[Slot]:
    """Read the slots of owners and names, in order; a missing one is returned with ``is_stored`` false."""
    return await fetch_all(context.port, [Slot(home.slot(owner, name)) for owner, name in wanted])


async def read_blobs(context: Context, home: Home, ids: Iterable[str]) -> dict[str, BlobRow]:
    """Read the blobs with these ids, by id; a missing one is returned with ``is_stored`` false."""
    distinct = list(dict.fromkeys(ids))
    found = await fetch_all(context.port, [BlobRow(home.blob(id)) for id in distinct])
    return dict(zip(distinct, found, strict=True))


async def read_references(
    context: Context, home: Home, blob: BlobRow, limit: int | None = None
) -> dict[str, str]:
    """Read the places of the attachments that refer to a blob, by attachment id: all, or the first ``limit``."""
    places = blob.references
    if blob.reference_items and (limit is None or len(places) < limit):
        query = replace(home.references(blob.id), limit=limit)
        pages = RecordPages(context.port, ReferenceRecord, query, home.layout.address_of)
        while (records := await pages.next_page()) is not None:
            places |= {record.attachment_id: record.place for record in records}
            if limit is not None and len(places) >= limit:
                break
    return places if limit is None else dict(islice(places.items(), limit))


async def find_row(context: Context, home: Home, blob: Blob | str) -> BlobRow:
    """Read a blob's row; `RecordNotFound` if there is none."""
    id = blob if isinstance(blob, str) else blob.id
    row = None
    if id and home.separator not in id:
        row = await fetch(context.port, BlobRow(home.blob(id)))
    if row is None or not row.is_stored:
        raise explain_no_blob(id)
    return row


async def update_row(context: Context, row: BlobRow, *actions: UpdateAction) -> None:
    """Update a blob's row; `RecordNotFound` if it was deleted meanwhile."""
    change = Change(context)
    change.update(row, *actions, expect=[row.address.exists], refused=lambda _: explain_no_blob(row.id))
    await commit_once(change)


def explain_no_blob(id: str) -> RecordNotFound:
    """The error for a blob that does not exist."""
    return RecordNotFound(f"there is no blob {id!r:.80}")

"""Purging blobs: first the row is deleted, on the condition that nothing refers to the blob, then the bytes.

Why it is safe wherever the process dies: the row is deleted only at a count of 0, and attaching the blob demands that
the row exists; so if both happen at once, one is refused. Before the row is deleted, a marker is written. If the
process dies in between, the marker leads the sweep to the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdall.attachments.event import deliver_events, describe_event
from holdall.attachments.home import Home, Owner, find_home
from holdall.attachments.owner.ledger import Ledger
from holdall.attachments.picture.derived import (
    is_variant,
    parse_variant_id,
    preview_owner,
    read_variants,
    variant_owner,
)
from holdall.attachments.record import AttachmentRow, BlobRow, VariantRow
from holdall.attachments.stored import read_blobs, read_rows, read_slots
from holdall.attachments.upload.upload import place_marker
from holdall.core.context import Context
from holdall.core.expressions import Or
from holdall.core.objects import DeleteObject
from holdall.files.shelf import Shelf
from holdall.files.upkeep import delete_prefix
from holdall.jobs.attempt import current_job
from holdall.jobs.declaration import job
from holdall.jobs.outbox import Outbox
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, commit_once
from holdall.tables.record import delete_all, fetch


@job("holdall.purge")
async def purge(*ids: str) -> None:
    """Purge blobs to which nothing refers."""
    await purge_blobs(current_job().context, ids)


async def purge_blobs(context: Context, ids: Sequence[str]) -> None:
    """Purge the blobs among these to which nothing refers."""
    home = await find_home(context)
    for row in (await read_blobs(context, home, ids)).values():
        if row.is_stored:
            await purge_row(context, home, row)


async def purge_row(context: Context, home: Home, row: BlobRow) -> bool:
    """Delete a blob's row, then its bytes; False if something refers to it."""
    # a marker would make the sweep delete the blob, even if it is detached later and meant to stay
    if row.count > 0:
        return False
    marker = await place_marker(context, home, row, context.port.now())
    if not await delete_unattached(context, row):
        return False
    await delete_derived(context, home, row.id, row.variants)
    await delete_bytes(context, row.service_name, row.key, row.content_type)
    await delete_all(context.port, [marker])
    return True


async def delete_unattached(context: Context, row: BlobRow) -> bool:
    """Delete a blob's row; False if something refers to it."""
    change = Change(context)
    change.delete(row, expect=[Or((BlobRow.count.absent, BlobRow.count.equals(0)))], label="blob")
    event = describe_event(context, "purged", row.id)
    if event is not None:
        outbox = Outbox(context)
        outbox.add(deliver_events, [event])
        change.join(outbox)
    return await commit_once(change) is None


async def delete_derived(context: Context, home: Home, blob_id: str, digests: Iterable[str] = ()) -> None:
    """Delete what was made from a deleted blob: variants and preview, with their pictures and slots."""
    variants = await read_variants(context, home, blob_id, digests)
    places = [(preview_owner(blob_id), "preview_image")]
    places += [(variant_owner(blob_id, each.digest), "image") for each in variants]
    await _delete_pictures(context, home, places)
    await delete_all(context.port, variants)


async def delete_picture(context: Context, home: Home, owner: Owner, name: str) -> None:
    """Delete a picture that was made from a blob; while the blob exists, it is made again when it is requested."""
    await _delete_pictures(context, home, [(owner, name)])
    if is_variant(owner):
        address = home.variant(*parse_variant_id(owner.record_id))
        await delete_all(context.port, [VariantRow(address)])


async def _delete_pictures(context: Context, home: Home, places: Sequence[tuple[Owner, str]]) -> None:
    slots = await read_slots(context, home, places)
    for (owner, name), slot in zip(places, slots, strict=True):
        for row in await read_rows(context, home, owner, name, slot):
            await _detach(context, home, row)
            await purge_blobs(context, [row.blob_id])
        if slot.is_stored:
            await delete_all(context.port, [slot])


async def _detach(context: Context, home: Home, row: AttachmentRow) -> None:
    async def body(change: Change) -> None:
        blobs = await read_blobs(context, home, [row.blob_id])
        if (await fetch(context.port, AttachmentRow(row.address))).is_stored:
            ledger = Ledger(home, blobs)
            change.delete(row, expect=[row.address.exists])
            ledger.remove(row)
            ledger.write(change)

    await commit(context, body, f"the attachment {row.id}")


async def delete_bytes(context: Context, service: str, key: str, content_type: str | None) -> None:
    """Delete a blob's bytes, and pictures that were made from them without a record."""
    await context.port.send(DeleteObject(service, key))
    if (content_type or "").startswith("image/"):
        await delete_prefix(Shelf(context, service), f"variants/{key}/")

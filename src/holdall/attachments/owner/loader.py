"""Loads the attachments of many owners: one query for each, in parallel, then their blobs, a hundred at a time."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from itertools import chain
from typing import Any

from holdall.attachments.blob.blob import Blob
from holdall.attachments.home import Home, Owner, find_home
from holdall.attachments.owner.attachable import Attachable, owner_of_instance
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.owner.declaration import is_persisted, owner_of
from holdall.attachments.owner.intent import read_leaving
from holdall.attachments.record import AttachmentRow
from holdall.attachments.stored import confirm_rows, list_rows, locate_named, read_blobs, read_slots
from holdall.core.context import Context
from holdall.core.keys import format_moment
from holdall.models.model import Model


async def load_attachments(
    context: Context, items: Sequence[Model | Attachable], names: Sequence[str]
) -> None:
    """Load the attachments under these names into each item. Rows whose blob is missing are left out."""
    home = await find_home(context)
    stored = [item for item in items if is_persisted(item)]
    owners = [owner_of(item.key) if isinstance(item, Model) else owner_of_instance(item) for item in stored]
    kinds = {type(item) for item in stored}
    batched = [name for name in names if any(getattr(kind, name).in_batches for kind in kinds)]
    rows = await _read_all(context, home, owners, names, batched)
    blobs = await read_blobs(context, home, [row.blob_id for some in rows for row in some])
    for item, some in zip(stored, rows, strict=True):
        for name in names:
            mine = sorted((row for row in some if row.name == name), key=_order)
            proxy: Any = getattr(item, name)
            proxy.take(
                [
                    Attachment.of(context.settings, row, Blob.of(blobs[row.blob_id]))
                    for row in mine
                    if blobs[row.blob_id].is_stored
                ]
            )


async def _read_all(
    context: Context, home: Home, owners: Sequence[Owner], names: Sequence[str], batched: Sequence[str]
) -> list[list[AttachmentRow]]:
    """Read the rows of owners, with one query for each, except rows that intents are removing; slots name those.

    In mode B, slots also name rows that the list may not show yet, and every row is read once more by its key.
    """
    if not owners:
        return []
    name = names[0] if len(names) == 1 else None
    lists = [list_rows(context, home, owner, name) for owner in owners]
    pairs = [(owner, each) for owner in owners for each in (batched if home.layout.mode == "A" else names)]
    if home.layout.mode == "A":
        # before the rows, which intents may start to remove meanwhile
        slots = await read_slots(context, home, pairs)
        leaving = await read_leaving(context, home, slots)
        found = [outcome.result() for outcome in await context.port.gather(lists, limit=32)]
    else:
        flows: list[Coroutine[Any, Any, Any]] = [read_slots(context, home, pairs), *lists]
        slots, *found = [outcome.result() for outcome in await context.port.gather(flows, limit=32)]
        leaving = await read_leaving(context, home, slots)
        named = [locate_named(home, *pair, slot) for pair, slot in zip(pairs, slots, strict=True)]
        rows = await confirm_rows(context, [*chain.from_iterable(found), *chain.from_iterable(named)])
        by_owner: dict[Owner, list[AttachmentRow]] = {owner: [] for owner in owners}
        for row in rows:
            by_owner[row.owner].append(row)
        found = [by_owner[owner] for owner in owners]
    return [[row for row in some if row.name in names and row.id not in leaving] for some in found]


def _order(row: AttachmentRow) -> tuple[str, str]:
    created = row.created_at
    return "" if created is None else format_moment(created), row.id

"""What a removal leaves to jobs: rows that the list did not show, and rows too many for one transaction.

Why it is safe wherever the process dies: the transaction of the removal also enqueues the job. A row and its blob's
count change together, and a row is deleted on the condition that it exists; so the job can be run again, even by
several workers at once. After an intent's rows, the intent itself is deleted: first its name in the slot, then its
parts.

The second look goes by time, because nothing else shows which rows the list lacked: it removes rows that were attached
before the name was cleared, by the clocks of the machines involved. If within that minute another change attaches the
blob of such a row once more, and so relies on the row, the second look still removes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdall.attachments.home import Home, Owner, find_home
from holdall.attachments.owner.flow import remove_rows
from holdall.attachments.owner.intent import delete_parts, locate_parts, plan_end
from holdall.attachments.owner.proxy import Removal
from holdall.attachments.owner.wish import BATCH
from holdall.attachments.record import AttachmentRow, Intent, Slot
from holdall.attachments.stored import read_named, read_rows
from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.core.keys import format_moment
from holdall.jobs.attempt import current_job
from holdall.jobs.declaration import job
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, commit_once
from holdall.tables.record import fetch, fetch_all


@job("holdall.detach-again")
async def detach_again(*places: tuple[str, str, str, Removal, str, Collection[str]]) -> None:
    """Remove rows that were attached before a name was cleared, and that the list did not show then."""
    context = current_job().context
    home = await find_home(context)
    for record_type, record_id, name, how, before, kept in places:
        owner = Owner(record_type, record_id)
        rows = await read_rows(context, home, owner, name)
        await remove_in_batches(context, owner, name, list_missed(rows, before, kept), how)


@job("holdall.detach-batches")
async def detach_batches(*places: tuple[str, str, str, str]) -> None:
    """Remove the rows of intents; drop an intent whose transaction has not committed."""
    context = current_job().context
    home = await find_home(context)
    for record_type, record_id, name, named in places:
        await _end_intent(context, home, Owner(record_type, record_id), name, named)


async def _end_intent(context: Context, home: Home, owner: Owner, name: str, named: str) -> None:
    first, *others = locate_parts(home, named)
    first = await fetch(context.port, first)
    if first.is_stored and first.state is None:
        change = Change(context)
        change.update(first, Intent.state.set("dropped"), expect=[first.address.exists, Intent.state.absent])
        await commit_once(change)
        first = await fetch(context.port, first)
    if not first.is_stored:
        return
    parts = [first, *(await fetch_all(context.port, others))]
    if first.state == "kept":
        for part in parts:
            rows = await read_named(context, home, owner, name, list(part.ids))
            await remove_in_batches(context, owner, name, rows, part.how)

        async def body(change: Change) -> None:
            plan_end(change, await fetch(context.port, Slot(home.slot(owner, name))), named)

        await commit(context, body, f"the intents of {owner.record_type} {owner.record_id}")
    await delete_parts(context, parts)


def list_missed(rows: Sequence[AttachmentRow], before: str, kept: Collection[str]) -> list[AttachmentRow]:
    """The rows older than a moment, except those that were meant to stay."""
    return [
        row
        for row in rows
        if row.created_at is not None and format_moment(row.created_at) < before and row.id not in kept
    ]


async def remove_in_batches(
    context: Context, owner: Owner, name: str, rows: Sequence[AttachmentRow], how: Removal
) -> None:
    """Remove any number of attachments in several transactions; those of one blob in the same one."""
    ids = [row.id for row in sorted(rows, key=lambda row: (row.blob_id, row.id))]
    for some in make_batches(ids, BATCH):
        await remove_rows(context, owner, name, some, how)

"""What a removal leaves to a job: rows that the list did not show, to be looked for a second time.

Why it is safe wherever the process dies: the job is written in the transaction of the removal. A row and its blob's
count change together, and a row is deleted on the condition that it is there; so the job can be run again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from holdall.attachments.home import Owner, home_of
from holdall.attachments.owner import remove_rows
from holdall.attachments.proxy import Removal
from holdall.attachments.record import AttachmentRow, show_moment
from holdall.attachments.stored import read_rows
from holdall.core.context import Context
from holdall.jobs.attempt import current_job
from holdall.jobs.declaration import job

BATCH = 32
"""So many rows fit in a transaction, each with its blob and a reference that is an item, beside the jobs."""


@job("holdall.detach-again")
async def detach_again(*places: tuple[str, str, str, Removal, str, Collection[str]]) -> None:
    """Remove what was attached before a name was cleared, and was not on the list then."""
    context = current_job().context
    home = await home_of(context)
    for record_type, record_id, name, how, before, kept in places:
        owner = Owner(record_type, record_id)
        rows = await read_rows(context, home, owner, name)
        await remove_in_batches(context, owner, name, list_missed(rows, before, kept), how)


def list_missed(rows: Sequence[AttachmentRow], before: str, kept: Collection[str]) -> list[AttachmentRow]:
    """The rows that are older than a moment, but for those that were to stay."""
    return [
        row
        for row in rows
        if row.created_at is not None and show_moment(row.created_at) < before and row.id not in kept
    ]


async def remove_in_batches(
    context: Context, owner: Owner, name: str, rows: Sequence[AttachmentRow], how: Removal
) -> None:
    """Let go of any number of attachments, some in each transaction; those of one blob together."""
    for batch in split_rows(rows):
        await remove_rows(context, owner, name, batch, how)


def split_rows(rows: Sequence[AttachmentRow]) -> Iterator[list[str]]:
    """The ids of rows in batches, those of one blob together."""
    ids = [row.id for row in sorted(rows, key=lambda row: (row.blob_id, row.id))]
    yield from (ids[start : start + BATCH] for start in range(0, len(ids), BATCH))

"""Jobs on their way to another database: they arrive paused, so that no worker there runs what the source still may.

A job that a worker holds loses its lease, and is reported: it may end in the source, and then it must not be resumed.
So the copies of jobs, and the items of their keys, follow the source in every pass: those of jobs that have ended
there are deleted, unless they were resumed.
"""

from __future__ import annotations

from collections.abc import Callable

from holdall.core.context import Context
from holdall.core.cursor import has_items
from holdall.core.frozen import replace
from holdall.core.values import Item
from holdall.jobs.listing import queues
from holdall.jobs.record import LEASE, JobItem, JobKey, job_partition, pause_item, shard_of
from holdall.tables.flow import discover
from holdall.transactions.table_run.flow import Tally

_KEY = "holdall#JobKey#"
_FOLLOWING = ("holdall#PausedJob#", _KEY)


def make_conversion(partition: str) -> Callable[[Item], Item]:
    """A function that pauses jobs, and leaves all other items as they are."""

    def convert(item: Item) -> Item:
        return pause_item(item, partition) or item

    return convert


def make_description(partition: str) -> Callable[[Tally, Item], None]:
    """A function that counts jobs, and notes those that a worker holds."""

    def describe(tally: Tally, item: Item) -> None:
        if pause_item(item, partition) is None:
            return
        tally.count("paused")
        if LEASE[0].name in item:
            tally.count("leased")
            id, name = (column.peek(item) or "?" for column in (JobItem.id, JobItem.name))
            tally.note("leased", f"{name} {id}")

    return describe


def is_following(partition: str) -> bool:
    """Whether an item with this partition key, copied earlier, is deleted once it is no longer in the source."""
    return partition.startswith(_FOLLOWING)


async def is_key_in_use(context: Context, partition: str, item: Item) -> bool:
    """Whether an item with this partition key is the key of a job that was resumed and has not ended."""
    if not partition.startswith(_KEY):
        return False
    id, layout = JobKey.job.peek(item) or "", await discover(context)
    for queue in await queues(context) if id else ():
        listing = layout.listing(job_partition(queue, shard_of(id)))
        if await has_items(context.port, replace(listing, filter=JobItem.id.equals(id))):
            return True
    return False

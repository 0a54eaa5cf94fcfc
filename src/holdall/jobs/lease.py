"""Flows of a worker's lease on a job: find due jobs, take one, extend its lease, and end it in one of four ways.

Each is one atomic write, so a worker can die between any two of them: a job that was taken but not ended is taken again
once its lease is over. Every write demands the lease that its worker last wrote. A worker that has lost its lease,
because it seemed dead, can neither finish nor extend a job that another worker now holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Literal

from holdall.core.context import Context
from holdall.core.expressions import Condition
from holdall.core.frozen import replace
from holdall.core.keys import format_moment
from holdall.core.requests import Page
from holdall.core.values import Item
from holdall.errors import LeaseLostError
from holdall.jobs.record import (
    LEASE,
    JobItem,
    JobKey,
    JobRecord,
    Lease,
    bury_job,
    encode_job,
    job_partition,
    lease_values,
    lend_job,
    locate_job,
    postpone_job,
)
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.commit.lock import any_of
from holdall.tables.commit.plan import Refuse
from holdall.tables.flow import discover
from holdall.tables.layout import Address, Layout

_KEY = "key"
_IS_STORED = JobItem.id.exists
_IS_FREE = JobItem.lease.absent
_LEASE, _ATTEMPTS = JobItem.lease, JobItem.attempts

Failure = Literal["retried", "superseded"]
"""The outcome for a job that should wait again; superseded: another job with its key waits, and will do its work."""


async def fetch_due(
    context: Context,
    queue: str,
    shard: str,
    limit: int,
    start_after: Item | None = None,
    *,
    consistent: bool = False,
) -> Page:
    """A page of the due jobs in a shard, oldest first, including running ones."""
    layout = await discover(context)
    listing = layout.listing(job_partition(queue, shard), before=f"{format_moment(context.port.now())}$")
    strong = consistent and layout.index is None
    return await context.port.send(replace(listing, limit=limit, start_after=start_after, consistent=strong))


async def take(context: Context, job: JobRecord, token: str, seconds: float) -> JobRecord | None:
    """Take a job that is free, or still has the lease that it was seen with; None if it was changed meanwhile."""
    layout = await discover(context)
    taken = lend_job(job, token, context.port.now(), seconds)
    assert taken.lease is not None
    address = locate_job(layout, job)
    change = Change(context)
    change.update(
        JobItem(address),
        *[column.set(value) for column, value in lease_values(taken.lease)],
        _ATTEMPTS.set(taken.attempts),
        expect=[
            _IS_STORED,
            _IS_FREE if job.lease is None else _is_held(job),
            *address.listed,
        ],
        stampable=True,
    )
    if job.key is not None and job.once_for is None and job.lease is None:
        # its key is free from now on, because a job enqueued now may be about data that this run no longer reads
        _free_key(change, layout, job)
    return taken if await commit_once(change, token) is None else None


async def extend(context: Context, job: JobRecord, token: str, known: Collection[str]) -> JobRecord:
    """Extend a lease, under another token; `LeaseLostError` if this worker no longer holds it.

    ``known`` are the tokens that it may have: two if the outcome of the last extension is unknown.
    """
    layout = await discover(context)
    lease = job.lease
    assert lease is not None
    longer = Lease(token, context.port.now() + timedelta(seconds=lease.seconds), lease.seconds)
    change = Change(context)
    values = [column.set(value) for column, value in lease_values(longer)]
    change.update(JobItem(locate_job(layout, job)), *values, expect=[is_held_by(known)], stampable=True)
    if await commit_once(change, token) is not None:
        raise _explain_loss(job)
    return replace(job, lease=longer)


async def finish(context: Context, job: JobRecord) -> None:
    """Delete a job that succeeded; `LeaseLostError` if another worker holds it."""
    layout = await discover(context)
    change = Change(context)
    end_job(change, layout, job, _is_held(job))
    if await commit_once(change) is not None:
        raise _explain_loss(job)


def end_job(
    change: Change, layout: Layout, job: JobRecord, held: Condition, refused: Refuse | None = None
) -> None:
    """Record the end of a job that succeeded: its deletion, and its key if that is remembered for a while."""
    change.delete(JobItem(locate_job(layout, job)), expect=[held], vanishes=True, refused=refused)
    if job.key is not None and job.once_for is not None:
        until = change.context.port.now() + timedelta(seconds=job.once_for)
        change.put(JobKey.of(layout, job, until))


async def fail(context: Context, job: JobRecord, error: str, delay: float) -> Failure:
    """Let a job wait for another attempt."""
    layout = await discover(context)
    later = postpone_job(job, context.port.now() + timedelta(seconds=delay), error)
    change = Change(context)
    move_job(change, layout, locate_job(layout, job), later, expect=[_is_held(job)])
    return await _put_back(change, layout, job)


async def bury(context: Context, job: JobRecord, error: str) -> None:
    """Give up on a job: keep it as a dead job, and free its key."""
    layout = await discover(context)
    dead = bury_job(job, context.port.now(), error)
    change = Change(context)
    move_job(change, layout, locate_job(layout, job), dead, expect=[_is_held(job)])
    if job.key is not None and job.once_for is not None:
        _free_key(change, layout, job)
    if await commit_once(change) is not None:
        raise _explain_loss(job)


async def release(context: Context, job: JobRecord) -> Failure:
    """Return an unfinished job to its queue, with its key, as if it had never been taken."""
    layout = await discover(context)
    change = Change(context)
    change.update(
        JobItem(locate_job(layout, job)),
        _ATTEMPTS.set(job.attempts - 1),
        *[column.remove() for column in LEASE],
        expect=[_is_held(job)],
        stampable=True,
    )
    return await _put_back(change, layout, job)


def move_job(
    change: Change, layout: Layout, source: Address, job: JobRecord, *, expect: Sequence[Condition]
) -> None:
    """Record that the item at an address becomes this job; in place, if the address stays the same."""
    item = encode_job(layout, job)
    if item.address.key == source.key:
        change.put(item, expect=expect)
    else:
        change.delete(JobItem(source), expect=expect)
        change.create(item)


async def _put_back(change: Change, layout: Layout, job: JobRecord) -> Failure:
    """Commit a change that lets a job wait again with its key; if another job has the key, this one is deleted."""
    if job.key is not None and job.once_for is None:
        change.create(JobKey.of(layout, job), label=_KEY)
    refused = await commit_once(change)
    if refused is None:
        return "retried"
    if refused.found.keys() != {_KEY}:
        raise _explain_loss(job)
    await finish(change.context, job)
    return "superseded"


def _free_key(change: Change, layout: Layout, job: JobRecord) -> None:
    key = JobKey.of(layout, job)
    change.delete(key, expect=[key.address.absent | JobKey.job.equals(job.id)])


def is_held_by(tokens: Collection[str]) -> Condition:
    """The condition that the lease has one of these tokens."""
    return any_of(*map(_LEASE.equals, tokens))


def _is_held(job: JobRecord) -> Condition:
    assert job.lease is not None
    return _LEASE.equals(job.lease.token)


def _explain_loss(job: JobRecord) -> LeaseLostError:
    return LeaseLostError(
        f"the lease on the job {job.name} {job.id} was lost, so another worker may have taken the job",
        hint="the worker was held up for longer than its lease; give it a longer one (lease= or --lease)",
    )


MARGIN = timedelta(seconds=30)
"""How far apart the clocks of two machines may be before a lease is taken for expired too early."""

_MANY = 1000


class Sightings:
    """The leases that one worker has seen, and since when each is unchanged. ``brief``: the worker runs only briefly.

    Pure. No two machines have the same clock, and a wrong clock must neither keep a job forever nor let it be taken
    from a live worker. A lease is therefore over when it has been seen unchanged for its whole duration, by the
    observer's own monotonic clock; a live worker extends it three times in that time. An observer that does not run
    that long, such as one that drains a queue, uses the wall clock instead, with a margin for the difference between
    clocks.
    """

    def __init__(self, *, brief: bool = False) -> None:
        self._brief = brief
        self._seen: dict[str, tuple[str, float, float]] = {}
        self._many = _MANY

    def is_over(self, record: JobRecord, steady: float, now: datetime) -> bool:
        """Whether a leased job may be taken; ``steady`` is the monotonic clock, in seconds."""
        lease = record.lease
        assert lease is not None
        if self._brief and now >= lease.until + MARGIN:
            return True
        known = self._seen.get(record.id)
        since = known[1] if known is not None and known[0] == lease.token else steady
        self._seen[record.id] = lease.token, since, steady
        if len(self._seen) > self._many:
            self._sweep(steady, lease.seconds)
        return steady - since >= lease.seconds

    def _sweep(self, steady: float, seconds: float) -> None:
        """Forget leases that have not been seen for so long that their jobs must be gone."""
        oldest = steady - 10 * seconds
        self._seen = {id: seen for id, seen in self._seen.items() if seen[2] >= oldest}
        self._many = max(_MANY, 2 * len(self._seen))

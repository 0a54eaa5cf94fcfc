"""Flows that retry, resume and delete jobs, and enqueue the next occurrence of a recurring job.

Each reads only the queues that it concerns; finding a job by its id reads one shard of each queue.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Any

from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.expressions import Condition
from holdall.core.frozen import replace
from holdall.errors import InvalidOptionsError, JobBusyError, JobNotFoundError
from holdall.jobs.declaration import Job
from holdall.jobs.lease import move_job
from holdall.jobs.listing import check_moment, choose_queues, find_item, make_filter
from holdall.jobs.outbox import register_queues, ring
from holdall.jobs.quarantine import read_jobs
from holdall.jobs.record import (
    JobItem,
    JobKey,
    JobRecord,
    JobState,
    Occurrence,
    decode_job,
    encode_job,
    locate_job,
    locate_key,
    locate_occurrence,
    partitions,
    postpone_job,
    shard_of,
)
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import Refused, commit_once
from holdall.tables.flow import discover
from holdall.tables.record import fetch

_KEY = "key"
_FREE = JobItem.id.exists & JobItem.lease.absent
"""The job exists and no worker holds it."""


async def retry(context: Context, id: str) -> JobRecord:
    """Run a job again: a dead job waits with all its attempts ahead of it, a waiting or paused job is due at once.

    A job that is dead because its item could not be read (``raw``) is read again; `MalformedJobError` if that fails.
    """
    record = await _fetch_one(context, id)
    if record.state == "running":
        raise JobBusyError(f"the job {id} is running", hint="wait for it to end")
    again = await _revive(context, record)
    if again is None:
        raise JobBusyError(
            f"the job {id} was changed meanwhile, or another job with its key is waiting",
            hint="look at the job, then try again",
        )
    return again


async def retry_all(context: Context, *, queue: str | None = None, name: str | None = None) -> int:
    """Run all dead jobs again, or those of a queue or a name, except those whose items could not be read.

    Returns how many jobs wait again.
    """

    async def revive(context: Context, record: JobRecord) -> JobRecord | None:
        return await _revive(context, record) if record.raw is None else None

    return await _each_job(context, queue, ("dead",), make_filter("dead", name), revive)


async def _revive(context: Context, record: JobRecord) -> JobRecord | None:
    """Let a job wait again, due now; None if it was changed meanwhile or its key is taken."""
    job = record if record.raw is None else decode_job(await discover(context), record.raw)
    again = replace(postpone_job(job, context.port.now(), job.error), attempts=0)
    return again if await _let_wait(context, record, again) is None else None


async def _let_wait(context: Context, record: JobRecord, waiting: JobRecord) -> Refused | None:
    """Store a job as a waiting one, together with its key; refused if it was changed meanwhile or its key is taken."""
    layout = await discover(context)
    change = Change(context)
    move_job(change, layout, locate_job(layout, record), waiting, expect=[_FREE])
    if waiting.key is not None:
        key = JobKey.of(layout, waiting)
        until = JobKey.until.below(context.port.now())
        change.put(key, expect=[key.address.absent | JobKey.job.equals(waiting.id) | until], label=_KEY)
    return await commit_once(change)


async def resume(context: Context, *, queue: str | None = None, name: str | None = None) -> int:
    """Let paused jobs wait for a worker again, optionally only those of a queue or a name; return how many do.

    Jobs arrive paused when a database is copied. They keep their time and their attempts. If another job with its key
    is waiting meanwhile, a paused job is deleted, because the other one does its work.
    """
    return await _each_job(context, queue, ("paused",), make_filter(None, name), _resume)


async def _resume(context: Context, record: JobRecord) -> JobRecord | None:
    waiting = replace(record, paused=False)
    refused = await _let_wait(context, record, waiting)
    if refused is None:
        ring(context, waiting.queue, shard_of(waiting.id))
        return waiting
    if refused.found.keys() == {_KEY}:
        await _forget(context, record)
    return None


async def delete(context: Context, id: str) -> JobRecord:
    """Delete a job that is not running, and return it."""
    record = await _fetch_one(context, id)
    if record.state == "running" or await _forget(context, record) is None:
        raise JobBusyError(f"the job {id} is running", hint="wait for it to end")
    return record


async def purge(
    context: Context,
    *,
    queue: str | None = None,
    name: str | None = None,
    state: JobState = "dead",
    before: datetime | None = None,
) -> int:
    """Delete all dead, waiting or paused jobs, optionally only those of a queue or a name.

    ``before`` limits this to jobs that died, or were due, before a time. Returns how many jobs were deleted.
    """
    if state not in ("dead", "waiting", "paused"):
        raise InvalidOptionsError(
            f"jobs in the state {state!r} cannot be purged",
            hint='pass state="dead", state="waiting" or state="paused"',
        )
    if before is not None:
        check_moment(before, "before")

    async def drop(context: Context, record: JobRecord) -> JobRecord | None:
        if before is not None and (record.died or record.due) >= before:
            return None
        return await _forget(context, record)

    return await _each_job(context, queue, (state,), make_filter(state, name), drop)


async def _forget(context: Context, record: JobRecord) -> JobRecord | None:
    """Delete a job together with its key; None if the job was changed meanwhile."""
    layout = await discover(context)
    change = Change(context)
    change.delete(JobItem(locate_job(layout, record)), expect=[_FREE])
    if record.key is not None:
        key = await fetch(context.port, JobKey(locate_key(layout, record.name, record.key)))
        if key.is_stored and key.job == record.id and key.until is None:
            change.delete(key, expect=[key.same(JobKey.job)])
    return record if await commit_once(change) is None else None


# --- pieces -----------------------------------------------------------------------------------------------


async def _fetch_one(context: Context, id: str) -> JobRecord:
    """The job with this id; an item that cannot be read as a job is first moved to the dead jobs."""
    item = await find_item(context, id)
    if item is None:
        raise JobNotFoundError(f"there is no job {id!r:.110}", hint="jobs that succeeded are deleted")
    found, moved = await read_jobs(context, [item])
    if not found and not moved:
        return decode_job(await discover(context), item)  # raises an error that says why it is not a job
    return (found or moved)[0]


async def _each_job(
    context: Context,
    queue: str | None,
    states: tuple[JobState, ...],
    filter: Condition | None,
    change: Callable[[Context, JobRecord], Coroutine[Any, Any, JobRecord | None]],
) -> int:
    """Change all jobs in these states, page by page; return how many were changed."""
    layout = await discover(context)
    changed = 0
    for each in await choose_queues(context, queue):
        for h in partitions(each, states):
            cursor = PageCursor(context.port, replace(layout.listing(h), filter=filter))
            while (page := await cursor.next_page()) is not None:
                records, _ = await read_jobs(context, page.items)
                flows = [change(context, record) for record in records]
                outcomes = await context.port.gather(flows)
                changed += sum(outcome.result() is not None for outcome in outcomes)
    return changed


_KEPT = 7 * 24 * 3600
"""Seconds that an occurrence's item is kept after its time: longer than any clock should be wrong."""


async def enqueue_next(context: Context, job: Job[*tuple[Any, ...]]) -> datetime:
    """Enqueue a recurring job's next occurrence, unless another worker already has; return when it is due.

    All workers compute the same occurrences from the same declaration, without a coordinator: each occurrence has its
    own item, and the write that enqueues it demands that this item does not exist yet. A worker whose clock is wrong
    may enqueue an occurrence too early, which then waits for its time, but it cannot make one be skipped or run twice.
    The job waits in its queue like any delayed job, so an occurrence is not lost if no worker runs at its time; if
    several pass meanwhile, only one is enqueued. The items expire by the table's TTL.
    """
    assert job.schedule is not None
    layout, port = await discover(context), context.port
    now = port.now()
    due = job.schedule.next_after(now)
    await register_queues(context, [job.options.queue])
    record = JobRecord(port.new_id(), job.name, job.options.queue, "[]", due, now)
    change = Change(context)
    change.create(
        Occurrence.new(
            locate_occurrence(layout, job.name, job.schedule.text, due),
            Occurrence.job.set(record.id),
            Occurrence.expires.set(int(due.timestamp()) + _KEPT),
        )
    )
    change.create(encode_job(layout, record))
    await commit_once(change)  # a refusal means that another worker was faster
    return due

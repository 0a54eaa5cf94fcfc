"""Flows that list, count, find, retry, resume and delete jobs.

Each reads only the queues that it concerns; finding a job by its id reads one shard of each queue.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from holdall.core.context import Context
from holdall.core.expressions import Condition
from holdall.core.frozen import replace
from holdall.core.requests import Page, Query
from holdall.errors import InvalidOptionsError, JobBusyError, JobNotFoundError
from holdall.jobs.declaration import Job, check_queue
from holdall.jobs.lease import move_job
from holdall.jobs.outbox import register_queues, ring
from holdall.jobs.quarantine import read_jobs
from holdall.jobs.record import (
    QUEUES,
    JobItem,
    JobKey,
    JobRecord,
    JobState,
    Occurrence,
    dead_partition,
    decode_job,
    encode_job,
    job_partition,
    locate_job,
    locate_key,
    locate_occurrence,
    name_paused_partition,
    partitions,
    postpone_job,
    shard_of,
)
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.commit.lock import all_of
from holdall.tables.flow import discover
from holdall.tables.record import fetch

_STATES: tuple[JobState, ...] = ("waiting", "running", "dead", "paused")
_LONGEST_ID = 100
_KEY = "key"
_FREE = JobItem.id.exists & JobItem.lease.absent
"""The job exists and no worker holds it."""


class JobCounts(NamedTuple):
    """How many jobs of a queue are waiting (including for their time), running, dead (given up), and paused."""

    waiting: int
    running: int
    dead: int
    paused: int = 0


# --- looking ----------------------------------------------------------------------------------------------


async def queues(context: Context) -> list[str]:
    """The names of all queues that a job was ever enqueued in."""
    layout = await discover(context)
    found: list[str] = []

    def collect(page: Page) -> None:
        found.extend(layout.logical(item)[1] for item in page.items)

    await _each_page(context, layout.listing(QUEUES), collect)
    return found


async def list_jobs(
    context: Context,
    *,
    queue: str | None = None,
    state: JobState | None = None,
    name: str | None = None,
    limit: int = 100,
) -> list[JobRecord]:
    """The first jobs of one queue or of all, by the time they are due; then dead jobs, by the time they died."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidOptionsError(f"limit must be a whole number from 1 up, not {limit!r}")
    layout = await discover(context)
    wanted = await _choose_queues(context, queue)
    states = _choose_states(state)
    filter = _make_filter(state, name)
    shards = [
        _fetch_first(context, replace(layout.listing(h), filter=filter), limit, states)
        for each in wanted
        for h in partitions(each, states)
    ]
    outcomes = await context.port.gather(shards)
    # by id, because a malformed item that was just moved may be found in both places
    found = {record.id: record for outcome in outcomes for record in outcome.result()}
    records = list(found.values())
    records.sort(key=lambda record: (record.died is not None, record.died or record.due, record.id))
    return records[:limit]


async def _fetch_first(
    context: Context, query: Query, limit: int, states: Sequence[JobState] = _STATES
) -> list[JobRecord]:
    found: list[JobRecord] = []
    while True:
        page = await context.port.send(replace(query, limit=max(limit, 100) if query.filter else limit))
        records, malformed = await read_jobs(context, page.items)
        found += records
        if "dead" in states:
            found += malformed
        if page.last_key is None or len(found) >= limit:
            return found[:limit]
        query = replace(query, start_after=page.last_key)


async def counts(context: Context, *, queue: str | None = None) -> dict[str, JobCounts]:
    """How many jobs each queue has; all of them are read to count them."""
    layout = await discover(context)
    found: dict[str, JobCounts] = {}
    for each in await _choose_queues(context, queue):
        alive = [_count(context, layout.listing(h)) for h in partitions(each, ("waiting",))]
        dead = [_count(context, layout.listing(h)) for h in partitions(each, ("dead",))]
        paused = [_count(context, layout.listing(h)) for h in partitions(each, ("paused",))]
        parts = [outcome.result() for outcome in await context.port.gather([*alive, *dead, *paused])]
        total, leased = (sum(part[place] for part in parts[: len(alive)]) for place in range(2))
        given_up, kept = parts[len(alive) : -len(paused)], parts[-len(paused) :]
        found[each] = JobCounts(
            total - leased, leased, sum(part[0] for part in given_up), sum(part[0] for part in kept)
        )
    return found


async def _count(context: Context, query: Query) -> tuple[int, int]:
    """How many jobs there are, and how many of them a worker holds."""
    total = leased = 0

    def count(page: Page) -> None:
        nonlocal total, leased
        total += page.count
        leased += sum(JobItem.lease.name in item for item in page.items)

    await _each_page(context, replace(query, projection=(JobItem.lease.path,)), count)
    return total, leased


async def find(context: Context, id: str) -> JobRecord | None:
    """The job with this id; None if it does not exist or has succeeded."""
    if not isinstance(id, str) or not id or len(id) > _LONGEST_ID:
        raise InvalidOptionsError(f"{id!r:.60} is not the id of a job")
    layout = await discover(context)
    same = JobItem.id.equals(id)
    for queue in await queues(context):
        for partition in (job_partition, dead_partition, name_paused_partition):
            h = partition(queue, shard_of(id))
            found = await _fetch_first(context, replace(layout.listing(h), filter=same), 1)
            if found:
                return found[0]
    return None


# --- changing ---------------------------------------------------------------------------------------------


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

    return await _each_job(context, queue, ("dead",), _make_filter("dead", name), revive)


async def _revive(context: Context, record: JobRecord) -> JobRecord | None:
    """Let a job wait again, due now; None if it was changed meanwhile or its key is taken."""
    layout = await discover(context)
    job = record if record.raw is None else decode_job(layout, record.raw)
    again = replace(postpone_job(job, context.port.now(), job.error), attempts=0)
    change = Change(context)
    move_job(change, layout, locate_job(layout, record), again, expect=[_FREE])
    if again.key is not None:
        key = JobKey.of(layout, again)
        free = key.address.absent | JobKey.job.equals(again.id) | JobKey.until.below(again.due)
        change.put(key, expect=[free])
    return again if await commit_once(change) is None else None


async def resume(context: Context, *, queue: str | None = None, name: str | None = None) -> int:
    """Let paused jobs wait for a worker again, optionally only those of a queue or a name; return how many do.

    Jobs arrive paused when a database is copied. They keep their time and their attempts. If another job with its key
    is waiting meanwhile, a paused job is deleted, because the other one does its work.
    """
    return await _each_job(context, queue, ("paused",), _make_filter(None, name), _resume)


async def _resume(context: Context, record: JobRecord) -> JobRecord | None:
    layout, waiting = await discover(context), replace(record, paused=False)
    change = Change(context)
    move_job(change, layout, locate_job(layout, record), waiting, expect=[_FREE])
    if waiting.key is not None:
        key = JobKey.of(layout, waiting)
        until = JobKey.until.below(context.port.now())
        change.put(key, expect=[key.address.absent | JobKey.job.equals(waiting.id) | until], label=_KEY)
    refused = await commit_once(change)
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
    if before is not None and (not isinstance(before, datetime) or before.tzinfo is None):
        raise InvalidOptionsError(
            f"before must be a datetime with a time zone, not {before!r:.60}",
            hint="pass, for example, datetime.now(timezone.utc)",
        )

    async def drop(context: Context, record: JobRecord) -> JobRecord | None:
        if before is not None and (record.died or record.due) >= before:
            return None
        return await _forget(context, record)

    return await _each_job(context, queue, (state,), _make_filter(state, name), drop)


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


async def _choose_queues(context: Context, queue: str | None) -> list[str]:
    if queue is None:
        return await queues(context)
    check_queue(queue)
    return [queue]


def _choose_states(state: JobState | None) -> tuple[JobState, ...]:
    if state is not None and state not in _STATES:
        raise InvalidOptionsError(
            f"{state!r:.60} is not a state of a job", hint=f"the states are: {', '.join(_STATES)}"
        )
    return _STATES if state is None else (state,)


def _make_filter(state: JobState | None, name: str | None) -> Condition | None:
    return all_of(
        [
            {"waiting": JobItem.lease.absent, "running": JobItem.lease.exists}.get(state or ""),
            None if name is None else JobItem.name.equals(name),
        ]
    )


async def _fetch_one(context: Context, id: str) -> JobRecord:
    record = await find(context, id)
    if record is None:
        raise JobNotFoundError(f"there is no job {id!r:.110}", hint="jobs that succeeded are deleted")
    return record


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
    for each in await _choose_queues(context, queue):
        for h in partitions(each, states):
            query = replace(layout.listing(h), filter=filter)
            while True:
                page = await context.port.send(query)
                records, _ = await read_jobs(context, page.items)
                flows = [change(context, record) for record in records]
                outcomes = await context.port.gather(flows)
                changed += sum(outcome.result() is not None for outcome in outcomes)
                if page.last_key is None:
                    break
                query = replace(query, start_after=page.last_key)
    return changed


async def _each_page(context: Context, query: Query, take: Callable[[Page], object]) -> None:
    while True:
        page = await context.port.send(query)
        take(page)
        if page.last_key is None:
            return
        query = replace(query, start_after=page.last_key)


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

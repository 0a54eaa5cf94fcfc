"""Enqueuing: how a job joins a transaction, so that it exists if and only if the transaction committed.

It is one more action of the transaction's own write. A job with a key is two: the job, and the guard that holds the
key. Where the key is taken there is no job to add; then the transaction only demands that it still is at its commit,
so that no enqueue is lost to a job that had already begun, and had perhaps read what the transaction is changing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from holdall.core.context import Context, Kept
from holdall.core.expressions import Compare, Condition, NotExists, Path, Value
from holdall.core.port import Port
from holdall.core.requests import BatchWrite, ConditionCheck, GetItem, PutItem, TransactAction
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidOptionsError
from holdall.jobs.arguments import arguments_text
from holdall.jobs.bell import ring
from holdall.jobs.declaration import DEFAULT_QUEUE, Job, check_name, check_queue, declared_jobs, seconds_of
from holdall.jobs.record import JobRecord, check_key, due_text, guard_place, queue_place, shard_of
from holdall.tables.commit.change import Change
from holdall.tables.commit.participant import Participant
from holdall.tables.commit.step import Step
from holdall.tables.flow import discover
from holdall.tables.layout import Layout
from holdall.transactions.enqueued import Enqueued

__all__ = ["Enqueuing", "add_queue", "guard_item", "planned"]

JOB = Path(("job_id",))


class Enqueuing(Participant):
    """The participant that adds one job."""

    def __init__(
        self, context: Context, enqueued: Enqueued, arguments: str, delay: float, once_for: float | None
    ) -> None:
        self.enqueued = enqueued
        self._context = context
        self._arguments = arguments
        self._delay = delay
        self._once_for = once_for
        self._adds = True

    async def state(self, change: Change) -> None:
        """The job, unless its key is taken."""
        actions = await self._actions(change.context.port)
        change.include(Change(change.context, [Step(action, self.enqueued) for action in actions]))

    async def _actions(self, port: Port) -> Sequence[TransactAction]:
        context, enqueued = self._context, self.enqueued
        layout = await discover(context)
        now = port.now()
        due = now + timedelta(seconds=self._delay) if self._delay else now
        record = JobRecord(
            enqueued.id,
            enqueued.name,
            enqueued.queue,
            self._arguments,
            due,
            now,
            0,
            enqueued.key,
            self._once_for,
        )
        put = PutItem(layout.table, record.item(layout), NotExists(JOB))
        if enqueued.key is None:
            return (put,)
        return await self._guarded(port, layout, put, now)

    async def _guarded(
        self, port: Port, layout: Layout, put: PutItem, now: datetime
    ) -> Sequence[TransactAction]:
        name, key = self.enqueued.name, self.enqueued.key
        assert key is not None
        place = guard_place(name, key)
        held = (await port.send(GetItem(layout.table, layout.key(*place), True))).item
        free = held is None or is_over(held, now)
        unchanged: Condition = NotExists(JOB)
        if held is not None:
            unchanged = Compare("=", JOB, Value(held["job_id"]))
        self._adds = free
        if not free:
            return (ConditionCheck(layout.table, layout.key(*place), unchanged),)
        return (put, PutItem(layout.table, guard_item(layout, name, key, self.enqueued.id), unchanged))

    async def prepare(self, port: Port) -> None:
        """Register the queue: for whoever wants to list them."""
        await add_queue(self._context, await discover(self._context), self.enqueued.queue)

    async def settle(self, port: Port) -> None:
        """The job is there, or one with its key is."""
        enqueued = self.enqueued
        enqueued.added = self._adds
        if self._adds and not self._delay:
            ring(self._context, enqueued.queue, shard_of(enqueued.id))


def guard_item(
    layout: Layout, name: str, key: str, id: str, until: datetime | None = None
) -> dict[str, Attribute]:
    """The guard of a key: held by a job, or (with ``until``) kept for a while after it."""
    item: dict[str, Attribute] = {
        **layout.attributes(*guard_place(name, key)),
        "_type": {"S": "holdall.JobKey"},
        "job_id": {"S": id},
    }
    if until is not None:
        item["job_until"] = {"S": due_text(until)}
        item["_ttl"] = {"N": str(int(until.timestamp()) + 1)}
    return item


def is_over(guard: Item, now: datetime) -> bool:
    """Whether a guard's time has passed."""
    return "job_until" in guard and guard["job_until"]["S"] < due_text(now)


class _Queues(Kept):
    """The queues that this process has registered."""

    def __init__(self) -> None:
        self.registered: set[str] = set()


async def add_queue(context: Context, layout: Layout, queue: str) -> None:
    """Note that there is such a queue, once per process: for whoever wants to list them."""
    registered = context.state.of(_Queues).registered
    if queue in registered:
        return
    item = {**layout.attributes(*queue_place(queue)), "_type": {"S": "holdall.Queue"}}
    # as a batch: where a reply is lost it is sent again, which does no harm here
    await context.port.send(BatchWrite((PutItem(layout.table, item),)))
    registered.add(queue)


def planned(
    context: Context,
    others: Sequence[Participant],
    job: Job[*tuple[Any, ...]] | str,
    arguments: Sequence[object],
    *,
    key: str | None,
    delay: object,
    queue: str | None,
) -> tuple[Enqueued, Enqueuing | None]:
    """What a call of ``tx.enqueue`` means; all that is wrong with it is told now. None when there is nothing to add."""
    name, options = _named(job)
    if isinstance(known := declared_jobs().get(name), Job):
        known.accepts(*arguments)
    if queue is None:
        queue = DEFAULT_QUEUE if options is None else options.queue
    check_queue(queue)
    wait = 0.0 if delay is None else seconds_of(delay, "delay")
    text = arguments_text(arguments)
    if key is not None:
        check_key(key)
        for other in others:
            if isinstance(other, Enqueuing) and (other.enqueued.name, other.enqueued.key) == (name, key):
                return other.enqueued, None
    enqueued = Enqueued(context.port.new_id(), name, queue, key)
    once_for = None if options is None or key is None else options.once_for
    if once_for is not None and _is_running_with(name, key):
        enqueued.added = False
        return enqueued, None
    return enqueued, Enqueuing(context, enqueued, text, wait, once_for)


def _is_running_with(name: str, key: str | None) -> bool:
    """Whether this code is a job's that itself holds the key: a transaction that ends it writes the guard anyway."""
    from holdall.jobs.running import current

    running = current.get()
    record = None if running is None else running.record
    return record is not None and record.once_for is not None and (record.name, record.key) == (name, key)


def _named(job: object) -> tuple[str, Any]:
    if isinstance(job, Job):
        return job.name, job.options
    if isinstance(job, str):
        check_name(job)
        known = declared_jobs().get(job)
        return job, None if known is None else known.options
    raise InvalidOptionsError(f"{job!r:.80} is no job", hint='declare the function with @holdall.job("name")')

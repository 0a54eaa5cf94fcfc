"""The outbox: how jobs join a transaction, so that they exist if and only if it commits.

A job adds one action to the transaction's write. A job with a key adds two: the job, and the item of its key. If
another job has the key, no job is added; instead, the commit demands that the other job still has the key. No enqueue
is therefore lost to a job that has already begun, and may already have read the data that the transaction changes.

The bell: a worker in the same process is notified at once of an enqueued job, and does not wait for its next poll. Only
workers on the same database object, or on its sync or async twin, are notified; all others find the job when they poll.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

from holdall.core.context import Context, Kept
from holdall.core.port import Port
from holdall.errors import InvalidOptionsError
from holdall.jobs.argument import format_arguments
from holdall.jobs.declaration import (
    Job,
    JobOptions,
    check_name,
    check_queue,
    declared_jobs,
    seconds_of,
)
from holdall.jobs.record import (
    JobKey,
    JobRecord,
    Queue,
    check_key,
    encode_job,
    locate_key,
    locate_queue,
    shard_of,
)
from holdall.tables.commit.change import Change, Participant
from holdall.tables.commit.flow import commit
from holdall.tables.flow import discover
from holdall.tables.record import fetch_all, put_all
from holdall.transactions.enqueued import Enqueueable, Enqueued

_UNKNOWN = JobOptions()
"""The options of a job that is enqueued by name, and declared only in the worker's process."""


class _Order(NamedTuple):
    """A job to add; ``delay`` and ``once_for`` are in seconds."""

    enqueued: Enqueued
    arguments: str
    delay: float
    once_for: float | None


class Outbox(Participant):
    """The participant that adds a transaction's jobs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._orders: list[_Order] = []
        self._keys: dict[tuple[str, str], Enqueued] = {}
        self._needless: set[str] = set()  # ids of jobs whose keys other jobs have

    @property
    def is_empty(self) -> bool:
        """Whether it adds nothing to the commit."""
        return not self._orders

    def add(
        self,
        job: Enqueueable[*tuple[Any, ...]] | str,
        arguments: Sequence[object],
        *,
        key: str | None = None,
        delay: object = None,
        queue: str | None = None,
    ) -> Enqueued:
        """Add a job; invalid arguments and options are refused now."""
        name, known = _resolve(job)
        options = _UNKNOWN if known is None else known.options
        if known is not None:
            known.accepts(*arguments)
        if queue is None:
            queue = options.queue
        else:
            check_queue(queue)
        wait = 0.0 if delay is None else seconds_of(delay, "delay")
        text = format_arguments(arguments)
        once_for = None
        if key is not None:
            check_key(key)
            if (name, key) in self._keys:
                return self._keys[name, key]
            once_for = options.once_for
        enqueued = Enqueued(self._context.port.new_id(), name, queue, key)
        if once_for is not None and _is_running_with(name, key):
            enqueued.added = False
            return enqueued
        if key is not None:
            self._keys[name, key] = enqueued
        self._orders.append(_Order(enqueued, text, wait, once_for))
        return enqueued

    async def state(self, change: Change) -> None:
        """Add the jobs to the commit, except those whose keys are taken."""
        port, layout = change.context.port, await discover(self._context)
        keys: dict[tuple[str, str], JobKey] = {}
        if self._keys:
            wanted = [JobKey(locate_key(layout, *each)) for each in self._keys]
            keys = dict(zip(self._keys, await fetch_all(port, wanted), strict=True))
        now = port.now()
        self._needless = set()
        for enqueued, arguments, delay, once_for in self._orders:
            id, name, key = enqueued.id, enqueued.name, enqueued.key
            due = now + timedelta(seconds=delay) if delay else now
            job = JobRecord(id, name, enqueued.queue, arguments, due, now, 0, key, once_for)
            if key is None:
                change.create(encode_job(layout, job))
                continue
            held = keys[name, key]
            unchanged = held.same(JobKey.job)
            if not held.is_stored or (held.until is not None and held.until < now):
                change.create(encode_job(layout, job))
                change.put(JobKey.of(layout, job), expect=[unchanged])
            else:
                change.require(held, unchanged)
                self._needless.add(id)

    async def prepare(self, port: Port) -> None:
        """Register the queues, so that they can be listed."""
        await register_queues(self._context, [order.enqueued.queue for order in self._orders])

    async def settle(self, port: Port) -> None:
        """Note which jobs were added, and notify workers of those that are due."""
        for enqueued, _, delay, _ in self._orders:
            enqueued.added = enqueued.id not in self._needless
            if enqueued.added and not delay:
                ring(self._context, enqueued.queue, shard_of(enqueued.id))


def plan_job(
    context: Context,
    participants: Sequence[Participant],
    job: Enqueueable[*tuple[Any, ...]] | str,
    arguments: Sequence[object],
    *,
    key: str | None,
    delay: object,
    queue: str | None,
) -> tuple[Enqueued, Outbox | None]:
    """Carry out ``tx.enqueue``; for a transaction's first job, also return the participant that must join it."""
    for participant in participants:
        if isinstance(participant, Outbox):
            return participant.add(job, arguments, key=key, delay=delay, queue=queue), None
    outbox = Outbox(context)
    return outbox.add(job, arguments, key=key, delay=delay, queue=queue), outbox


async def enqueue_alone(
    context: Context,
    job: Job[*tuple[Any, ...]] | str,
    *args: Any,
    key: str | None = None,
    delay: float | timedelta | None = None,
    queue: str | None = None,
) -> Enqueued:
    """Enqueue a job at once, in its own transaction. The arguments are those of ``tx.enqueue``."""
    outbox = Outbox(context)
    enqueued = outbox.add(job, args, key=key, delay=delay, queue=queue)

    async def body(change: Change) -> None:
        change.join(outbox)

    await commit(context, body, f"the key {enqueued.key!r} of the job {enqueued.name}")
    return enqueued


class _Queues(Kept):
    """The queues that this process has registered."""

    def __init__(self) -> None:
        self.names: set[str] = set()


async def register_queues(context: Context, queues: Collection[str]) -> None:
    """Store the names of queues, each once per process, so that they can be listed."""
    registered = context.state.of(_Queues).names
    new = {*queues} - registered
    if not new:
        return
    layout = await discover(context)
    await put_all(context.port, [Queue.new(locate_queue(layout, queue)) for queue in new])
    registered.update(new)


def _is_running_with(name: str, key: str | None) -> bool:
    """Whether the calling job itself has this key: a transaction that ends the job writes the key anyway."""
    from holdall.jobs.attempt import current

    running = current.get()
    job = None if running is None else running.record
    return job is not None and job.once_for is not None and (job.name, job.key) == (name, key)


def _resolve(job: object) -> tuple[str, Job[*tuple[Any, ...]] | None]:
    """The name of a job, and the job if it is declared in this process."""
    if isinstance(job, Job):
        return job.name, job
    if isinstance(job, str):
        check_name(job)
        return job, declared_jobs().get(job)
    raise InvalidOptionsError(
        f"{job!r:.80} is not a job", hint='declare the function with @holdall.job("name")'
    )


Ring: TypeAlias = Callable[[str, str], None]
"""A listener; called with a queue and a shard, in any thread."""


class _Rings(list[Ring]):
    """The listeners of a database."""


@contextmanager
def listen(context: Context, listener: Ring) -> Iterator[None]:
    """Within the block, call the listener for each enqueued job that is due at once."""
    rings = context.state.of(_Rings)
    rings.append(listener)
    try:
        yield
    finally:
        rings.remove(listener)


def ring(context: Context, queue: str, shard: str) -> None:
    """Notify the listeners that a job was put into a shard."""
    for listener in tuple(context.state.of(_Rings)):
        listener(queue, shard)

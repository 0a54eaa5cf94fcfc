"""The worker itself: lanes that run one job after the other, a heartbeat for leases, a scheduler for recurring jobs."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict

from holdall.backends.process import Children
from holdall.core.generator import refuse_generator_function
from holdall.core.option import check_count
from holdall.errors import HoldallError, InvalidOptionsError
from holdall.features import declare_jobs
from holdall.jobs.declaration import DEFAULT_QUEUE, Job, check_queues, declared_jobs
from holdall.jobs.flow import enqueue_next
from holdall.jobs.lease import release, take
from holdall.jobs.outbox import Ring, listen
from holdall.jobs.record import JobRecord, lend_job
from holdall.worker.event import Hook, JobEvent, Reporter, WorkerMetrics
from holdall.worker.feed import Feed
from holdall.worker.hand import Hands
from holdall.worker.pool import Threads
from holdall.worker.runner import Runner, is_cancelled

if TYPE_CHECKING:
    from holdall.async_database import AsyncDatabase

logger = logging.getLogger("holdall.worker")

_MOST_AT_ONCE = 1000


class WorkerArguments(TypedDict, total=False):
    """The keyword arguments of ``db.worker``."""

    queues: Iterable[str]
    concurrency: int
    lease: float
    poll_interval: float
    grace: float
    processes: int | None
    hooks: Sequence[Callable[[JobEvent], Any]]
    jobs: Iterable[Job[*tuple[Any, ...]]] | None


class Worker:
    """Runs the jobs of some queues, up to ``concurrency`` at a time; earlier queues have priority over later ones.

    ``lease`` is how many seconds pass before other workers may take a job whose worker has died. ``poll_interval`` is
    how many seconds pass before an empty queue is polled again: an idle worker sends 16 requests per queue in that
    time. ``grace`` is how many seconds jobs may go on after `stop`. ``processes`` limits the child processes for jobs
    declared with ``process=True``; by default there is one per CPU. ``hooks`` are called with each `JobEvent`. ``jobs``
    are the jobs that this worker runs, by default all that are declared.

    In an ``async with`` block it runs jobs until the block ends. `run` works until `stop`, `drain` until no job is due.
    """

    def __init__(
        self,
        db: AsyncDatabase,
        *,
        queues: Iterable[str] = (DEFAULT_QUEUE,),
        concurrency: int = 10,
        lease: float = 30.0,
        poll_interval: float = 1.0,
        grace: float = 25.0,
        processes: int | None = None,
        hooks: Sequence[Hook] = (),
        jobs: Iterable[Job[*tuple[Any, ...]]] | None = None,
    ) -> None:
        self._db = db
        self._queues = check_queues(queues)
        check_count(concurrency, "concurrency", _MOST_AT_ONCE)
        self._concurrency = concurrency
        self._lease = _check_seconds("lease", lease)
        self._interval = _check_seconds("poll_interval", poll_interval)
        self._grace = _check_seconds("grace", grace, least=0.0)
        if processes is not None:
            check_count(processes, "processes", _MOST_AT_ONCE)
        self._processes = os.cpu_count() or 1 if processes is None else processes
        self._given = None if jobs is None else {job.name: job for job in map(_check_job, jobs)}
        self._reporter = Reporter(_check_hooks(hooks))
        self._feed: Feed | None = None
        self.stopping = False
        self._bell: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._unknown: set[str] = set()

    @property
    def metrics(self) -> WorkerMetrics:
        """What it has done so far."""
        return self._reporter.metrics

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that it works on, in order of priority."""
        return self._queues

    def stop(self) -> None:
        """Take no more jobs; `run` returns when the running ones are done, or after ``grace`` seconds."""
        self.stopping = True
        if self._feed is not None and self._bell is not None:
            self._feed.stop()
            self._bell.set()

    async def run(self) -> None:
        """Run jobs until `stop` is called."""
        await self._work(once=False)

    async def drain(self) -> WorkerMetrics:
        """Run all jobs that are due, and those that they enqueue without a delay; return what was done.

        Jobs that wait for their time, or that other workers hold, are left alone.
        """
        while not self.stopping:
            before = self.metrics.started + self.metrics.dead + self.metrics.dropped
            await self._work(once=True)
            if self.metrics.started + self.metrics.dead + self.metrics.dropped == before:
                break
        return self.metrics

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run())
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        assert self._task is not None
        await self._task

    # --- working ------------------------------------------------------------------------------------------

    async def _work(self, *, once: bool) -> None:
        declare_jobs()
        jobs = declared_jobs() if self._given is None else self._given
        hands = Hands(self._db._context, self._lease)
        feed = self._feed = Feed(
            self._db._context,
            self._queues,
            lambda record: self._is_known(record, jobs),
            interval=self._interval,
            page=min(100, max(16, 2 * self._concurrency)),
            running=hands,
            reporter=self._reporter,
            once=once,
        )
        self._bell = asyncio.Event()
        if self.stopping:
            self.stop()
        threads = Threads()
        children = Children(self._processes, import_main=True)
        runner = Runner(self._db, jobs, hands, self._reporter, threads, children)
        beside = [asyncio.create_task(hands.keep_leases())]
        recurring = [
            job for job in jobs.values() if job.schedule is not None and job.options.queue in self._queues
        ]
        if not once:
            beside += [asyncio.create_task(self._enqueue_occurrences(job)) for job in recurring]
        try:
            with listen(self._db._context, _make_ring(feed)):
                await self._run_lanes(feed, runner, beside)
        finally:
            await _cancel(beside)
            threads.close()
            children.close()

    async def _run_lanes(self, feed: Feed, runner: Runner, beside: Sequence[asyncio.Task[None]]) -> None:
        """Let the lanes run until the feed has ended and all jobs are done; after `stop`, for ``grace`` at most."""
        lanes = {asyncio.create_task(self._run_lane(feed, runner)) for _ in range(self._concurrency)}
        assert self._bell is not None
        stopping = asyncio.create_task(self._bell.wait())
        waiting: set[asyncio.Task[Any]] = {*lanes, stopping, *beside}
        try:
            while lanes and not self.stopping:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                lanes -= done
                _check(done)
            if lanes:
                done, lanes = await asyncio.wait(lanes, timeout=self._grace)
                _check(done)
        finally:
            feed.stop()
            stopping.cancel()
            await _cancel(lanes)

    async def _run_lane(self, feed: Feed, runner: Runner) -> None:
        """Take and run one job after the other."""
        while (record := await feed.next()) is not None:
            try:
                taken = await self._take(record)
            except HoldallError as error:
                if not (error.retryable or error.code == "outcome-unknown"):
                    raise
                logger.debug("a job %s could not be taken (%s)", record.name, error.code)
                feed.note_failed(record)
                continue
            feed.note_tried(record, by_others=taken is None)
            if taken is None:
                self.metrics.collisions += 1
            else:
                await runner.run(taken)

    async def _take(self, record: JobRecord) -> JobRecord | None:
        """Take a job; if this task is cancelled meanwhile, return the job rather than leave it leased but not run."""
        context = self._db._context
        token = context.port.new_id()
        try:
            return await take(context, record, token, self._lease)
        except asyncio.CancelledError:
            with suppress(HoldallError):  # the job was not taken after all, or its lease will expire
                await release(context, lend_job(record, token, context.port.now(), self._lease))
            raise

    async def _enqueue_occurrences(self, job: Job[*tuple[Any, ...]]) -> None:
        """Keep a recurring job's next occurrence in its queue."""
        context = self._db._context
        while True:
            try:
                due = await enqueue_next(context, job)
            except HoldallError as error:
                if is_cancelled():  # a write under way reports its own outcome, not the cancellation
                    raise asyncio.CancelledError from error
                if not (error.retryable or error.code == "outcome-unknown"):
                    raise
                logger.warning("the next run of the job %s could not be enqueued (%s)", job.name, error.code)
                await asyncio.sleep(1 + context.port.random())
                continue
            while (left := (due - (now := context.port.now())).total_seconds()) > 0:
                if job.schedule is not None and job.schedule.next_after(now) < due:
                    break  # the clock was set back, so other occurrences come first
                await asyncio.sleep(min(left, _LOOK_AGAIN))

    def _is_known(self, record: JobRecord, jobs: Mapping[str, Job[*tuple[Any, ...]]]) -> bool:
        """Whether this worker can run it; a job that is not declared here is left to other workers, and logged once."""
        if record.name in jobs:
            return True
        if record.name not in self._unknown:
            self._unknown.add(record.name)
            logger.warning(
                "the job %s is not declared in this worker, and is left to other workers", record.name
            )
        return False


_LOOK_AGAIN = 30.0
"""The longest sleep, in seconds, before the clock is read again, because clocks can jump."""


def _make_ring(feed: Feed) -> Ring:
    """A listener that wakes the feed from any thread in which a job is enqueued."""
    loop, process = asyncio.get_running_loop(), os.getpid()

    def ring(queue: str, shard: str) -> None:
        if os.getpid() == process:  # a forked child inherits the loop, but does not run it
            with suppress(RuntimeError):  # the loop was just closed
                loop.call_soon_threadsafe(feed.wake, queue, shard)

    return ring


def _check(done: Iterable[asyncio.Task[Any]]) -> None:
    """Raise the error of a task that no retry can help, which ends the worker; every task's error is retrieved."""
    errors = [error for task in done if not task.cancelled() and (error := task.exception()) is not None]
    if errors:
        raise errors[0]


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended."""
    left = list(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _check_job(given: object) -> Job[*tuple[Any, ...]]:
    if not isinstance(given, Job):
        raise InvalidOptionsError(
            f"{given!r:.80} is not a job", hint="declare the function with @holdall.job"
        )
    return given


def _check_hooks(hooks: Sequence[Hook]) -> Sequence[Hook]:
    from inspect import iscoroutinefunction

    for hook in hooks:
        if not callable(hook) or iscoroutinefunction(hook):
            raise InvalidOptionsError(
                f"{hook!r:.80} cannot be a hook", hint="pass a plain function with one parameter, a JobEvent"
            )
        refuse_generator_function(hook, "a hook")
    return hooks


def _check_seconds(name: str, value: object, *, least: float = 0.01) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 86400:
        raise InvalidOptionsError(f"{name} must be from {least:g} to 86400 seconds, not {value!r}")
    return float(value)

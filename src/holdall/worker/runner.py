"""One attempt at a job, from the moment it was taken to the write that ends it.

It is safe for the worker to die at any moment: the job's item stays in its place until a single write ends the job. A
worker that dies before that leaves a lease, which expires. An attempt is counted when it begins, so a job that kills
its worker is given up like one that fails.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.backends.process import Children
from holdall.core.context import Context
from holdall.core.generator import refuse_generator
from holdall.core.port import run
from holdall.core.telemetry import span
from holdall.core.traceback import shorten_traceback
from holdall.errors import HoldallError, JobDefinitionError, JobTimeoutError, LeaseLostError, OutcomeUnknown
from holdall.jobs import lease
from holdall.jobs.argument import load_arguments
from holdall.jobs.attempt import Ending, RunningJob, current
from holdall.jobs.declaration import Job
from holdall.jobs.locator import Gone
from holdall.jobs.record import JobRecord
from holdall.worker.child import run_in_child
from holdall.worker.event import EventKind, JobEvent, Reporter
from holdall.worker.hand import Hand, Hands
from holdall.worker.pool import Threads

if TYPE_CHECKING:
    from holdall.async_database import AsyncDatabase

_TRIES = 6
_COURTESY = 5.0
"""How many seconds a cancelled task gets to end before the worker stops waiting for it."""
_LONGEST_ERROR = 4000

AnyJob = Job[*tuple[Any, ...]]
End: TypeAlias = "Callable[[Context, JobRecord], Awaitable[lease.Failure | None]]"
"""The write that ends a job."""


class Runner:
    """Runs jobs, and stores and reports their outcome."""

    def __init__(
        self,
        db: AsyncDatabase,
        jobs: Mapping[str, AnyJob],
        hands: Hands,
        reporter: Reporter,
        threads: Threads,
        children: Children,
    ) -> None:
        self._db = db
        self._context = db._context
        self._jobs = jobs
        self._hands = hands
        self._reporter = reporter
        self._threads = threads
        self._children = children

    async def run(self, record: JobRecord) -> None:
        """Run a job that was just taken."""
        job = self._jobs[record.name]
        hand = self._hands[record.id] = Hand(
            record, self._context, lambda: self._db if job.is_async else self._db.sync
        )
        self._reporter.metrics.running += 1
        begun = time.monotonic()
        about = {
            "holdall.job.name": record.name,
            "holdall.job.queue": record.queue,
            "holdall.job.attempt": record.attempts,
        }
        try:
            with span("holdall.job", about) as spanned:
                kind, error = await self._attempt(job, hand)
                spanned.set("holdall.job.outcome", kind)
        finally:
            self._reporter.metrics.running -= 1
            self._hands.drop(hand)
        self._report(kind, record, time.monotonic() - begun, error)

    async def _attempt(self, job: AnyJob, hand: Hand) -> tuple[EventKind, BaseException | None]:
        record = hand.running.record
        if record.attempts > job.options.retries + 1:
            worn = record.error or "no attempt reported a result: each worker died or lost its lease"
            return await self._end(hand, "dead", partial(lease.bury, error=worn)), None
        self._report("started", record)
        try:
            await self._work(job, hand)
        except Gone as gone:
            return await self._end(hand, "dropped", lease.finish), gone
        except (LeaseLostError, OutcomeUnknown) as error:
            if hand.running.ended:
                return "succeeded", None  # only a heartbeat came too late
            if not (job.options.transactional or hand.lost.done()):
                return await self._fail(job, hand, error)  # raised by the function's own writes
            return "lost", error  # who holds it, or whether it is done, is known once the lease is over
        except asyncio.CancelledError as error:
            if is_cancelled():
                await asyncio.shield(self._give_back(hand))
                raise
            return await self._fail(job, hand, error)
        except BaseException as error:  # noqa: BLE001 - a job's error must not end the worker
            if hand.running.ended:
                return "succeeded", error  # a step after its commit failed
            return await self._fail(job, hand, error)
        if job.options.transactional:
            return "succeeded", None
        return await self._end(hand, "succeeded", lease.finish), None

    # --- the work -----------------------------------------------------------------------------------------

    async def _work(self, job: AnyJob, hand: Hand) -> None:
        """Call the job's function, and wait until it ends, takes too long, or the lease is lost."""
        running = hand.running
        arguments: list[Any] = []
        if not job.options.transactional:
            arguments = await load_arguments(self._context, None, running.record.arguments)
        work = self._start(job, running, arguments)
        try:  # run_in_child enforces the timeout itself, because waiting for a free child does not count
            await _await_first(None if job.options.process else job.options.timeout, work, hand.lost)
        except asyncio.CancelledError:  # the worker is stopping, and its grace period is over
            await _stop(work, running)
            raise
        if work.done():
            work.result()
            return
        await _stop(work, running)
        if _has_succeeded(work) and job.options.transactional:
            return  # it finished just in time, and its commit ended the job
        if hand.lost.done():
            raise LeaseLostError(f"the lease on the job {job.name} {running.id} was lost while it ran")
        raise JobTimeoutError(f"the job {job.name} took more than {job.options.timeout:g} seconds")

    def _start(self, job: AnyJob, running: RunningJob, arguments: list[Any]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        context = copy_context()
        context.run(current.set, running)
        if job.options.process:
            short = self._context.settings.tracebacks != "full"
            child = run_in_child(self._children, job, running.record, arguments, short=short)
            return loop.create_task(child, context=context)
        if job.is_async:
            work = self._await_transaction if job.options.transactional else _await_function
            return loop.create_task(_contain(work(job, running, arguments)), context=context)
        call = self._call_transaction if job.options.transactional else _call_function
        return self._threads.run(context.run, call, job, running, arguments)

    async def _await_transaction(self, job: AnyJob, running: RunningJob, arguments: list[Any]) -> None:
        async def body(tx: Any) -> None:
            running.check_lease()  # after contention: another worker may hold the job now
            given = await load_arguments(tx._context, tx._unit, running.record.arguments)
            refuse_generator(await job.function(tx, *given), job.function)
            tx.join(Ending(tx._context, running))

        await self._db.run(body)

    def _call_transaction(self, job: AnyJob, running: RunningJob, arguments: list[Any]) -> None:
        def body(tx: Any) -> None:
            running.check_lease()
            given = run(load_arguments(tx._context, tx._unit, running.record.arguments))
            _refuse_promise(job, job.function(tx, *given))
            tx.join(Ending(tx._context, running))

        self._db.sync.run(body)

    # --- the end ------------------------------------------------------------------------------------------

    async def _fail(self, job: AnyJob, hand: Hand, error: BaseException) -> tuple[EventKind, BaseException]:
        shorten_traceback(error, self._context)
        attempts, text = hand.running.attempt, _describe(error)
        if attempts > job.options.retries:
            return await self._end(hand, "dead", partial(lease.bury, error=text)), error
        delay = job.options.delay(attempts, self._context.port.random())
        return await self._end(hand, "failed", partial(lease.fail, error=text, delay=delay)), error

    async def _end(self, hand: Hand, kind: EventKind, end: End) -> EventKind:
        """Write a job's end, with retries, while heartbeats pause; return what became of the job.

        That is ``kind``, or ``superseded``, or ``lost`` if this worker no longer holds the job.
        """
        unknown = False
        async with hand.quiet:
            self._hands.drop(hand)
            for tried in range(_TRIES):
                sent = False
                try:
                    # the lease's token is unknown, or another worker may have ended the job; without an extension,
                    # a missing job would not prove that this worker's own deletion was carried out
                    if len(hand.running.tokens) > 1 or self._hands.is_over(hand):
                        await self._hands.extend_lease(hand)
                    sent = True
                    outcome = await end(self._context, hand.running.record)
                except LeaseLostError:
                    return kind if unknown else "lost"  # if a reply was lost, the job had already been ended
                except HoldallError as error:
                    unsure = isinstance(error, OutcomeUnknown)
                    unknown = unknown or (sent and unsure)
                    if not (error.retryable or unsure or unknown):
                        raise
                    await asyncio.sleep(0.05 * 2**tried)
                else:
                    return "superseded" if outcome == "superseded" else kind
        return "lost"

    async def _give_back(self, hand: Hand) -> None:
        """Release a job because the worker stops now, so that the next worker need not wait for the lease to expire."""
        record = hand.running.record
        self._report(await self._end(hand, "released", lease.release), record)

    def _report(
        self, kind: EventKind, record: JobRecord, seconds: float = 0.0, error: BaseException | None = None
    ) -> None:
        self._reporter.report(
            JobEvent(kind, record.name, record.id, record.queue, record.attempts, seconds, error)
        )


async def _await_first(timeout: float | None, *futures: asyncio.Future[Any]) -> None:
    """Wait until one future is done, or the timeout is over; `asyncio.wait` itself takes longer than most jobs."""
    for future in futures:
        if future.done():
            return
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake(_: object) -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = None if timeout is None else loop.call_later(timeout, wake, None)
    for future in futures:
        future.add_done_callback(wake)
    try:
        await waiter
    finally:
        for future in futures:
            future.remove_done_callback(wake)
        if timer is not None:
            timer.cancel()


async def _stop(work: asyncio.Future[Any], running: RunningJob) -> None:
    """Stop work as far as possible: a task is cancelled, a child is killed, a thread can only check ``lost``."""
    running.lost = True
    work.cancel()
    if isinstance(work, asyncio.Task):
        await asyncio.wait({work}, timeout=_COURTESY)
    if work.done() and not work.cancelled():
        work.exception()  # retrieved, so that asyncio does not log it: the work was asked to stop


def _has_succeeded(work: asyncio.Future[Any]) -> bool:
    return work.done() and not work.cancelled() and work.exception() is None


async def _contain(work: Coroutine[Any, Any, None]) -> None:
    """Await a job's function; an error that would end the event loop, and the worker with it, only fails the job."""
    try:
        await work
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"the function raised {type(error).__name__}: {error}") from error


async def _await_function(job: AnyJob, running: RunningJob, arguments: list[Any]) -> None:
    refuse_generator(await job.function(*arguments), job.function)


def _call_function(job: AnyJob, running: RunningJob, arguments: list[Any]) -> None:
    _refuse_promise(job, job.function(*arguments))


def _refuse_promise(job: AnyJob, result: object) -> None:
    """Refuse a coroutine from a plain function, such as a wrapper around an async one: nothing has run yet."""
    refuse_generator(result, job.function)
    if not isinstance(result, Awaitable):
        return
    if isinstance(result, Coroutine):
        result.close()
    raise JobDefinitionError(
        f"the job {job.name} is a plain function, but returned a {type(result).__name__}, which is never awaited",
        hint="make the outermost function async; a decorator around it may have made it a plain one",
    )


def is_cancelled() -> bool:
    """Whether this task was cancelled, rather than a job having raised the error itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _describe(error: BaseException) -> str:
    """An error as it is stored with its job: the end of its traceback, where the cause is."""
    lines = "".join(traceback.format_exception(error)).strip()
    text = lines.encode("utf-8", "backslashreplace").decode()  # filenames can contain lone surrogates
    if len(text) <= _LONGEST_ERROR:
        return text
    # the end of a long message lacks the type
    return f"{type(error).__qualname__}: …{text[-_LONGEST_ERROR:]}"

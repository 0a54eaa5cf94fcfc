"""Jobs that fail: they are retried, given up and reported with their error, and never harm the worker."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory, lose_after, on_servers

from holdall import Database, current_job, job
from holdall.core.requests import DeleteItem, Query, TransactWrite, UpdateItem
from holdall.errors import JobTimeoutError, OutcomeUnknown, StoreClosedError, ThrottledError

done: list[Any] = []
begun = threading.Event()
may_finish = threading.Event()


@job("failures-note")
def note(word: str) -> None:
    done.append(word)


@job("failures-twice", retries=3, backoff=10)
def twice() -> None:
    done.append(current_job().attempt)
    if current_job().attempt <= 2:
        raise ValueError(f"attempt {current_job().attempt} fails")


@job("failures-twice-async", retries=3, backoff=10)
async def twice_async() -> None:
    twice()


@job("failures-never", retries=2, backoff=10)
def never() -> None:
    done.append(current_job().attempt)
    raise ValueError("a hopeless case")


@job("failures-once", retries=0)
def hopeless(kind: str = "") -> None:
    done.append("tried")
    raise FAILURES[kind]


@job("failures-once-async", retries=0)
async def hopeless_async(kind: str = "") -> None:
    done.append("tried")
    raise FAILURES[kind]


@job("failures-exit-async", retries=0)
async def exits(kind: str) -> None:
    raise EXITS[kind]


@job("failures-wrapped", retries=0)
def call_wrapped() -> Any:
    return note_awaited()


async def note_awaited() -> None:
    done.append("awaited")


def continue_later() -> Iterator[None]:
    done.append("continued")
    yield


@job("failures-generator", retries=0)
def generator() -> Any:
    return continue_later()


@job("failures-generator-async", retries=0)
async def generator_async() -> Any:
    return continue_later()


@job("failures-generator-transactional", retries=0, transactional=True)
async def generator_transactional(tx: Any) -> Any:
    return continue_later()


@job("failures-wrapped-transactional", retries=0, transactional=True)
def call_wrapped_in_transaction(tx: Any) -> Any:
    return note_awaited()


@job("failures-long", retries=0)
def long_winded() -> None:
    raise ValueError("beginning " + "x" * 100_000 + " end")


@job("failures-slow", retries=0, timeout=0.02)
def slow() -> None:
    running = current_job()
    begun.set()
    assert may_finish.wait(30)
    done.append(running.lost)


@job("failures-slow-async", retries=1, backoff=10, timeout=0.02)
async def slow_async() -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        done.append("cancelled")
        raise


@job("failures-stubborn-async", retries=0, timeout=0.02)
async def stubborn_async() -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        done.append("continued")


@job("failures-quick", retries=0, timeout=60)
async def quick() -> None:
    done.append("quick")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


FAILURES: dict[str, BaseException] = {
    "plain": ValueError("plain"),
    "without text": UnspeakableError(),
    "lone surrogate": ValueError("file \udcff"),
    "stop iteration": StopIteration("over"),
    "stop async iteration": StopAsyncIteration("over"),
    "generator exit": GeneratorExit("over"),
    "cancelled": asyncio.CancelledError("by itself"),
    "group": ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
    "base": BaseException("base"),
    "timeout": TimeoutError("its own"),
    "unknown outcome": OutcomeUnknown("of its own write"),
}
EXITS: dict[str, BaseException] = {"exit": SystemExit(3), "interrupt": KeyboardInterrupt()}


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()
    begun.clear()
    may_finish.clear()


# --- retries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [twice, twice_async], ids=["sync", "async"])
@everywhere
async def test_a_failed_job_is_retried(db: Rig, which: Any) -> None:
    handle = await db.enqueue(which)
    for attempt in (1, 2):
        await db.drain()
        record = await db.get_only()
        assert (record.id, record.state, record.attempts) == (handle.id, "waiting", attempt)
        assert f"ValueError: attempt {attempt} fails" in str(record.error)
        db.clock.forward(60)
    await db.drain()
    assert await db.jobs.list() == []
    assert db.kinds() == ["started", "failed", "started", "failed", "started", "succeeded"]
    assert [event.attempt for event in db.events] == [1, 1, 2, 2, 3, 3]


@on_servers
async def test_a_job_that_fails_for_good_is_kept_among_the_dead(db: Rig) -> None:
    handle = await db.enqueue(never, queue="q")
    for _ in range(3):
        await db.drain(queues=["q"])
        db.clock.forward(60)
    record = await db.get_only()
    assert (record.id, record.state, record.attempts, record.queue) == (handle.id, "dead", 3, "q")
    assert record.died is not None
    assert record.died >= record.due >= record.enqueued
    assert str(record.error).startswith("Traceback")
    assert "in never" in str(record.error)
    assert str(record.error).endswith("ValueError: a hopeless case")
    assert done == [1, 2, 3]
    assert db.kinds()[-1] == "dead"
    assert (await db.drain(queues=["q"])).started == 0


@everywhere
async def test_a_job_without_retries_is_tried_once(db: Rig) -> None:
    await db.enqueue(hopeless, "plain")
    await db.drain()
    assert db.kinds() == ["started", "dead"]


@in_memory
async def test_only_the_end_of_a_long_error_is_kept(db: Rig) -> None:
    await db.enqueue(long_winded)
    await db.drain()
    error = str((await db.get_only()).error)
    assert error.endswith(" end")
    assert len(error) < 5000


@pytest.mark.parametrize("which", [hopeless, hopeless_async], ids=["sync", "async"])
@pytest.mark.parametrize("kind", FAILURES)
@in_memory
async def test_everything_that_a_job_raises_is_its_own_failure(db: Rig, which: Any, kind: str) -> None:
    await db.enqueue(which, kind)
    await db.enqueue(note, "the next")
    metrics = await db.drain(concurrency=1)
    assert (metrics.dead, metrics.succeeded, metrics.lost) == (1, 1, 0)
    assert sorted(done) == ["the next", "tried"]
    assert (await db.get_only()).error


@pytest.mark.parametrize("kind", EXITS)
@in_memory
async def test_a_job_that_would_end_the_program_is_a_failure(db: Rig, kind: str) -> None:
    await db.enqueue(exits, kind)
    await db.enqueue(note, "the next")
    metrics = await db.drain(concurrency=1)
    assert (metrics.dead, metrics.succeeded) == (1, 1)
    assert type(EXITS[kind]).__name__ in str((await db.get_only()).error)


@in_memory
async def test_a_job_in_a_thread_that_would_end_the_program_is_a_failure(
    db: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAILURES, "exit", SystemExit(3))
    await db.enqueue(hopeless, "exit")
    assert (await db.drain()).dead == 1
    assert "SystemExit" in str((await db.get_only()).error)


@pytest.mark.parametrize(
    "which",
    [call_wrapped, call_wrapped_in_transaction, generator, generator_async, generator_transactional],
    ids=lambda job: job.name,
)
@in_memory
async def test_a_function_that_returns_a_coroutine_or_generator_has_failed(db: Rig, which: Any) -> None:
    await db.enqueue(which)
    assert (await db.drain()).dead == 1
    assert done == []
    gc.collect()  # Python would report a coroutine that was never awaited here


# --- timeouts -------------------------------------------------------------------------------------------


@everywhere
async def test_an_async_job_that_takes_too_long_is_cancelled(db: Rig) -> None:
    await db.enqueue(slow_async)
    await db.drain()
    assert done == ["cancelled"]
    assert db.kinds() == ["started", "failed"]
    assert isinstance(db.events[-1].error, JobTimeoutError)
    assert "JobTimeoutError" in str((await db.get_only()).error)


@in_memory
async def test_an_async_job_that_ignores_its_cancellation_has_still_failed(db: Rig) -> None:
    await db.enqueue(stubborn_async)
    await db.drain()
    assert done == ["continued"]
    assert db.kinds() == ["started", "dead"]


@everywhere
async def test_a_job_in_a_thread_that_takes_too_long_is_abandoned_and_can_see_that(db: Rig) -> None:
    await db.enqueue(slow)
    await db.drain()
    await db.until(begun.is_set)
    assert db.kinds() == ["started", "dead"]
    assert isinstance(db.events[-1].error, JobTimeoutError)
    may_finish.set()
    await db.until(lambda: done == [True])


@in_memory
async def test_abandoned_threads_do_not_block_other_jobs(db: Rig) -> None:
    for _ in range(5):
        await db.enqueue(slow)
    await db.enqueue(note, "the next", delay=0)
    metrics = await db.drain(concurrency=2)
    assert (metrics.dead, metrics.succeeded) == (5, 1)
    may_finish.set()
    await db.until(lambda: done.count(True) == 5)


@in_memory
async def test_a_job_that_is_quick_enough_does_not_time_out(db: Rig) -> None:
    await db.enqueue(quick)
    assert (await db.drain()).succeeded == 1


# --- errors of the store --------------------------------------------------------------------------------


@everywhere
async def test_a_worker_survives_a_store_that_refuses_for_a_while(db: Rig) -> None:
    await db.enqueue(note, "through")
    failures = iter([ThrottledError("on purpose")])

    def meddle(request: Any) -> None:
        if isinstance(request, Query) and (error := next(failures, None)) is not None:
            raise error

    db.recorder.before = meddle
    assert (await db.drain()).succeeded == 1


@pytest.mark.parametrize("kind", [UpdateItem, DeleteItem])
@everywhere
async def test_the_end_of_a_job_is_written_despite_passing_errors(db: Rig, kind: Any) -> None:
    await db.enqueue(note, "through")
    failures = iter([ThrottledError("on purpose")] * 2)

    def meddle(request: Any) -> None:
        if isinstance(request, kind) and (error := next(failures, None)) is not None:
            raise error

    db.recorder.before = meddle
    assert (await db.drain()).succeeded == 1
    assert done == ["through"]
    assert await db.jobs.list() == []


@everywhere
async def test_a_job_has_ended_even_if_the_reply_to_its_last_write_is_lost(db: Rig) -> None:
    await db.enqueue(note, "once")
    db.recorder.after = lose_after(DeleteItem)
    assert (await db.drain()).succeeded == 1
    db.clock.forward(3600)
    assert (await db.drain()).started == 0
    assert done == ["once"]


@in_memory
async def test_a_failure_whose_reply_is_lost_is_written_once(db: Rig) -> None:
    await db.enqueue(never)
    db.recorder.after = lose_after(TransactWrite)
    await db.drain()
    assert db.kinds() == ["started", "failed"]
    record = await db.get_only()
    assert (record.state, record.attempts) == ("waiting", 1)


@in_memory
async def test_if_the_reply_to_a_claim_is_lost_the_job_runs_after_its_lease(db: Rig) -> None:
    await db.enqueue(note, "late")
    db.recorder.after = lose_after(UpdateItem)
    await db.drain()
    assert done == []
    db.clock.forward(3600)
    assert (await db.drain()).succeeded == 1
    assert done == ["late"]


def test_a_worker_whose_store_is_closed_raises_an_error(caplog: pytest.LogCaptureFixture) -> None:
    db = Database("memory:")
    db.jobs.enqueue(note, "never")
    db.close()
    with pytest.raises(StoreClosedError):
        db.worker().drain()
    with pytest.raises(StoreClosedError), db.worker():
        pass
    with pytest.raises(StoreClosedError):
        asyncio.run(db.aio.worker().run())
    gc.collect()  # an exception that was never retrieved would be reported here
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []

"""What a worker reports: events for hooks, metrics, a log without data; and what a job knows about itself."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory

import holdall
from holdall import current_job, job
from holdall.core.requests import Query, TransactWrite, UpdateItem
from holdall.errors import GeneratorRefused, NoJobError
from holdall.worker import JobEvent, WorkerMetrics

recorded: list[Any] = []


@job("events-note")
def note(*words: Any) -> None:
    recorded.append(words)


@job("events-failing", retries=1, backoff=60)
async def fail(secret: str) -> None:
    raise ValueError(secret)


@job("events-ask")
def ask() -> None:
    running = current_job()
    recorded.append((running.id, running.name, running.queue, running.attempt, running.lost))
    asked = []
    thread = threading.Thread(target=lambda: asked.append(_find_refusal(current_job)))
    thread.start()
    thread.join()
    recorded.extend(asked)


@job("events-ask-async")
async def ask_async() -> None:
    running = current_job()
    recorded.append((running.id, running.name, running.queue, running.attempt, running.lost))
    recorded.append(await asyncio.create_task(_same(running)))
    recorded.append(await asyncio.to_thread(lambda: current_job() is running))


@job("events-ask-transactional", transactional=True)
def ask_transactional(tx: Any) -> None:
    running = current_job()
    recorded.append((running.id, running.name, running.queue, running.attempt, running.lost))


async def _same(running: Any) -> bool:
    return current_job() is running


def _find_refusal(function: Any) -> str:
    try:
        function()
    except NoJobError as error:
        return error.code
    return ""


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    recorded.clear()


# --- events ---------------------------------------------------------------------------------------------


@everywhere
async def test_hooks_are_called_at_each_step(db: Rig) -> None:
    first = await db.enqueue(note, 1, queue="q")
    await db.drain(queues=["q"])
    started, succeeded = db.events
    assert started == JobEvent("started", "events-note", first.id, "q", 1)
    assert (succeeded.kind, succeeded.id, succeeded.attempt, succeeded.error) == (
        "succeeded",
        first.id,
        1,
        None,
    )
    assert succeeded.seconds > 0


@in_memory
async def test_hooks_get_the_error_of_a_failed_job(db: Rig) -> None:
    await db.enqueue(fail, "why")
    await db.drain()
    db.clock.forward(120)
    await db.drain()
    assert db.kinds() == ["started", "failed", "started", "dead"]
    errors = [event.error for event in db.events if event.error is not None]
    assert [str(error) for error in errors] == ["why", "why"]


@in_memory
async def test_all_hooks_are_called_in_their_order(db: Rig) -> None:
    calls: list[str] = []
    await db.enqueue(note)
    await db.drain(hooks=[lambda event: calls.append("first"), lambda event: calls.append("second")])
    assert calls == ["first", "second"] * 2


@in_memory
async def test_a_generator_function_cannot_be_a_hook(db: Rig) -> None:
    def tell(event: Any) -> Any:
        yield event

    with pytest.raises(GeneratorRefused, match="calling it as a hook"):
        db.worker(hooks=[tell])


@everywhere
async def test_a_failing_hook_does_no_harm(db: Rig, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []

    def bad(event: JobEvent) -> None:
        raise ValueError("a bad hook")

    await db.enqueue(note, "done")
    metrics = await db.drain(hooks=[bad, lambda event: calls.append(event.kind)])
    assert metrics.succeeded == 1
    assert recorded == [("done",)]
    assert calls == ["started", "succeeded"]
    assert await db.jobs.list() == []
    assert [record.levelname for record in caplog.records if "hook" in record.message] == ["ERROR"] * 2


# --- metrics --------------------------------------------------------------------------------------------


@in_memory
async def test_metrics_count_jobs_by_outcome(db: Rig) -> None:
    for _ in range(3):
        await db.enqueue(note)
    await db.enqueue(fail, "x")
    metrics = await db.drain()
    assert isinstance(metrics, WorkerMetrics)
    counts = metrics.as_dict()
    assert {name: counts[name] for name in ("started", "succeeded", "failed", "dead", "running")} == {
        "started": 4,
        "succeeded": 3,
        "failed": 1,
        "dead": 0,
        "running": 0,
    }
    assert metrics.seconds > 0
    assert metrics.polls >= 32


@in_memory
async def test_an_idle_worker_queries_each_shard_once_in_an_interval(db: Rig) -> None:
    async with db.run_worker(poll_interval=60, queues=["a", "b"]) as worker:
        await db.until(lambda: worker.metrics.polls >= 32)
        await db.enqueue(note, queue="a")  # the worker is notified of it
        await db.until_event("succeeded")
        polls = worker.metrics.polls
    assert 33 <= polls <= 35


@everywhere
async def test_only_one_lane_of_a_worker_tries_to_take_a_job(db: Rig) -> None:
    async with db.run_worker(poll_interval=60) as worker:
        await db.until(lambda: worker.metrics.polls >= 16)
        await db.enqueue(note, 0)  # once it has run, none of the first queries is pending
        await db.until_event("succeeded", 1)
        before = worker.metrics.collisions
        for n in range(2, 12):
            await db.enqueue(note, n)
            await db.until_event("succeeded", n)
        assert worker.metrics.collisions == before


@in_memory
async def test_a_page_that_was_read_before_a_job_was_taken_does_not_offer_it_again(db: Rig) -> None:
    polls = 0

    async def hold_back_take(request: Any) -> None:
        if isinstance(request, UpdateItem | TransactWrite) and polls:
            await _until(lambda: polls >= 2)

    async def hold_back_second_page(request: Any) -> None:
        nonlocal polls
        if isinstance(request, Query) and db.recorder.exchanges[-1][1].items:
            polls += 1
            if polls == 2:
                await _until(lambda: worker.metrics.succeeded)

    await db.enqueue(note)
    db.recorder.before, db.recorder.after = hold_back_take, hold_back_second_page
    async with db.run_worker(poll_interval=60) as worker:
        await db.until(lambda: polls >= 2 and worker.metrics.succeeded)
        db.recorder.before = db.recorder.after = lambda request: None
        await db.enqueue(note)  # the worker finds it after that page
        await db.until_event("succeeded", 2)
        assert worker.metrics.collisions == 0


async def _until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0)


# --- the log --------------------------------------------------------------------------------------------


@in_memory
async def test_the_log_has_names_and_counts_and_no_data(db: Rig, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "holdall")
    await db.enqueue(fail, "a secret", key="secret key")
    await db.enqueue(note, "a secret")
    await db.drain()
    lines = [record.getMessage() for record in caplog.records if record.name == "holdall.worker"]
    assert any("events-failing" in line and "failed" in line and "ValueError" in line for line in lines)
    assert any("events-note" in line and "succeeded" in line for line in lines)
    assert not any("secret" in line for line in caplog.text.splitlines())


# --- what a job knows about itself ----------------------------------------------------------------------


@pytest.mark.parametrize("which", [ask, ask_async, ask_transactional], ids=lambda job: job.name)
@in_memory
async def test_a_job_knows_its_id_name_queue_and_attempt(db: Rig, which: Any) -> None:
    handle = await db.enqueue(which, queue="q")
    await db.drain(queues=["q"])
    assert recorded[0] == (handle.id, which.name, "q", 1, False)


@in_memory
async def test_the_tasks_of_a_job_have_a_current_job_and_its_threads_do_not(db: Rig) -> None:
    await db.enqueue(ask_async)
    await db.drain()
    assert recorded[1:] == [True, True]
    recorded.clear()
    await db.enqueue(ask)
    await db.drain()
    assert recorded[1:] == ["no-job"]


def test_outside_a_job_there_is_no_current_job() -> None:
    with pytest.raises(NoJobError):
        holdall.current_job()


@in_memory
async def test_a_job_that_is_called_as_a_function_is_not_a_current_job(db: Rig) -> None:
    with pytest.raises(NoJobError):
        ask()

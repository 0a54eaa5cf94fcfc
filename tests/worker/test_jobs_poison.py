"""Jobs that could bring their workers down: each of them dies, and the other jobs run."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs_poison import HARMLESS, RETRIES, Run
from jobs_torture_rig import LEASE, SEEDED, leftovers, run_script, until

import holdall
from holdall import AsyncTransaction, Database, Transaction
from holdall.errors import AfterCommitError, LeaseLostError, OutcomeUnknown
from holdall.jobs import Job
from holdall.worker import JobEvent, runner

pytestmark = pytest.mark.torture

QUICK: Any = {"retries": 1, "backoff": 0.01}
AnyJob = Job[*tuple[Any, ...]]


@pytest.fixture
def db() -> Iterator[Database]:
    with Database("memory:") as opened:
        yield opened


# --- exceptions ---


class UnspeakableError(Exception):
    """An error that cannot be converted to text."""

    def __str__(self) -> str:
        raise ValueError("it has no text")


POISONS: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "BaseException": lambda: BaseException("a plain one"),
    "MemoryError": MemoryError,
    "TimeoutError": TimeoutError,
    "UnspeakableError": UnspeakableError,
    "ExceptionGroup": lambda: ExceptionGroup("many", [ValueError(str(each)) for each in range(500)]),
    "LeaseLostError": lambda: LeaseLostError("of another job"),
    "OutcomeUnknown": lambda: OutcomeUnknown("of a write of its own"),
    "AfterCommitError": lambda: AfterCommitError("of a commit of its own", errors=[]),
    "FileNotFoundError": lambda: FileNotFoundError(2, "no such file", "caf\udce9"),
    "ValueError": lambda: ValueError("a lone surrogate \ud800, and a null \0"),
    "\U0001f480": lambda: ValueError("\U0001f480" * 300_000),
}
"""Each key must be part of the stored error."""

DOUBTFUL = {"LeaseLostError", "OutcomeUnknown"}
"""Errors that a transactional job's own commit may raise: the worker leaves the job until its lease is over."""


@holdall.job("poison-called", **QUICK)
def call_poison(kind: str) -> None:
    raise POISONS[kind]()


@holdall.job("poison-awaited", **QUICK)
async def await_poison(kind: str) -> None:
    raise POISONS[kind]()


@holdall.job("poison-awaited-later", **QUICK)
async def await_poison_later(kind: str) -> None:
    await asyncio.sleep(0)
    raise POISONS[kind]()


@holdall.job("poison-transactional", transactional=True, **QUICK)
def transactional(tx: Transaction, kind: str) -> None:
    tx.create(Run, name=kind, at="never")
    raise POISONS[kind]()


@holdall.job("poison-transactional-awaited", transactional=True, **QUICK)
async def transactional_awaited(tx: AsyncTransaction, kind: str) -> None:
    tx.create(Run, name=kind, at="never")
    raise POISONS[kind]()


@holdall.job("poison-antidote")
def antidote() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    "job",
    [call_poison, await_poison, await_poison_later, transactional, transactional_awaited],
    ids=lambda job: job.name,
)
def test_everything_that_a_job_raises_is_its_own_failure_and_ends_no_worker(
    db: Database, job: AnyJob
) -> None:
    ids = {db.jobs.enqueue(job, kind).id: kind for kind in POISONS}
    with db.worker(jobs=[job, antidote], lease=LEASE, poll_interval=0.02) as worker:
        until(lambda: len(leftovers(db).jobs) == worker.metrics.dead == len(POISONS), "all of them died")
        db.jobs.enqueue(antidote)
        until(lambda: worker.metrics.succeeded == 1, "the worker ran another job")
    doubtful = DOUBTFUL if job.options.transactional else set()
    for record in leftovers(db).jobs:
        kind = ids.pop(record.id)
        assert record.state == "dead", kind
        assert record.attempts == (2 if kind not in doubtful else 3), kind
        assert (kind if kind not in doubtful else "lost its lease") in (record.error or "")
    assert not ids
    assert db.query(Run, name="ValueError").all() == [], "a failed transaction writes nothing"


# --- coroutines that are never awaited ---


def hide_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that returns a plain function even for an async one, as many decorators do."""

    def call(*args: Any) -> Any:
        return function(*args)

    return call


@holdall.job("poison-hidden", retries=0)
@hide_coroutine
async def run_hidden() -> None:
    raise AssertionError("a worker that runs it must also await it")


@holdall.job("poison-hidden-transaction", retries=0, transactional=True)
@hide_coroutine
async def run_hidden_transaction(tx: AsyncTransaction) -> None:
    raise AssertionError("a worker that runs it must also await it")


@holdall.job("poison-generator", retries=0)
@hide_coroutine
def generator() -> Iterator[None]:
    yield


@pytest.mark.parametrize("job", [run_hidden, run_hidden_transaction, generator], ids=lambda job: job.name)
def test_a_function_that_was_never_run_does_not_count_as_done(db: Database, job: AnyJob) -> None:
    db.jobs.enqueue(job)
    metrics = db.worker(jobs=[job]).drain()
    assert (metrics.succeeded, metrics.dead) == (0, 1)
    assert [record.state for record in leftovers(db).jobs] == ["dead"]


# --- jobs that do not end ---


class Hold:
    """The runs of jobs that do not end by themselves, and the event that ends them."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self.over = threading.Event()


held = Hold()


@pytest.fixture(autouse=True)
def _start_afresh() -> Iterator[None]:
    held.__init__()  # type: ignore[misc]
    yield
    held.over.set()


@holdall.job("poison-ignoring-timeout", timeout=0.5, **QUICK)
def ignore_timeout() -> None:
    held.runs.append(holdall.current_job().attempt)
    held.over.wait()


@holdall.job("poison-continuing", timeout=0.5, **QUICK)
async def continue_after_cancellation() -> None:
    held.runs.append(holdall.current_job().attempt)
    while not held.over.is_set():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


@holdall.job("poison-returning", timeout=0.5, **QUICK)
async def return_on_cancellation() -> None:
    held.runs.append(holdall.current_job().attempt)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        return  # as if the job had succeeded


@pytest.mark.parametrize(
    "job", [ignore_timeout, continue_after_cancellation, return_on_cancellation], ids=lambda job: job.name
)
def test_a_job_that_exceeds_its_timeout_dies_and_does_not_block_other_jobs(
    db: Database, job: AnyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_COURTESY", 0.2)
    db.jobs.enqueue(job)
    with db.worker(jobs=[job, antidote], concurrency=1, poll_interval=0.02) as worker:
        until(lambda: worker.metrics.dead == 1, "it died")
        db.jobs.enqueue(antidote)
        until(lambda: worker.metrics.succeeded == 1, "the worker ran another job")
        held.over.set()
    (dead,) = leftovers(db).jobs
    assert (dead.state, dead.attempts) == ("dead", 2)
    assert "JobTimeoutError" in (dead.error or "")
    assert held.runs == [1, 2]


@holdall.job("poison-blocking")
async def block_loop() -> None:
    held.runs.append(holdall.current_job().attempt)
    if holdall.current_job().attempt == 1:
        held.over.wait()  # blocks the event loop, so that no heartbeat is sent
    else:
        held.over.set()


def test_another_worker_runs_a_job_that_blocks_its_worker_and_it_ends_once(db: Database) -> None:
    events: list[tuple[str, str]] = []
    lock = threading.Lock()

    def hook(which: str) -> Callable[[JobEvent], None]:
        def record(event: JobEvent) -> None:
            with lock:
                events.append((which, event.kind))

        return record

    options: Any = {"jobs": [block_loop, antidote], "lease": LEASE, "poll_interval": 0.02}
    enqueued = db.jobs.enqueue(block_loop)
    with db.worker(**options, hooks=[hook("blocked")]) as blocked:
        until(lambda: held.runs, "it ran")
        with db.worker(**options, hooks=[hook("other")]):
            until(lambda: len(events) == 4, "both workers had reported its end")
        assert leftovers(db).jobs == []
        db.jobs.enqueue(antidote)
        until(lambda: blocked.metrics.succeeded == 1, "the blocked worker ran another job")
    assert held.runs == [1, 2], enqueued
    assert Counter(events[:4]) == Counter(
        [("blocked", "started"), ("other", "started"), ("other", "succeeded"), ("blocked", "lost")]
    )


# --- jobs that end the process ---


def test_a_job_that_ends_every_process_that_runs_it_dies_and_others_run(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    codes = run_script("jobs_poison.py", file)
    assert codes == ["7"] * (RETRIES + 1) + ["0"]
    with Database(f"embedded:{file}") as db:
        (dead,) = leftovers(db).jobs
        assert (dead.name, dead.state) == ("poison-exit", "dead")
        attempts = [run.at.rpartition(" ")[2] for run in db.query(Run, name="exit")]
        assert attempts == [str(each + 1) for each in range(RETRIES + 1)]
        ran = {run.at.partition(" ")[0] for run in db.query(Run, name="harmless")}
        assert len(ran) == HARMLESS


@holdall.job("poison-child", process=True, **QUICK)
def child() -> None:
    os._exit(9)


def test_a_job_that_ends_its_own_process_costs_only_its_attempt(db: Database) -> None:
    db.jobs.enqueue(child)
    with db.worker(jobs=[child, antidote], processes=1, poll_interval=0.02) as worker:
        until(lambda: worker.metrics.dead == 1, "it died")
        db.jobs.enqueue(antidote)
        until(lambda: worker.metrics.succeeded == 1, "the worker ran another job")
    (dead,) = leftovers(db).jobs
    assert (dead.attempts, worker.metrics.failed) == (2, 1)
    assert "exit code 9" in (dead.error or "")


# --- unknown jobs ---


@holdall.job("poison-known")
def run_known() -> None:
    held.runs.append(1)


def test_thousands_of_unknown_jobs_do_not_keep_others_from_running(db: Database) -> None:
    count, known_ones = 3000, 5
    for _ in range(count // 100):
        with db.transaction() as tx:
            for _ in range(100):
                tx.enqueue("poison-from-the-future", "an argument")
    for _ in range(known_ones):
        db.jobs.enqueue(run_known)
    worker = db.worker(jobs=[run_known])
    assert worker.drain().succeeded == len(held.runs) == known_ones
    left = Counter((record.name, record.state, record.attempts) for record in leftovers(db).jobs)
    assert left == {("poison-from-the-future", "waiting", 0): count}, SEEDED

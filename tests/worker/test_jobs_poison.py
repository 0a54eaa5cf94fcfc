"""Jobs that do all they can to bring their workers down: each is given up, and the others go on."""

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


# --- whatever is raised ---


class UnspeakableError(Exception):
    """One that cannot even be told."""

    def __str__(self) -> str:
        raise ValueError("it has no text")


POISONS: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "StopIteration": StopIteration,
    "StopAsyncIteration": StopAsyncIteration,
    "BaseException": lambda: BaseException("of no kind"),
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
"""By what must be found in what is kept of the error."""

DOUBTFUL = {"LeaseLostError", "OutcomeUnknown"}
"""What a transactional job may be ended by with its commit: whether it is done shows when its lease is over."""


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
    """Does nothing, and does no harm."""


@pytest.mark.parametrize(
    "job",
    [call_poison, await_poison, await_poison_later, transactional, transactional_awaited],
    ids=lambda job: job.name,
)
def test_whatever_a_job_raises_is_its_own_failure_and_ends_no_worker(db: Database, job: AnyJob) -> None:
    ids = {db.jobs.enqueue(job, kind).id: kind for kind in POISONS}
    with db.worker(jobs=[job, antidote], lease=LEASE, poll_interval=0.02) as worker:
        until(lambda: len(leftovers(db).jobs) == worker.metrics.dead == len(POISONS), "all were given up")
        db.jobs.enqueue(antidote)
        until(lambda: worker.metrics.succeeded == 1, "the worker went on")
    doubtful = DOUBTFUL if job.options.transactional else set()
    for record in leftovers(db).jobs:
        kind = ids.pop(record.id)
        assert record.state == "dead", kind
        assert record.attempts == (2 if kind not in doubtful else 3), kind
        assert (kind if kind not in doubtful else "lost its lease") in (record.error or "")
    assert not ids
    assert db.query(Run, name="ValueError").all() == [], "what a failed transaction wrote is not there"


# --- coroutines that are never awaited ---


def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as there are many: what it gives is no async function, whatever it was given."""

    def call(*args: Any) -> Any:
        return function(*args)

    return call


@holdall.job("poison-hidden", retries=0)
@plainly
async def run_hidden() -> None:
    raise AssertionError("it may well be run, but has to be seen to the end")


@holdall.job("poison-hidden-transaction", retries=0, transactional=True)
@plainly
async def run_hidden_transaction(tx: AsyncTransaction) -> None:
    raise AssertionError("it may well be run, but has to be seen to the end")


@holdall.job("poison-generator", retries=0)
@plainly
def generator() -> Iterator[None]:
    yield


@pytest.mark.parametrize("job", [run_hidden, run_hidden_transaction, generator], ids=lambda job: job.name)
def test_a_function_that_was_never_run_does_not_count_as_done(db: Database, job: AnyJob) -> None:
    db.jobs.enqueue(job)
    metrics = db.worker(jobs=[job]).drain()
    assert (metrics.succeeded, metrics.dead) == (0, 1)
    assert [record.state for record in leftovers(db).jobs] == ["dead"]


# --- jobs that do not end ---


class Held:
    """What jobs wait for that do not end by themselves."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self.over = threading.Event()


held = Held()


@pytest.fixture(autouse=True)
def _start_afresh() -> Iterator[None]:
    held.__init__()  # type: ignore[misc]
    yield
    held.over.set()


@holdall.job("poison-deaf", timeout=0.5, **QUICK)
def deaf() -> None:
    held.runs.append(holdall.current_job().attempt)
    held.over.wait()


@holdall.job("poison-stubborn", timeout=0.5, **QUICK)
async def stubborn() -> None:
    held.runs.append(holdall.current_job().attempt)
    while not held.over.is_set():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue


@holdall.job("poison-unmoved", timeout=0.5, **QUICK)
async def ignore_cancellation() -> None:
    held.runs.append(holdall.current_job().attempt)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        return  # as if all were well


@pytest.mark.parametrize("job", [deaf, stubborn, ignore_cancellation], ids=lambda job: job.name)
def test_a_job_that_does_not_end_in_its_time_is_given_up_and_takes_no_others_place(
    db: Database, job: AnyJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_COURTESY", 0.2)
    db.jobs.enqueue(job)
    with db.worker(jobs=[job, antidote], concurrency=1, poll_interval=0.02) as worker:
        until(lambda: worker.metrics.dead == 1, "it was given up")
        db.jobs.enqueue(antidote)
        until(lambda: worker.metrics.succeeded == 1, "the worker went on")
        held.over.set()
    (dead,) = leftovers(db).jobs
    assert (dead.state, dead.attempts) == ("dead", 2)
    assert "JobTimeoutError" in (dead.error or "")
    assert held.runs == [1, 2]


@holdall.job("poison-blocking")
async def block_loop() -> None:
    held.runs.append(holdall.current_job().attempt)
    if holdall.current_job().attempt == 1:
        held.over.wait()  # in the event loop itself: no heartbeat goes out
    else:
        held.over.set()


def test_a_job_that_blocks_its_worker_is_run_by_another_and_ended_once(db: Database) -> None:
    told: list[tuple[str, str]] = []
    lock = threading.Lock()

    def hook(which: str) -> Callable[[JobEvent], None]:
        def hear(event: JobEvent) -> None:
            with lock:
                told.append((which, event.kind))

        return hear

    options: Any = {"jobs": [block_loop, antidote], "lease": LEASE, "poll_interval": 0.02}
    enqueued = db.jobs.enqueue(block_loop)
    with db.worker(**options, hooks=[hook("blocked")]) as blocked:
        until(lambda: held.runs, "it ran")
        with db.worker(**options, hooks=[hook("other")]):
            until(lambda: len(told) == 4, "both were done with it")
        assert leftovers(db).jobs == []
        db.jobs.enqueue(antidote)
        until(lambda: blocked.metrics.succeeded == 1, "the worker that was blocked went on")
    assert held.runs == [1, 2], enqueued
    assert Counter(told[:4]) == Counter(
        [("blocked", "started"), ("other", "started"), ("other", "succeeded"), ("blocked", "lost")]
    )


# --- jobs that end the process ---


def test_a_job_that_ends_every_process_that_runs_it_is_given_up_and_others_run(tmp_path: Path) -> None:
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


def test_a_job_that_ends_its_own_process_takes_only_its_attempt_with_it(db: Database) -> None:
    db.jobs.enqueue(child)
    with db.worker(jobs=[child, antidote], processes=1, poll_interval=0.02) as worker:
        until(lambda: worker.metrics.dead == 1, "it was given up")
        db.jobs.enqueue(antidote)
        until(lambda: worker.metrics.succeeded == 1, "the worker went on")
    (dead,) = leftovers(db).jobs
    assert (dead.attempts, worker.metrics.failed) == (2, 1)
    assert "exit code 9" in (dead.error or "")


# --- unknown jobs ---


@holdall.job("poison-known")
def run_known() -> None:
    held.runs.append(1)


def test_thousands_of_jobs_that_nobody_knows_do_not_keep_others_from_running(db: Database) -> None:
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

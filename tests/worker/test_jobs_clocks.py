"""Wrong clocks and clocks that jump: no job is lost, stuck, or taken from a living worker."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from jobs_clocks import Clocks, clocks_of
from jobs_torture_rig import LEASE, ROUNDS, SEED, SEEDED, leftovers, until, until_empty

import holdall
from holdall import Database, Key, Model, Transaction
from holdall.core.port import run
from holdall.jobs.flow import enqueue_next
from holdall.jobs.lease import take
from holdall.worker import WorkerThread

pytestmark = pytest.mark.torture

DAY = timedelta(days=1)
RIGHT = timedelta()
LONG_LEASE = 2.0


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocks]:
    with Database("memory:") as right, clocks_of(right, monkeypatch) as clocks:
        yield clocks


class Trace:
    """The runs of jobs in their order, and an event that ends the long ones."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, int]] = []
        self.over = threading.Event()


trace = Trace()


@pytest.fixture(autouse=True)
def _start_afresh() -> Iterator[None]:
    trace.__init__()  # type: ignore[misc]
    yield
    trace.over.set()


class Tally(Model):
    """How often a job has taken effect."""

    name: Key[str]
    count: int = 0


@holdall.job("clocks-short", retries=100, backoff=0.01)
def short(name: str) -> None:
    trace.runs.append((name, holdall.current_job().attempt))


@holdall.job("clocks-long", retries=100, backoff=0.01)
def long(name: str) -> None:
    short(name)
    trace.over.wait()


@holdall.job("clocks-counting", retries=100, backoff=0.01, transactional=True)
def count_and_fail(tx: Transaction, name: str) -> None:
    tally: Any = tx.get(Tally, name, create_if_missing=True)
    tally.count += 1
    if holdall.current_job().attempt == 1:
        raise ValueError("the first attempt fails")


@holdall.job("clocks-monthly", every=30 * DAY)
def monthly() -> None:
    """Do nothing: the test only enqueues it."""


JOBS: Any = [short, long, count_and_fail]


@pytest.mark.parametrize("ahead", [DAY, -DAY], ids=["ahead", "behind"])
def test_the_job_of_a_dead_worker_with_a_wrong_clock_is_taken_over(clocks: Clocks, ahead: timedelta) -> None:
    clocks.right.jobs.enqueue(short, "it")
    (waiting,) = leftovers(clocks.right).jobs
    dead = clocks.database(ahead)
    taken = run(take(dead._context, waiting, "token", LEASE))
    assert taken is not None
    assert taken.lease is not None
    assert abs(taken.lease.until - datetime.now(UTC) - ahead) < timedelta(hours=1), "its clock is wrong"
    with clocks.right.worker(jobs=JOBS, lease=LEASE, poll_interval=0.02) as worker:
        until(lambda: worker.metrics.succeeded == 1, "it was done")
    assert trace.runs == [("it", 2)]
    assert leftovers(clocks.right).jobs == []


def test_a_worker_with_a_wrong_clock_takes_over_the_job_of_a_dead_one(clocks: Clocks) -> None:
    clocks.right.jobs.enqueue(short, "it")
    (waiting,) = leftovers(clocks.right).jobs
    assert run(take(clocks.database(DAY)._context, waiting, "token", LEASE)) is not None
    wrong = clocks.database(timedelta(hours=5))
    with wrong.worker(jobs=JOBS, lease=LEASE, poll_interval=0.02) as worker:
        until(lambda: worker.metrics.succeeded == 1, "it was done")
    assert trace.runs == [("it", 2)]


def test_clocks_that_differ_by_seconds_take_no_job_from_a_living_worker(clocks: Clocks) -> None:
    apart = timedelta(seconds=20)
    pairs = {"a": (apart, RIGHT), "b": (-apart, RIGHT), "c": (RIGHT, apart), "d": (RIGHT, -apart)}
    holders, watchers = (
        {queue: watch(clocks.database(pair[at]), queue) for queue, pair in pairs.items()} for at in (0, 1)
    )
    with ExitStack() as stack:
        for queue, holder in holders.items():
            stack.enter_context(holder)
            clocks.database(-DAY).jobs.enqueue(long, queue, queue=queue)  # due by every clock
        until(lambda: len(trace.runs) == len(pairs), "each holder had its job")
        first = {record.id: record.lease for record in leftovers(clocks.right).jobs}
        for watcher in watchers.values():
            stack.enter_context(watcher)
        until(lambda: is_held_longer(clocks.right, first), "their leases would have been over", pause=0.1)
        trace.over.set()
        until(lambda: not leftovers(clocks.right).jobs, "all were done")
    assert Counter(trace.runs) == {(queue, 1): 1 for queue in pairs}
    for queue in pairs:
        done, seen = holders[queue].metrics, watchers[queue].metrics
        assert (done.started, done.succeeded, done.lost, seen.started) == (1, 1, 0, 0), queue
        assert seen.polls > 0


def watch(db: Database, queue: str) -> WorkerThread:
    return db.worker(queues=[queue], jobs=JOBS, lease=LONG_LEASE, poll_interval=0.1, grace=1)


def is_held_longer(db: Database, first: dict[str, Any]) -> bool:
    """Whether all jobs have been held for twice their first lease, by their own clocks."""
    now = {record.id: record.lease for record in leftovers(db).jobs}
    return all(
        (lease := now[id]) is not None and lease.until - begun.until > timedelta(seconds=2 * LONG_LEASE)
        for id, begun in first.items()
    )


def test_a_job_enqueued_by_a_fast_clock_waits_and_is_not_lost(clocks: Clocks) -> None:
    clocks.database(DAY).jobs.enqueue(short, "early")
    worker = clocks.database(RIGHT)
    assert worker.worker(jobs=JOBS).drain().started == 0
    clocks.set(worker, DAY + timedelta(minutes=1))
    assert worker.worker(jobs=JOBS).drain().succeeded == 1
    assert leftovers(clocks.right).jobs == []


def test_a_clock_that_jumps_back_during_a_run_does_not_end_it(clocks: Clocks) -> None:
    db = clocks.database(RIGHT)
    with db.worker(jobs=JOBS, lease=LEASE, poll_interval=0.02, grace=1) as worker:
        db.jobs.enqueue(long, "running")
        until(lambda: trace.runs, "it ran")
        (before,) = leftovers(db).jobs
        clocks.set(db, -DAY)
        until(lambda: leftovers(db).jobs[0].lease != before.lease, "a heartbeat went out by the new clock")
        db.jobs.enqueue(short, "enqueued after the jump")
        until(lambda: len(trace.runs) == 2, "a job of the new time ran")
        trace.over.set()
        until(lambda: not leftovers(db).jobs, "both were done")
    assert trace.runs == [("running", 1), ("enqueued after the jump", 1)]
    assert (worker.metrics.succeeded, worker.metrics.lost) == (2, 0)


def test_workers_whose_clocks_jump_do_all_work_and_transactional_work_once(clocks: Clocks) -> None:
    random = Random(f"{SEED} clocks")
    jobs = 40 * ROUNDS
    databases = [clocks.database(RIGHT) for _ in range(3)]
    options: Any = {"jobs": JOBS, "lease": LEASE, "poll_interval": 0.02, "concurrency": 4}
    workers = [db.worker(**options) for db in databases]
    names = [str(number) for number in range(jobs)]
    with workers[0], workers[1], workers[2]:
        for name in names:
            jumping, enqueuing = random.choice(databases), random.choice(databases)
            clocks.set(jumping, timedelta(hours=random.uniform(-12, 12)))
            enqueuing.jobs.enqueue(short, name)
            enqueuing.jobs.enqueue(count_and_fail, name, key=f"counting {name}")
        for db in databases:  # in the end every job is due by every clock
            clocks.set(db, 2 * DAY)
        until_empty(clocks.right)
    assert {name for name, _ in trace.runs} == set(names), SEEDED
    tallies = [clocks.right.get(Tally, name) for name in names]
    assert [tally is not None and tally.count for tally in tallies] == [1] * jobs, SEEDED
    assert leftovers(clocks.right).held == {}


def test_a_fast_clock_neither_skips_nor_repeats_an_occurrence(clocks: Clocks) -> None:
    db = clocks.database(60 * DAY)
    later = run(enqueue_next(db._context, monthly))
    clocks.set(db, RIGHT)
    soon = run(enqueue_next(db._context, monthly))
    assert soon < later
    clocks.set(db, 60 * DAY)
    assert run(enqueue_next(db._context, monthly)) == later
    assert run(enqueue_next(clocks.right._context, monthly)) == soon
    assert sorted(record.due for record in leftovers(clocks.right).jobs) == [soon, later]

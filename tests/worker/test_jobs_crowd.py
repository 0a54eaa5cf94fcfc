"""Many workers on one store, with faults, killed at random and replaced: the work of every job is done.

Transactional work is done exactly once, even if it was enqueued many times with one key; other work at least once. No
job is left in the queues, and no key without a holder.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest
from jobs_crowd import COUNTS, MARKS, Done, Tally, predict_marks
from jobs_torture_rig import ROUNDS, SEED, SEEDED, Child, audit, leftovers, until, until_empty
from rig.servers import ENVIRONMENT, start_server

import holdall
from holdall import Database

pytestmark = pytest.mark.torture

SCRIPT = "jobs_crowd.py"
WORKERS = 4
ENQUEUERS = 2


class Crowd:
    """Workers, of which a test kills and replaces some."""

    def __init__(self, url: str, random: Random) -> None:
        self._url, self._random = url, random
        self.workers = [self._hire() for _ in range(WORKERS)]

    def _hire(self) -> Child:
        return Child(SCRIPT, "work", self._url, self._random.randrange(2**32))

    def kill_one(self) -> None:
        """Kill a random worker, which must still be running, and replace it."""
        at = self._random.randrange(WORKERS)
        with self.workers[at] as worker:
            assert worker.line() == "ready"
            worker.kill()
        self.workers[at] = self._hire()

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *about: object) -> None:
        for worker in self.workers:
            worker.__exit__(None, None, None)

    def assert_alive(self) -> None:
        for worker in self.workers:
            assert worker.alive, worker.account()


def torture(db: Database, url: str, orders: int, kills: int) -> None:
    """Create orders and let a crowd do their jobs, killing workers meanwhile."""
    random = Random(f"{SEED} {url.partition(':')[0]}")
    db.table.create()
    marked, counted = predict_marks(orders)
    total = len(marked) + len(counted)
    ends = [orders * part // ENQUEUERS for part in range(ENQUEUERS + 1)]
    with ExitStack() as stack:
        enqueuers = [
            stack.enter_context(Child(SCRIPT, "enqueue", url, random.randrange(2**32), first, last))
            for first, last in pairwise(ends)
        ]
        crowd = stack.enter_context(Crowd(url, random))

        def count_done() -> int:
            return len(count_effects(db))

        for kill in range(kills):
            wanted = total * (kill + 1) // (kills + 2)
            until(
                lambda: count_done() >= wanted,  # noqa: B023
                f"{wanted} of {total} were done",
                pause=0.2,
                progress=count_done,
            )
            crowd.kill_one()
        for enqueuer in enqueuers:
            enqueuer.finish()
        until_empty(db, pause=0.2)
        crowd.assert_alive()


def count_effects(db: Database) -> dict[tuple[str, str, int], int]:
    """How often each piece of work was done so far."""
    found = {("done", what, mark.number): 1 for what in MARKS for mark in db.query(Done, what=what)}
    for what in COUNTS:
        found |= {("counted", what, tally.number): tally.count for tally in db.query(Tally, what=what)}
    return found


def assert_all_done(db: Database, orders: int) -> None:
    marked, counted = predict_marks(orders)
    wanted = {("done", *each): 1 for each in marked} | {("counted", *each): 1 for each in counted}
    assert count_effects(db) == wanted, SEEDED
    left = leftovers(db)
    assert left.jobs == []
    assert left.held == {}, f"keys that cannot be freed {SEEDED}"
    groups = len({number for what, number in marked if what == "once"})
    assert len(left.remembered) == 2 * groups, SEEDED


def test_a_crowd_of_killed_workers_on_one_file_does_all_work_and_transactional_work_once(
    tmp_path: Path,
) -> None:
    file = tmp_path / "store.db"
    url = f"embedded:{file}?durability=normal"
    orders = 60 * ROUNDS
    with Database(url) as db:
        torture(db, url, orders, kills=2 * ROUNDS)
        assert_all_done(db, orders)
    audit(file, SEEDED)


def test_a_crowd_of_killed_workers_on_a_server_does_all_work_and_transactional_work_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    table = f"holdall-jobs-{uuid4().hex}"
    url = f"dynamodb://{table}?endpoint={start_server('ministack')}&manage_table=true"
    orders = 5 * ROUNDS
    with Database(url) as db:
        torture(db, url, orders, kills=ROUNDS)
        assert_all_done(db, orders)
        db.table.delete()


# --- without faults ---

runs: Counter[int] = Counter()
lock = threading.Lock()


@holdall.job("crowd-quiet", retries=0)
def quiet(number: int) -> None:
    with lock:
        runs[number] += 1


def test_a_crowd_without_faults_runs_each_job_once() -> None:
    runs.clear()
    jobs = 100 * ROUNDS
    with Database("memory:") as db, ExitStack() as stack:
        for first in range(0, jobs, 50):
            with db.transaction() as tx:
                for number in range(first, first + 50):
                    tx.enqueue(quiet, number)
        workers = [
            stack.enter_context(db.worker(jobs=[quiet], concurrency=5, poll_interval=0.02))
            for _ in range(WORKERS)
        ]
        until_empty(db)
    assert runs == dict.fromkeys(range(jobs), 1), SEEDED
    assert sum(worker.metrics.started for worker in workers) == jobs
    assert sum(worker.metrics.succeeded for worker in workers) == jobs

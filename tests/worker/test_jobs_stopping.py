"""Workers that stop: running jobs finish, or are released so that other workers can run them at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jobs_stopping import JOBS, LEASE, Ended
from jobs_torture_rig import Child, leftovers, terminate, until
from rig.wrapper import Wrapper

import holdall
from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.port import Backend, Send
from holdall.core.requests import Request, TransactWrite, UpdateItem

pytestmark = pytest.mark.torture

SCRIPT = "jobs_stopping.py"
NAMES = ("called", "awaited", "counted", "in process")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with a job of each kind, and a delayed one."""
    file = tmp_path / "store.db"
    with Database(f"embedded:{file}") as db, db.transaction() as tx:
        for job in JOBS:
            tx.enqueue(job, str(file), key=job.name)
        tx.enqueue(JOBS[0], str(file), delay=3600)
    return file


def stop_with_all_jobs(worker: Child) -> None:
    """Send SIGTERM to a worker that runs all jobs, and to its child, as a process manager does."""
    lines = [worker.line() for _ in range(len(JOBS) + 1)]
    (child,) = [int(line.removeprefix("process ")) for line in lines if line.startswith("process ")]
    assert {line for line in lines if line.startswith("begun")} == {f"begun {job.name}" for job in JOBS}
    terminate(worker)
    os.kill(child, signal.SIGTERM)
    assert worker.line() == "stopping"


def count_ended(db: Database) -> Counter[str]:
    return Counter({name: len(db.query(Ended, name=name).all()) for name in NAMES})


def test_sigterm_lets_jobs_finish_and_none_runs_twice(file: Path) -> None:
    with Child(SCRIPT, file, 60) as worker:
        stop_with_all_jobs(worker)
        file.with_name("go").touch()
        metrics = json.loads(worker.finish()[-1])
    assert (metrics["succeeded"], metrics["started"], metrics["lost"]) == (len(JOBS), len(JOBS), 0)
    with Database(f"embedded:{file}") as db:
        (delayed,) = leftovers(db).jobs
        assert (delayed.state, delayed.attempts) == ("waiting", 0)
        assert leftovers(db).held == {}
        assert db.worker(jobs=JOBS).drain().started == 0
        assert count_ended(db) == dict.fromkeys(NAMES, 1)


def test_jobs_that_outlast_the_grace_are_released_and_run_elsewhere_at_once(file: Path) -> None:
    with Child(SCRIPT, file, 0.05) as worker:
        stop_with_all_jobs(worker)
        metrics = json.loads(worker.finish()[-1])
    assert (metrics["released"], metrics["succeeded"]) == (len(JOBS), 0)
    with Database(f"embedded:{file}") as db:
        left = leftovers(db).jobs
        assert Counter((record.state, record.attempts) for record in left) == {("waiting", 0): len(JOBS) + 1}
        assert count_ended(db) == dict.fromkeys(NAMES, 0)
        file.with_name("go").touch()
        assert db.worker(jobs=JOBS, lease=LEASE, processes=1).drain().succeeded == len(JOBS)
        assert count_ended(db) == dict.fromkeys(NAMES, 1)
        assert leftovers(db).held == {}


# --- released at bad moments ---


class Hold:
    """The runs of a job, and a flag that ends it."""

    def __init__(self) -> None:
        self.runs: list[int] = []
        self.over = False


held = Hold()


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    held.__init__()  # type: ignore[misc]


@holdall.job("stopping-held", retries=0)
async def hold_up() -> None:
    held.runs.append(holdall.current_job().attempt)
    while not held.over:
        await asyncio.sleep(0.005)


def test_a_released_job_holds_its_key_again() -> None:
    with Database("memory:") as db:
        first = db.jobs.enqueue(hold_up, key="it")
        with db.worker(jobs=[hold_up], poll_interval=0.02, grace=0):
            until(lambda: held.runs, "it began")
        assert not db.jobs.enqueue(hold_up, key="it").added
        left = leftovers(db)
        assert [record.id for record in left.jobs] == [*left.held.values()] == [first.id]
        held.over = True
        assert db.worker(jobs=[hold_up]).drain().succeeded == 1
        assert leftovers(db) == ([], {}, {})


def test_a_released_job_whose_key_another_took_leaves_its_work_to_that_job() -> None:
    with Database("memory:") as db:
        db.jobs.enqueue(hold_up, key="it")
        with db.worker(jobs=[hold_up], poll_interval=0.02, concurrency=1, grace=0):
            until(lambda: held.runs, "it began")
            second = db.jobs.enqueue(hold_up, key="it")
            assert second.added
        left = leftovers(db)
        assert [record.id for record in left.jobs] == [*left.held.values()] == [second.id]
        held.over = True
        worker = db.worker(jobs=[hold_up])
        assert worker.drain().succeeded == 1
        assert worker.metrics.collisions == 0
        assert leftovers(db) == ([], {}, {})


class StoppingBackend(Wrapper):
    """A backend that stops a worker during the request by which it takes a job."""

    def __init__(self, inner: Backend) -> None:
        super().__init__(inner)
        self.stop: Callable[[], None] = lambda: None

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        reply = await send(self.inner, request)
        if isinstance(request, UpdateItem | TransactWrite) and "job_lease" in repr(request):
            self.stop()
            await asyncio.sleep(0.05)  # so that the worker notices the stop
        return reply


@pytest.mark.parametrize("key", [None, "it"])
def test_a_job_taken_during_the_stop_is_released_without_being_started(key: str | None) -> None:
    store = StoppingBackend(EmbeddedBackend(None))
    with Database(backend=store) as db:
        db.jobs.enqueue(hold_up, key=key)

        async def work() -> None:
            worker = db.aio.worker(jobs=[hold_up], poll_interval=0.02, grace=0)
            store.stop = worker.stop
            await worker.run()

        asyncio.run(work())
        (record,) = leftovers(db).jobs
        assert (record.state, record.attempts, held.runs) == ("waiting", 0, [])
        held.over = True
        store.stop = lambda: None
        assert db.worker(jobs=[hold_up]).drain().succeeded == 1

"""Workers: how they start and stop, run beside other code, and share the work."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from jobs_torture_rig import until
from rig.jobs import Rig, everywhere, in_memory, on_servers
from rig.torture import start_source

from holdall import AsyncDatabase, Database, job
from holdall.core.requests import Query
from holdall.errors import InvalidOptionsError

done: list[Any] = []
begun = threading.Event()
may_finish = threading.Event()


@job("life-note")
def note(word: Any = "") -> None:
    done.append(word)


@job("life-note-async")
async def note_async(word: Any = "") -> None:
    done.append(word)


@job("life-countdown", transactional=True)
async def countdown(tx: Any, n: int) -> None:
    done.append(n)
    for _ in range(2):
        if n:
            tx.enqueue(countdown, n - 1)


@job("life-held")
def hold() -> None:
    begun.set()
    assert may_finish.wait(30)
    done.append("held")


@job("life-crowd")
async def crowd(n: int) -> None:
    crowded.append(n)
    peaks.append(len(crowded))
    await asyncio.sleep(0.001)
    crowded.remove(n)


crowded: list[int] = []
peaks: list[int] = []


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    for seen in (done, crowded, peaks):
        seen.clear()
    begun.clear()
    may_finish.clear()


# --- draining -------------------------------------------------------------------------------------------


@everywhere
async def test_draining_also_runs_jobs_that_jobs_enqueue(db: Rig) -> None:
    await db.enqueue(countdown, 3)
    metrics = await db.drain()
    assert metrics.succeeded == 15
    assert Counter(done) == {3: 1, 2: 2, 1: 4, 0: 8}
    assert await db.jobs.list() == []


@in_memory
async def test_a_worker_can_drain_repeatedly(db: Rig) -> None:
    worker = db.worker()
    for n in range(3):
        await db.enqueue(note, n)
        await db.now(worker.drain())
    assert done == [0, 1, 2]
    assert worker.metrics.succeeded == 3


@in_memory
async def test_draining_an_empty_queue_queries_each_shard_once(db: Rig) -> None:
    metrics = await db.drain()
    assert (metrics.polls, metrics.started) == (16, 0)


@everywhere
async def test_all_of_many_jobs_run(db: Rig) -> None:
    await db.commit(lambda tx: [tx.enqueue(note, n) for n in range(50)])
    await db.commit(lambda tx: [tx.enqueue(note_async, n) for n in range(50, 100)])
    assert (await db.drain()).succeeded == 100
    assert sorted(done) == list(range(100))


@in_memory
async def test_no_more_jobs_run_at_once_than_the_concurrency(db: Rig) -> None:
    await db.commit(lambda tx: [tx.enqueue(crowd, n) for n in range(40)])
    await db.drain(concurrency=3)
    assert max(peaks) <= 3


# --- beside other code ----------------------------------------------------------------------------------


@on_servers
async def test_a_worker_runs_beside_a_block(db: Rig) -> None:
    async with db.run_worker() as worker:
        for n in range(5):
            await db.enqueue(note if n % 2 else note_async, n)
        await db.until_event("succeeded", 5)
        assert worker.metrics.running == 0
    assert sorted(done) == [0, 1, 2, 3, 4]
    await db.enqueue(note, "after the block")
    assert len(await db.jobs.list()) == 1


@in_memory
async def test_a_worker_is_notified_at_once_of_jobs_enqueued_in_its_program(db: Rig) -> None:
    async with db.run_worker(poll_interval=3600) as worker:
        await db.until(lambda: worker.metrics.polls >= 16)
        await db.enqueue(note, "found")
        await db.until_event("succeeded")
    assert done == ["found"]


@in_memory
async def test_a_worker_finds_a_job_that_is_enqueued_during_its_query(db: Rig) -> None:
    """The reply to the query does not contain the job yet."""
    db.clock.shard = "7"
    blocking = db.db if db.colour == "blocking" else db.db.sync

    def meddle(request: Any) -> None:
        if isinstance(request, Query) and "#Job#default#7" in str(request.key):
            db.recorder.after = lambda request: None
            blocking.jobs.enqueue(note, "found")

    db.recorder.after = meddle
    db.recorder.linger = 0.01
    async with db.run_worker(poll_interval=3600):
        await db.until_event("succeeded")
    assert done == ["found"]


@in_memory
async def test_a_stop_lets_running_jobs_finish_and_takes_no_more(db: Rig) -> None:
    await db.enqueue(hold)
    async with db.run_worker(concurrency=1) as worker:
        await db.until(begun.is_set)
        await db.enqueue(note, "too late")
        worker.stop()
        may_finish.set()
    assert done == ["held"]
    assert len(await db.jobs.list()) == 1


@in_memory
async def test_a_block_that_ends_at_once_stops_its_worker_at_once(db: Rig) -> None:
    async with db.run_worker(poll_interval=3600):
        pass
    assert db.kinds() == []


@in_memory
async def test_an_error_in_the_block_is_raised(db: Rig) -> None:
    with pytest.raises(ZeroDivisionError):
        async with db.run_worker():
            raise ZeroDivisionError


def test_a_worker_can_run_in_a_thread_of_the_callers() -> None:
    with Database("memory:") as db:
        worker = db.worker(poll_interval=0.02)
        thread = threading.Thread(target=worker.run)
        thread.start()
        db.jobs.enqueue(note, "run")
        while not worker.metrics.succeeded:
            time.sleep(0.001)
        worker.stop()
        thread.join()
    assert done == ["run"]


def test_a_worker_that_is_stopped_before_it_begins_does_not_begin() -> None:
    with Database("memory:") as db:
        worker = db.worker(poll_interval=3600)
        worker.stop()
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        thread.join(120)
        assert not thread.is_alive()


def test_stopping_a_worker_that_has_ended_is_harmless() -> None:
    with Database("memory:") as db:
        with db.worker() as worker:
            pass
        worker.stop()


def test_an_event_loop_keeps_running_beside_its_worker() -> None:
    async def main() -> None:
        async with AsyncDatabase("memory:") as db, db.worker(poll_interval=0.02) as worker:
            await db.jobs.enqueue(hold)
            turns = 0
            while not done:
                turns += 1
                await asyncio.sleep(0.001)
                if turns == 20:
                    may_finish.set()
            while not worker.metrics.succeeded:
                await asyncio.sleep(0.001)

    asyncio.run(main())
    assert done == ["held"]


def test_a_cancelled_worker_releases_its_jobs() -> None:
    async def main() -> None:
        async with AsyncDatabase("memory:") as db:
            await db.jobs.enqueue(hold)
            running = asyncio.create_task(db.worker(poll_interval=0.02).run())
            while not begun.is_set():
                await asyncio.sleep(0.001)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            (record,) = await db.jobs.list()
            assert (record.state, record.attempts) == ("waiting", 0)
        may_finish.set()
        while not done:  # so that its thread ends before the next test starts
            await asyncio.sleep(0.001)

    asyncio.run(main())


# --- unknown jobs ---------------------------------------------------------------------------------------


@everywhere
async def test_a_worker_leaves_unknown_jobs_alone(db: Rig) -> None:
    unknown = await db.enqueue("life-unknown", 1)
    await db.enqueue(note, "known")
    await db.drain()
    assert done == ["known"]
    record = await db.get_only()
    assert (record.id, record.attempts, record.state) == (unknown.id, 0, "waiting")


@in_memory
async def test_a_worker_warns_of_an_unknown_job_once(db: Rig, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        await db.enqueue("life-unknown")
    await db.drain()
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in warnings] == [
        "the job life-unknown is not declared in this worker, and is left to other workers"
    ]


@everywhere
async def test_more_unknown_jobs_than_a_page_has_do_not_starve_the_others(db: Rig) -> None:
    db.clock.shard = "7"
    for _ in range(3):
        await db.commit(lambda tx: [tx.enqueue("life-unknown") for _ in range(50)])
    await db.enqueue(note, "known")
    async with db.run_worker(concurrency=1):
        await db.until_event("succeeded")
    assert done == ["known"]
    assert (await db.jobs.counts())["default"].waiting == 150


@in_memory
async def test_the_caller_can_choose_the_jobs_that_a_worker_knows(db: Rig) -> None:
    await db.enqueue(note, "note")
    await db.enqueue(note_async, "async")
    await db.drain(jobs=[note_async])
    assert done == ["async"]


# --- several workers ------------------------------------------------------------------------------------


@everywhere
async def test_workers_share_the_work_and_each_job_runs_once(db: Rig) -> None:
    for _ in range(2):
        await db.commit(lambda tx: [tx.enqueue(note, n) for n in range(60)])
    async with db.run_worker(), db.run_worker(), db.run_worker():
        await db.until_event("succeeded", 120)
    assert Counter(done) == dict.fromkeys(range(60), 2)
    assert await db.jobs.list() == []


PROGRAM = """
import os, sys
from pathlib import Path
from holdall import Database, job

@job("life-far")
def far(n):
    Path(sys.argv[2], str(n)).write_text(str(os.getpid()))

with Database("embedded:" + sys.argv[1], durability="normal") as db:
    print("ready", flush=True)
    sys.stdin.readline()
    with db.worker(poll_interval=0.02) as worker:
        sys.stdin.readline()
"""


def test_workers_in_other_processes_share_one_file(tmp_path: Path) -> None:
    with Database(f"embedded:{tmp_path / 'store.db'}", durability="normal") as db:
        for n in range(20):
            db.jobs.enqueue("life-far", n)
        results = tmp_path / "results"
        results.mkdir()
        with ExitStack() as stack:
            workers = [
                stack.enter_context(start_source(PROGRAM, tmp_path / "store.db", results)) for _ in range(2)
            ]
            assert [worker.line() for worker in workers] == ["ready"] * 2
            for worker in workers:
                worker.write_line("go")
            until(lambda: not db.jobs.list(), "all jobs were run")
            for worker in workers:
                worker.write_line("stop")
                worker.finish()
        assert {int(path.name) for path in results.iterdir()} == set(range(20))


@pytest.mark.filterwarnings(
    "ignore:.*fork:DeprecationWarning"
)  # newer Pythons warn, but forking must still work
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
@pytest.mark.parametrize("where", ["before the worker", "beside the worker"])
def test_a_forked_process_can_work_on_the_same_file(tmp_path: Path, where: str) -> None:
    with Database(f"embedded:{tmp_path / 'store.db'}", durability="normal") as db:
        db.jobs.enqueue(note, "mine", queue="parents")
        db.jobs.enqueue("life-forked", str(tmp_path / "done"), queue="childs")
        if where == "beside the worker":
            with db.worker(queues=["parents"], poll_interval=0.02) as worker:
                while not worker.metrics.succeeded:
                    time.sleep(0.001)
                status = _fork(db)
        else:
            status = _fork(db)
        assert status == 0
        assert (tmp_path / "done").read_text("utf-8") == "done"
        assert db.jobs.list(queue="childs") == []


@job("life-forked")
def leave_file(path: str) -> None:
    Path(path).write_text("done", "utf-8")


def _fork(db: Database) -> int:
    """Drain the child's queue in a child process and return its exit code."""
    child = os.fork()
    if not child:
        try:
            metrics = db.worker(queues=["childs"]).drain()
            db.jobs.enqueue(note, "from the child", queue="parents")
            os._exit(0 if metrics.succeeded == 1 else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- options --------------------------------------------------------------------------------------------

WRONG: list[dict[str, Any]] = [
    {"queues": []},
    {"queues": ["a b"]},
    {"queues": [5]},
    {"concurrency": 0},
    {"concurrency": 1001},
    {"concurrency": True},
    {"concurrency": 1.5},
    {"lease": 0},
    {"lease": "30"},
    {"lease": float("nan")},
    {"poll_interval": 0},
    {"poll_interval": 10**6},
    {"grace": -1},
    {"processes": 0},
    {"processes": "2"},
    {"jobs": [print]},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
@in_memory
async def test_invalid_options_are_refused(db: Rig, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionsError):
        db.db.worker(**options)


@in_memory
async def test_an_option_that_does_not_exist_is_refused(db: Rig) -> None:
    with pytest.raises(TypeError, match="speed"):
        db.db.worker(speed=11)

"""``db.jobs``: listing, counting, retrying and deleting jobs."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory, on_servers

from holdall import job
from holdall.core.requests import TransactWrite
from holdall.errors import InvalidOptionsError, JobBusyError, JobNotFoundError

done: list[Any] = []
begun = threading.Event()
may_finish = threading.Event()


@job("care-note")
def note(word: Any = "") -> None:
    done.append(word)


@job("care-hopeless", retries=0)
def hopeless(word: Any = "") -> None:
    done.append(word)
    raise ValueError("hopeless")


@job("care-held")
def hold() -> None:
    begun.set()
    assert may_finish.wait(30)


@job("care-chain")
async def chain(n: int) -> None:
    done.append(n)


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()
    begun.clear()
    may_finish.clear()


# --- listing --------------------------------------------------------------------------------------------


@on_servers
async def test_jobs_are_listed_in_the_order_in_which_they_are_due_and_then_the_dead(db: Rig) -> None:
    for n in (3, 1, 2):
        await db.enqueue(hopeless, n, queue="q")
        await db.drain(queues=["q"])
    for n in (30, 10, 20):
        await db.enqueue(note, n, delay=n, queue="q" if n == 10 else "other")
    listed = await db.jobs.list()
    assert [(record.state, record.arguments) for record in listed] == [
        ("waiting", "[10]"),
        ("waiting", "[20]"),
        ("waiting", "[30]"),
        ("dead", "[3]"),
        ("dead", "[1]"),
        ("dead", "[2]"),
    ]
    assert [record.arguments for record in await db.jobs.list(limit=2)] == ["[10]", "[20]"]
    assert [record.arguments for record in await db.jobs.list(queue="other")] == ["[20]", "[30]"]
    assert [record.arguments for record in await db.jobs.list(state="dead", limit=1)] == ["[3]"]
    assert [record.arguments for record in await db.jobs.list(name="care-note", queue="q")] == ["[10]"]
    assert await db.jobs.list(state="running") == []
    assert await db.jobs.list(queue="empty") == []


@everywhere
async def test_a_running_job_is_listed_as_running(db: Rig) -> None:
    handle = await db.enqueue(hold)
    async with db.run_worker():
        await db.until(begun.is_set)
        (record,) = await db.jobs.list(state="running")
        assert (record.id, record.state, record.attempts) == (handle.id, "running", 1)
        assert await db.list_waiting() == []
        assert (await db.jobs.counts())["default"] == (0, 1, 0, 0)
        may_finish.set()


@in_memory
async def test_the_first_of_many_jobs_are_found_among_others(db: Rig) -> None:
    await db.commit(lambda tx: [tx.enqueue(note, n, delay=n) for n in range(90)])
    await db.commit(lambda tx: [tx.enqueue(chain, n, delay=100 + n) for n in range(90)])
    named = await db.jobs.list(name="care-chain", limit=10)
    assert [record.arguments for record in named] == [f"[{n}]" for n in range(10)]
    assert len(await db.jobs.list(limit=1000)) == 180
    assert len(await db.jobs.list()) == 100


@everywhere
async def test_a_job_is_found_by_its_id_in_any_queue_and_state(db: Rig) -> None:
    waiting = await db.enqueue(note, delay=60, queue="a")
    dead = await db.enqueue(hopeless, queue="b")
    await db.drain(queues=["b"])
    for handle, state in ((waiting, "waiting"), (dead, "dead")):
        record = await db.jobs.get(handle.id)
        assert record is not None
        assert (record.id, record.state) == (handle.id, state)


@everywhere
async def test_get_returns_none_for_a_job_that_is_done(db: Rig) -> None:
    handle = await db.enqueue(note)
    await db.drain()
    assert await db.jobs.get(handle.id) is None


@everywhere
async def test_counts_are_by_queue_and_state(db: Rig) -> None:
    assert await db.jobs.counts() == {}
    await db.enqueue(note, queue="a")
    await db.enqueue(note, queue="a", delay=60)
    await db.enqueue(hopeless, queue="b")
    await db.drain(queues=["b"])
    counts = await db.jobs.counts()
    assert counts == {"a": (2, 0, 0, 0), "b": (0, 0, 1, 0)}
    assert counts["a"].waiting == 2
    assert await db.jobs.counts(queue="b") == {"b": (0, 0, 1, 0)}


@everywhere
async def test_queues_lists_every_queue_that_was_ever_used(db: Rig) -> None:
    assert await db.jobs.queues() == []
    await db.enqueue(note, queue="b")
    await db.enqueue(note, queue="a")
    await db.drain(queues=["a", "b"])
    assert await db.jobs.queues() == ["a", "b"]


@in_memory
async def test_after_its_table_was_recreated_a_queue_is_registered_again(db: Rig) -> None:
    await db.enqueue(note)
    await db.now(db.db.table.delete())
    await db.now(db.db.table.create())
    assert await db.jobs.queues() == []
    await db.enqueue(note)
    assert len(await db.jobs.list()) == 1


# --- retrying -------------------------------------------------------------------------------------------


@everywhere
async def test_a_dead_job_can_be_retried_with_all_its_attempts(db: Rig) -> None:
    handle = await db.enqueue(hopeless)
    await db.drain()
    record = await db.jobs.retry(handle.id)
    assert (record.id, record.state, record.attempts) == (handle.id, "waiting", 0)
    assert "hopeless" in str(record.error)
    assert await db.get_only() == record
    await db.drain()
    assert (await db.get_only()).state == "dead"
    assert done == ["", ""]


@everywhere
async def test_a_delayed_job_can_be_made_due(db: Rig) -> None:
    handle = await db.enqueue(note, delay=3600, key="k")
    await db.jobs.retry(handle.id)
    assert not (await db.enqueue(note, key="k")).added
    await db.drain()
    assert done == [""]


@everywhere
async def test_all_dead_jobs_of_a_queue_or_a_name_can_be_retried(db: Rig) -> None:
    for n in range(3):
        await db.enqueue(hopeless, n, queue="a")
    await db.enqueue(hopeless, queue="b")
    await db.drain(queues=["a", "b"])
    await db.enqueue(note, delay=60, queue="a")
    assert await db.jobs.retry_all(queue="a", name="care-note") == 0
    assert await db.jobs.retry_all(queue="a") == 3
    assert await db.jobs.counts() == {"a": (4, 0, 0, 0), "b": (0, 0, 1, 0)}
    assert await db.jobs.retry_all(name="care-hopeless") == 1
    assert await db.jobs.retry_all() == 0


@in_memory
async def test_retry_all_skips_dead_jobs_whose_key_is_taken(db: Rig) -> None:
    await db.enqueue(hopeless, 1, key="a")
    await db.enqueue(hopeless, 2, key="b")
    await db.drain()
    await db.enqueue(hopeless, 3, key="a", delay=60)
    assert await db.jobs.retry_all() == 1
    assert [record.arguments for record in await db.list_dead()] == ["[1]"]


@everywhere
async def test_a_dead_job_whose_key_is_taken_stays_dead(db: Rig) -> None:
    first = await db.enqueue(hopeless, key="k")
    await db.drain()
    await db.enqueue(hopeless, key="k", delay=60)
    with pytest.raises(JobBusyError):
        await db.jobs.retry(first.id)
    assert [record.id for record in await db.list_dead()] == [first.id]


@in_memory
async def test_many_jobs_are_changed_page_by_page(db: Rig) -> None:
    db.clock.shard = "7"
    for _ in range(8):  # three of them fit into a page
        await db.enqueue(hopeless, "x" * 290_000)
    await db.drain()
    assert (await db.jobs.counts())["default"] == (0, 0, 8, 0)
    assert await db.jobs.retry_all() == 8
    assert (await db.jobs.counts())["default"] == (8, 0, 0, 0)
    assert len(await db.jobs.list(name="care-hopeless")) == 8
    assert await db.jobs.purge(state="waiting") == 8
    assert await db.jobs.list() == []


# --- deleting -------------------------------------------------------------------------------------------


@everywhere
async def test_a_waiting_or_dead_job_can_be_deleted(db: Rig) -> None:
    dead = await db.enqueue(hopeless)
    await db.drain()
    waiting = await db.enqueue(note, "never", key="k", delay=60)
    for handle in (dead, waiting):
        assert (await db.jobs.delete(handle.id)).id == handle.id
        assert await db.jobs.get(handle.id) is None
    db.clock.forward(120)
    await db.drain()
    assert done == [""]


@everywhere
async def test_a_running_job_can_be_neither_deleted_nor_retried(db: Rig) -> None:
    handle = await db.enqueue(hold)
    async with db.run_worker():
        await db.until(begun.is_set)
        with pytest.raises(JobBusyError):
            await db.jobs.delete(handle.id)
        with pytest.raises(JobBusyError):
            await db.jobs.retry(handle.id)
        may_finish.set()
    assert db.kinds() == ["started", "succeeded"]


@in_memory
async def test_a_job_that_starts_during_its_deletion_is_not_deleted(db: Rig) -> None:
    handle = await db.enqueue(hold)

    def meddle(request: Any) -> None:
        if isinstance(request, TransactWrite):
            db.recorder.before = lambda request: None
            thread.start()
            assert begun.wait(10)

    thread = threading.Thread(target=lambda: db.other.worker().drain())
    db.recorder.before = meddle
    with pytest.raises(JobBusyError):
        await db.jobs.delete(handle.id)
    may_finish.set()
    thread.join()
    assert await db.jobs.list() == []


@in_memory
async def test_changing_a_missing_job_is_an_error(db: Rig) -> None:
    await db.enqueue(note)
    for change in (db.jobs.retry, db.jobs.delete):
        with pytest.raises(JobNotFoundError, match="no such id"):
            await change("no such id")


@everywhere
async def test_a_purge_deletes_the_dead(db: Rig) -> None:
    for n in range(3):
        await db.enqueue(hopeless, n, queue="a")
    await db.enqueue(hopeless, queue="b")
    await db.drain(queues=["a", "b"])
    await db.enqueue(note, queue="a", delay=60)
    assert await db.jobs.purge(queue="b") == 1
    assert await db.jobs.purge(name="care-note") == 0
    assert await db.jobs.purge() == 3
    assert await db.jobs.counts() == {"a": (1, 0, 0, 0), "b": (0, 0, 0, 0)}


@everywhere
async def test_purging_waiting_jobs_leaves_the_running_ones(db: Rig) -> None:
    await db.enqueue(hold)
    async with db.run_worker():
        await db.until(begun.is_set)
        await db.enqueue(note, delay=60)
        await db.enqueue(chain, 1, delay=60)
        assert await db.jobs.purge(state="waiting", name="care-chain") == 1
        assert await db.jobs.purge(state="waiting") == 1
        may_finish.set()
    assert db.kinds() == ["started", "succeeded"]


@in_memory
async def test_a_purge_can_be_limited_to_jobs_that_died_or_were_due_before_a_time(db: Rig) -> None:
    await db.enqueue(hopeless, "old")
    await db.drain()
    db.clock.forward(3600)
    await db.enqueue(hopeless, "new")
    await db.drain()
    hour_ago = db.clock.now() - timedelta(minutes=30)
    assert await db.jobs.purge(before=hour_ago) == 1
    assert [record.arguments for record in await db.list_dead()] == ['["new"]']
    await db.enqueue(note, "soon", delay=60)
    await db.enqueue(note, "late", delay=7200)
    assert await db.jobs.purge(state="waiting", before=db.clock.now() + timedelta(hours=1)) == 1
    assert [record.arguments for record in await db.list_waiting()] == ['["late"]']


# --- refused options ------------------------------------------------------------------------------------

WRONG: list[tuple[str, dict[str, Any]]] = [
    ("list", {"limit": 0}),
    ("list", {"limit": True}),
    ("list", {"limit": "1"}),
    ("list", {"state": "lost"}),
    ("list", {"queue": "#"}),
    ("counts", {"queue": ""}),
    ("get", {"id": ""}),
    ("get", {"id": 5}),
    ("get", {"id": "x" * 101}),
    ("retry", {"id": None}),
    ("delete", {"id": ""}),
    ("purge", {"state": "running"}),
    ("purge", {"state": None}),
    ("purge", {"before": datetime(2026, 1, 1)}),
    ("purge", {"before": "yesterday"}),
    ("purge", {"queue": "a b"}),
    ("retry_all", {"queue": 1}),
]


@pytest.mark.parametrize(("method", "options"), WRONG, ids=str)
@in_memory
async def test_invalid_options_are_refused(db: Rig, method: str, options: dict[str, Any]) -> None:
    await db.enqueue(note)
    with pytest.raises(InvalidOptionsError):
        await getattr(db.jobs, method)(**options)
    assert (await db.jobs.counts())["default"].waiting == 1


def test_the_time_of_a_job_is_in_utc() -> None:
    async def enqueue() -> None:
        from holdall import AsyncDatabase

        async with AsyncDatabase("memory:") as db:
            before = datetime.now(UTC)
            await db.jobs.enqueue(note)
            (record,) = await db.jobs.list()
            assert before <= record.enqueued <= datetime.now(UTC)
            assert record.due == record.enqueued

    asyncio.run(enqueue())

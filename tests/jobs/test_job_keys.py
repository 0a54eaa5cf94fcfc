"""Keys: while a job with a key waits, no second one is added, and no work is lost because of that."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory, on_servers

from holdall import Key, Model, job
from holdall.core.requests import TransactWrite

done: list[Any] = []
begun = threading.Event()
may_finish = threading.Event()


class Tally(Model):
    name: Key[str]
    n: int = 0


@job("key-note", backoff=60)
def note(word: str = "") -> None:
    done.append(word)


@job("key-other")
def other(word: str = "") -> None:
    done.append(word)


@job("key-stubborn", retries=1, backoff=60)
def stubborn() -> None:
    done.append("tried")
    raise ValueError("not today")


@job("key-held", retries=1, backoff=60)
def hold(fails: bool = False) -> None:
    begun.set()
    assert may_finish.wait(30)
    done.append("held")
    if fails:
        raise ValueError("not today")


@job("key-once", once_for=60, retries=1, backoff=10)
def once(word: str = "") -> None:
    done.append(word)
    if word == "bad":
        raise ValueError("bad")


@job("key-once-held", once_for=60)
def once_held() -> None:
    begun.set()
    assert may_finish.wait(30)
    done.append("held")


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()
    begun.clear()
    may_finish.clear()


# --- while a job waits ----------------------------------------------------------------------------------


@on_servers
async def test_while_a_job_waits_enqueuing_with_its_key_adds_nothing(db: Rig) -> None:
    first = await db.enqueue(note, "first", key="k")
    second = await db.enqueue(note, "second", key="k")
    assert (first.added, second.added) == (True, False)
    assert (await db.get_only()).id == first.id
    await db.drain()
    assert done == ["first"]


@everywhere
async def test_a_key_adds_one_job_in_one_transaction(db: Rig) -> None:
    def body(tx: Any) -> tuple[Any, Any]:
        return tx.enqueue(note, "first", key="k"), tx.enqueue("key-note", "second", key="k")

    first, second = await db.commit(body)
    assert first is second
    assert first.added
    await db.drain()
    assert done == ["first"]


@everywhere
async def test_jobs_with_different_names_have_separate_keys(db: Rig) -> None:
    def body(tx: Any) -> list[Any]:
        return [tx.enqueue(note, key="k"), tx.enqueue(other, key="k"), tx.enqueue(note, key="k#")]

    assert all(handle.added for handle in await db.commit(body))
    assert (await db.jobs.counts())["default"].waiting == 3


@in_memory
async def test_keys_that_look_alike_are_different(db: Rig) -> None:
    keys = ["a", "A", " a", "a ", "a#", "a%23", "%", "a/b", "a\x00b", "ä", "a\u0308", "🗝"]
    handles = [await db.enqueue(note, key, key=key) for key in keys]
    assert all(handle.added for handle in handles)
    assert {record.key for record in await db.jobs.list()} == set(keys)
    await db.drain()
    assert sorted(done) == sorted(keys)


@everywhere
async def test_a_transaction_whose_key_is_taken_commits_the_rest(db: Rig) -> None:
    await db.enqueue(note, key="k")

    def body(tx: Any) -> Any:
        tx.create(Tally, name="a")
        return tx.enqueue(note, key="k")

    assert (await db.commit(body)).added is False
    assert await db.get(Tally, "a") is not None
    assert (await db.get_only()).key == "k"


@everywhere
async def test_a_key_is_taken_in_every_queue_and_for_any_delay(db: Rig) -> None:
    first = await db.enqueue(note, key="k", queue="slow", delay=3600)
    assert not (await db.enqueue(note, key="k", queue="quick")).added
    assert not (await db.enqueue(note, key="k", delay=1)).added
    await db.drain(queues=["slow", "quick"])
    assert done == []
    db.clock.forward(3601)
    await db.drain(queues=["slow", "quick"])
    assert done == [""]
    assert await db.jobs.get(first.id) is None


# --- races ----------------------------------------------------------------------------------------------


@everywhere
async def test_if_the_waiting_job_starts_before_the_commit_another_is_added(db: Rig) -> None:
    """Otherwise no job would see what the transaction changes."""
    await db.enqueue(note, "first", key="k")
    interrupted = False

    def meddle(request: Any) -> None:
        nonlocal interrupted
        if isinstance(request, TransactWrite) and not interrupted:
            interrupted = True
            run_in_thread(lambda: db.other.worker().drain())

    def body(tx: Any) -> Any:
        tx.create(Tally, name="a")
        return tx.enqueue(note, "second", key="k")

    db.recorder.before = meddle
    handle = await db.run(body)
    assert handle.added
    await db.drain()
    assert done == ["first", "second"]


def run_in_thread(function: Any) -> None:
    """Run a function that starts its own event loop."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@everywhere
async def test_all_racing_transactions_with_one_key_commit_and_one_adds_the_job(db: Rig) -> None:
    await db.enqueue(other)  # so that the table exists

    def enqueue(n: int) -> Any:
        def body(tx: Any) -> Any:
            tx.create(Tally, name=str(n))
            return tx.enqueue(note, key="k")

        return db.other.run(body, retries=50).added

    with ThreadPoolExecutor(8) as threads:
        added = list(threads.map(enqueue, range(8)))
    assert sorted(map(bool, added)) == [False] * 7 + [True]
    assert len(await db.jobs.list(name="key-note")) == 1
    assert [name for name in range(8) if await db.get(Tally, str(name)) is None] == []


# --- while it runs, and after ---------------------------------------------------------------------------


@everywhere
async def test_enqueuing_while_the_job_runs_adds_another_job(db: Rig) -> None:
    await db.enqueue(hold, key="k")
    async with db.run_worker(concurrency=1):
        await db.until(begun.is_set)
        assert (await db.enqueue(hold, key="k")).added
        assert not (await db.enqueue(hold, key="k")).added
        may_finish.set()
        await db.until_event("succeeded", 2)
    assert done == ["held", "held"]


@everywhere
async def test_after_the_job_its_key_is_free(db: Rig) -> None:
    for word in ("first", "second"):
        assert (await db.enqueue(note, word, key="k")).added
        await db.drain()
    assert done == ["first", "second"]


@everywhere
async def test_a_failed_job_holds_its_key_until_its_next_attempt(db: Rig) -> None:
    await db.enqueue(stubborn, key="k")
    await db.drain()
    assert not (await db.enqueue(stubborn, key="k")).added
    assert len(await db.jobs.list()) == 1


@everywhere
async def test_a_failed_job_is_superseded_if_another_took_its_key(db: Rig) -> None:
    await db.enqueue(hold, True, key="k")
    async with db.run_worker():
        await db.until(begun.is_set)
        second = await db.enqueue(hold, key="k", delay=3600)
        may_finish.set()
        await db.until_event("superseded")
    assert (await db.get_only()).id == second.id
    assert db.kinds() == ["started", "superseded"]
    assert not (await db.enqueue(hold, key="k")).added


@everywhere
async def test_a_dead_job_releases_its_key(db: Rig) -> None:
    await db.enqueue(stubborn, key="k")
    await db.drain()
    db.clock.forward(120)
    await db.drain()
    assert [record.state for record in await db.jobs.list()] == ["dead"]
    assert (await db.enqueue(stubborn, key="k")).added


@everywhere
async def test_a_deleted_job_releases_its_key(db: Rig) -> None:
    first = await db.enqueue(note, key="k")
    await db.jobs.delete(first.id)
    assert (await db.enqueue(note, key="k")).added
    assert await db.jobs.purge(state="waiting") == 1
    assert (await db.enqueue(note, key="k")).added


@everywhere
async def test_a_released_job_holds_its_key_again(db: Rig) -> None:
    first = await db.enqueue(hold, key="k")
    async with db.run_worker(grace=0.0):
        await db.until(begun.is_set)
    assert db.kinds() == ["started", "released"]
    assert not (await db.enqueue(hold, key="k")).added
    assert (await db.get_only()).id == first.id
    may_finish.set()
    await db.until(lambda: done == ["held"])  # so that its thread ends before the next test starts


@in_memory
async def test_a_released_job_does_not_block_another_that_took_its_key(db: Rig) -> None:
    await db.enqueue(hold, key="k")
    async with db.run_worker(grace=0.0):
        await db.until(begun.is_set)
        later = await db.enqueue(hold, key="k", delay=3600)
    assert later.added
    may_finish.set()
    metrics = await db.drain()
    assert metrics.collisions == 0
    assert later.id in {record.id for record in await db.list_waiting()}
    await db.until(lambda: "held" in done)


@everywhere
async def test_a_dead_job_that_is_retried_holds_its_key_again(db: Rig) -> None:
    first = await db.enqueue(stubborn, key="k")
    await db.drain()
    db.clock.forward(120)
    await db.drain()
    await db.jobs.retry(first.id)
    assert not (await db.enqueue(stubborn, key="k")).added


# --- once_for -------------------------------------------------------------------------------------------


@on_servers
async def test_a_key_with_once_for_is_remembered_after_success(db: Rig) -> None:
    assert (await db.enqueue(once, "first", key="k")).added
    await db.drain()
    assert not (await db.enqueue(once, "early", key="k")).added
    db.clock.forward(30)  # well before the minute ends: the clock keeps running, and a server may be slow
    assert not (await db.enqueue(once, "early", key="k")).added
    db.clock.forward(31)
    assert (await db.enqueue(once, "late", key="k")).added
    assert not (await db.enqueue(once, "again", key="k")).added
    await db.drain()
    assert done == ["first", "late"]


@everywhere
async def test_a_key_with_once_for_is_taken_while_its_job_runs(db: Rig) -> None:
    await db.enqueue(once_held, key="k")
    async with db.run_worker():
        await db.until(begun.is_set)
        assert not (await db.enqueue(once_held, key="k")).added
        may_finish.set()
        await db.until_event("succeeded")
    assert done == ["held"]
    assert await db.jobs.list() == []


@everywhere
async def test_a_key_with_once_for_is_taken_until_the_job_has_succeeded(db: Rig) -> None:
    await db.enqueue(once, "bad", key="k")
    await db.drain()
    assert db.kinds() == ["started", "failed"]
    assert not (await db.enqueue(once, key="k")).added


@everywhere
async def test_a_key_with_once_for_is_free_when_its_job_dies(db: Rig) -> None:
    await db.enqueue(once, "bad", key="k")
    await db.drain()
    db.clock.forward(20)
    await db.drain()
    assert db.kinds()[-1] == "dead"
    assert (await db.enqueue(once, "good", key="k")).added
    await db.drain()
    assert done == ["bad", "bad", "good"]


@everywhere
async def test_a_key_with_once_for_is_free_when_its_job_is_deleted(db: Rig) -> None:
    first = await db.enqueue(once, key="k")
    await db.jobs.delete(first.id)
    assert (await db.enqueue(once, key="k")).added


@in_memory
async def test_without_a_key_once_for_has_no_effect(db: Rig) -> None:
    for _ in range(2):
        assert (await db.enqueue(once)).added
        await db.drain()
    assert done == ["", ""]


@in_memory
async def test_a_dead_job_can_be_retried_once_its_key_is_forgotten(db: Rig) -> None:
    first = await db.enqueue(once, "bad", key="k")
    await db.drain()
    db.clock.forward(20)
    await db.drain()
    await db.enqueue(once, "good", key="k")
    await db.drain()
    db.clock.forward(61)
    await db.jobs.retry(first.id)
    assert (await db.get_only()).state == "waiting"


@in_memory
async def test_racing_enqueues_after_once_for_has_passed_add_one_job(db: Rig) -> None:
    await db.enqueue(once, "first", key="k")
    await db.drain()
    db.clock.forward(61)
    interrupted = False

    def meddle(request: Any) -> None:
        nonlocal interrupted
        if isinstance(request, TransactWrite) and not interrupted:
            interrupted = True
            db.other.jobs.enqueue(once, "theirs", key="k")

    db.recorder.before = meddle
    assert not (await db.enqueue(once, "ours", key="k")).added
    await db.drain()
    assert done == ["first", "theirs"]

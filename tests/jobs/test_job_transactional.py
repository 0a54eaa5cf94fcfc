"""Transactional jobs: their writes and their end are one commit, so they take effect exactly once."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory, lose_after, on_servers

from holdall import AsyncTransaction, Key, Model, Transaction, current_job, job
from holdall.core.port import run
from holdall.core.requests import TransactWrite
from holdall.errors import TransactionFailedError
from holdall.jobs.lease import take
from holdall.tables.commit import retry

done: list[Any] = []
begun = threading.Event()
may_finish = threading.Event()


class Tally(Model):
    name: Key[str]
    n: int = 0


@job("transactional-bump", transactional=True, retries=1, backoff=60)
def bump(tx: Transaction, name: str, fails: bool = False) -> None:
    done.append(name)
    tx.get_one(Tally, name).n += 1
    if fails:
        raise ValueError("after its write")


@job("transactional-bump-async", transactional=True, retries=1, backoff=60)
async def bump_async(tx: AsyncTransaction, name: str, fails: bool = False) -> None:
    done.append(name)
    (await tx.get_one(Tally, name)).n += 1
    if fails:
        raise ValueError("after its write")


@job("transactional-nothing", transactional=True)
def do_nothing(tx: Transaction) -> None:
    done.append("nothing")


@job("transactional-next", transactional=True)
def follow(tx: Transaction, n: int) -> None:
    done.append(n)
    if n:
        tx.enqueue(follow, n - 1)


@job("transactional-handler", transactional=True, retries=1, backoff=60)
def with_handler(tx: Transaction, fails: bool = False) -> None:
    tx.create(Tally, name="made")

    def handler() -> None:
        done.append("after commit")
        if fails:
            raise ValueError("in the handler")

    tx.after_commit(handler)


@job("transactional-once", transactional=True, retries=0, once_for=60)
def once(tx: Transaction, name: str) -> None:
    tx.get_one(Tally, name).n += 1


@job("transactional-again", transactional=True, retries=0)
def again(tx: Transaction, n: int) -> None:
    done.append(n)
    if n:
        tx.enqueue(again, n - 1, key="k")


@job("transactional-once-again", transactional=True, retries=0, once_for=60)
def once_again(tx: Transaction) -> None:
    done.append(tx.enqueue(once_again, key="k"))


@job("transactional-held", transactional=True, retries=0, timeout=0.05)
def hold(tx: Transaction, name: str) -> None:
    tx.get_one(Tally, name).n += 1
    begun.set()
    assert may_finish.wait(30)
    done.append("over")


BOTH = pytest.mark.parametrize("which", [bump, bump_async], ids=["sync", "async"])


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()
    begun.clear()
    may_finish.clear()


@BOTH
@on_servers
async def test_the_writes_and_the_end_of_a_job_are_one_commit(db: Rig, which: Any) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(which, "a")
    db.recorder.requests.clear()
    metrics = await db.drain()
    assert metrics.succeeded == 1
    writes = [request for request in db.recorder.requests if isinstance(request, TransactWrite)]
    assert [len(write.actions) for write in writes] == [2]
    assert (await db.get(Tally, "a")).n == 1
    assert await db.jobs.list() == []


@BOTH
@everywhere
async def test_a_failed_job_writes_nothing(db: Rig, which: Any) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(which, "a", True)
    await db.drain()
    assert db.kinds() == ["started", "failed"]
    assert (await db.get(Tally, "a")).n == 0
    assert (await db.get_only()).attempts == 1


@BOTH
@everywhere
async def test_contention_is_retried_within_one_attempt(db: Rig, which: Any) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(which, "a")
    interfered = False

    def meddle(request: Any) -> None:
        nonlocal interfered
        if isinstance(request, TransactWrite) and not interfered:
            interfered = True
            with db.other.transaction() as tx:
                tx.get_one(Tally, "a").n += 10

    db.recorder.before = meddle
    metrics = await db.drain()
    assert (metrics.started, metrics.succeeded, metrics.failed) == (1, 1, 0)
    assert done == ["a", "a"]
    assert (await db.get(Tally, "a")).n == 11


@BOTH
@in_memory
async def test_lasting_contention_is_a_failure_that_is_retried_later(
    db: Rig, which: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "PATIENCE", timedelta(0))
    await db.create(Tally(name="a"))
    await db.enqueue(which, "a")

    def meddle(request: Any) -> None:
        if isinstance(request, TransactWrite) and any("Tally" in str(action) for action in request.actions):
            with db.other.transaction() as tx:
                tx.get_one(Tally, "a").n += 10

    db.recorder.before = meddle
    await db.drain()
    assert db.kinds() == ["started", "failed"]
    assert isinstance(db.events[-1].error, TransactionFailedError)
    assert (await db.get_only()).state == "waiting"


@everywhere
async def test_a_job_that_writes_nothing_ends_like_any_other(db: Rig) -> None:
    await db.enqueue(do_nothing)
    assert (await db.drain()).succeeded == 1
    assert done == ["nothing"]
    assert await db.jobs.list() == []


@everywhere
async def test_a_job_can_enqueue_the_next_one(db: Rig) -> None:
    await db.enqueue(follow, 3)
    assert (await db.drain()).succeeded == 4
    assert done == [3, 2, 1, 0]


@everywhere
async def test_a_job_can_enqueue_another_with_its_own_key(db: Rig) -> None:
    await db.enqueue(again, 2, key="k")
    await db.drain()
    assert done == [2, 1, 0]


@in_memory
async def test_a_job_with_once_for_cannot_enqueue_another_with_its_key(db: Rig) -> None:
    await db.enqueue(once_again, key="k")
    assert (await db.drain()).succeeded == 1
    (handle,) = done
    assert handle.added is False
    assert await db.jobs.list() == []


@everywhere
async def test_a_key_is_remembered_with_the_commit(db: Rig) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(once, "a", key="k")
    await db.drain()
    assert not (await db.enqueue(once, "a", key="k")).added
    db.clock.forward(61)
    assert (await db.enqueue(once, "a", key="k")).added
    await db.drain()
    assert (await db.get(Tally, "a")).n == 2


@in_memory
async def test_handlers_run_after_the_commit(db: Rig) -> None:
    await db.enqueue(with_handler)
    assert (await db.drain()).succeeded == 1
    assert done == ["after commit"]


@in_memory
async def test_a_job_succeeds_even_if_its_handler_fails(db: Rig) -> None:
    await db.enqueue(with_handler, True)
    metrics = await db.drain()
    assert (metrics.succeeded, metrics.failed, metrics.lost) == (1, 0, 0)
    assert await db.get(Tally, "made") is not None
    assert await db.jobs.list() == []


@BOTH
@everywhere
async def test_a_commit_that_succeeded_is_not_repeated_if_its_reply_is_lost(db: Rig, which: Any) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(which, "a")
    db.recorder.after = lose_after(TransactWrite)
    await db.drain()
    assert db.kinds() == ["started", "lost"]
    db.clock.forward(3600)
    assert (await db.drain()).started == 0
    assert (await db.get(Tally, "a")).n == 1


@BOTH
@in_memory
async def test_a_commit_that_failed_without_a_reply_is_made_up_for_after_the_lease(
    db: Rig, which: Any
) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(which, "a")
    lose = lose_after(TransactWrite)
    db.recorder.before = lose
    await db.drain()
    assert db.kinds() == ["started", "lost"]
    assert (await db.drain()).started == 0
    db.clock.forward(3600)
    assert (await db.drain()).succeeded == 1
    assert (await db.get(Tally, "a")).n == 1


@in_memory
async def test_a_job_that_took_too_long_commits_nothing(db: Rig) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(hold, "a")
    await db.drain()
    assert db.kinds() == ["started", "dead"]
    may_finish.set()
    await db.until(lambda: done == ["over"])
    record = await db.get_only()
    assert "JobTimeoutError" in str(record.error)
    assert (await db.get(Tally, "a")).n == 0


taking: list[Rig] = []


@job("transactional-taken", transactional=True)
def take_meanwhile(tx: Transaction) -> None:
    """Lose the lease meanwhile: another worker takes the job and does the work."""
    done.append("ran")
    tx.get_one(Tally, "t").n += 1
    (db,) = taking
    other = db.other
    running = current_job()
    assert run(take(other._context, running.record, "token", 30.0)) is not None
    other.run(lambda tx: setattr(tx.get_one(Tally, "t"), "n", 10))


@everywhere
async def test_a_worker_that_lost_its_lease_does_not_run_the_body_again(db: Rig) -> None:
    await db.create(Tally(name="t"))
    taking[:] = [db]
    await db.enqueue(take_meanwhile)
    async with db.run_worker():
        await db.until_event("lost")
    assert done == ["ran"]
    assert (await db.get(Tally, "t")).n == 10
    assert (await db.get_only()).state == "running"  # held by the other worker

"""Leases: which worker holds a job, for how long, and when another worker may take it over."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory, on_servers

from holdall import Key, Model, current_job, job
from holdall.core.port import run
from holdall.core.requests import DeleteItem, TransactWrite, UpdateItem
from holdall.errors import LeaseLostError, OutcomeUnknown, ThrottledError
from holdall.jobs import lease
from holdall.jobs.record import JobRecord, locate_job
from holdall.tables.flow import discover

done: list[Any] = []
begun = threading.Event()
may_finish = threading.Event()


class Tally(Model):
    name: Key[str]
    n: int = 0


LEASE = 0.9
"""Seconds. Workers send a heartbeat after a third of them, which must arrive in time even on a busy machine."""


@job("lease-note", retries=1, backoff=10)
def note(word: Any = "") -> None:
    done.append(word)


@job("lease-held", retries=5)
def hold() -> None:
    running = current_job()
    begun.set()
    while not may_finish.wait(0.002):
        if running.lost:
            done.append("lost")
            return
    done.append("held")


@job("lease-held-async", retries=5)
async def hold_async() -> None:
    begun.set()
    try:
        while not may_finish.is_set():
            await asyncio.sleep(0.002)
    except asyncio.CancelledError:
        done.append("cancelled")
        raise
    done.append("held")


@job("lease-held-transactional", transactional=True, retries=5)
def hold_in_transaction(tx: Any, name: str) -> None:
    tx.get_one(Tally, name).n += 1
    begun.set()
    may_finish.wait(120)
    done.append("held")


@job("lease-held-transactional-async", transactional=True, retries=5)
async def hold_in_transaction_async(tx: Any, name: str) -> None:
    (await tx.get_one(Tally, name)).n += 1
    begun.set()
    while not may_finish.is_set():
        await asyncio.sleep(0.002)
    done.append("held")


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()
    begun.clear()
    may_finish.clear()


async def claim(db: Rig, record: JobRecord, seconds: float = 30.0) -> JobRecord:
    taken = await db.take(record, seconds)
    assert taken is not None
    return taken


async def steal(db: Rig) -> JobRecord:
    """Take the only job from its worker, between two of its heartbeats."""
    while True:
        taken = await db.take(await db.get_only(), 60.0)
        if taken is not None:
            return taken


# --- taking ---------------------------------------------------------------------------------------------


@on_servers
async def test_only_one_of_two_workers_can_take_a_job(db: Rig) -> None:
    await db.enqueue(note)
    record = await db.get_only()
    taken = await claim(db, record)
    assert (taken.attempts, taken.state) == (1, "running")
    assert await db.take(record, 30.0) is None
    assert (await db.get_only()).attempts == 1


@on_servers
async def test_only_one_of_two_workers_can_take_a_job_with_a_key(db: Rig) -> None:
    await db.enqueue(note, key="k")
    record = await db.get_only()
    await claim(db, record)
    assert await db.take(record, 30.0) is None


@everywhere
async def test_a_deleted_job_cannot_be_taken(db: Rig) -> None:
    handle = await db.enqueue(note)
    record = await db.get_only()
    await db.jobs.delete(handle.id)
    assert await db.take(record, 30.0) is None
    assert await db.jobs.list() == []


@everywhere
async def test_a_job_that_moved_meanwhile_cannot_be_taken_at_its_old_place(db: Rig) -> None:
    await db.enqueue(note)
    record = await db.get_only()
    await lease.fail(db.context, await claim(db, record), "why", 60.0)
    assert await db.take(record, 30.0) is None
    assert (await db.get_only()).attempts == 1


@everywhere
async def test_a_job_that_died_meanwhile_cannot_be_taken(db: Rig) -> None:
    await db.enqueue(note)
    record = await db.get_only()
    await lease.bury(db.context, await claim(db, record), "why")
    assert await db.take(record, 30.0) is None
    assert (await db.get_only()).state == "dead"


@everywhere
async def test_a_worker_that_lost_a_job_can_neither_extend_nor_end_it(db: Rig) -> None:
    await db.enqueue(note)
    first = await claim(db, await db.get_only())
    second = await claim(db, await db.get_only())
    assert second.attempts == 2
    assert first.lease is not None
    tokens = [first.lease.token]
    for end in (
        lambda: lease.extend(db.context, first, "token", tokens),
        lambda: lease.finish(db.context, first),
        lambda: lease.fail(db.context, first, "why", 1.0),
        lambda: lease.bury(db.context, first, "why"),
        lambda: lease.release(db.context, first),
    ):
        with pytest.raises(LeaseLostError):
            await end()
    assert (await db.get_only()).lease == second.lease
    await lease.finish(db.context, second)
    assert await db.jobs.list() == []


@everywhere
async def test_a_worker_that_lost_a_job_with_a_key_cannot_end_it(db: Rig) -> None:
    await db.enqueue(note, key="k")
    first = await claim(db, await db.get_only())
    second = await claim(db, await db.get_only())
    for end in (
        lambda: lease.finish(db.context, first),
        lambda: lease.fail(db.context, first, "why", 1.0),
        lambda: lease.bury(db.context, first, "why"),
        lambda: lease.release(db.context, first),
    ):
        with pytest.raises(LeaseLostError):
            await end()
    assert (await db.get_only()).lease == second.lease


@everywhere
async def test_a_job_whose_deletion_is_delivered_twice_is_finished(db: Rig) -> None:
    """The service executes the deletion, and receives it again when the client repeats it."""
    await db.enqueue(note, "once")
    delivered: list[Any] = []

    def deliver(request: Any) -> None:
        if isinstance(request, DeleteItem):
            delivered.append(run(db.other._context.port.send(request)))

    db.recorder.before = deliver
    assert (await db.drain()).succeeded == 1
    assert (len(delivered), done, db.kinds()) == (1, ["once"], ["started", "succeeded"])
    assert await db.jobs.list() == []


# --- heartbeats -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [hold, hold_async], ids=["sync", "async"])
@everywhere
async def test_the_lease_of_a_running_job_is_extended(db: Rig, which: Any) -> None:
    await db.enqueue(which)
    async with db.run_worker(lease=LEASE):
        await db.until(begun.is_set)
        tokens = set()

        async def is_extended() -> bool:
            lease = (await db.get_only()).lease
            assert lease is not None
            tokens.add(lease.token)
            return len(tokens) >= 3

        await db.until(is_extended)
        may_finish.set()
    assert db.kinds() == ["started", "succeeded"]
    assert done == ["held"]


@pytest.mark.parametrize("which", [hold_in_transaction, hold_in_transaction_async], ids=["sync", "async"])
@everywhere
async def test_a_transactional_job_commits_after_its_lease_was_extended(db: Rig, which: Any) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(which, "a")
    async with db.run_worker(lease=LEASE):
        await db.until(begun.is_set)
        first = (await db.get_only()).lease

        async def is_extended() -> bool:
            return (await db.get_only()).lease != first

        await db.until(is_extended)
        may_finish.set()
    assert db.kinds() == ["started", "succeeded"]
    assert (await db.get(Tally, "a")).n == 1
    assert await db.jobs.list() == []


@in_memory
async def test_a_heartbeat_between_the_work_and_the_commit_causes_a_retry(db: Rig) -> None:
    """The commit requires the lease that was read, so it is refused; the next attempt reads the new one."""
    await db.create(Tally(name="a"))
    await db.enqueue(hold_in_transaction, "a")
    may_finish.set()
    waited = False

    def meddle(request: Any) -> None:
        nonlocal waited
        if isinstance(request, TransactWrite) and not waited:
            waited = True
            (record,) = db.other.jobs.list()
            while db.other.jobs.list()[0].lease == record.lease:
                pass

    db.recorder.before = meddle
    async with db.run_worker(lease=LEASE):
        await db.until(lambda: len(db.kinds()) >= 2)
    assert db.kinds() == ["started", "succeeded"]
    assert (await db.get(Tally, "a")).n == 1


@pytest.mark.parametrize("which", [hold, hold_async], ids=["sync", "async"])
@everywhere
async def test_a_job_that_another_worker_took_is_stopped_and_left_to_that_worker(db: Rig, which: Any) -> None:
    await db.enqueue(which)
    async with db.run_worker(lease=LEASE):
        await db.until(begun.is_set)
        theirs = await steal(db)
        await db.until_event("lost")
        await db.until(lambda: bool(done))
    assert done == ["lost" if which is hold else "cancelled"]
    assert db.kinds() == ["started", "lost"]
    assert (await db.get_only()).lease == theirs.lease


@in_memory
async def test_a_transactional_job_that_another_worker_took_commits_nothing(db: Rig) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(hold_in_transaction, "a")
    async with db.run_worker():
        await db.until(begun.is_set)
        theirs = await steal(db)
        may_finish.set()
        await db.until_event("lost")
    assert (await db.get(Tally, "a")).n == 0
    assert (await db.get_only()).lease == theirs.lease


@in_memory
async def test_a_worker_that_cannot_extend_a_lease_abandons_the_job_when_it_ends(db: Rig) -> None:
    await db.enqueue(hold_async)

    def meddle(request: Any) -> None:
        if begun.is_set() and isinstance(request, UpdateItem):
            raise ThrottledError("on purpose")

    db.recorder.before = meddle
    async with db.run_worker(lease=0.1, poll_interval=60):
        await db.until_event("lost")
    assert done == ["cancelled"]


@in_memory
async def test_a_heartbeat_whose_reply_is_lost_does_not_cost_the_job(db: Rig) -> None:
    await db.enqueue(hold_async)
    lost: list[Any] = []

    def meddle(request: Any) -> None:
        if begun.is_set() and isinstance(request, UpdateItem) and not lost:
            lost.append(request)
            raise OutcomeUnknown("the reply was lost on purpose")

    db.recorder.after = meddle
    async with db.run_worker(lease=LEASE):
        await db.until(begun.is_set)
        await db.until(lambda: bool(lost))
        after = (await db.get_only()).lease

        async def is_extended() -> bool:
            return bool(db.kinds("lost")) or (await db.get_only()).lease != after

        await db.until(is_extended)
        may_finish.set()
        await db.until(lambda: len(db.kinds()) >= 2)
    assert db.kinds() == ["started", "succeeded"]


# --- taking over ----------------------------------------------------------------------------------------


@everywhere
async def test_a_job_is_taken_over_if_its_lease_stays_unchanged(db: Rig) -> None:
    await db.enqueue(note, "taken over")
    await claim(db, await db.get_only(), 0.1)
    async with db.run_worker():
        await db.until_event("succeeded")
    assert done == ["taken over"]
    assert [event.attempt for event in db.events] == [2, 2]


@everywhere
async def test_a_draining_worker_takes_over_by_the_wall_clock(db: Rig) -> None:
    await db.enqueue(note, "taken over")
    await claim(db, await db.get_only(), 10.0)
    assert (await db.drain()).started == 0
    db.clock.forward(39)  # clocks may differ by half a minute
    assert (await db.drain()).started == 0
    db.clock.forward(2)
    assert (await db.drain()).succeeded == 1
    assert done == ["taken over"]


@everywhere
async def test_a_job_that_kills_its_workers_dies(db: Rig) -> None:
    await db.enqueue(note)
    for _ in range(2):
        await claim(db, await db.get_only())
    db.clock.forward(3600)
    metrics = await db.drain()
    assert (metrics.started, metrics.dead) == (0, 1)
    record = await db.get_only()
    assert record.state == "dead"
    assert "worker died" in str(record.error)
    assert done == []


@in_memory
async def test_a_job_that_kills_its_worker_after_a_failure_keeps_the_error(db: Rig) -> None:
    await db.enqueue(note)
    taken = await claim(db, await db.get_only())
    await lease.fail(db.context, taken, "the reason", 0.0)
    await claim(db, await db.get_only())
    db.clock.forward(3600)
    await claim(db, await db.get_only())
    db.clock.forward(3600)
    await db.drain()
    assert (await db.get_only()).error == "the reason"


@everywhere
async def test_a_job_whose_worker_died_is_taken_over_even_if_another_took_its_key(db: Rig) -> None:
    await db.enqueue(note, "first", key="k")
    await claim(db, await db.get_only())
    assert (await db.enqueue(note, "second", key="k", delay=7200)).added
    db.clock.forward(3600)
    await db.drain()
    assert done == ["first"]
    assert [record.arguments for record in await db.jobs.list()] == ['["second"]']


# --- releasing ------------------------------------------------------------------------------------------


@everywhere
async def test_a_worker_that_stops_lets_its_jobs_finish(db: Rig) -> None:
    await db.enqueue(hold)
    async with db.run_worker():
        await db.until(begun.is_set)
        threading.Timer(0.05, may_finish.set).start()
    assert done == ["held"]
    assert db.kinds() == ["started", "succeeded"]


@pytest.mark.parametrize("which", [hold, hold_async], ids=["sync", "async"])
@everywhere
async def test_after_its_grace_a_worker_releases_jobs_as_if_they_had_never_started(
    db: Rig, which: Any
) -> None:
    handle = await db.enqueue(which)
    async with db.run_worker(grace=0.02):
        await db.until(begun.is_set)
    assert db.kinds() == ["started", "released"]
    await db.until(lambda: bool(done))
    assert done == ["lost" if which is hold else "cancelled"]
    record = await db.get_only()
    assert (record.id, record.state, record.attempts, record.lease) == (handle.id, "waiting", 0, None)
    may_finish.set()
    assert (await db.drain()).succeeded == 1
    assert done[1:] == ["held"]


@in_memory
async def test_a_released_transactional_job_commits_nothing(db: Rig) -> None:
    await db.create(Tally(name="a"))
    await db.enqueue(hold_in_transaction, "a")
    async with db.run_worker(grace=0.0):
        await db.until(begun.is_set)
    assert db.kinds() == ["started", "released"]
    may_finish.set()
    await db.until(lambda: done == ["held"])
    assert (await db.get_only()).attempts == 0
    assert (await db.get(Tally, "a")).n == 0
    await db.drain()
    assert (await db.get(Tally, "a")).n == 1


@everywhere
async def test_a_lease_is_in_the_item_of_its_job(db: Rig) -> None:
    """Taking a job does not move it, so one write is enough."""
    await db.enqueue(note)
    before = await db.get_only()
    layout = await discover(db.context)
    taken = await claim(db, before)
    assert locate_job(layout, taken) == locate_job(layout, before)

"""Recurring jobs: each occurrence is enqueued once, however many processes try and however often."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory, in_one_colour, lose_after, on_servers

from holdall import job
from holdall.core.requests import TransactWrite
from holdall.errors import HoldallError, OutcomeUnknown, ThrottledError
from holdall.jobs import Job
from holdall.jobs.declaration import declared_jobs
from holdall.jobs.flow import enqueue_next

QUEUE = "clockwork"
done: list[Any] = []


@job("recurring-tick", queue=QUEUE, every=60)
def tick() -> None:
    done.append("tick")


@job("recurring-nightly", queue=QUEUE, cron="30 3 * * *")
async def nightly() -> None:
    done.append("night")


@job("recurring-elsewhere", queue="elsewhere", every=60)
def elsewhere() -> None:
    done.append("elsewhere")


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()


def declare_again(name: str, **schedule: Any) -> Job[*tuple[Any, ...]]:
    """Declare a job under a name, in place of an earlier declaration with another schedule."""

    def function() -> None:
        done.append(name)

    declared_jobs().pop(name, None)
    declare: Any = job
    made: Job[*tuple[Any, ...]] = declare(name, queue=QUEUE, **schedule)(function)
    return made


@on_servers
async def test_an_occurrence_is_enqueued_once_for_its_time(db: Rig) -> None:
    before = db.clock.now()
    due = await enqueue_next(db.context, tick)
    assert before < due <= before + timedelta(seconds=61)
    assert due.timestamp() % 60 == 0
    record = await db.get_only()
    assert (record.name, record.queue, record.due, record.arguments) == ("recurring-tick", QUEUE, due, "[]")
    await enqueue_next(db.context, tick)
    assert await db.jobs.list() == [record]
    assert (await db.drain(queues=[QUEUE])).started == 0
    db.clock.forward(61)
    assert (await db.drain(queues=[QUEUE])).succeeded == 1


@everywhere
async def test_each_occurrence_follows_the_one_before(db: Rig) -> None:
    dues = []
    for _ in range(3):
        dues.append(await enqueue_next(db.context, tick))
        db.clock.forward(60)
    assert [record.due for record in await db.jobs.list()] == dues
    assert [later - earlier for earlier, later in pairwise(dues)] == [timedelta(minutes=1)] * 2


@everywhere
async def test_missed_occurrences_are_made_up_for_once(db: Rig) -> None:
    await enqueue_next(db.context, tick)
    db.clock.forward(3600)
    await enqueue_next(db.context, tick)
    assert len(await db.jobs.list()) == 2
    assert (await db.drain(queues=[QUEUE])).succeeded == 1


@in_memory
async def test_a_cron_line_is_read_in_utc(db: Rig) -> None:
    due = await enqueue_next(db.context, nightly)
    assert (due.hour, due.minute, due.second, due.utcoffset()) == (3, 30, 0, timedelta())
    assert due - db.clock.now() <= timedelta(days=1)


@everywhere
async def test_a_slow_clock_does_not_enqueue_an_occurrence_again(db: Rig) -> None:
    due = await enqueue_next(db.context, tick)
    db.clock.forward(61)
    await db.drain(queues=[QUEUE])
    db.clock.forward(-61)
    assert await enqueue_next(db.context, tick) == due
    assert await db.jobs.list() == []


@everywhere
async def test_a_changed_schedule_counts_from_its_own_beginning(db: Rig) -> None:
    await enqueue_next(db.context, declare_again("recurring-changed", every=60))
    hourly = declare_again("recurring-changed", every=3600)
    due = await enqueue_next(db.context, hourly)
    await enqueue_next(db.context, hourly)
    dues = [record.due for record in await db.jobs.list()]
    assert len(dues) == 2
    assert due in dues


@in_memory
async def test_an_occurrence_is_enqueued_once_even_if_the_reply_is_lost(db: Rig) -> None:
    await enqueue_next(db.context, nightly)
    db.recorder.after = lose_after(TransactWrite)
    with pytest.raises(OutcomeUnknown):
        await enqueue_next(db.context, tick)
    await enqueue_next(db.context, tick)
    assert len(await db.jobs.list(name="recurring-tick")) == 1


# --- workers --------------------------------------------------------------------------------------------


@everywhere
async def test_a_worker_enqueues_and_runs_the_recurring_jobs_of_its_queues(db: Rig) -> None:
    async with db.run_worker(queues=[QUEUE], jobs=[tick, nightly, elsewhere]):
        await db.until(_expect_listed(db, 2))
        db.clock.forward(61)
        await db.until_event("succeeded")
    assert done == ["tick"]
    assert {record.name for record in await db.jobs.list()} <= {"recurring-tick", "recurring-nightly"}
    assert "recurring-nightly" in {record.name for record in await db.jobs.list()}


@everywhere
async def test_two_workers_run_each_occurrence_once(db: Rig) -> None:
    async with db.run_worker(queues=[QUEUE], jobs=[tick]), db.run_worker(queues=[QUEUE], jobs=[tick]):
        await db.until(_expect_listed(db, 1))
        db.clock.forward(60)
        await db.until_event("succeeded")
    assert db.kinds().count("started") == len(done) == 1
    assert len(await db.jobs.list()) <= 1


def _expect_listed(db: Rig, count: int) -> Any:
    async def are_listed() -> bool:
        return len(await db.jobs.list()) >= count

    return are_listed


@in_one_colour
async def test_a_worker_runs_one_occurrence_after_the_other(db: Rig) -> None:
    second = declare_again("recurring-second", every=1)
    async with db.run_worker(queues=[QUEUE], jobs=[second]):
        await db.until(lambda: done.count("recurring-second") >= 2)
    dues = {event.id for event in db.events if event.kind == "succeeded"}
    assert len(dues) == len(done)


@in_memory
async def test_a_worker_enqueues_only_the_recurring_jobs_that_it_knows(db: Rig) -> None:
    async with db.run_worker(queues=[QUEUE], jobs=[nightly]):
        await db.until(_expect_listed(db, 1))
    assert (await db.get_only()).name == "recurring-nightly"


@in_memory
async def test_draining_enqueues_no_occurrences(db: Rig) -> None:
    assert (await db.drain(queues=[QUEUE], jobs=[tick])).started == 0
    assert await db.jobs.list() == []


@in_one_colour
async def test_a_worker_retries_after_failing_to_enqueue_an_occurrence(db: Rig) -> None:
    failures = iter([ThrottledError("on purpose")])

    def meddle(request: Any) -> None:
        if isinstance(request, TransactWrite) and (error := next(failures, None)) is not None:
            raise error

    db.recorder.before = meddle
    async with db.run_worker(queues=[QUEUE], jobs=[nightly]):
        await db.until(_expect_listed(db, 1))


@everywhere
async def test_only_one_of_many_concurrent_callers_enqueues_the_occurrence(db: Rig) -> None:
    await db.enqueue("recurring-nightly", queue=QUEUE, delay=3600)  # so that the table exists
    due: list[datetime] = []

    def ask() -> None:
        due.append(asyncio.run(enqueue_persistently(db)))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(due)) == 1
    assert len(await db.jobs.list(name="recurring-tick")) == 1


async def enqueue_persistently(db: Rig) -> datetime:
    while True:
        try:
            return await enqueue_next(db.other.aio._context, tick)
        except HoldallError as error:
            if not error.retryable:
                raise

"""When jobs run: delays, queues and their order, and the pauses between attempts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rig.jobs import Rig, everywhere, in_memory

from holdall import job

done: list[Any] = []


@job("timing-note")
def note(word: Any) -> None:
    done.append(word)


@job("timing-urgent", queue="urgent")
async def urgent(word: Any) -> None:
    done.append(word)


@job("timing-failing", retries=3, backoff=10)
def fail() -> None:
    done.append("tried")
    raise ValueError("not today")


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    done.clear()


# --- delay ----------------------------------------------------------------------------------------------


@everywhere
async def test_a_delayed_job_waits_for_its_time(db: Rig) -> None:
    await db.enqueue(note, "hour", delay=3600)
    await db.enqueue(note, "minute", delay=timedelta(minutes=1))
    await db.enqueue(note, "now", delay=0)
    await db.drain()
    assert done == ["now"]
    db.clock.forward(61)
    await db.drain()
    assert done == ["now", "minute"]
    db.clock.forward(3540)
    await db.drain()
    assert done == ["now", "minute", "hour"]


@in_memory
async def test_a_running_worker_runs_a_delayed_job_at_its_time(db: Rig) -> None:
    await db.enqueue(note, "later", delay=60)
    async with db.run_worker() as worker:
        await db.until(lambda: worker.metrics.polls > 32)
        assert done == []
        db.clock.forward(61)
        await db.until_event("succeeded")
    assert done == ["later"]


# --- queues ---------------------------------------------------------------------------------------------


@everywhere
async def test_a_worker_runs_only_the_jobs_of_its_queues(db: Rig) -> None:
    await db.enqueue(note, "mine", queue="mine")
    await db.enqueue(note, "default")
    await db.enqueue(urgent, "urgent")
    await db.drain(queues=["mine", "urgent"])
    assert sorted(done) == ["mine", "urgent"]
    await db.drain()
    assert done[-1] == "default"


@in_memory
async def test_a_single_queue_can_be_passed_without_a_list(db: Rig) -> None:
    await db.enqueue(urgent, "urgent")
    await db.drain(queues="urgent")
    assert done == ["urgent"]


@everywhere
async def test_the_first_queue_in_the_list_has_priority(db: Rig) -> None:
    for n in range(15):
        await db.enqueue(note, f"low {n}", queue="low")
        await db.enqueue(note, f"high {n}", queue="high")
    await db.drain(queues=["high", "low"], concurrency=1)
    assert [word.split()[0] for word in done] == ["high"] * 15 + ["low"] * 15


@in_memory
async def test_a_new_job_in_a_higher_queue_runs_before_waiting_jobs_in_a_lower_one(db: Rig) -> None:
    for n in range(30):
        await db.enqueue(chain, n, queue="low")
    await db.drain(queues=["high", "low"], concurrency=1)
    places = {word: place for place, word in enumerate(done)}
    assert all(places[f"child {n}"] == places[f"parent {n}"] + 1 for n in range(30))


@job("timing-chain", transactional=True)
def chain(tx: Any, n: int) -> None:
    done.append(f"parent {n}")
    tx.enqueue(note, f"child {n}", queue="high")


@in_memory
async def test_jobs_of_one_shard_run_in_the_order_in_which_they_are_due(db: Rig) -> None:
    db.clock.shard = "7"
    for delay in (5, 3, 1, 4, 2):
        await db.enqueue(note, delay, delay=delay)
    db.clock.forward(6)
    await db.drain(concurrency=1)
    assert done == [1, 2, 3, 4, 5]


# --- pauses between attempts ----------------------------------------------------------------------------


@everywhere
async def test_each_attempt_waits_about_twice_as_long_as_the_one_before(db: Rig) -> None:
    await db.enqueue(fail)
    for attempt, longest in enumerate((10, 20, 40), start=1):
        await db.drain()
        record = await db.get_only()
        assert (record.state, record.attempts) == ("waiting", attempt)
        pause = (record.due - db.clock.now()).total_seconds()
        assert longest / 2 - 5 < pause <= longest
        await db.drain()
        assert done == ["tried"] * attempt
        db.clock.forward(pause + 0.001)
    await db.drain()
    assert done == ["tried"] * 4
    assert (await db.get_only()).state == "dead"
    db.clock.forward(10_000)
    assert (await db.drain()).started == 0

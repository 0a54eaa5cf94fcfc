"""Jobs in tables of every layout: with a numeric sort key (mode B), and with other names for the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest
from rig.colour import COLOURS, elsewhere, take_turns
from rig.jobs import Rig, Way, open_rig
from rig.servers import NAMES

from holdall import job
from holdall.core.port import run
from holdall.core.requests import CreateTable
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.jobs import JobRecord, lease
from holdall.jobs.flow import enqueue_next

done: list[Any] = []


@job("layout-note", retries=1, backoff=10)
def note(word: Any = "") -> None:
    done.append(word)


@job("layout-failing", retries=1, backoff=10)
async def fail() -> None:
    done.append("tried")
    raise ValueError("not today")


@job("layout-once", once_for=60)
def once() -> None:
    done.append("once")


@job("layout-tick", queue="clockwork", every=60)
def tick() -> None:
    done.append("tick")


@job("layout-next", transactional=True)
def follow(tx: Any, n: int) -> None:
    done.append(n)
    if n:
        tx.enqueue(follow, n - 1, key="k")


def ways(name: str, layout: str) -> list[Way]:
    """In memory, one layout in each colour; and elsewhere."""
    memory = [Way("memory", COLOURS[(take_turns(name) + (layout == "mode B")) % 2])]
    return [*memory, *(Way(*way) for way in elsewhere(["file", *NAMES], name, layout))]


Test: TypeAlias = "Callable[[Rig], Coroutine[Any, Any, None]]"


def in_layouts(*layouts: str) -> Callable[[Test], Callable[..., None]]:
    """Run a test in a table that the user created beforehand."""

    def decorate(test: Test) -> Callable[..., None]:
        cases = [(way, layout) for layout in layouts for way in ways(test.__name__, layout)]

        @pytest.mark.parametrize(("way", "layout"), cases, ids=str)
        def run_it(way: Way, layout: str) -> None:
            done.clear()
            with open_rig(way) as db:
                prepared = prepare(db, layout, test)
                if way.colour == "blocking":
                    run(prepared)
                else:
                    asyncio.run(prepared)

        run_it.__name__ = test.__name__
        return run_it

    return decorate


async def prepare(db: Rig, layout: str, test: Test) -> None:
    if layout == "mode B":
        await db.now(db.db.table.create(mode="B"))
    else:
        keys = KeyAttribute("hash key", "S"), KeyAttribute("range-key", "S")
        await db.now(db.db.send(CreateTable(TableSchema(db.context.settings.table_name, *keys))))
    await test(db)


everywhere = in_layouts("mode B", "other names")


@everywhere
async def test_jobs_run_fail_and_die(db: Rig) -> None:
    await db.enqueue(note, "a")
    await db.enqueue(fail)
    await db.drain()
    assert sorted(done) == ["a", "tried"]
    record = await db.get_only()
    assert (record.state, record.attempts) == ("waiting", 1)
    assert (await db.drain()).started == 0
    db.clock.forward(30)
    await db.drain()
    record = await db.get_only()
    assert (record.name, record.state, record.attempts) == ("layout-failing", "dead", 2)
    assert record.died is not None
    assert record.died > record.due
    assert (await db.jobs.counts())["default"] == (0, 0, 1, 0)


@everywhere
async def test_jobs_can_be_listed_retried_and_deleted(db: Rig) -> None:
    first = await db.enqueue(note, 1, delay=60, queue="a")
    second = await db.enqueue(note, 2, delay=30, queue="b")
    assert [record.id for record in await db.jobs.list()] == [second.id, first.id]
    assert await db.jobs.queues() == ["a", "b"]
    assert (await db.jobs.retry(first.id)).due < (await fetch_job(db, second.id)).due
    await db.drain(queues=["a"])
    assert done == [1]
    await db.jobs.delete(second.id)
    assert await db.jobs.list() == []
    await db.enqueue(fail)
    for _ in range(2):
        await db.drain()
        db.clock.forward(60)
    assert await db.jobs.retry_all() == 1
    assert await db.jobs.purge() == 0
    assert await db.jobs.purge(state="waiting") == 1


@everywhere
async def test_jobs_are_read_page_by_page_and_found_by_their_place(db: Rig) -> None:
    enqueued = [(await db.enqueue(note, n, delay=60 + n, queue="ab"[n % 2])).id for n in range(6)]
    first = await db.jobs.page(state="waiting", limit=4)
    second = await db.jobs.page(state="waiting", limit=4, after=first.next)
    assert [job.id for job in (*first.jobs, *second.jobs)] == enqueued
    assert second.next is None
    assert [job.id for job in (await db.jobs.page(state="waiting", limit=9, reverse=True)).jobs] == enqueued[
        ::-1
    ]
    job = first.jobs[0]
    assert await db.jobs.get(job.id, queue="a", at=job.due) == job
    assert await db.jobs.get(job.id, queue="b", at=job.due) is None
    again = await db.jobs.retry(job.id)
    assert await db.jobs.get(job.id, queue="a", at=job.due) == again


async def fetch_job(db: Rig, id: str) -> JobRecord:
    record = await db.jobs.get(id)
    assert record is not None
    return record


@everywhere
async def test_keys_prevent_second_jobs(db: Rig) -> None:
    assert (await db.enqueue(note, key="k")).added
    assert not (await db.enqueue(note, key="k")).added
    await db.enqueue(once, key="k")
    await db.drain()
    assert (await db.enqueue(note, key="k")).added
    assert not (await db.enqueue(once, key="k")).added
    db.clock.forward(61)
    assert (await db.enqueue(once, key="k")).added


@everywhere
async def test_transactional_and_recurring_jobs_work(db: Rig) -> None:
    await db.enqueue(follow, 2, key="k")
    await enqueue_next(db.context, tick)
    await enqueue_next(db.context, tick)
    await db.drain()
    assert done == [2, 1, 0]
    db.clock.forward(61)
    assert (await db.drain(queues=["clockwork"])).succeeded == 1


@everywhere
async def test_a_job_can_be_taken_over_and_released(db: Rig) -> None:
    await db.enqueue(note, "taken over")
    taken = await db.take(await db.get_only(), 10.0)
    assert taken is not None
    assert (await db.get_only()).state == "running"
    await lease.release(db.context, taken)
    assert (await db.get_only()).attempts == 0
    assert await db.take(await db.get_only(), 10.0)
    db.clock.forward(60)
    assert (await db.drain()).succeeded == 1
    assert done == ["taken over"]


@everywhere
async def test_an_old_record_of_a_job_that_moved_cannot_be_taken(db: Rig) -> None:
    """In mode B a worker finds jobs by an index, which may be out of date."""
    await db.enqueue(fail)
    old = await db.get_only()
    await db.drain()
    later = await db.get_only()
    assert await db.take(old, 10.0) is None
    db.clock.forward(60)
    await db.drain()
    for seen in (old, later):
        assert await db.take(seen, 10.0) is None
    assert (await db.get_only()).state == "dead"

"""The engine under asyncio: what runs on the event loop, what runs in threads, and what a cancellation does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from embedded_things import THINGS, StoppingClock, fill, get, names, put

from holdall import AsyncDatabase, Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    Compare,
    CreateTable,
    KeyCondition,
    PutItem,
    Query,
    TransactWrite,
    encode_item,
    path,
    value,
)
from holdall.errors import ConditionFailedError, TransactionCanceledError

RED = Query(THINGS.name, KeyCondition("colour", {"S": "red"}), index="by_colour")


@pytest.fixture(params=["file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"embedded:{tmp_path}/store.db"


async def prepare(url: str) -> AsyncDatabase:
    db = AsyncDatabase(url)
    await db.send(CreateTable(THINGS))
    return db


def test_a_point_get_starts_no_thread(tmp_path: Path) -> None:
    fill(tmp_path / "store.db")

    async def scenario() -> None:
        async with AsyncDatabase(f"embedded:{tmp_path}/store.db") as db:
            before = set(threading.enumerate())
            assert (await db.send(get("thing0"))).item is not None
            assert (await db.send(get("nothing"))).item is None
            assert set(threading.enumerate()) <= before
            await db.send(RED)
            assert set(threading.enumerate()) - before

    asyncio.run(scenario())


def test_a_point_get_does_not_wait_for_the_loop(tmp_path: Path) -> None:
    """It finishes before the loop runs anything else."""
    fill(tmp_path / "store.db")

    async def scenario() -> None:
        async with AsyncDatabase(f"embedded:{tmp_path}/store.db") as db:
            turns: list[str] = []
            asyncio.get_running_loop().call_soon(turns.append, "another's turn")
            await db.send(get("thing0"))
            assert turns == []

    asyncio.run(scenario())


def test_the_loop_runs_other_work_during_a_write(url: str) -> None:
    async def scenario() -> None:
        db = await prepare(url)
        turns: list[str] = []
        asyncio.get_running_loop().call_soon(turns.append, "another's turn")
        await db.send(put("a"))
        assert turns == ["another's turn"]
        await db.close()

    asyncio.run(scenario())


def test_a_get_sees_the_write_awaited_before_it(url: str) -> None:
    async def scenario() -> None:
        db = await prepare(url)
        for number in range(50):
            await db.send(put("a", number=number))
            assert (await db.send(get("a"))).item == encode_item({"name": "a", "number": number})
        await db.close()

    asyncio.run(scenario())


def test_each_of_many_concurrent_tasks_gets_its_own_reply(url: str) -> None:
    async def one(db: AsyncDatabase, number: int) -> None:
        name, colour = f"thing{number}", f"colour{number % 7}"
        await db.send(put(name, colour=colour, number=number))
        reply = await db.send(get(name))
        assert reply.item == encode_item({"name": name, "colour": colour, "number": number})
        query = Query(THINGS.name, KeyCondition("colour", {"S": colour}), index="by_colour")
        assert reply.item in (await db.send(query)).items

    async def scenario() -> None:
        db = await prepare(url)
        await asyncio.gather(*(one(db, number) for number in range(300)))
        assert len(names(db.sync)) == 300
        await db.close()

    asyncio.run(scenario())


def test_one_store_serves_several_event_loops_at_once(url: str) -> None:
    async def write(db: AsyncDatabase, loop: int) -> None:
        await asyncio.gather(*(db.send(put(f"{loop}.{number}")) for number in range(50)))

    with Database(url) as db:
        db.send(CreateTable(THINGS))
        with ThreadPoolExecutor(4) as pool:
            futures = [pool.submit(asyncio.run, write(db.aio, loop)) for loop in range(4)]
        for future in futures:
            future.result()
        assert len(names(db)) == 200


def test_the_sync_and_the_async_database_share_one_store(url: str) -> None:
    async def mix_colours(db: AsyncDatabase) -> None:
        assert (await db.send(get("blocking"))).item is not None
        await db.send(put("awaiting"))
        assert names(db.sync) == {"blocking", "awaiting"}
        db.sync.send(put("blocking again"))
        assert (await db.send(get("blocking again"))).item is not None

    with Database(url) as db:
        db.send(CreateTable(THINGS))
        db.send(put("blocking"))
        asyncio.run(mix_colours(db.aio))
        assert names(db) == {"blocking", "awaiting", "blocking again"}


def test_event_loops_can_use_a_store_one_after_the_other(url: str) -> None:
    with Database(url) as db:
        asyncio.run(_send(db.aio, CreateTable(THINGS)))
        for number in range(3):
            asyncio.run(_send(db.aio, put(f"{number}")))
        assert len(names(db)) == 3


async def _send(db: AsyncDatabase, request: Any) -> None:
    await db.send(request)


# --- cancellation ---------------------------------------------------------------------------------------


def run_during_a_write(path: Path, request: TransactWrite, scenario: Any) -> None:
    """Run the scenario while a task sends the request, which waits until ``clock.resume`` is set."""
    clock = StoppingClock()

    async def run() -> None:
        db = AsyncDatabase(backend=EmbeddedBackend(path, clock=clock))
        await db.send(CreateTable(THINGS))
        clock.arm()
        task = asyncio.create_task(db.send(request))
        await asyncio.to_thread(clock.reached.wait, 30)
        try:
            await scenario(db, task, clock)
        finally:
            clock.resume.set()
            await db.close()

    asyncio.run(run())


def test_a_cancelled_write_still_happens_before_its_task_ends(
    tmp_path: Path,
) -> None:
    async def scenario(db: AsyncDatabase, task: asyncio.Task[Any], clock: StoppingClock) -> None:
        task.cancel()
        asyncio.get_running_loop().call_soon(clock.resume.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await db.send(get("a"))).item is not None

    run_during_a_write(tmp_path / "store.db", TransactWrite((put("a"),), "token"), scenario)


def test_a_write_that_is_cancelled_several_times_still_happens(tmp_path: Path) -> None:
    async def scenario(db: AsyncDatabase, task: asyncio.Task[Any], clock: StoppingClock) -> None:
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        clock.resume.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await db.send(get("a"))).item is not None

    run_during_a_write(tmp_path / "store.db", TransactWrite((put("a"),), "token"), scenario)


def test_a_cancelled_write_that_fails_ends_as_cancelled(tmp_path: Path) -> None:
    async def scenario(db: AsyncDatabase, task: asyncio.Task[Any], clock: StoppingClock) -> None:
        task.cancel()
        asyncio.get_running_loop().call_soon(clock.resume.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await db.send(get("a"))).item is None

    impossible = PutItem(THINGS.name, put("a").item, condition=Compare("=", path("x"), value(1)))
    run_during_a_write(tmp_path / "store.db", TransactWrite((impossible,), "token"), scenario)


def test_a_write_that_times_out_still_happens(tmp_path: Path) -> None:
    async def scenario(db: AsyncDatabase, task: asyncio.Task[Any], clock: StoppingClock) -> None:
        asyncio.get_running_loop().call_later(0.05, clock.resume.set)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.01)
        assert (await db.send(get("a"))).item is not None

    run_during_a_write(tmp_path / "store.db", TransactWrite((put("a"),), "token"), scenario)


def test_cancelled_writes_that_wait_behind_another_still_happen(tmp_path: Path) -> None:
    async def scenario(db: AsyncDatabase, task: asyncio.Task[Any], clock: StoppingClock) -> None:
        waiting = [asyncio.create_task(db.send(put(f"{number}"))) for number in range(10)]
        await asyncio.sleep(0)  # the tasks send their requests
        for each in (task, *waiting):
            each.cancel()
        clock.resume.set()
        outcomes = await asyncio.gather(task, *waiting, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {asyncio.CancelledError}
        assert len(names(db.sync)) == 11

    run_during_a_write(tmp_path / "store.db", TransactWrite((put("a"),), "token"), scenario)


def test_cancelled_reads_do_not_disturb_others(url: str) -> None:
    async def scenario() -> None:
        db = await prepare(url)
        await db.send(put("a", colour="red"))
        reads = [asyncio.create_task(db.send(RED)) for _ in range(20)]
        await asyncio.sleep(0)
        for read in reads[::2]:
            read.cancel()
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
        assert all(
            not isinstance(outcome, BaseException) and outcome.count == 1 for outcome in outcomes[1::2]
        )
        await db.send(put("b", colour="red"))
        assert (await db.send(RED)).count == 2
        await db.close()

    asyncio.run(scenario())


def test_closing_waits_for_the_write_of_a_task(tmp_path: Path) -> None:
    async def scenario(db: AsyncDatabase, task: asyncio.Task[Any], clock: StoppingClock) -> None:
        closing = asyncio.create_task(db.close())
        await asyncio.sleep(0)
        clock.resume.set()
        await closing
        await task

    run_during_a_write(tmp_path / "store.db", TransactWrite((put("a"),), "token"), scenario)
    with Database(f"embedded:{tmp_path}/store.db") as db:
        assert names(db) == {"a"}


# --- errors and fairness --------------------------------------------------------------------------------


def test_errors_reach_the_task_that_caused_them_and_no_other(url: str) -> None:
    async def scenario() -> None:
        db = await prepare(url)
        impossible = PutItem(THINGS.name, put("x").item, condition=Compare("=", path("x"), value(1)))
        work: list[Coroutine[Any, Any, Any]] = [
            db.send(put("a")),
            db.send(impossible),
            db.send(put("b")),
            db.send(TransactWrite((impossible,), "token")),
            db.send(put("c")),
        ]
        outcomes = await asyncio.gather(*work, return_exceptions=True)
        assert isinstance(outcomes[1], ConditionFailedError)
        assert isinstance(outcomes[3], TransactionCanceledError)
        assert names(db.sync) == {"a", "b", "c"}
        await db.close()

    asyncio.run(scenario())


def test_every_thread_gets_its_turn_on_a_busy_memory_store() -> None:
    turns = [0] * 4
    enough = threading.Event()

    def read(place: int) -> None:
        while not enough.is_set():
            db.send(get("nothing"))
            turns[place] += 1
            if min(turns) >= 10 or max(turns) >= 20_000:
                enough.set()

    with Database("memory:") as db:
        db.send(CreateTable(THINGS))
        with ThreadPoolExecutor(len(turns)) as pool:
            futures = [pool.submit(read, place) for place in range(len(turns))]
        for future in futures:
            future.result()
    assert min(turns) >= 10, f"turns taken: {turns}"

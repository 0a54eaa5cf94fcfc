"""Concurrent reads of one transaction, concurrent transactions, and threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from rig.behaviour import STORES, Colour, Db, Way, awaiting, blocking, open_database
from rig.behaviour_models import Order, arrange

from holdall import AsyncTransaction, Key, Model, Transaction, col, field
from holdall.core import GetItem, Request, run
from holdall.errors import RecordNotFound, TransactionFailedError
from holdall.testing import Fault


def on_every_store(colour: Colour) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("way", [Way(store, colour) for store in STORES], ids=str)


class Gate:
    """Holds gets back until there are this many, so that they certainly overlap."""

    def __init__(self, db: Db, count: int) -> None:
        self._count = count
        self._waiting = 0
        self._open = asyncio.Event()
        self._send = db.recorder.send_awaiting
        db.recorder.send_awaiting = self.send  # type: ignore[method-assign]

    async def send(self, request: Request[Any]) -> Any:
        reply = await self._send(request)
        if isinstance(request, GetItem):
            self._waiting += 1
            if self._waiting >= self._count:
                self._open.set()
            await self._open.wait()
        return reply


# --- in one transaction -----------------------------------------------------------------------------------


@on_every_store("awaiting")
def test_gets_of_one_transaction_can_run_concurrently(way: Way) -> None:
    async def test(db: Db) -> None:
        await arrange(db, *(Order(id=str(n), quantity=n) for n in range(5)))
        Gate(db, 6)
        async with db.transaction() as tx:
            orders = await asyncio.gather(*(tx.get(Order, str(n)) for n in range(6)))
            assert [order and order.quantity for order in orders] == [0, 1, 2, 3, 4, None]
            for order in orders:
                if order is not None:
                    order.quantity += 10
            db.forget()
        assert db.kinds() == ["TransactWrite"]
        assert len(db.list_sent()[0].actions) == 6
        found = await db.get_all([Order.key(str(n)) for n in range(5)])
        assert [order and order.quantity for order in found] == [10, 11, 12, 13, 14]

    with open_database(way) as db:
        asyncio.run(test(db))


@awaiting
async def test_a_task_group_can_read_and_change_items(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    Gate(db, 2)

    async def add(tx: AsyncTransaction, id: str) -> None:
        (await tx.get_one(Order, id)).quantity += 1

    async with db.transaction() as tx, asyncio.TaskGroup() as group:
        group.create_task(add(tx, "a"))
        group.create_task(add(tx, "b"))
    assert [order and order.quantity for order in await db.get_all([Order.key("a"), Order.key("b")])] == [
        2,
        2,
    ]


@awaiting
async def test_concurrent_gets_of_an_item_return_the_same_instance(db: Db) -> None:
    await arrange(db, Order(id="a"))
    Gate(db, 3)
    async with db.transaction() as tx:
        first, second, third = await asyncio.gather(*(tx.get_one(Order, "a") for _ in range(3)))
        assert first is second is third
        first.quantity = 7
    assert (await db.get_one(Order, "a")).quantity == 7


@awaiting
async def test_concurrent_gets_create_a_missing_item_once(db: Db) -> None:
    Gate(db, 3)
    async with db.transaction() as tx:
        created_orders = await asyncio.gather(*(tx.get(Order, "a", create_if_missing=True) for _ in range(3)))
        assert created_orders[0] is created_orders[1] is created_orders[2]
        for order in created_orders:
            order.quantity += 1
    assert (await db.get_one(Order, "a")).quantity == 4


@awaiting
async def test_a_concurrent_get_and_get_all_of_an_item_return_the_same_instance(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    async with db.transaction() as tx:
        one, (two, other) = await asyncio.gather(
            tx.get(Order, "a"), tx.get_all([Order.key("a"), Order.key("b")])
        )
        assert one is two
        assert other is not None


@awaiting
async def test_concurrent_gets_that_contradict_each_other_are_contention(db: Db) -> None:
    """One get finds the item missing, and the other, a moment later, finds it: the transaction cannot use either."""
    seen: list[tuple[Order | None, Order | None]] = []

    send = db.recorder.send_awaiting
    created = asyncio.Event()
    gets: list[GetItem] = []

    async def create_between_gets(request: Request[Any]) -> Any:
        if isinstance(request, GetItem) and not created.is_set():
            gets.append(request)
            if len(gets) == 1:
                reply = await send(request)
                async with db.transaction() as other:
                    other.create(Order, id="a")
                created.set()
                return reply
            await created.wait()
        return await send(request)

    async def read(tx: AsyncTransaction) -> None:
        first, second = await asyncio.gather(tx.get(Order, "a"), tx.get(Order, "a"))
        seen.append((first, second))
        tx.create(Order, id=f"seen {first is not None} {second is not None}")

    await db.get(Order, "any key: the first use creates the table")
    db.recorder.send_awaiting = create_between_gets  # type: ignore[method-assign]
    await db.run(read)
    assert len(gets) == 2
    ((first, second),) = seen[-1:]
    assert first is second is not None
    assert await db.get(Order, "seen True True") is not None
    assert await db.get(Order, "seen False True") is None


@awaiting
async def test_the_errors_of_a_task_group_are_retried_if_all_are_retryable(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    attempts = []

    async def read(tx: AsyncTransaction) -> list[int]:
        attempts.append(1)
        if len(attempts) == 1:
            db.faults.inject(Fault.THROTTLE, Fault.THROTTLE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(tx.get_one(Order, id)) for id in "ab"]
        return [task.result().quantity for task in tasks]

    assert await db.run(read) == [1, 1]
    assert len(attempts) == 2

    async def miss(tx: AsyncTransaction) -> None:
        attempts.append(1)
        async with asyncio.TaskGroup() as group:
            group.create_task(tx.get_one(Order, "x"))

    with pytest.raises(ExceptionGroup) as caught:
        await db.run(miss)
    assert caught.group_contains(RecordNotFound)
    assert len(attempts) == 3


# --- cancellation -----------------------------------------------------------------------------------------


@awaiting
async def test_a_commit_that_was_sent_is_completed_if_its_caller_is_cancelled(db: Db) -> None:
    sent, released = asyncio.Event(), asyncio.Event()
    send = db.recorder.send_awaiting
    done: list[str] = []

    async def send_when_released(request: Request[Any]) -> Any:
        if request.writes:
            sent.set()
            await released.wait()
        return await send(request)

    async def create(tx: AsyncTransaction) -> None:
        tx.create(Order, id="a")
        tx.after_commit(done.append, "committed")
        tx.after_failure(lambda error: done.append("failed"))

    await db.get(Order, "any key: the first use creates the table")
    db.recorder.send_awaiting = send_when_released  # type: ignore[method-assign]
    task = asyncio.create_task(db.run(create))
    await sent.wait()
    task.cancel()
    await asyncio.sleep(0)
    released.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["committed"]
    assert await db.get(Order, "a") is not None


@awaiting
async def test_a_cancelled_body_writes_nothing(db: Db) -> None:
    begun = asyncio.Event()

    async def create(tx: AsyncTransaction) -> None:
        tx.create(Order, id="a")
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(db.run(create))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await db.get(Order, "a") is None


# --- several transactions ---------------------------------------------------------------------------------


@on_every_store("awaiting")
def test_concurrent_increments_by_tasks_lose_nothing(way: Way) -> None:
    async def test(db: Db) -> None:
        await arrange(db, Order(id="a", quantity=0))

        async def count(tx: AsyncTransaction) -> None:
            order = await tx.get_one(Order, "a")
            await asyncio.sleep(0)
            order.quantity += 1

        await asyncio.gather(*(db.run(count, retries=1000) for _ in range(10)))
        assert (await db.get_one(Order, "a")).quantity == 10

    with open_database(way) as db:
        asyncio.run(test(db))


@on_every_store("blocking")
def test_concurrent_increments_by_threads_lose_nothing(way: Way) -> None:
    with open_database(way) as db:
        run(arrange(db, Order(id="a", quantity=0)))

        def count(tx: Transaction) -> None:
            tx.get_one(Order, "a").quantity += 1

        def work() -> None:
            for _ in range(3):
                db.sync.run(count, retries=1000)

        run_in_threads(work, 4)
        assert db.sync.get_one(Order, "a").quantity == 12


class Wall(Model):
    id: Key[str]
    names: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    count: int = 0


@on_every_store("blocking")
def test_concurrent_additions_to_a_set_and_a_list_by_threads_lose_nothing(way: Way) -> None:
    """One of the threads creates the item; its set is sometimes empty, and then stored in another form."""
    with open_database(way) as db:
        run(arrange(db, Order(id="any key: the first use creates the table")))
        key, turns = Wall.key("a"), iter(range(100))

        def sign(tx: Transaction, turn: int) -> None:
            name = col(Wall.names).add(str(turn)) if turn % 2 else col(Wall.names).discard("missing")
            line = col(Wall.lines).append(str(turn))
            tx.update(key, name, line, col(Wall.count).increment_by(1), create_if_missing=True)

        def read_and_sign(tx: Transaction, turn: int) -> None:
            wall = tx.get(key, create_if_missing=True)
            wall.field("names").add(str(turn))
            wall.field("lines").append(str(turn))
            wall.field("count").increment_by(1)

        signed: list[tuple[int, bool]] = []

        def work() -> None:
            for turn in (next(turns), next(turns), next(turns)):
                blind = turn % 3 > 0
                db.sync.run(sign if blind else read_and_sign, turn, retries=1000)
                signed.append((turn, blind))

        run_in_threads(work, 4)
        wall = db.sync.get_one(key)
        assert sorted(wall.lines) == sorted(str(turn) for turn, _ in signed)
        assert wall.count == len(signed) == 12
        assert wall.names == {str(turn) for turn, blind in signed if turn % 2 or not blind}


@blocking
async def test_two_threads_cannot_both_create(db: Db) -> None:
    outcomes: list[str] = []
    together = threading.Barrier(2)

    def create() -> None:
        def body(tx: Transaction) -> None:
            assert tx.get(Order, "a") is None
            together.wait()
            tx.create(Order, id="a")

        try:
            db.sync.run(body, retries=0)
        except TransactionFailedError:
            outcomes.append("contention")
        else:
            outcomes.append("created")

    run_in_threads(create, 2)
    assert sorted(outcomes) == ["contention", "created"]


def run_in_threads(work: Callable[[], None], count: int) -> None:
    errors: list[BaseException] = []

    def guard() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the test compares them
            errors.append(error)

    threads = [threading.Thread(target=guard) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []

"""Several reads of one transaction at a time, several transactions at a time, and threads."""

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
    """Holds gets back until there are so many of them, so that they overlap for certain."""

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
def test_gets_of_one_transaction_go_side_by_side(way: Way) -> None:
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
async def test_a_task_group_does_as_well(db: Db) -> None:
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
async def test_gets_of_the_same_item_give_the_same_instance(db: Db) -> None:
    await arrange(db, Order(id="a"))
    Gate(db, 3)
    async with db.transaction() as tx:
        first, second, third = await asyncio.gather(*(tx.get_one(Order, "a") for _ in range(3)))
        assert first is second is third
        first.quantity = 7
    assert (await db.get_one(Order, "a")).quantity == 7


@awaiting
async def test_the_same_item_is_made_once_if_it_is_missing(db: Db) -> None:
    Gate(db, 3)
    async with db.transaction() as tx:
        made = await asyncio.gather(*(tx.get(Order, "a", create_if_missing=True) for _ in range(3)))
        assert made[0] is made[1] is made[2]
        for order in made:
            order.quantity += 1
    assert (await db.get_one(Order, "a")).quantity == 4


@awaiting
async def test_a_get_and_a_get_all_of_the_same_item_give_the_same_instance(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    async with db.transaction() as tx:
        one, (two, other) = await asyncio.gather(
            tx.get(Order, "a"), tx.get_all([Order.key("a"), Order.key("b")])
        )
        assert one is two
        assert other is not None


@awaiting
async def test_two_gets_that_saw_different_things_are_contention(db: Db) -> None:
    """One read the item as missing and one, a moment later, as there: neither may be believed."""
    seen: list[tuple[Order | None, Order | None]] = []

    send = db.recorder.send_awaiting
    created = asyncio.Event()
    gets: list[GetItem] = []

    async def one_before_and_one_after(request: Request[Any]) -> Any:
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

    async def look(tx: AsyncTransaction) -> None:
        first, second = await asyncio.gather(tx.get(Order, "a"), tx.get(Order, "a"))
        seen.append((first, second))
        tx.create(Order, id=f"seen {first is not None} {second is not None}")

    await db.get(Order, "so that the table is there")
    db.recorder.send_awaiting = one_before_and_one_after  # type: ignore[method-assign]
    await db.run(look)
    assert len(gets) == 2
    ((first, second),) = seen[-1:]
    assert first is second is not None
    assert await db.get(Order, "seen True True") is not None
    assert await db.get(Order, "seen False True") is None


@awaiting
async def test_an_error_in_a_task_group_is_tried_again_when_each_of_it_is_worth_it(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    attempts = []

    async def look(tx: AsyncTransaction) -> list[int]:
        attempts.append(1)
        if len(attempts) == 1:
            db.faults.inject(Fault.THROTTLE, Fault.THROTTLE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(tx.get_one(Order, id)) for id in "ab"]
        return [task.result().quantity for task in tasks]

    assert await db.run(look) == [1, 1]
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
async def test_a_commit_under_way_is_seen_through_when_its_caller_is_cancelled(db: Db) -> None:
    sent, may_go_on = asyncio.Event(), asyncio.Event()
    send = db.recorder.send_awaiting
    done: list[str] = []

    async def slow(request: Request[Any]) -> Any:
        if request.writes:
            sent.set()
            await may_go_on.wait()
        return await send(request)

    async def create(tx: AsyncTransaction) -> None:
        tx.create(Order, id="a")
        tx.after_commit(done.append, "committed")
        tx.after_failure(lambda error: done.append("failed"))

    await db.get(Order, "so that the table is there")
    db.recorder.send_awaiting = slow  # type: ignore[method-assign]
    task = asyncio.create_task(db.run(create))
    await sent.wait()
    task.cancel()
    await asyncio.sleep(0)
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["committed"]
    assert await db.get(Order, "a") is not None


@awaiting
async def test_a_body_that_is_cancelled_writes_nothing(db: Db) -> None:
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
def test_tasks_that_count_together_lose_nothing(way: Way) -> None:
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
def test_threads_that_count_together_lose_nothing(way: Way) -> None:
    with open_database(way) as db:
        run(arrange(db, Order(id="a", quantity=0)))

        def count(tx: Transaction) -> None:
            tx.get_one(Order, "a").quantity += 1

        def work() -> None:
            for _ in range(3):
                db.sync.run(count, retries=1000)

        in_threads(work, 4)
        assert db.sync.get_one(Order, "a").quantity == 12


class Wall(Model):
    id: Key[str]
    names: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    count: int = 0


@on_every_store("blocking")
def test_threads_that_add_to_one_set_and_one_list_lose_nothing(way: Way) -> None:
    """One of them creates the item; its set is empty at times, and then stored in another way."""
    with open_database(way) as db:
        run(arrange(db, Order(id="so that the table is there")))
        key, turns = Wall.key("a"), iter(range(100))

        def sign(tx: Transaction, turn: int) -> None:
            name = col(Wall.names).add(str(turn)) if turn % 2 else col(Wall.names).discard("nobody")
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

        in_threads(work, 4)
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

    in_threads(create, 2)
    assert sorted(outcomes) == ["contention", "created"]


def in_threads(work: Callable[[], None], count: int) -> None:
    errors: list[BaseException] = []

    def guard() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=guard) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []

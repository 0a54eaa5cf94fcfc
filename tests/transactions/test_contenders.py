"""Many transactions contend for one item: with the default options each of a hundred succeeds, and they take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from contending_process import Stock, collect_refusals
from rig.behaviour import Db, awaiting, in_memory, store_address
from rig.behaviour_models import Order, arrange, meanwhile
from rig.clock import Clock, TimedPort
from rig.torture import TORTURE, Child

from holdall import AsyncDatabase, AsyncTransaction, Database
from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.turn import Turns
from holdall.core.frozen import replace
from holdall.core.port import Port, Turn
from holdall.errors import ContentionError, TransactionFailedError, TransactionTimeoutError

CROWD = 100
STORES = ["memory", "file", "ministack"]
"""A normal run uses each store with threads or with tasks; torture with both."""


@contextmanager
def open_stock(store: str, directory: Path) -> Iterator[Database]:
    """Open a database with one bag of coffee for each contender."""
    url, credentials, settings = store_address(store, str(directory))
    with Database(url, credentials=credentials, **settings) as db:
        with db.transaction() as tx:
            tx.create(Stock, product="coffee", bags=CROWD)
        yield db


# --- many contenders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", STORES if TORTURE else STORES[::2])
def test_each_of_a_hundred_tasks_succeeds(store: str, tmp_path: Path) -> None:
    async def take_one(tx: AsyncTransaction) -> None:
        (await tx.get_one(Stock, "coffee")).bags -= 1

    async def contend(db: AsyncDatabase) -> None:
        await asyncio.gather(*(db.run(take_one) for _ in range(CROWD)))

    with open_stock(store, tmp_path) as db:
        asyncio.run(contend(db.aio))
        assert db.get_one(Stock, "coffee").bags == 0
        assert db._shared.turns.is_empty


@pytest.mark.parametrize("store", STORES if TORTURE else STORES[1:2])
def test_each_of_a_hundred_threads_succeeds(store: str, tmp_path: Path) -> None:
    with open_stock(store, tmp_path) as db:
        assert collect_refusals(db, CROWD) == []
        assert db.get_one(Stock, "coffee").bags == 0
        assert db._shared.turns.is_empty


def test_each_of_25_threads_in_four_processes_succeeds(tmp_path: Path) -> None:
    with open_stock("file", tmp_path) as db:
        url = store_address("file", str(tmp_path))[0]
        with ExitStack() as stack:
            children = [
                stack.enter_context(Child("contending_process.py", url, CROWD // 4)) for _ in range(4)
            ]
            assert [child.line() for child in children] == ["ready"] * 4
            for child in children:
                child.write_line("go")
            assert [child.finish() for child in children] == [["0"]] * 4
        assert db.get_one(Stock, "coffee").bags == 0


# --- turns ------------------------------------------------------------------------------------------------


class RecordingPort(TimedPort):
    """Records which turns were requested."""

    def __init__(self, port: Port, clock: Clock) -> None:
        super().__init__(port, clock)
        self.requested: list[frozenset[str]] = []

    @property
    def turns(self) -> Turns:
        turns: Turns = self._port._turns  # type: ignore[attr-defined]
        return turns

    async def take_turn(self, names: frozenset[str], since: datetime, seconds: float) -> Any:
        self.requested.append(names)
        return await self._port.take_turn(names, since, seconds)


def use_recording_port(db: Db) -> RecordingPort:
    port = RecordingPort(AwaitingPort(db.recorder), db.clock)
    db._context = replace(db._context, port=cast("Port", port))
    return port


@awaiting
async def test_a_first_attempt_does_not_wait_for_a_turn(db: Db) -> None:
    await arrange(db, Order(id="a"))
    port = use_recording_port(db)
    port.turns.join(frozenset({"Order(id='a')"}), db.clock.now(), lambda: None)

    async def take_one(tx: AsyncTransaction) -> None:
        (await tx.get_one(Order, "a")).quantity -= 1

    await db.run(take_one)
    assert port.requested == []


@awaiting
async def test_a_turn_is_for_the_items_that_differed_and_ends_before_the_handlers(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    port = use_recording_port(db)
    attempts: list[int] = []
    waiting: list[bool] = []

    async def take_one(tx: AsyncTransaction) -> None:
        orders = [await tx.get_one(Order, id) for id in "ab"]
        attempts.append(1)
        if len(attempts) < 3:
            await meanwhile(db, orders[1].key, quantity=10 * len(attempts))
        for order in orders:
            order.quantity -= 1
        waiting.append(port.turns.is_empty)
        tx.after_commit(lambda: waiting.append(port.turns.is_empty))

    await db.run(take_one)
    # one request: the second attempt failed for the same reason as the first, and kept its turn
    assert port.requested == [{"Order(id='b')"}]
    assert waiting == [True, False, False, True]


@awaiting
async def test_a_nested_run_inside_a_turn_does_not_wait_for_it(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0))
    port = use_recording_port(db)
    tried: dict[str, int] = {"outer": 0, "inner": 0}

    async def increment_with_contention(tx: AsyncTransaction, name: str) -> None:
        tried[name] += 1
        order = await tx.get_one(Order, "a")
        if tried[name] == 1:
            await meanwhile(db, order.key, quantity=order.quantity + 10)
        order.quantity += 1

    async def outer(tx: AsyncTransaction) -> None:
        await increment_with_contention(tx, "outer")
        if tried["outer"] == 2:
            await db.run(increment_with_contention, "inner")

    await db.run(outer)
    assert tried == {"outer": 3, "inner": 2}
    assert len(port.requested) == 1
    assert port.turns.is_empty


@awaiting
async def test_a_turn_after_the_timeout_is_not_used(db: Db) -> None:
    await arrange(db, Order(id="a"))
    port = use_recording_port(db)
    other_turns: list[Turn] = []
    failed: list[Exception] = []

    async def take_one(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        tx.after_failure(failed.append)
        await meanwhile(db, order.key, quantity=7)
        other_turns.append(port.turns.join(frozenset({"Order(id='a')"}), db.clock.now(), lambda: None))
        order.quantity -= 1

    take_turn = port.take_turn

    async def let_time_pass(names: frozenset[str], since: datetime, seconds: float) -> Any:
        assert seconds == pytest.approx(1 - 0.0125)
        db.clock.forward(1)
        return await take_turn(names, since, 0.0)

    port.take_turn = let_time_pass  # type: ignore[method-assign]
    with pytest.raises(TransactionTimeoutError) as caught:
        await db.run(take_one, timeout=1)
    assert caught.value.attempts == len(other_turns) == 1
    assert failed == [caught.value]
    other_turns[0].end()
    assert port.turns.is_empty


# --- the end of retries -----------------------------------------------------------------------------------


@in_memory
async def test_endless_contention_fails_after_half_a_minute(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0))
    start = db.clock.now()
    begun: list[float] = []

    async def count(tx: AsyncTransaction) -> None:
        begun.append((db.clock.now() - start).total_seconds())
        order = await tx.get_one(Order, "a")
        await meanwhile(db, order.key, quantity=order.quantity + 10)
        order.quantity += 1

    with pytest.raises(TransactionFailedError) as caught:
        await db.run(count)
    assert not isinstance(caught.value, TimeoutError)
    assert caught.value.attempts == len(begun)
    assert 29 < begun[-1] < 30
    assert (await db.get_one(Order, "a")).quantity == 10 * len(begun)


@in_memory
async def test_a_blind_write_has_three_retries_because_it_reads_nothing_new(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=5))
    attempts: list[int] = []

    async def put(tx: AsyncTransaction) -> None:
        attempts.append(1)
        tx.create_or_put(Order, {"id": "a", "quantity": 1}, {"product": "tea"})

    with pytest.raises(TransactionFailedError) as caught:
        await db.run(put)
    assert isinstance(caught.value.__cause__, ContentionError)
    assert caught.value.__cause__.items == ()
    assert len(attempts) == 4


@in_memory
async def test_a_slow_body_still_has_three_retries(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0))
    attempts: list[int] = []

    async def count(tx: AsyncTransaction) -> None:
        attempts.append(1)
        order = await tx.get_one(Order, "a")
        db.clock.forward(60)
        await meanwhile(db, order.key, quantity=order.quantity + 10)
        order.quantity += 1

    with pytest.raises(TransactionFailedError):
        await db.run(count)
    assert len(attempts) == 4

"""The ambient transaction: available inside a body, separate for each task and thread, and never one that has ended."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from contextvars import copy_context
from typing import Any

import pytest
from rig.behaviour import Db, awaiting, blocking, in_memory
from rig.behaviour_models import Order, arrange, expect_contention, meanwhile

from holdall import AsyncTransaction, Database, Key, Model, Transaction, current_transaction, job
from holdall.errors import InvalidOptionsError, NoTransactionError

seen_by_hooks: list[Any] = []


class Hooked(Model):
    id: Key[str]

    def before_commit(self, tx: Any) -> None:
        seen_by_hooks.append(current_transaction() is tx)


def get_unit() -> Any:
    """Return the unit of work of the running transaction of either colour."""
    return current_transaction()._unit


def is_outside() -> bool:
    try:
        current_transaction()
    except NoTransactionError:
        return True
    return False


# --- inside a transaction ---------------------------------------------------------------------------------


@in_memory
async def test_the_body_of_a_run_has_its_own_transaction(db: Db) -> None:
    async def body(tx: AsyncTransaction) -> bool:
        return get_unit() is tx._unit

    assert await db.run(body)
    assert await db.transactional(body)()
    assert is_outside()


@in_memory
async def test_a_block_has_its_own_transaction(db: Db) -> None:
    tx = db.transaction()
    assert is_outside()
    async with tx:
        assert get_unit() is tx._unit
    assert is_outside()


@in_memory
async def test_changes_through_the_ambient_transaction_are_committed_with_the_others(db: Db) -> None:
    def deep_inside() -> None:
        current_transaction().create(Order, id="b")

    async def body(tx: AsyncTransaction) -> None:
        tx.create(Order, id="a")
        deep_inside()

    await db.run(body)
    assert [order is not None for order in await db.get_all([Order.key("a"), Order.key("b")])] == [True, True]


@in_memory
async def test_an_inner_transaction_hides_the_outer_one_until_it_ends(db: Db) -> None:
    async def inner(tx: AsyncTransaction) -> bool:
        return get_unit() is tx._unit

    async with db.transaction() as outer:
        assert await db.run(inner)
        assert get_unit() is outer._unit
        with suppress(ZeroDivisionError):
            async with db.transaction() as failing:
                assert get_unit() is failing._unit
                raise ZeroDivisionError
        assert get_unit() is outer._unit


@in_memory
async def test_each_attempt_has_its_own_transaction(db: Db) -> None:
    await arrange(db, Order(id="a"))
    units = []

    async def body(tx: AsyncTransaction) -> None:
        assert get_unit() is tx._unit
        units.append(tx._unit)
        order = await tx.get_one(Order, "a")
        if len(units) < 3:
            await meanwhile(db, order.key, quantity=order.quantity + 1)
        order.quantity += 1

    await db.run(body)
    assert len(set(map(id, units))) == 3


@in_memory
async def test_there_is_no_ambient_transaction_after_a_body_that_raised(db: Db) -> None:
    async def body(tx: AsyncTransaction) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await db.run(body)
    assert is_outside()


@in_memory
async def test_there_is_no_ambient_transaction_after_a_failed_commit(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            await meanwhile(db, order.key, quantity=9)
            order.quantity += 1
    assert is_outside()


@in_memory
async def test_hooks_run_inside_their_transaction(db: Db) -> None:
    seen_by_hooks.clear()
    async with db.transaction() as tx:
        tx.create(Hooked, id="a")

    async def body(tx: AsyncTransaction) -> None:
        tx.create(Hooked, id="b")

    await db.run(body)
    assert seen_by_hooks == [True, True]


# --- outside a transaction --------------------------------------------------------------------------------


def test_there_is_no_ambient_transaction_outside_a_transaction() -> None:
    with pytest.raises(NoTransactionError, match="no transaction is running here") as caught:
        current_transaction()
    assert isinstance(caught.value, LookupError)
    assert "with block" in str(caught.value.hint)


@in_memory
async def test_handlers_run_after_their_transaction(db: Db) -> None:
    found: list[bool] = []

    async def body(tx: AsyncTransaction, name: str) -> None:
        tx.create(Order, id=name)
        tx.after_commit(lambda: found.append(is_outside()))
        tx.after_failure(lambda error: found.append(is_outside()))

    await db.run(body, "a")
    with pytest.raises(ValueError, match="a"):
        await db.run(body, "a")
    assert found == [True, True]


@in_memory
async def test_a_transaction_that_has_ended_is_not_returned(db: Db) -> None:
    async with db.transaction():
        context = copy_context()  # as in a task that starts here and outlives the block
        assert not context.run(is_outside)
    with pytest.raises(NoTransactionError, match="has ended"):
        context.run(current_transaction)


# --- the type of the transaction --------------------------------------------------------------------------


@blocking
async def test_a_sync_transaction_is_not_returned_as_an_async_one(db: Db) -> None:
    async with db.transaction():
        assert isinstance(current_transaction(Transaction), Transaction)
        with pytest.raises(NoTransactionError, match="not of type AsyncTransaction"):
            current_transaction(AsyncTransaction)


@awaiting
async def test_an_async_transaction_is_not_returned_as_a_sync_one(db: Db) -> None:
    async with db.transaction():
        assert isinstance(current_transaction(AsyncTransaction), AsyncTransaction)
        with pytest.raises(NoTransactionError, match="not of type Transaction"):
            current_transaction(Transaction)


@in_memory
async def test_an_invalid_transaction_class_is_refused(db: Db) -> None:
    async with db.transaction():
        with pytest.raises(InvalidOptionsError, match="'blocking' is not a transaction class"):
            current_transaction("blocking")  # type: ignore[call-overload]
        with pytest.raises(NoTransactionError, match="not of type int"):
            current_transaction(int)  # type: ignore[type-var]


# --- tasks and threads ------------------------------------------------------------------------------------


@awaiting
async def test_each_of_many_tasks_has_its_own_transaction(db: Db) -> None:
    together = asyncio.Barrier(50)

    async def body(tx: AsyncTransaction, name: str) -> None:
        for _ in range(3):
            await together.wait()
            assert current_transaction(AsyncTransaction) is tx
        current_transaction().create(Order, id=name)

    await asyncio.gather(*(db.run(body, str(n)) for n in range(50)))
    stored = await db.get_all([Order.key(str(n)) for n in range(50)])
    assert None not in stored
    assert is_outside()


@awaiting
async def test_a_task_that_starts_inside_a_block_has_its_transaction_until_the_block_ends(db: Db) -> None:
    ended = asyncio.Event()

    async def outlive_the_block(tx: AsyncTransaction) -> bool:
        assert current_transaction() is tx
        await ended.wait()
        return is_outside()

    async with db.transaction() as tx:
        task = asyncio.create_task(outlive_the_block(tx))
        await asyncio.sleep(0)
        assert await asyncio.to_thread(current_transaction) is tx
    ended.set()
    assert await task


def test_each_of_many_threads_has_its_own_transaction() -> None:
    together = threading.Barrier(16)
    failures: list[BaseException] = []

    def body(tx: Transaction, name: str) -> None:
        for _ in range(3):
            together.wait()
            assert current_transaction(Transaction) is tx
        current_transaction().create(Order, id=name)

    def work(name: str) -> None:
        try:
            assert is_outside()
            db.run(body, name)
            assert is_outside()
        except BaseException as error:
            failures.append(error)
            together.abort()
            raise

    with Database("memory:") as db:
        threads = [threading.Thread(target=work, args=(str(n),)) for n in range(16)]
        with db.transaction():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert not failures
        assert None not in db.get_all([Order.key(str(n)) for n in range(16)])


# --- blocks that end in another context or order ----------------------------------------------------------


@in_memory
async def test_a_block_that_ends_in_another_context_does_not_affect_that_context(db: Db) -> None:
    elsewhere = copy_context()
    manager = db.transaction()
    step = manager.__aenter__()
    with pytest.raises(StopIteration):
        elsewhere.run(step.send, None)
    assert elsewhere.run(get_unit) is manager._unit
    async with db.transaction() as tx:
        await manager.__aexit__(None, None, None)
        assert get_unit() is tx._unit
    assert is_outside()


@in_memory
async def test_there_is_no_ambient_transaction_after_blocks_that_ended_in_another_order(db: Db) -> None:
    async with db.transaction() as outer:
        first, second = db.transaction(), db.transaction()
        await first.__aenter__()
        await second.__aenter__()
        await first.__aexit__(None, None, None)
        assert get_unit() is second._unit
        await second.__aexit__(None, None, None)
        assert is_outside()  # the first one has ended; the one around both is not restored
        assert outer._unit.open
    assert is_outside()


@in_memory
async def test_a_transaction_that_was_entered_twice_can_be_exited_once(db: Db) -> None:
    async with db.transaction() as outer:
        inner = db.transaction()
        await inner.__aenter__()
        await inner.__aenter__()
        await inner.__aexit__(None, None, None)
        assert get_unit() is outer._unit


def test_there_is_no_ambient_transaction_after_overlapping_blocks() -> None:
    with Database("memory:") as db:
        first, second = db.transaction(), db.transaction()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert current_transaction() is second
        second.__exit__(None, None, None)
        with pytest.raises(NoTransactionError, match="no transaction is running here"):
            current_transaction()


def test_a_feature_that_runs_its_own_transaction_restores_the_outer_one() -> None:
    @job("ambient-nothing")
    def do_nothing() -> None: ...

    with Database("memory:") as db, db.transaction():
        outer = current_transaction()
        db.jobs.enqueue(do_nothing)
        assert current_transaction() is outer
    with pytest.raises(NoTransactionError):
        current_transaction()

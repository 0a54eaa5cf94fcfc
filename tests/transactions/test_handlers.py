"""Handlers: which run after a commit, which run after a failure, and what happens if they fail."""

from __future__ import annotations

import pytest
from rig.behaviour import Db, awaiting, blocking, everywhere, in_memory
from rig.behaviour_models import Order, arrange, expect_contention, expect_failure, meanwhile

from holdall import AsyncTransaction, Transaction
from holdall.errors import (
    AfterCommitError,
    AwaitableRefused,
    ModelAlreadyExistsError,
    OutcomeUnknown,
    TransactionFailedError,
)
from holdall.testing import Fault


class Again(Exception):
    retryable = True


def fail() -> None:
    raise Again


# --- after a commit ---------------------------------------------------------------------------------------


@everywhere
async def test_handlers_run_once_in_order_after_the_write(db: Db) -> None:
    await arrange(db, Order(id="a"))
    done: list[object] = []

    async def count(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        order.quantity += 1
        tx.after_commit(done.append, "first")
        tx.after_commit(lambda: done.append(db.kinds()[-1]))
        tx.after_commit(done.extend, ["third", "fourth"])
        assert done == []

    await db.run(count)
    assert done == ["first", "UpdateItem", "third", "fourth"]


@everywhere
async def test_handlers_of_a_failed_attempt_are_dropped(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    done: list[int] = []
    attempts = []

    async def count(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        attempts.append(1)
        tx.after_commit(done.append, len(attempts))
        if len(attempts) < 3:
            await meanwhile(db, order.key, quantity=order.quantity + 1)
        order.quantity += 1

    await db.run(count)
    assert done == [3]


@in_memory
async def test_commit_handlers_do_not_run_after_a_failure(db: Db) -> None:
    await arrange(db, Order(id="a"))
    done: list[int] = []
    with expect_failure(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.after_commit(done.append, 1)
            tx.create(Order, id="a")
    with expect_failure(ZeroDivisionError):
        async with db.transaction() as tx:
            tx.after_commit(done.append, 2)
            1 / 0  # noqa: B018
    with expect_contention():
        async with db.transaction() as tx:
            tx.after_commit(done.append, 3)
            order = await tx.get_one(Order, "a")
            order.quantity += 1
            await meanwhile(db, order.key, quantity=7)
    assert done == []


@in_memory
async def test_a_handler_can_run_its_own_transaction(db: Db) -> None:
    def create(tx: Transaction) -> None:
        assert tx.get(Order, "a") is not None
        tx.create(Order, id="b")

    async with db.transaction() as tx:
        tx.create(Order, id="a")
        tx.after_commit(db.sync.run, create)
    assert await db.get(Order, "b") is not None


@everywhere
async def test_a_failing_handler_does_not_undo_or_repeat_the_commit(db: Db) -> None:
    """Not even if its error is retryable: the transaction does not run again."""
    await arrange(db, Order(id="a", quantity=1))
    done: list[int] = []
    attempts = []

    async def count(tx: AsyncTransaction) -> str:
        attempts.append(1)
        (await tx.get_one(Order, "a")).quantity += 1
        tx.after_commit(fail)
        tx.after_commit(done.append, 1)
        tx.after_commit(lambda: 1 / 0)
        tx.after_failure(lambda error: done.append(2))
        return "the result"

    with pytest.raises(AfterCommitError, match="the transaction was committed") as caught:
        await db.run(count)
    assert caught.value.result == "the result"
    assert [type(error) for error in caught.value.errors] == [Again, ZeroDivisionError]
    assert caught.value.__cause__ is caught.value.errors[0]
    assert not caught.value.retryable
    assert (len(attempts), done) == (1, [1])
    assert (await db.get_one(Order, "a")).quantity == 2


@in_memory
async def test_a_failing_handler_of_a_with_block_is_reported_too(db: Db) -> None:
    with expect_failure(AfterCommitError):
        async with db.transaction() as tx:
            tx.create(Order, id="a")
            tx.after_commit(fail)
    assert await db.get(Order, "a") is not None


@awaiting
async def test_a_handler_can_be_async(db: Db) -> None:
    done: list[int] = []

    async def handle(number: int) -> None:
        done.append((await db.get_one(Order, "a")).quantity + number)

    async def handle_failure(error: Exception) -> None:
        done.append(-1)

    async with db.transaction() as tx:
        tx.create(Order, id="a")
        tx.after_commit(handle, 10)
    with expect_failure(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.create(Order, id="a")
            tx.after_failure(handle_failure)
    assert done == [11, -1]


@blocking
async def test_an_async_handler_is_refused_in_the_sync_api(db: Db) -> None:
    async def handle() -> None: ...

    with expect_failure(AfterCommitError) as caught:
        async with db.transaction() as tx:
            tx.create(Order, id="a")
            tx.after_commit(handle)
    assert isinstance(caught.value.__cause__, AfterCommitError | AwaitableRefused)
    assert "is async, but this is the sync API" in str(caught.value.__cause__)


# --- after a failure --------------------------------------------------------------------------------------


@everywhere
async def test_failure_handlers_get_a_permanent_error_once(db: Db) -> None:
    await arrange(db, Order(id="a"))
    received: list[Exception] = []

    async def create(tx: AsyncTransaction) -> None:
        tx.after_failure(received.append)
        tx.create(Order, id="a")

    with pytest.raises(ModelAlreadyExistsError) as caught:
        await db.run(create)
    assert received == [caught.value]


@in_memory
async def test_failure_handlers_get_the_final_error_and_not_those_of_the_attempts(db: Db) -> None:
    received: list[tuple[int, Exception]] = []
    attempts = []

    async def body(tx: AsyncTransaction) -> None:
        attempts.append(1)
        number = len(attempts)
        tx.after_failure(lambda error: received.append((number, error)))
        raise Again

    with pytest.raises(TransactionFailedError) as caught:
        await db.run(body)
    assert received == [(4, caught.value)]


@in_memory
async def test_failure_handlers_do_not_run_after_a_commit(db: Db) -> None:
    received: list[Exception] = []
    attempts = []

    async def body(tx: AsyncTransaction) -> None:
        attempts.append(1)
        tx.after_failure(received.append)
        tx.create(Order, id="a")
        if len(attempts) == 1:
            raise Again

    await db.run(body)
    assert received == []


@in_memory
async def test_failure_handlers_of_a_with_block_get_errors_of_the_block_and_of_the_commit(db: Db) -> None:
    await arrange(db, Order(id="a"))
    received: list[Exception] = []
    with expect_failure(ZeroDivisionError):
        async with db.transaction() as tx:
            tx.after_failure(received.append)
            1 / 0  # noqa: B018
    with expect_contention():
        async with db.transaction() as tx:
            tx.after_failure(received.append)
            order = await tx.get_one(Order, "a")
            order.quantity += 1
            await meanwhile(db, order.key, quantity=7)
    assert [type(error) for error in received] == [ZeroDivisionError, TransactionFailedError]


@in_memory
async def test_a_failing_failure_handler_does_not_hide_the_error(db: Db) -> None:
    received: list[Exception] = []

    async def body(tx: AsyncTransaction) -> None:
        tx.after_failure(lambda error: fail())
        tx.after_failure(received.append)
        raise ValueError("the original error")

    with pytest.raises(ValueError, match="the original error") as caught:
        await db.run(body)
    assert received == [caught.value]
    assert any("Again" in note for note in caught.value.__notes__)


@in_memory
@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
async def test_no_handlers_run_if_the_outcome_is_unknown(db: Db, fault: Fault) -> None:
    await arrange(db, Order(id="a"))
    received: list[object] = []

    async def count(tx: AsyncTransaction) -> None:
        (await tx.get_one(Order, "a")).quantity += 1
        tx.after_commit(received.append, "committed")
        tx.after_failure(received.append)
        db.faults.inject(fault)

    with pytest.raises(OutcomeUnknown):
        await db.run(count)
    assert received == []

"""Errors of a commit: they name every item and field that differed, with the stored and the expected values."""

from __future__ import annotations

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import Order, arrange, expect_contention, expect_failure, meanwhile

from holdall import AsyncTransaction
from holdall.errors import (
    CancellationReason,
    ConflictError,
    ContentionError,
    HoldallError,
    InvalidModelUpdateError,
    ModelAlreadyExistsError,
    ServiceError,
    ThrottledError,
    TransactionCanceledError,
    TransactionErrors,
    TransactionFailedError,
)
from holdall.tables.commit.retry import RETRIES

# --- differences ------------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("beside", [False, True], ids=["single write", "transaction"])
async def test_contention_names_the_item_the_field_and_both_values(db: Db, beside: bool) -> None:
    await arrange(db, Order(id="a", quantity=1, product="tea"))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.note = f"{order.quantity} {order.product}"
            if beside:
                tx.create(Order, id="b")
            await meanwhile(db, order.key, quantity=2)
    cause = caught.value.__cause__
    assert isinstance(cause, ContentionError)
    assert cause.differences == (("Order(id='a')", "quantity", {"N": "1"}, {"N": "2"}),)
    assert str(cause) == "Order(id='a').quantity is 2, expected 1"


@everywhere
async def test_contention_names_every_difference(db: Db) -> None:
    await arrange(db, *(Order(id=id, note="x") for id in "abcd"))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            a, b, c = [await tx.get_one(Order, id) for id in "abc"]
            assert await tx.get(Order, "new") is None
            a.quantity = b.quantity + 1
            assert (b.note, c.note) == ("x", "x")
            await meanwhile(db, b.key, quantity=5, note=None)
            async with db.transaction() as other:
                other.delete(c.key)
                other.create(Order, id="new")
    cause = caught.value.__cause__
    assert isinstance(cause, ContentionError)
    found = {(item, field): (expected, stored) for item, field, expected, stored in cause.differences}
    assert found["Order(id='b')", "quantity"] == ({"N": "1"}, {"N": "5"})
    assert found["Order(id='b')", "note"] == ({"S": "x"}, None)
    assert found["Order(id='c')", None] == (None, None)
    assert found["Order(id='new')", None][1] is not None
    assert len(found) == 4
    text = str(cause)
    assert "Order(id='c') does not exist" in text
    assert "Order(id='new') exists now" in text
    assert "note is absent, expected 'x'" in text


@in_memory
async def test_a_long_value_is_truncated_in_the_message(db: Db) -> None:
    await arrange(db, Order(id="a", note="x" * 10_000))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            order.note = "short"
            await meanwhile(db, order.key, note="y" * 10_000)
    assert len(str(caught.value.__cause__)) < 600


# --- several permanent errors -----------------------------------------------------------------------------


@everywhere
async def test_several_permanent_errors_are_one_group_and_are_not_retried(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"), Order(id="c", quantity=5))
    attempts = []

    async def write(tx: AsyncTransaction) -> None:
        attempts.append(1)
        tx.create(Order, id="a")
        tx.create(Order, id="fine")
        tx.create(Order, id="b")
        tx.update(Order, {"id": "c", "quantity": 1}, {"quantity": 2})
        tx.update(Order, {"id": "d", "quantity": 1}, {"quantity": 2})

    with pytest.raises(TransactionErrors) as caught:
        await db.run(write)
    kinds = [type(error) for error in caught.value.exceptions]
    assert kinds == [ModelAlreadyExistsError] * 2 + [InvalidModelUpdateError] * 2
    assert len(attempts) == 1
    text = str(caught.value)
    for part in (
        "id='a') already exists",
        "id='b') already exists",
        "id='c').quantity is 5",
        "id='d'",
    ):
        assert part in text
    assert await db.get(Order, "fine") is None


@in_memory
async def test_the_errors_of_a_group_can_be_caught_by_class(db: Db) -> None:
    await arrange(db, Order(id="a"))
    caught: list[BaseException] = []

    async def write(tx: AsyncTransaction) -> None:
        tx.create(Order, id="a")
        tx.update(Order, {"id": "d", "quantity": 1}, {"quantity": 2})

    try:
        await db.run(write)
    except* ModelAlreadyExistsError as group:
        caught += group.exceptions
    except* InvalidModelUpdateError as group:
        caught += group.exceptions
    assert [type(error) for error in caught] == [ModelAlreadyExistsError, InvalidModelUpdateError]


@in_memory
async def test_a_group_is_a_holdall_error(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    with expect_failure(HoldallError) as caught:
        async with db.transaction() as tx:
            tx.create(Order, id="a")
            tx.create(Order, id="b")
    assert isinstance(caught.value, ExceptionGroup)
    assert not caught.value.retryable


# --- errors of the service --------------------------------------------------------------------------------


async def count(tx: AsyncTransaction, calls: list[int], beside: bool) -> None:
    calls.append(1)
    (await tx.get_one(Order, "a")).quantity += 1
    if beside:
        tx.create_or_put(Order, {"id": "b"}, {})


def cancel(*codes: str) -> TransactionCanceledError:
    return TransactionCanceledError(
        "cancelled", reasons=[CancellationReason(code, f"because {code}") for code in codes]
    )


@in_memory
@pytest.mark.parametrize(
    ("error", "beside"),
    [
        (ConflictError("another transaction"), False),
        (ConflictError("the same transaction is in progress"), True),
        (ThrottledError("too much"), False),
        (cancel("TransactionConflict", "None"), True),
        (cancel("None", "ThrottlingError"), True),
        (cancel("ProvisionedThroughputExceeded", "TransactionConflict"), True),
    ],
    ids=str,
)
async def test_temporary_errors_are_retried(db: Db, error: HoldallError, beside: bool) -> None:
    await arrange(db, Order(id="a", quantity=1))
    calls: list[int] = []
    db.recorder.refusals.append(error)
    await db.run(count, calls, beside)
    assert len(calls) == 2
    assert (await db.get_one(Order, "a")).quantity == 2


@in_memory
@pytest.mark.parametrize(
    "error", [ConflictError("another transaction"), cancel("TransactionConflict", "None")], ids=str
)
async def test_an_item_that_other_transactions_hold_is_contention(db: Db, error: HoldallError) -> None:
    await arrange(db, Order(id="a", quantity=1))
    calls: list[int] = []
    db.recorder.refusals += [error] * (RETRIES + 3)
    await db.run(count, calls, True)
    assert len(calls) == RETRIES + 4, "contention is retried longer than other errors"


@in_memory
async def test_a_conflict_names_the_item_that_another_transaction_holds(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    db.recorder.refusals.append(cancel("TransactionConflict", "None"))
    with expect_contention() as caught:
        await db.run(count, [], True, retries=0)
    cause = caught.value.__cause__
    assert isinstance(cause, ContentionError)
    assert cause.items == ("Order(id='a')",)
    assert "Order(id='a'): TransactionConflict" in str(cause)


@in_memory
@pytest.mark.parametrize(
    "error",
    [
        ServiceError("not this"),
        cancel("ValidationError", "None"),
        cancel("None", "ItemCollectionSizeLimitExceeded"),
        cancel("ValidationError", "TransactionConflict"),
    ],
    ids=str,
)
async def test_permanent_errors_are_raised_at_once(db: Db, error: HoldallError) -> None:
    await arrange(db, Order(id="a", quantity=1))
    calls: list[int] = []
    db.recorder.refusals.append(error)
    with pytest.raises(HoldallError) as caught:
        await db.run(count, calls, True)
    assert not isinstance(caught.value, TransactionFailedError)
    assert not caught.value.retryable
    assert len(calls) == 1


@in_memory
async def test_the_error_for_a_permanent_cancellation_reason_names_its_item(db: Db) -> None:
    await arrange(db, Order(id="a"))
    db.recorder.refusals.append(cancel("None", "ValidationError"))
    with pytest.raises(ServiceError, match=r"Order\(id='b'\): because ValidationError"):
        await db.run(count, [], True)


@in_memory
async def test_a_cancellation_without_reasons_is_raised_unchanged(db: Db) -> None:
    await arrange(db, Order(id="a"))
    error = TransactionCanceledError("the service gave no reasons", reasons=[])
    db.recorder.refusals.append(error)
    calls: list[int] = []
    with pytest.raises((TransactionCanceledError, TransactionFailedError)) as caught:
        await db.run(count, calls, True, retries=0)
    assert error in (caught.value, caught.value.__cause__)

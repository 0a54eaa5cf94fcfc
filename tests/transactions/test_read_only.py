"""Read-only transactions: they cannot write, and all values that they read existed at one moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import Line, Order, arrange, expect_contention, expect_failure, meanwhile

from holdall import AsyncTransaction, col
from holdall.errors import WriteAttemptedInReadOnlyTxError

# --- one moment -------------------------------------------------------------------------------------------


@everywhere
async def test_several_reads_are_verified_by_one_request(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    async with db.transaction(read_only=True) as tx:
        first, second = await tx.get_one(Order, "a"), await tx.get_one(Order, "b")
        assert first.quantity == second.quantity
        assert await tx.get(Order, "x") is None
    assert db.kinds() == ["GetItem", "GetItem", "GetItem", "TransactGet"]
    assert len(db.list_sent()[-1].reads) == 3


@everywhere
async def test_a_torn_read_is_retried(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0), Order(id="b", quantity=0))
    seen: list[tuple[int, int]] = []

    async def read(tx: AsyncTransaction) -> tuple[int, int]:
        first = (await tx.get_one(Order, "a")).quantity
        if not seen:
            async with db.transaction() as other:
                one, two = await other.get_one(Order, "a"), await other.get_one(Order, "b")
                one.quantity = two.quantity = 1
        second = (await tx.get_one(Order, "b")).quantity
        seen.append((first, second))
        return first, second

    assert await db.run(read, read_only=True) == (1, 1)
    assert seen == [(0, 1), (1, 1)]


@everywhere
async def test_the_creation_of_a_missing_item_is_contention(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention() as caught:
        async with db.transaction(read_only=True) as tx:
            assert await tx.get(Order, "b") is None
            async with db.transaction() as other:
                other.create(Order, id="b")
            assert (await tx.get_one(Order, "a")).quantity == 1
    assert "Order(id='b') exists now" in str(caught.value.__cause__)


@everywhere
async def test_the_deletion_of_an_item_that_was_read_is_contention(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    with expect_contention() as caught:
        async with db.transaction(read_only=True) as tx:
            await tx.get_one(Order, "b")
            async with db.transaction() as other:
                other.delete(Order.key("b"))
            await tx.get_one(Order, "a")
    assert "Order(id='b') does not exist" in str(caught.value.__cause__)


@everywhere
async def test_a_field_that_was_not_read_can_change(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    async with db.transaction(read_only=True) as tx:
        first, second = await tx.get_one(Order, "a"), await tx.get_one(Order, "b")
        assert (first.quantity, second.quantity) == (1, 1)
        await meanwhile(db, first.key, note="x")


@in_memory
async def test_a_single_read_is_not_verified(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    async with db.transaction(read_only=True) as tx:
        await tx.get(Order, "a")
    async with db.transaction(read_only=True) as tx:
        await tx.get_all([Order.key("a"), Order.key("b"), Order.key("x")])
    assert db.kinds() == ["GetItem", "TransactGet"]


@in_memory
async def test_a_batch_counts_as_several_reads(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"))
    async with db.transaction(read_only=True) as tx:
        await tx.get_all([Order.key("a"), Order.key("b")], consistent=False)
    assert db.kinds() == ["BatchGet", "TransactGet"]


@everywhere
async def test_rows_are_verified_even_if_no_field_was_read(db: Db) -> None:
    """A line moves from one order to another: each query is right, but the line was never in both orders."""
    await arrange(db, *(Line(order="a", number=n) for n in range(3)))
    seen: list[tuple[int, int]] = []

    async def read(tx: AsyncTransaction) -> tuple[int, int]:
        first = len(await tx.query(Line, order="a").all())
        if not seen:
            async with db.transaction() as other:
                other.delete(Line.key(order="a", number=1))
                other.create(Line, order="b", number=1)
        seen.append((first, len(await tx.query(Line, order="b").all())))
        return seen[-1]

    assert await db.run(read, read_only=True) == (2, 1)
    assert seen == [(3, 1), (2, 1)]
    assert len(db.list_sent()[-1].reads) == 3


@in_memory
@pytest.mark.parametrize("more", [{}, {"only": []}], ids=["whole rows", "parts of rows"])
async def test_a_row_must_still_meet_the_condition_of_its_query(db: Db, more: dict[str, Any]) -> None:
    await arrange(db, Line(order="a", number=1, text="x"), Order(id="a"))
    with expect_contention():
        async with db.transaction(read_only=True) as tx:
            await tx.query(Line, order="a", where=col(Line.text) == "x", **more).all()
            await meanwhile(db, Line.key(order="a", number=1), text="y")
            await tx.get(Order, "a")


@in_memory
async def test_rows_without_a_lock_and_counts_are_not_verified(db: Db) -> None:
    await arrange(db, *(Line(order="a", number=n) for n in range(3)), Order(id="a"))
    async with db.transaction(read_only=True) as tx:
        assert len(await tx.query(Line, order="a", lock=False).all()) == 3
        assert await tx.query(Line, order="a").count() == 3
        await tx.get(Order, "a")
    assert db.kinds() == ["Query", "Query", "GetItem"]


@everywhere
async def test_rows_that_appear_after_the_query_are_not_detected(db: Db) -> None:
    """A phantom: another query would find the row."""
    await arrange(db, *(Line(order="a", number=n) for n in range(2)))
    async with db.transaction(read_only=True) as tx:
        assert len(await tx.query(Line, order="a").all()) == 2
        async with db.transaction() as other:
            other.create(Line, order="a", number=9)
    assert db.kinds()[-1] == "TransactGet"


@in_memory
async def test_the_rows_of_one_query_count_as_several_reads(db: Db) -> None:
    """DynamoDB reads the rows of a page one after the other, and a transaction can run in between."""
    await arrange(db, Line(order="a", number=1), Line(order="a", number=2))
    async with db.transaction(read_only=True) as tx:
        assert [row.text for row in await tx.query(Line, order="a").all()] == ["", ""]
    assert db.kinds() == ["Query", "TransactGet"]


# --- no writes --------------------------------------------------------------------------------------------


async def _assign(tx: AsyncTransaction) -> None:
    (await tx.get_one(Order, "a")).quantity = 1


async def _increment(tx: AsyncTransaction) -> None:
    (await tx.get_one(Order, "a")).field("quantity").increment_by(1)


async def _create(tx: AsyncTransaction) -> None:
    tx.create(Order, id="b")


async def _create_if_missing(tx: AsyncTransaction) -> None:
    await tx.get(Order, "b", create_if_missing=True)


async def _update(tx: AsyncTransaction) -> None:
    tx.update(Order, {"id": "a", "quantity": 1}, {"quantity": 2})


async def _put(tx: AsyncTransaction) -> None:
    tx.create_or_put(Order, {"id": "a"}, {})


async def _delete(tx: AsyncTransaction) -> None:
    tx.delete(await tx.get_one(Order, "a"))


async def _delete_key(tx: AsyncTransaction) -> None:
    tx.delete(Order.key("a"))


@in_memory
@pytest.mark.parametrize(
    "write", [_assign, _increment, _create, _create_if_missing, _update, _put, _delete, _delete_key]
)
async def test_every_write_is_refused_at_once(db: Db, write: Callable[[AsyncTransaction], Any]) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction(read_only=True) as tx:
        assert tx.read_only
        with pytest.raises(WriteAttemptedInReadOnlyTxError, match="in a read-only transaction"):
            await write(tx)
    assert not any(request.writes for request in db.list_sent())


@everywhere
async def test_a_change_in_place_is_refused_at_commit(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_failure(WriteAttemptedInReadOnlyTxError, "changed in place"):
        async with db.transaction(read_only=True) as tx:
            (await tx.get_one(Order, "a")).tags.append("x")
    assert (await db.get_one(Order, "a")).tags == []


@in_memory
async def test_create_if_missing_is_allowed_for_an_existing_item(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction(read_only=True) as tx:
        assert not (await tx.get(Order, "a", create_if_missing=True)).is_new


@in_memory
async def test_run_can_be_read_only_and_returns_the_result(db: Db) -> None:
    await arrange(db, Order(id="a"))

    async def read(tx: AsyncTransaction) -> int:
        return (await tx.get_one(Order, "a")).quantity

    assert await db.run(read, read_only=True) == 1
    with pytest.raises(WriteAttemptedInReadOnlyTxError):
        await db.run(_assign, read_only=True)


@in_memory
async def test_handlers_run_after_a_read_only_transaction_too(db: Db) -> None:
    done: list[int] = []
    async with db.transaction(read_only=True) as tx:
        tx.after_commit(done.append, 1)
    assert done == [1]

"""Deleting: what was read under its locks, a key without any, and what was just created not at all."""

from __future__ import annotations

from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import Line, Order, arrange, expect_contention, expect_failure, meanwhile, put_raw

from holdall import AsyncTransaction
from holdall.core import DeleteItem, TransactWrite
from holdall.errors import (
    FrozenItemError,
    InvalidRequestError,
    ModelAlreadyExistsError,
    ModelTrackedTwiceError,
)


@everywhere
async def test_a_loaded_item_is_deleted_in_one_write_by_token(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Order, "a"))
        db.forget()
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    assert [type(action) for action in write.actions] == [DeleteItem]
    assert await db.get(Order, "a") is None


@everywhere
async def test_a_key_is_deleted_without_reading_and_whether_or_not_it_is_there(db: Db) -> None:
    await arrange(db, Order(id="a"))
    for _ in range(2):
        async with db.transaction() as tx:
            tx.delete(Order.key("a"))
    assert db.kinds() == ["TransactWrite", "TransactWrite"]
    assert await db.get(Order, "a") is None


@everywhere
async def test_several_are_deleted_at_once(db: Db) -> None:
    await arrange(db, *(Line(order="a", number=n) for n in range(3)), Order(id="a"))
    async with db.transaction() as tx:
        tx.delete(*await tx.query(Line, order="a").all(), Order.key("a"))
        db.forget()
    assert db.kinds() == ["TransactWrite"]
    assert await db.query(Line, order="a").all() == []
    assert await db.get(Order, "a") is None


# --- contention -------------------------------------------------------------------------------------------


@everywhere
async def test_a_field_that_was_read_and_has_changed_is_contention(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=0))
    seen = []

    async def delete_if_empty(tx: AsyncTransaction) -> None:
        order = await tx.get_one(Order, "a")
        seen.append(order.quantity)
        if order.quantity == 0:
            tx.delete(order)
        if len(seen) == 1:
            await meanwhile(db, order.key, quantity=5)

    await db.run(delete_if_empty)
    assert seen == [0, 5]
    assert (await db.get_one(Order, "a")).quantity == 5


@everywhere
async def test_a_field_that_was_not_read_or_only_added_to_may_have_changed(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.field("quantity").increment_by(1)
        tx.delete(order)
        await meanwhile(db, order.key, quantity=5, note="x")
    assert await db.get(Order, "a") is None


@everywhere
async def test_a_loaded_item_that_vanished_is_contention(db: Db) -> None:
    await arrange(db, Order(id="a"))
    found = []

    async def delete(tx: AsyncTransaction) -> None:
        order = await tx.get(Order, "a")
        found.append(order is not None)
        if order is not None:
            tx.delete(order)
            async with db.transaction() as other:
                other.delete(order.key)

    await db.run(delete)
    assert found == [True, False]


@everywhere
async def test_by_key_an_item_of_the_transaction_is_deleted_under_its_locks(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            if order.quantity:
                tx.delete(order.key)
            await meanwhile(db, order.key, quantity=5)
    assert await db.get(Order, "a") is not None


# --- created and deleted ----------------------------------------------------------------------------------


@everywhere
async def test_an_item_that_is_created_and_deleted_is_never_there(db: Db) -> None:
    async with db.transaction() as tx:
        tx.delete(tx.create(Order, id="a"))
        tx.create(Order, id="b")
    assert await db.get(Order, "a") is None
    assert await db.get(Order, "b") is not None


@everywhere
async def test_created_and_deleted_leaves_one_that_was_there_alone(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=5))
    with expect_failure(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.delete(tx.create(Order, id="a"))
    assert (await db.get_one(Order, "a")).quantity == 5


@everywhere
async def test_made_if_missing_and_deleted_leaves_one_that_came_meanwhile_alone(db: Db) -> None:
    with expect_contention():
        async with db.transaction() as tx:
            tx.delete(await tx.get(Order, "a", create_if_missing=True))
            async with db.transaction() as other:
                other.create(Order, id="a", quantity=7)
    assert (await db.get_one(Order, "a")).quantity == 7


# --- in the transaction -----------------------------------------------------------------------------------


@in_memory
async def test_a_deleted_item_is_missing_and_cannot_be_changed(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        tx.delete(order)
        assert await tx.get(Order, "a") is None
        assert await tx.get_all([Order.key("a")]) == [None]
        assert await tx.query(Order, id="a").all() == []
        with pytest.raises(FrozenItemError, match="was deleted in this transaction"):
            order.quantity = 2
        with pytest.raises(FrozenItemError):
            order.field("quantity").increment_by(1)


@in_memory
async def test_a_query_leaves_out_what_the_transaction_has_deleted(db: Db) -> None:
    await arrange(db, Line(order="a", number=1), Line(order="a", number=2))
    async with db.transaction() as tx:
        first, second = await tx.query(Line, order="a").all()
        tx.delete(first)
        assert await tx.query(Line, order="a").all() == [second]


@in_memory
async def test_an_item_is_not_deleted_twice(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        tx.delete(order)
        for again in (order, order.key):
            with pytest.raises(ModelTrackedTwiceError, match="already deleted"):
                tx.delete(again)
        tx.delete(Order.key("b"))
        with pytest.raises(ModelTrackedTwiceError, match="already deleted"):
            tx.delete(Order.key("b"))


@in_memory
async def test_a_deleted_item_is_not_made_anew_in_the_same_transaction(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Order, "a"))
        with pytest.raises(ModelTrackedTwiceError):
            tx.create(Order, id="a")
        with pytest.raises(ModelTrackedTwiceError):
            await tx.get(Order, "a", create_if_missing=True)
    assert await db.get(Order, "a") is None


@in_memory
async def test_what_was_missing_can_be_deleted_for_nothing(db: Db) -> None:
    async with db.transaction() as tx:
        assert await tx.get(Order, "a") is None
        tx.delete(Order.key("a"))
    assert db.kinds() == ["GetItem"]


@everywhere
async def test_an_item_that_does_not_fit_its_model_can_be_deleted(db: Db) -> None:
    key = Order.key("a")
    await put_raw(db, Order, {**raw_key(key), "quantity": {"S": "many"}})
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(key))
    assert await db.raw(key) is None


@in_memory
@pytest.mark.parametrize("target", ["a", None, Order, {"id": "a"}], ids=repr)
async def test_only_items_and_keys_can_be_deleted(db: Db, target: Any) -> None:
    async with db.transaction() as tx:
        with pytest.raises(InvalidRequestError, match="cannot be deleted"):
            tx.delete(target)


@in_memory
async def test_an_item_of_nobody_or_of_another_transaction_is_not_deleted(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx, db.transaction() as other:
        for order in (await db.get_one(Order, "a"), await other.get_one(Order, "a"), Order(id="b")):
            with pytest.raises(InvalidRequestError, match="does not belong to this transaction"):
                tx.delete(order)
    assert await db.get(Order, "a") is not None

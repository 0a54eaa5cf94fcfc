"""Deleting: an item that was read is deleted under its locks, a key without locks; a new item is never stored."""

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
async def test_a_loaded_item_is_deleted_in_one_write_with_a_token(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Order, "a"))
        db.forget()
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    assert [type(action) for action in write.actions] == [DeleteItem]
    assert await db.get(Order, "a") is None


@everywhere
async def test_a_key_is_deleted_without_a_read_even_if_no_item_exists(db: Db) -> None:
    await arrange(db, Order(id="a"))
    for _ in range(2):
        async with db.transaction() as tx:
            tx.delete(Order.key("a"))
    assert db.kinds() == ["TransactWrite", "TransactWrite"]
    assert await db.get(Order, "a") is None


@everywhere
async def test_several_items_are_deleted_in_one_write(db: Db) -> None:
    await arrange(db, *(Line(order="a", number=n) for n in range(3)), Order(id="a"))
    async with db.transaction() as tx:
        tx.delete(*await tx.query(Line, order="a").all(), Order.key("a"))
        db.forget()
    assert db.kinds() == ["TransactWrite"]
    assert await db.query(Line, order="a").all() == []
    assert await db.get(Order, "a") is None


# --- contention -------------------------------------------------------------------------------------------


@everywhere
async def test_a_change_of_a_field_that_was_read_is_contention(db: Db) -> None:
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
async def test_a_field_that_was_not_read_or_only_incremented_may_change_meanwhile(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.field("quantity").increment_by(1)
        tx.delete(order)
        await meanwhile(db, order.key, quantity=5, note="x")
    assert await db.get(Order, "a") is None


@everywhere
async def test_the_deletion_of_a_loaded_item_by_another_transaction_is_contention(db: Db) -> None:
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
async def test_deleting_the_key_of_a_loaded_item_keeps_its_locks(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            order = await tx.get_one(Order, "a")
            if order.quantity:
                tx.delete(order.key)
            await meanwhile(db, order.key, quantity=5)
    assert await db.get(Order, "a") is not None


# --- created and deleted in one transaction ---------------------------------------------------------------


@everywhere
async def test_an_item_that_is_created_and_deleted_is_not_stored(db: Db) -> None:
    async with db.transaction() as tx:
        tx.delete(tx.create(Order, id="a"))
        tx.create(Order, id="b")
    assert await db.get(Order, "a") is None
    assert await db.get(Order, "b") is not None


@everywhere
async def test_creating_and_deleting_an_item_does_not_delete_an_existing_one(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=5))
    with expect_failure(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.delete(tx.create(Order, id="a"))
    assert (await db.get_one(Order, "a")).quantity == 5


@everywhere
async def test_create_if_missing_and_delete_does_not_delete_an_item_created_meanwhile(db: Db) -> None:
    with expect_contention():
        async with db.transaction() as tx:
            tx.delete(await tx.get(Order, "a", create_if_missing=True))
            async with db.transaction() as other:
                other.create(Order, id="a", quantity=7)
    assert (await db.get_one(Order, "a")).quantity == 7


# --- inside the transaction -------------------------------------------------------------------------------


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
async def test_a_query_omits_items_that_the_transaction_deleted(db: Db) -> None:
    await arrange(db, Line(order="a", number=1), Line(order="a", number=2))
    async with db.transaction() as tx:
        first, second = await tx.query(Line, order="a").all()
        tx.delete(first)
        assert await tx.query(Line, order="a").all() == [second]


@in_memory
async def test_an_item_cannot_be_deleted_twice(db: Db) -> None:
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
async def test_a_deleted_item_cannot_be_created_again_in_the_same_transaction(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(Order, "a"))
        with pytest.raises(ModelTrackedTwiceError):
            tx.create(Order, id="a")
        with pytest.raises(ModelTrackedTwiceError):
            await tx.get(Order, "a", create_if_missing=True)
    assert await db.get(Order, "a") is None


@in_memory
async def test_deleting_an_item_that_the_transaction_found_missing_sends_nothing(db: Db) -> None:
    async with db.transaction() as tx:
        assert await tx.get(Order, "a") is None
        tx.delete(Order.key("a"))
    assert db.kinds() == ["GetItem"]


@everywhere
async def test_an_item_with_invalid_values_can_be_deleted(db: Db) -> None:
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
async def test_an_item_of_no_transaction_or_of_another_one_cannot_be_deleted(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx, db.transaction() as other:
        for order in (await db.get_one(Order, "a"), await other.get_one(Order, "a"), Order(id="b")):
            with pytest.raises(InvalidRequestError, match="does not belong to this transaction"):
                tx.delete(order)
    assert await db.get(Order, "a") is not None

"""Blind writes: update and create_or_put change items without reading them; their arguments state what must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import Order, arrange, expect_contention, expect_failure, put_raw

from holdall import AsyncTransaction, Key, Model, field
from holdall.core import PutItem, TransactWrite, UpdateItem, encode_item
from holdall.errors import (
    InvalidFieldError,
    InvalidModelUpdateError,
    InvalidRequestError,
    ModelTrackedTwiceError,
    TransactionFailedError,
)


class LastUse(Model):
    user: Key[str]
    feature: Key[str]
    epoch: int
    where: str | None = None


class Profile(Model):
    id: Key[str]
    name: str
    age: int
    born: int | None = field(default=None, read_only=True)


class Thing(Model):
    """A model without a declared key."""

    n: int = 0


# --- update -----------------------------------------------------------------------------------------------


@everywhere
async def test_an_update_is_one_write_with_a_token_and_no_read(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1, note="x"))
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "quantity": 1, "product": "coffee"}, {"quantity": 2})
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    assert [type(action) for action in write.actions] == [UpdateItem]
    order = await db.get_one(Order, "a")
    assert (order.quantity, order.note) == (2, "x")


@everywhere
async def test_updating_a_missing_item_fails_without_a_retry(db: Db) -> None:
    attempts = []

    async def update(tx: AsyncTransaction) -> None:
        attempts.append(1)
        tx.update(Order, {"id": "a", "quantity": 1}, {"quantity": 2})

    with pytest.raises(InvalidModelUpdateError, match=r"Order\(id='a'\)"):
        await db.run(update)
    assert len(attempts) == 1
    assert await db.get(Order, "a") is None


@everywhere
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another write"])
async def test_an_update_with_wrong_expectations_fails_without_a_retry_and_names_the_differences(
    db: Db, beside: bool
) -> None:
    await arrange(db, Order(id="a", quantity=5))
    with expect_failure(InvalidModelUpdateError) as caught:
        async with db.transaction() as tx:
            tx.update(Order, {"id": "a", "quantity": 1, "product": "coffee"}, {"quantity": 2})
            if beside:
                tx.create(Order, id="b")
    assert "Order(id='a').quantity is 5, expected 1" in str(caught.value)
    assert (await db.get_one(Order, "a")).quantity == 5
    assert await db.get(Order, "b") is None


@everywhere
async def test_none_expects_an_absent_attribute_or_removes_it(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "note": None}, {"note": "x"})
    assert (await db.get_one(Order, "a")).note == "x"
    with expect_failure(InvalidModelUpdateError):
        async with db.transaction() as tx:
            tx.update(Order, {"id": "a", "note": None}, {"note": "y"})
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "note": "x"}, {"note": None})
    stored = await db.raw(Order.key("a"))
    assert stored is not None
    assert "note" not in stored


@everywhere
async def test_an_update_that_changes_nothing_still_checks_its_expectations(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "quantity": 1}, {"quantity": 1})
    with expect_failure(InvalidModelUpdateError):
        async with db.transaction() as tx:
            tx.update(Order, {"id": "a", "quantity": 2}, {"quantity": 2})


@everywhere
async def test_an_update_writes_no_defaults_and_keeps_other_attributes(db: Db) -> None:
    key = Order.key("a")
    await put_raw(db, Order, {**raw_key(key), **encode_item({"id": "a", "product": "tea", "mood": "good"})})
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "product": "tea"}, {"product": "milk"})
    stored = await db.raw(key)
    assert stored == {
        **raw_key(key),
        **encode_item({"_type": "Order", "id": "a", "product": "milk", "mood": "good"}),
    }


@in_memory
async def test_an_update_returns_none_and_needs_no_other_required_values(db: Db) -> None:
    await arrange(db, Profile(id="a", name="Ada", age=36))
    async with db.transaction() as tx:
        assert tx.update(Profile, {"id": "a", "age": 36}, {"age": 37}) is None
    assert (await db.get_one(Profile, "a")).age == 37


@in_memory
@pytest.mark.parametrize(
    ("expected", "changes", "error"),
    [
        ({"id": "a"}, {"age": 37}, InvalidFieldError),
        ({"id": "a", "name": "Ada"}, {"age": 37}, InvalidFieldError),
        ({"age": 36}, {"age": 37}, InvalidFieldError),
        ({"id": "a", "age": 36}, {"id": "b"}, InvalidFieldError),
        ({"id": "a", "age": 36}, {}, InvalidRequestError),
        ({"id": "a", "age": 36}, {"age": "37"}, InvalidFieldError),
        ({"id": "a", "age": 36}, {"age": None}, InvalidFieldError),
        ({"id": "a", "age": "36"}, {"age": 37}, InvalidFieldError),
        ({"id": "a", "born": None}, {"born": 1815}, InvalidFieldError),
        ({"id": "a", "agee": 36}, {"agee": 37}, InvalidFieldError),
        ({"id": "a", "age": 36}, {"agee": 37}, InvalidFieldError),
        ({"id": 5, "age": 36}, {"age": 37}, InvalidFieldError),
    ],
    ids=repr,
)
async def test_an_invalid_update_is_refused_at_once(
    db: Db, expected: dict[str, Any], changes: dict[str, Any], error: type[Exception]
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(error):
            tx.update(Profile, expected, changes)
    assert db.list_sent() == []


# --- create_or_put ----------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another write"])
async def test_create_or_put_replaces_the_whole_item_unconditionally(db: Db, beside: bool) -> None:
    for epoch, where in ((1, "home"), (2, None)):
        async with db.transaction() as tx:
            tx.create_or_put(LastUse, {"user": "Bob", "feature": "refer"}, {"epoch": epoch, "where": where})
            if beside:
                tx.create(Order, id=str(epoch))
        (write,) = db.list_sent()
        assert isinstance(write, TransactWrite)
        assert isinstance(write.actions[0], PutItem)
        assert write.actions[0].condition is None
        use = await db.get_one(LastUse, user="Bob", feature="refer")
        assert (use.epoch, use.where) == (epoch, where)
        db.forget()
    stored = await db.raw(use.key)
    assert stored is not None
    assert "where" not in stored


@everywhere
async def test_create_or_put_removes_attributes_that_the_model_does_not_know(db: Db) -> None:
    key = Order.key("a")
    await put_raw(db, Order, {**raw_key(key), **encode_item({"id": "a", "product": "tea", "mood": "good"})})
    async with db.transaction() as tx:
        tx.create_or_put(Order, {"id": "a"}, {"product": "milk"})
    stored = await db.raw(key)
    assert stored is not None
    assert "mood" not in stored


@everywhere
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another write"])
async def test_create_or_put_creates_the_item_or_checks_its_expectations(db: Db, beside: bool) -> None:
    expected = {"user": "Bob", "feature": "refer", "epoch": 1}

    async def put(tx: AsyncTransaction, epoch: int) -> None:
        tx.create_or_put(LastUse, expected, {"epoch": epoch})
        if beside:
            tx.create_or_put(Order, {"id": "beside"}, {})

    await db.run(put, 1)
    await db.run(put, 2)
    with pytest.raises(TransactionFailedError) as caught:
        await db.run(put, 3)
    assert caught.value.attempts == 4
    assert "epoch is 2, expected 1" in str(caught.value.__cause__)
    assert (await db.get_one(LastUse, user="Bob", feature="refer")).epoch == 2


@everywhere
async def test_create_or_put_also_writes_expected_values_that_it_does_not_change(db: Db) -> None:
    """The item is new and the commit has a second write, so the put must contain every value."""
    async with db.transaction() as tx:
        tx.create_or_put(LastUse, {"user": "Bob", "feature": "refer", "where": "home"}, {"epoch": 1})
        tx.create(Order, id="a")
    use = await db.get_one(LastUse, user="Bob", feature="refer")
    assert (use.epoch, use.where) == (1, "home")


@in_memory
async def test_a_create_or_put_whose_expectations_fail_is_contention(db: Db) -> None:
    await arrange(db, LastUse(user="Bob", feature="refer", epoch=5))
    with expect_contention():
        async with db.transaction() as tx:
            tx.create_or_put(LastUse, {"user": "Bob", "feature": "refer", "epoch": 1}, {"epoch": 2})


@in_memory
async def test_create_or_put_takes_its_key_from_either_argument(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create_or_put(LastUse, {}, {"user": "Bob", "feature": "a", "epoch": 1})
        tx.create_or_put(LastUse, {"user": "Bob"}, {"feature": "b", "epoch": 1})
        tx.create_or_put(LastUse, {"user": "Bob", "feature": "c"}, {"user": "Bob", "epoch": 1})
        tx.create_or_put(Thing, {}, {"n": 1})
    keys = [LastUse.key(user="Bob", feature=feature) for feature in "abc"]
    assert all(await db.get_all(keys))


@in_memory
@pytest.mark.parametrize(
    ("expected", "new"),
    [
        ({"user": "Bob", "feature": "x"}, {"user": "Eve", "epoch": 1}),
        ({"user": "Bob", "feature": "x"}, {}),
        ({"user": "Bob"}, {"epoch": 1}),
        ({"user": "Bob", "feature": "x"}, {"epoch": None}),
        ({"user": "Bob", "feature": "x"}, {"epoch": "1"}),
        ({"user": "Bob", "feature": "x"}, {"epoch": 1, "when": 2}),
        ({"user": "Bob", "feature": "x", "when": 2}, {"epoch": 1}),
    ],
    ids=repr,
)
async def test_a_put_of_an_incomplete_or_invalid_item_is_refused_at_once(
    db: Db, expected: dict[str, Any], new: dict[str, Any]
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError):
            tx.create_or_put(LastUse, expected, new)
    assert db.list_sent() == []


@everywhere
async def test_several_blind_writes_are_one_write(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="d"))
    async with db.transaction() as tx:
        tx.update(Order, {"id": "a", "quantity": 1}, {"quantity": 2})
        tx.create_or_put(Order, {"id": "b"}, {})
        tx.create_or_put(Order, {"id": "c"}, {})
        tx.delete(Order.key("d"))
    (write,) = db.list_sent()
    assert [type(action).__name__ for action in write.actions] == [
        "UpdateItem",
        "PutItem",
        "PutItem",
        "DeleteItem",
    ]
    found = await db.get_all([Order.key(id) for id in "abcd"])
    assert [item and item.quantity for item in found] == [2, 1, 1, None]


# --- one role per item ------------------------------------------------------------------------------------


def _update(tx: AsyncTransaction) -> None:
    tx.update(Order, {"id": "a", "quantity": 1}, {"quantity": 2})


def _put(tx: AsyncTransaction) -> None:
    tx.create_or_put(Order, {"id": "a"}, {})


def _delete(tx: AsyncTransaction) -> None:
    tx.delete(Order.key("a"))


def _create(tx: AsyncTransaction) -> None:
    tx.create(Order, id="a")


@in_memory
@pytest.mark.parametrize("second", [_update, _put, _create, _delete])
@pytest.mark.parametrize("first", [_update, _put, _delete])
async def test_an_item_that_was_written_blindly_cannot_be_written_again(
    db: Db, first: Callable[[AsyncTransaction], None], second: Callable[[AsyncTransaction], None]
) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        first(tx)
        with pytest.raises(ModelTrackedTwiceError, match=r"Order\(id='a'\) was already"):
            second(tx)


@in_memory
@pytest.mark.parametrize("write", [_update, _put])
async def test_an_item_that_was_read_or_created_cannot_be_written_blindly(
    db: Db, write: Callable[[AsyncTransaction], None]
) -> None:
    async with db.transaction() as tx:
        assert await tx.get(Order, "a") is None
        with pytest.raises(ModelTrackedTwiceError, match="already read"):
            write(tx)
        _create(tx)
        with pytest.raises(ModelTrackedTwiceError, match="already created"):
            write(tx)
    async with db.transaction() as tx:
        await tx.get(Order, "a")
        with pytest.raises(ModelTrackedTwiceError, match="already read"):
            write(tx)

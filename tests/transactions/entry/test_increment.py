"""Incrementing: adds to a number without locking it; the bounds of its type are the only condition."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest
from annotated_types import Ge, Le
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import Order, arrange, expect_contention, meanwhile, put_raw

from holdall import AsyncTransaction, Key, Model, field
from holdall.core import (
    Exists,
    Plus,
    Remove,
    Set,
    TransactWrite,
    Update,
    UpdateItem,
    encode_item,
    path,
    value,
)
from holdall.errors import (
    FrozenItemError,
    InvalidFieldError,
    InvalidRequestError,
    WriteAttemptedInReadOnlyTxError,
)


class Stock(Model):
    id: Key[str]
    left: Annotated[int, Ge(0), Le(10)] = 5
    weight: float = 0.5
    price: Decimal = Decimal("1.10")
    batch: int = field(default=1, read_only=True)
    extra: int | None = None
    name: str = ""
    serial: int = field(default=0, unique=True)


class Plain(Model):
    id: Key[str]
    n: int
    note: str | None = None


async def add_meanwhile(db: Db, amount: int) -> None:
    """Add to the number in another transaction."""
    async with db.transaction() as tx:
        (await tx.get_one(Plain, "a")).field("n").increment_by(amount)


# --- without a lock ---------------------------------------------------------------------------------------


@everywhere
async def test_an_increment_is_an_addition_on_condition_that_the_attribute_exists(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    async with db.transaction() as tx:
        (await tx.get_one(Plain, "a")).field("n").increment_by(2)
        db.forget()
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    (update,) = write.actions
    assert isinstance(update, UpdateItem)
    assert update.condition == Exists(path("n"))
    assert update.update.actions == (Set(path("n"), Plus(path("n"), value(2))),)
    assert (await db.get_one(Plain, "a")).n == 3


@everywhere
async def test_an_increment_keeps_what_another_transaction_added_meanwhile(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    async with db.transaction() as tx:
        (await tx.get_one(Plain, "a")).field("n").increment_by(2)
        await add_meanwhile(db, 10)
    assert (await db.get_one(Plain, "a")).n == 13


@everywhere
async def test_incrementing_a_field_that_another_transaction_cleared_is_contention(db: Db) -> None:
    await arrange(db, Stock(id="a", extra=1))
    attempts: list[int | None] = []

    async def add(tx: AsyncTransaction) -> None:
        stock = await tx.get_one(Stock, "a")
        attempts.append(stock.extra)
        if stock.extra is not None:
            stock.field("extra").increment_by(1)
            await meanwhile(db, stock.key, extra=None)

    await db.run(add)
    assert attempts == [1, None]
    await meanwhile(db, Stock.key("a"), extra=1)
    with expect_contention() as caught:
        async with db.transaction() as tx:
            (await tx.get_one(Stock, "a")).field("extra").increment_by(1)
            await meanwhile(db, Stock.key("a"), extra=None)
    assert "Stock(id='a').extra is absent, expected 1" in str(caught.value.__cause__)


@everywhere
async def test_an_incremented_field_is_not_locked_even_if_it_was_read_before(db: Db) -> None:
    await arrange(db, Plain(id="a", n=11))
    async with db.transaction() as tx:
        plain = await tx.get_one(Plain, "a")
        if plain.n > 10:
            plain.field("n").increment_by(1)
        await add_meanwhile(db, 100)
    assert (await db.get_one(Plain, "a")).n == 112


@everywhere
async def test_an_increment_does_not_unlock_other_fields_of_the_item(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1, note="x"))
    with expect_contention():
        async with db.transaction() as tx:
            plain = await tx.get_one(Plain, "a")
            assert plain.note == "x"
            plain.field("n").increment_by(1)
            await meanwhile(db, plain.key, note="y")
    assert (await db.get_one(Plain, "a")).n == 1


@everywhere
async def test_an_increment_and_an_assignment_are_one_stamped_update(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    async with db.transaction() as tx:
        plain = await tx.get_one(Plain, "a")
        plain.field("n").increment_by(5)
        plain.note = "x"
        db.forget()
    (update,) = db.list_sent()
    assert isinstance(update, UpdateItem)
    assert update.stamp is not None
    plain = await db.get_one(Plain, "a")
    assert (plain.n, plain.note) == (6, "x")


@everywhere
async def test_several_items_are_incremented_in_one_write(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1), Plain(id="b", n=2))
    async with db.transaction() as tx:
        for plain in await tx.get_all([Plain.key("a"), Plain.key("b")]):
            assert plain is not None
            plain.field("n").increment_by(1)
        db.forget()
    assert db.kinds() == ["TransactWrite"]
    assert [plain.n for plain in await db.get_all([Plain.key("a"), Plain.key("b")]) if plain] == [2, 3]


@everywhere
async def test_an_increment_does_not_create_an_item_that_was_deleted_meanwhile(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(Plain, "a")).field("n").increment_by(1)
            async with db.transaction() as other:
                other.delete(Plain.key("a"))
    assert await db.get(Plain, "a") is None


# --- bounds -----------------------------------------------------------------------------------------------


@everywhere
async def test_a_decrement_is_conditional_on_the_lower_bound(db: Db) -> None:
    await arrange(db, Stock(id="a", left=3))
    attempts = []

    async def take(tx: AsyncTransaction, amount: int) -> None:
        stock = await tx.get_one(Stock, "a")
        attempts.append(amount)
        if len(attempts) == 1:
            await db.run(take, 2)
        stock.field("left").increment_by(-amount)

    with pytest.raises(InvalidFieldError, match=r"Stock\.left"):
        await db.run(take, 3)
    assert attempts == [3, 2, 3]
    assert (await db.get_one(Stock, "a")).left == 1


@everywhere
async def test_an_increment_is_conditional_on_the_upper_bound(db: Db) -> None:
    await arrange(db, Stock(id="a", left=8))
    with expect_contention() as caught:
        async with db.transaction() as tx:
            stock = await tx.get_one(Stock, "a")
            stock.field("left").increment_by(2)
            await meanwhile(db, stock.key, left=9)
    assert "left is 9" in str(caught.value.__cause__)
    assert (await db.get_one(Stock, "a")).left == 9


@everywhere
async def test_an_increment_succeeds_after_another_change_if_the_sum_stays_within_bounds(db: Db) -> None:
    await arrange(db, Stock(id="a", left=3))
    async with db.transaction() as tx:
        stock = await tx.get_one(Stock, "a")
        stock.field("left").increment_by(-1)
        await meanwhile(db, stock.key, left=1)
        db.forget()
    assert db.kinds() == ["TransactWrite"]
    assert (await db.get_one(Stock, "a")).left == 0


@in_memory
async def test_if_the_attribute_was_removed_meanwhile_the_default_must_stay_within_bounds_too(db: Db) -> None:
    await arrange(db, Stock(id="a", left=8))
    with expect_contention():
        async with db.transaction() as tx:
            stock = await tx.get_one(Stock, "a")
            stock.field("left").increment_by(-6)
            removal = Update((Remove(path("left")),))
            await db.send(UpdateItem(db.table_of(Stock), raw_key(stock.key), removal))
    assert (await db.get_one(Stock, "a")).left == 5


@in_memory
async def test_a_sum_out_of_bounds_is_refused_at_once(db: Db) -> None:
    await arrange(db, Stock(id="a", left=3))
    async with db.transaction() as tx:
        left = (await tx.get_one(Stock, "a")).field("left")
        for amount in (-4, 8):
            with pytest.raises(InvalidFieldError, match=r"Stock\.left"):
                left.increment_by(amount)
        left.increment_by(7)
        with pytest.raises(InvalidFieldError):
            left.increment_by(1)
    assert (await db.get_one(Stock, "a")).left == 10


# --- with other changes -----------------------------------------------------------------------------------


@in_memory
async def test_increments_add_up_and_are_visible_at_once(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    async with db.transaction() as tx:
        plain = await tx.get_one(Plain, "a")
        plain.field("n").increment_by(2)
        plain.field("n").increment_by(-5)
        assert plain.n == -2
        plain.field("n").increment_by(10)
        assert plain.n == 8
    assert (await db.get_one(Plain, "a")).n == 8


@in_memory
async def test_increments_that_add_up_to_zero_write_nothing(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    async with db.transaction() as tx:
        plain = await tx.get_one(Plain, "a")
        plain.field("n").increment_by(2)
        plain.field("n").increment_by(-2)
    async with db.transaction() as tx:
        (await tx.get_one(Plain, "a")).field("n").increment_by(0)
    assert db.kinds() == ["GetItem", "GetItem"]


@everywhere
async def test_an_assignment_replaces_increments_and_locks_the_field(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    async with db.transaction() as tx:
        plain = await tx.get_one(Plain, "a")
        plain.field("n").increment_by(5)
        plain.n = 100
    assert (await db.get_one(Plain, "a")).n == 100
    with expect_contention():
        async with db.transaction() as tx:
            plain = await tx.get_one(Plain, "a")
            plain.field("n").increment_by(5)
            plain.n = 200
            await add_meanwhile(db, 1)


@everywhere
async def test_an_increment_after_an_assignment_assigns_the_sum(db: Db) -> None:
    await arrange(db, Plain(id="a", n=1))
    with expect_contention():
        async with db.transaction() as tx:
            plain = await tx.get_one(Plain, "a")
            plain.n = 10
            plain.field("n").increment_by(5)
            await add_meanwhile(db, 1)
    async with db.transaction() as tx:
        plain = await tx.get_one(Plain, "a")
        plain.n = 10
        plain.field("n").increment_by(5)
    assert (await db.get_one(Plain, "a")).n == 15


@in_memory
async def test_an_increment_of_a_new_item_is_part_of_its_creation(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Plain, id="a", n=1).field("n").increment_by(4)
        made = await tx.get(Stock, "a", create_if_missing=True)
        made.field("left").increment_by(1)
    assert (await db.get_one(Plain, "a")).n == 5
    assert (await db.get_one(Stock, "a")).left == 6


@in_memory
async def test_incrementing_a_unique_field_locks_it(db: Db) -> None:
    await arrange(db, Stock(id="a", serial=1))
    with expect_contention():
        async with db.transaction() as tx:
            stock = await tx.get_one(Stock, "a")
            stock.field("serial").increment_by(1)
            await meanwhile(db, stock.key, serial=5)


# --- stored values ----------------------------------------------------------------------------------------


@everywhere
async def test_a_missing_attribute_is_incremented_from_its_default(db: Db) -> None:
    key = Stock.key("a")
    await put_raw(db, Stock, {**raw_key(key), "id": {"S": "a"}})
    for _ in range(2):
        async with db.transaction() as tx:
            (await tx.get_one(key)).field("left").increment_by(1)
    assert (await db.get_one(key)).left == 7


@everywhere
async def test_decimals_and_floats_add_up_exactly_in_the_store(db: Db) -> None:
    await arrange(db, Stock(id="a"))
    for _ in range(3):
        async with db.transaction() as tx:
            stock = await tx.get_one(Stock, "a")
            stock.field("weight").increment_by(0.1)
            stock.field("price").increment_by(Decimal("0.05"))
    stock = await db.get_one(Stock, "a")
    assert (stock.weight, stock.price) == (0.8, Decimal("1.25"))


# --- mistakes ---------------------------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize(
    ("name", "amount"),
    [
        ("batch", 1),
        ("id", 1),
        ("name", 1),
        ("extra", 1),
        ("left", "1"),
        ("left", True),
        ("left", None),
        ("left", 0.5),
    ],
    ids=repr,
)
async def test_an_invalid_increment_is_refused_at_once(db: Db, name: str, amount: Any) -> None:
    await arrange(db, Stock(id="a"))
    async with db.transaction() as tx:
        stock = await tx.get_one(Stock, "a")
        with pytest.raises(InvalidFieldError) as caught:
            stock.field(name).increment_by(amount)
        assert caught.value.field == name
    assert db.kinds() == ["GetItem"]


@in_memory
async def test_a_required_number_that_is_not_stored_cannot_be_incremented(db: Db) -> None:
    key = Plain.key("a")
    await put_raw(db, Plain, {**raw_key(key), **encode_item({"id": "a"})})
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError, match=r"Plain\.n: it has no value"):
            (await tx.get_one(key)).field("n").increment_by(1)


@in_memory
async def test_a_frozen_item_cannot_be_incremented_but_a_detached_one_can(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with pytest.raises(FrozenItemError):
        (await db.get_one(Order, "a")).field("quantity").increment_by(1)
    detached = Order(id="b")
    detached.field("quantity").increment_by(1)
    assert detached.quantity == 2


# --- tx.increment -----------------------------------------------------------------------------------------


@everywhere
async def test_a_transaction_increments_several_numbers_without_locking_them(db: Db) -> None:
    await arrange(db, Stock(id="a"))
    async with db.transaction() as tx:
        stock = await tx.get_one(Stock, "a")
        tx.increment(stock, left=-1, weight=0.25)
        await meanwhile(db, stock.key, left=9)
        assert (stock.left, stock.weight) == (4, 0.75)
    stock = await db.get_one(Stock, "a")
    assert (stock.left, stock.weight) == (8, 0.75)


@in_memory
async def test_a_transaction_increments_an_item_that_it_created(db: Db) -> None:
    async with db.transaction() as tx:
        tx.increment(tx.create(Stock, id="a"), left=2)
    assert (await db.get_one(Stock, "a")).left == 7


@in_memory
@pytest.mark.parametrize(
    ("amounts", "error", "why"),
    [
        ({"lef": 1}, InvalidFieldError, "did you mean 'left'"),
        ({"left": 1, "bags": 1}, InvalidFieldError, "the model has no such field"),
        ({"name": 1}, InvalidFieldError, "it is not a number"),
        ({"left": "1"}, InvalidFieldError, "can be incremented only by a number, not by '1'"),
        ({"left": -6}, InvalidFieldError, "left"),
        ({"batch": 1}, InvalidFieldError, "it cannot be changed"),
        ({}, InvalidRequestError, "names no fields"),
    ],
    ids=repr,
)
async def test_an_invalid_increment_by_the_transaction_is_refused_and_changes_nothing(
    db: Db, amounts: dict[str, Any], error: type[Exception], why: str
) -> None:
    await arrange(db, Stock(id="a"))
    async with db.transaction() as tx:
        stock = await tx.get_one(Stock, "a")
        with pytest.raises(error, match=why):
            tx.increment(stock, **amounts)
        assert tx.changes() == []


@in_memory
async def test_only_items_of_this_transaction_can_be_incremented(db: Db) -> None:
    await arrange(db, Stock(id="a"))
    frozen = await db.get_one(Stock, "a")
    async with db.transaction() as tx:
        for item in (frozen, Stock(id="b")):
            with pytest.raises(InvalidRequestError, match="does not belong to this transaction"):
                tx.increment(item, left=1)
        with pytest.raises(InvalidRequestError, match="pass an item"):
            tx.increment(Stock.key("a"), left=1)  # type: ignore[arg-type]
    async with db.transaction(read_only=True) as tx:
        stock = await tx.get_one(Stock, "a")
        with pytest.raises(WriteAttemptedInReadOnlyTxError):
            tx.increment(stock, left=1)

"""Creating items: what is checked at once, what is sent, and what happens if another process creates the item first."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID, uuid4

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import Line, Mark, Order, User, arrange, expect_failure

from holdall import AsyncTransaction
from holdall.core import NotExists, PutItem, TransactWrite, path
from holdall.errors import (
    FrozenItemError,
    InvalidFieldError,
    InvalidRequestError,
    ModelAlreadyExistsError,
    ModelTrackedTwiceError,
)

# --- what is stored and sent ------------------------------------------------------------------------------


@everywhere
async def test_a_created_item_is_read_back_with_its_values(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Order, id="a", product="tea", quantity=3, tags=["hot", "green"])
    order = await db.get_one(Order, "a")
    assert order.to_dict() == {
        "id": "a",
        "product": "tea",
        "quantity": 3,
        "note": None,
        "tags": ["hot", "green"],
    }
    assert not order.is_new


@everywhere
async def test_one_new_item_is_one_stamped_put_on_condition_that_no_item_exists(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Order, id="a")
        assert db.list_sent() == []
    (put,) = db.list_sent()
    assert isinstance(put, PutItem)
    assert put.stamp is not None
    assert put.condition == NotExists(path("pk"))


@everywhere
async def test_an_item_with_only_a_key_can_be_created(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Mark, id="a")
    assert db.kinds() == ["PutItem"]
    assert await db.get(Mark, "a") is not None


@everywhere
async def test_several_new_items_are_one_transact_write(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Order, id="a")
        tx.create(Line, order="a", number=1)
    (write,) = db.list_sent()
    assert isinstance(write, TransactWrite)
    assert [type(action) for action in write.actions] == [PutItem, PutItem]


@everywhere
async def test_an_optional_value_of_none_is_not_stored(db: Db) -> None:
    async with db.transaction() as tx:
        tx.create(Order, id="a", note=None)
    stored = await db.raw(Order.key("a"))
    assert stored is not None
    assert "note" not in stored


# --- if the item already exists ---------------------------------------------------------------------------


@everywhere
async def test_creating_an_existing_item_fails_without_a_retry(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=5))
    attempts = []

    async def create(tx: AsyncTransaction) -> None:
        attempts.append(1)
        tx.create(Order, id="a")

    with pytest.raises(ModelAlreadyExistsError, match=r"Order\(id='a'\) already exists"):
        await db.run(create)
    assert len(attempts) == 1
    assert (await db.get_one(Order, "a")).quantity == 5


@everywhere
async def test_one_existing_item_makes_the_whole_transaction_fail(db: Db) -> None:
    await arrange(db, Order(id="a"))
    with expect_failure(ModelAlreadyExistsError):
        async with db.transaction() as tx:
            tx.create(Order, id="b")
            tx.create(Order, id="a")
    assert await db.get(Order, "b") is None


@everywhere
async def test_after_a_missed_get_a_faster_creator_is_contention(db: Db) -> None:
    seen: list[bool] = []

    async def find_or_create(tx: AsyncTransaction) -> Order:
        found = await tx.get(Order, "a")
        seen.append(found is not None)
        if found is not None:
            return found
        if len(seen) == 1:
            async with db.transaction() as other:
                other.create(Order, id="a", quantity=7)
        return tx.create(Order, id="a")

    order = await db.run(find_or_create)
    assert seen == [False, True]
    assert order.quantity == 7


@everywhere
async def test_create_after_a_missed_get_is_still_one_stamped_put(db: Db) -> None:
    async with db.transaction() as tx:
        assert await tx.get(Order, "a") is None
        tx.create(Order, id="a")
    assert db.kinds() == ["GetItem", "PutItem"]


# --- create_if_missing ------------------------------------------------------------------------------------


@everywhere
async def test_create_if_missing_creates_an_item_once(db: Db) -> None:
    async def count(tx: AsyncTransaction) -> bool:
        order = await tx.get(Order, "a", create_if_missing=True)
        was_new = order.is_new
        order.quantity += 1
        return was_new

    assert await db.run(count) is True
    assert await db.run(count) is False
    assert db.kinds() == ["GetItem", "PutItem", "GetItem", "UpdateItem"]
    assert (await db.get_one(Order, "a")).quantity == 3


@everywhere
async def test_after_create_if_missing_a_faster_creator_is_contention(db: Db) -> None:
    attempts: list[bool] = []

    async def count(tx: AsyncTransaction) -> None:
        order = await tx.get(Order, "a", create_if_missing=True)
        attempts.append(order.is_new)
        if len(attempts) == 1:
            async with db.transaction() as other:
                other.create(Order, id="a", quantity=10)
        order.quantity += 1

    await db.run(count)
    assert attempts == [True, False]
    assert (await db.get_one(Order, "a")).quantity == 11


@in_memory
async def test_create_if_missing_accepts_the_values_of_the_new_item(db: Db) -> None:
    async with db.transaction() as tx:
        order = await tx.get(Order, "a", create_if_missing={"product": "tea", "quantity": 2})
        assert (order.is_new, order.product, order.quantity) == (True, "tea", 2)
    async with db.transaction() as tx:
        order = await tx.get(Order, "a", create_if_missing={"product": "milk"})
        assert (order.is_new, order.product) == (False, "tea")


@in_memory
async def test_create_if_missing_creates_an_item_that_is_not_changed_afterwards(db: Db) -> None:
    async with db.transaction() as tx:
        await tx.get(Mark, "a", create_if_missing=True)
    assert db.kinds() == ["GetItem", "PutItem"]


@in_memory
async def test_required_values_that_create_if_missing_lacks_must_be_assigned(db: Db) -> None:
    ada, bob = str(uuid4()), str(uuid4())
    async with db.transaction() as tx:
        user = await tx.get(User, ada, create_if_missing=True)
        user.name = "Ada"
    assert (await db.get_one(User, ada)).name == "Ada"
    with expect_failure(InvalidFieldError, match=r"User\.name: it is required"):
        async with db.transaction() as tx:
            await tx.get(User, bob, create_if_missing=True)
    assert await db.get(User, bob) is None


# --- what is checked at once ------------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"id": "a", "quantity": "1"}, "quantity"),
        ({"id": "a", "quantity": 1.5}, "quantity"),
        ({"id": "a", "quantity": True}, "quantity"),
        ({"id": "a", "quantity": -1}, "quantity"),
        ({"id": "a", "product": None}, "product"),
        ({"id": "a", "tags": "hot"}, "tags"),
        ({"id": "a", "tags": [1]}, "tags"),
        ({"id": 5}, "id"),
        ({"id": "a", "quantitty": 1}, "quantitty"),
        ({}, "id"),
    ],
    ids=repr,
)
async def test_an_invalid_value_is_refused_at_once(db: Db, values: dict[str, Any], field: str) -> None:
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError) as caught:
            tx.create(Order, **values)
        assert (caught.value.model, caught.value.field) == ("Order", field)
    assert db.list_sent() == []


@in_memory
async def test_the_error_for_a_misspelt_name_suggests_the_nearest_field(db: Db) -> None:
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError, match="did you mean 'quantity'"):
            tx.create(Order, id="a", quantitty=1)  # type: ignore[call-overload]


@in_memory
async def test_the_error_names_a_missing_required_value(db: Db) -> None:
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError, match=r"User\.name: the value is missing"):
            tx.create(User)  # type: ignore[call-overload]


@in_memory
async def test_a_model_without_a_key_gets_a_random_uuid(db: Db) -> None:
    chosen = uuid4()
    async with db.transaction() as tx:
        ada, bob = tx.create(User, name="Ada"), tx.create(User, name="Bob")
        eve = tx.create(User, id=str(chosen), name="Eve")  # type: ignore[call-overload]
        with pytest.raises(InvalidFieldError, match="not a UUID"):
            tx.create(User, id="7", name="Mallory")  # type: ignore[call-overload]
    assert UUID(ada.id) != UUID(bob.id)
    assert eve.id == str(chosen)
    assert (await db.get_one(User, ada.id)).name == "Ada"


# --- instances --------------------------------------------------------------------------------------------


@in_memory
async def test_a_detached_item_can_be_created(db: Db) -> None:
    order = Order(id="a")
    order.quantity = 4
    async with db.transaction() as tx:
        assert tx.create(order) is order
        order.quantity += 1
    assert (await db.get_one(Order, "a")).quantity == 5


@in_memory
async def test_an_item_that_was_read_cannot_be_created(db: Db) -> None:
    await arrange(db, Order(id="a"))
    order = await db.get_one(Order, "a")
    async with db.transaction() as tx:
        with pytest.raises(InvalidRequestError, match="is not a new item"):
            tx.create(order)


@in_memory
async def test_an_item_cannot_be_created_twice_in_a_transaction(db: Db) -> None:
    async with db.transaction() as tx:
        order = tx.create(Order, id="a")
        with pytest.raises(ModelTrackedTwiceError, match="already created"):
            tx.create(Order, id="a")
        assert await tx.get(Order, "a") is order
    assert db.kinds() == ["PutItem"]


@in_memory
async def test_an_item_is_frozen_after_its_transaction(db: Db) -> None:
    async with db.transaction() as tx:
        order = tx.create(Order, id="a")
    with pytest.raises(FrozenItemError, match="has ended"):
        order.quantity = 2
    with pytest.raises(FrozenItemError):
        order.field("quantity").increment_by(1)
    assert order.quantity == 1
    loose = copy.copy(order)
    loose.quantity = 2
    assert (loose.quantity, order.quantity) == (2, 1)


@in_memory
async def test_an_instance_accepts_only_its_fields_as_attributes(db: Db) -> None:
    async with db.transaction() as tx:
        order = tx.create(Order, id="a")
        with pytest.raises(InvalidFieldError, match="the model has no such field"):
            order.colour = "red"  # type: ignore[attr-defined]
        with pytest.raises(InvalidFieldError, match="it is part of the key"):
            order.id = "b"
        with pytest.raises(InvalidFieldError, match="cannot be deleted"):
            del order.note


@in_memory
async def test_a_new_item_is_written_with_the_values_that_it_has_at_commit(db: Db) -> None:
    async with db.transaction() as tx:
        order = tx.create(Order, id="a")
        order.note = "soon"
        order.tags.append("new")
    stored = await db.get_one(Order, "a")
    assert (stored.note, stored.tags) == ("soon", ["new"])


@in_memory
async def test_a_value_made_invalid_in_place_is_refused_at_commit(db: Db) -> None:
    with expect_failure(InvalidFieldError, match=r"Order\.tags"):
        async with db.transaction() as tx:
            order = tx.create(Order, id="a")
            order.tags.append(5)  # type: ignore[arg-type]
    assert db.list_sent() == []

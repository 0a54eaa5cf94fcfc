"""Transactions of one write (``db.create`` and similar), assignments of several fields, and reads by a unique field."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import Order, arrange, expect_contention, expect_failure, meanwhile

from holdall import AsyncTransaction, Key, Model, ModelKey, col, field
from holdall.core import DeleteItem, PutItem, Scan
from holdall.errors import (
    InvalidFieldError,
    InvalidFieldsError,
    InvalidModelUpdateError,
    InvalidOptionsError,
    InvalidRequestError,
    ModelAlreadyExistsError,
    RecordNotFound,
    UniqueViolationError,
)
from holdall.testing import Fault

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Account(Model):
    owner: Key[str]
    email: str | None = field(unique=True, default=None)
    cents: int = 0


# --- one write --------------------------------------------------------------------------------------------


@everywhere
async def test_an_item_is_created_once(db: Db) -> None:
    created = await db.create(Order, id="a", quantity=2)
    assert (created.id, (await db.get_one(Order, "a")).quantity) == ("a", 2)
    with pytest.raises(ModelAlreadyExistsError):
        await db.create(Order(id="a"))


@everywhere
async def test_a_put_replaces_the_whole_item(db: Db) -> None:
    await db.put(Order(id="a", quantity=2, note="gift"))
    await db.put(Order(id="a", quantity=3))
    found = await db.get_one(Order, "a")
    assert (found.quantity, found.note) == (3, None)


class Sealed(Model):
    name: Key[str]
    count: int = 0
    note: str | None = None
    maker: str | None = field(default=None, read_only=True)
    made: datetime = field(now="create")
    version: int = field(default=0, version=True)


@everywhere
async def test_a_put_increments_the_version_of_the_item_that_it_replaces(db: Db) -> None:
    await db.put(Sealed(name="a", count=1, note="x", maker="ada"))
    db.faults.inject(Fault.CONFLICT, into="writes")
    await db.put(Sealed(name="a", count=2, maker="ada"))
    found = await db.get_one(Sealed, "a")
    assert (found.version, found.count, found.note) == (2, 2, None)
    with expect_failure(InvalidModelUpdateError, "maker is read-only"):
        await db.put(Sealed(name="a", count=3, maker="bo"))
    await db.put(Sealed(name="b"))
    values: dict[str, Any] = {"maker": "ada", "made": NOON}  # no maker was stored, so the put can set one
    for _ in range(2):
        await db.put(Sealed(name="b", **values))
    found = await db.get_one(Sealed, "b")
    assert (found.maker, found.made, found.version) == ("ada", NOON, 2)


@everywhere
async def test_a_put_moves_a_unique_value_and_calls_hooks(db: Db) -> None:
    await db.put(Account(owner="ada", email="a@x", cents=5))
    await db.put(Account(owner="ada", email="b@x"))
    await db.put(Account(owner="bo", email="a@x"))  # the first put released the value
    with pytest.raises(UniqueViolationError):
        await db.put(Account(owner="bo", email="b@x"))
    assert (await db.get_one(Account, "ada")).cents == 0
    for count in (1, 2):
        await db.put(Noted(name="a", count=count))
    assert (await db.get_one(Noted, "a")).calls == "u"  # the put replaced "c"


class Noted(Model):
    name: Key[str]
    count: int = 0
    calls: str = ""

    def before_create(self, tx: object) -> None:
        self.calls += "c"

    def before_update(self, tx: object) -> None:
        self.calls += "u"


@in_memory
async def test_a_put_cannot_change_the_model_of_an_item(db: Db) -> None:
    await db.put(Guest(name="ada", badge="7"))
    with expect_failure(InvalidModelUpdateError, "is stored as a Guest, so it cannot become a Party"):
        await db.put(Party(name="ada"))


@everywhere
async def test_an_update_reads_assigns_and_retries_on_contention(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    db.faults.inject(Fault.CONFLICT, into="writes")
    changed = await db.update(Order.key("a"), quantity=7)
    assert (changed.quantity, (await db.get_one(Order, "a")).quantity) == (7, 7)
    with pytest.raises(RecordNotFound):
        await db.update(Order.key("b"), quantity=1)


@everywhere
async def test_updates_puts_and_deletes_without_a_read_can_have_a_condition(db: Db) -> None:
    await arrange(db, Order(id="a", quantity=1))
    enough = col(Order.quantity) >= 3
    db.faults.inject(Fault.CONFLICT, into="writes")
    await db.update(Order.key("a"), col(Order.tags).append("x"), col(Order.quantity).increment_by(1))
    assert "GetItem" not in db.kinds()
    await db.update(Order.key("b"), col(Order.tags).append("y"), create_if_missing={"quantity": 5})
    for refused in (
        db.update(Order.key("a"), col(Order.tags).append("z"), where=enough),
        db.put(Order(id="a"), where=enough),
        db.delete(Order.key("b"), Order.key("a"), where=enough),
    ):
        with expect_failure(InvalidModelUpdateError, "quantity is 2, expected >= 3"):
            await refused
    await db.delete(Order.key("b"), where=enough)
    found = await db.get_one(Order, "a")
    assert (found.quantity, found.tags, await db.get(Order, "b")) == (2, ["x"], None)
    with expect_failure(InvalidOptionsError, "not a key"):
        await db.update(Order, col(Order.tags).append("x"))  # type: ignore[call-overload]


@everywhere
async def test_a_delete_accepts_items_and_keys_and_ignores_missing_ones(db: Db) -> None:
    await arrange(db, Order(id="a"), Order(id="b"), Account(owner="ada", email="a@x"))
    await db.delete(await db.get_one(Order, "a"), Order.key("b"), Order.key("c"), Account.key("ada"))
    assert [await db.get(Order, id) for id in ("a", "b")] == [None, None]
    await db.create(Account, owner="bo", email="a@x")  # the deletion released the value


@in_memory
async def test_other_values_than_items_models_and_keys_are_refused(db: Db) -> None:
    with pytest.raises(InvalidOptionsError, match="neither an item nor a key"):
        await db.delete("a")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionsError, match="not an item"):
        await db.put({"id": "a"})  # type: ignore[type-var]
    with pytest.raises(InvalidOptionsError, match="neither a model nor a key"):
        await db.create("Order", id="a")  # type: ignore[call-overload]


class Party(Model):
    name: Key[str]


class Guest(Party):
    badge: str = field(unique=True)


async def delete_blindly(tx: AsyncTransaction, key: ModelKey[Party]) -> None:
    tx.delete(key)


@everywhere
async def test_a_delete_with_the_key_of_a_base_model_releases_the_unique_value_of_a_derived_item(
    db: Db,
) -> None:
    await arrange(db, Guest(name="ada", badge="7"))
    with pytest.raises(InvalidRequestError, match="or a derived model has a unique field"):
        await db.run(delete_blindly, Party.key("ada"))
    await db.delete(Party.key("ada"))
    await db.create(Guest, name="bo", badge="7")


# --- several fields at once -------------------------------------------------------------------------------


def test_assign_changes_all_fields_or_none_and_reports_every_error() -> None:
    order = Order(id="a")
    order.assign({"quantity": 4, "note": "gift"})
    assert (order.quantity, order.note) == (4, "gift")
    with pytest.raises(InvalidFieldsError) as caught:
        order.assign({"quantity": -1, "note": "x", "id": "b", "nite": 1})
    assert [error.field for error in caught.value.errors] == ["quantity", "id", "nite"]
    assert "hint: nite: did you mean 'note'?" in str(caught.value)
    assert (order.quantity, order.note) == (4, "gift")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(InvalidFieldError) as alone:
        order.assign({"quantity": -1})
    assert alone.value.field == "quantity"


# --- reads by a unique field ------------------------------------------------------------------------------


@everywhere
async def test_an_item_is_found_by_a_unique_field(db: Db) -> None:
    await arrange(db, Account(owner="ada", email="a@x"), Account(owner="bo"))
    found = await db.get_by(Account, email="a@x")
    assert found is not None
    assert found.owner == "ada"
    assert len(db.recorder.requests) == 2
    await db.update(Account.key("ada"), email="z@x")
    assert await db.get_by(Account, email="a@x") is None
    async with db.transaction() as tx:
        moved = await tx.get_by(Account, email="z@x")
        assert moved is not None
        moved.cents += 1
    assert (await db.get_one(Account, "ada")).cents == 1


@everywhere
async def test_get_by_locks_the_field(db: Db) -> None:
    await arrange(db, Account(owner="ada", email="a@x"))
    with expect_contention():
        async with db.transaction() as tx:
            assert await tx.get_by(Account, email="a@x") is not None
            await meanwhile(db, Account.key("ada"), email="b@x")
            tx.create(Order, id="for a@x")
    assert await db.get(Order, "for a@x") is None


@everywhere
async def test_a_value_that_get_by_did_not_find_cannot_be_taken_twice(db: Db) -> None:
    await arrange(db, Account(owner="ada"))
    with expect_failure(UniqueViolationError):
        async with db.transaction() as tx:
            assert await tx.get_by(Account, email="a@x") is None
            await meanwhile(db, Account.key("ada"), email="a@x")
            tx.create(Account, owner="bo", email="a@x")


@everywhere
async def test_get_by_sees_the_changes_of_its_transaction(db: Db) -> None:
    await arrange(db, Account(owner="ada", email="a@x"))
    async with db.transaction() as tx:
        (await tx.get_one(Account, "ada")).email = "b@x"
        assert await tx.get_by(Account, email="a@x") is None


@everywhere
async def test_get_by_does_not_find_items_that_another_program_changed_or_deleted_without_the_guard(
    db: Db,
) -> None:
    await arrange(db, Account(owner="ada", email="a@x"), Account(owner="bo", email="b@x"))
    stored = dict(await db.raw(Account.key("ada")) or {})
    await db.send(PutItem(db.table_of(Account), {**stored, "email": {"S": "z@x"}}))
    await db.send(DeleteItem(db.table_of(Account), {"pk": {"S": "Account#bo"}, "sk": {"S": "#"}}))
    for email in ("a@x", "b@x"):
        assert await db.get_by(Account, email=email) is None
        async with db.transaction() as tx:
            assert await tx.get_by(Account, email=email) is None


@in_memory
async def test_get_by_follows_a_value_that_moves_to_another_item_during_the_read(db: Db) -> None:
    table = db.table_of(Account)

    async def move(source: str, target: str) -> Any:
        async with db.transaction() as tx:
            giver, taker = await tx.get_one(Account, source), await tx.get_one(Account, target)
            giver.email, taker.email = None, "a@x"
        return (await db.send(Scan(table))).items

    await arrange(db, Account(owner="ada", email="a@x"), Account(owner="bo"))
    moved = await move("ada", "bo")
    await move("bo", "ada")
    for is_in_transaction in (False, True):
        waiting: list[Any] = [None, [PutItem(table, item) for item in moved]]

        def before(request: object, waiting: list[Any] = waiting) -> None:
            # between the reads of the guard and the item
            for put in (waiting.pop(0) or ()) if waiting else ():
                db.recorder.inner.send_blocking(put)

        async with db.transaction() as tx:
            db.recorder.before = before
            found = await (tx if is_in_transaction else db).get_by(Account, email="a@x")
            assert found is not None
            assert found.owner == "bo"
        await move("bo", "ada")


@in_memory
async def test_get_by_needs_exactly_one_valid_unique_field(db: Db) -> None:
    for values, problem in (
        ({}, "one unique field"),
        ({"cents": 1}, "a unique field, and this is not one"),
        ({"mail": "a"}, "no such field"),
        ({"email": None}, "None is not unique"),
        ({"email": 3}, "valid string"),
    ):
        with pytest.raises(ValueError, match=problem):
            await db.get_by(Account, **values)

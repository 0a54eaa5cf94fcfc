"""Changing items: when a value is checked, what is written, and what stays untouched."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import pytest
from annotated_types import MaxLen
from pydantic import BaseModel
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import Order, arrange, expect_failure, put_raw

from holdall import Key, Model, field
from holdall.core import UpdateItem, encode_item, path
from holdall.core.stamp import STAMP
from holdall.errors import InvalidFieldError


class Address(BaseModel):
    street: str
    lines: list[str] = []


class Person(Model):
    id: Key[str]
    name: Annotated[str, MaxLen(10)]
    address: Address
    scores: dict[str, list[int]] = field(default_factory=dict)
    born: int | None = field(default=None, read_only=True)
    badges: list[str] = field(default_factory=list, read_only=True)


def new_person(**values: Any) -> Person:
    return Person(**{"id": "a", "name": "Ada", "address": {"street": "Main"}, **values})


# --- what is written --------------------------------------------------------------------------------------


@everywhere
async def test_only_what_changed_is_written(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.quantity = 2
    update = db.list_sent()[-1]
    assert isinstance(update, UpdateItem)
    assert [action.path for action in update.update.actions] == [path("quantity"), path(STAMP)]
    assert update.stamp is not None
    assert (await db.get_one(Order, "a")).quantity == 2


@everywhere
async def test_an_unchanged_item_is_not_written(db: Db) -> None:
    await arrange(db, Order(id="a", note="x", tags=["y"]))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        assert order.tags == ["y"]
        order.quantity = 1
        order.note = "z"
        order.note = "x"
        order.tags = ["y"]
        order.tags.append("w")
        order.tags.pop()
    assert db.kinds() == ["GetItem"]


@everywhere
async def test_none_removes_an_optional_attribute(db: Db) -> None:
    await arrange(db, Order(id="a", note="soon"))
    async with db.transaction() as tx:
        (await tx.get_one(Order, "a")).note = None
    stored = await db.raw(Order.key("a"))
    assert stored is not None
    assert "note" not in stored
    assert (await db.get_one(Order, "a")).note is None


@in_memory
async def test_assigning_none_to_an_absent_value_sends_nothing(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        order.note = None
    assert db.kinds() == ["GetItem"]


@everywhere
async def test_a_change_deep_inside_a_value_is_written(db: Db) -> None:
    await arrange(db, new_person(scores={"go": [1]}))
    async with db.transaction() as tx:
        ada = await tx.get_one(Person, "a")
        ada.scores["go"].append(2)
        ada.address.lines.append("c/o Bob")
    assert db.kinds() == ["GetItem", "UpdateItem"]
    ada = await db.get_one(Person, "a")
    assert ada.scores == {"go": [1, 2]}
    assert ada.address == Address(street="Main", lines=["c/o Bob"])


@everywhere
async def test_attributes_that_the_model_does_not_know_are_kept(db: Db) -> None:
    key = Order.key("a")
    await put_raw(db, Order, {**raw_key(key), **encode_item({"id": "a", "product": "tea", "mood": "good"})})
    async with db.transaction() as tx:
        order = await tx.get_one(key)
        order.product = "milk"
    stored = await db.raw(key)
    assert stored is not None
    assert (stored["mood"], stored["product"]) == ({"S": "good"}, {"S": "milk"})


@everywhere
async def test_attributes_can_have_reserved_words_and_odd_names(db: Db) -> None:
    class Odd(Model):
        id: Key[str]
        status: int = 0
        size: int = field(default=0, name="value-of:it")
        table: str = "t"

    await arrange(db, Odd(id="a"))
    async with db.transaction() as tx:
        odd = await tx.get_one(Odd, "a")
        odd.status, odd.size, odd.table = odd.status + 1, 2, "u"
    stored = await db.raw(Odd.key("a"))
    assert stored is not None
    assert (stored["status"], stored["value-of:it"], stored["table"]) == ({"N": "1"}, {"N": "2"}, {"S": "u"})


# --- when a value is checked ------------------------------------------------------------------------------


@in_memory
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", 5),
        ("name", None),
        ("name", "a name that is too long"),
        ("address", {}),
        ("address", {"street": 5}),
        ("address", {"street": "x", "lines": [1]}),
        ("scores", {"go": ["1"]}),
        ("scores", [1]),
    ],
    ids=repr,
)
async def test_an_invalid_value_changes_nothing(db: Db, name: str, value: Any) -> None:
    await arrange(db, new_person(scores={"go": [1]}))
    async with db.transaction() as tx:
        ada = await tx.get_one(Person, "a")
        with pytest.raises(InvalidFieldError) as caught:
            setattr(ada, name, value)
        assert caught.value.field == name
        assert not ada.field(name).accessed
        assert ada.to_dict() == new_person(scores={"go": [1]}).to_dict()
    assert db.kinds() == ["GetItem"]


@in_memory
async def test_a_refused_value_keeps_the_one_assigned_before(db: Db) -> None:
    await arrange(db, new_person())
    async with db.transaction() as tx:
        ada = await tx.get_one(Person, "a")
        ada.name = "Eve"
        with pytest.raises(InvalidFieldError):
            ada.name = 7  # type: ignore[assignment]
    assert (await db.get_one(Person, "a")).name == "Eve"


@in_memory
async def test_a_value_made_invalid_in_place_is_refused_at_commit_or_by_validate(db: Db) -> None:
    await arrange(db, new_person())
    with expect_failure(InvalidFieldError, r"Person\.address: lines"):
        async with db.transaction() as tx:
            ada = await tx.get_one(Person, "a")
            ada.field("address").validate()
            ada.address.lines.append(5)  # type: ignore[arg-type]
            with pytest.raises(InvalidFieldError):
                ada.field("address").validate()
            ada.name = "Eve"
    assert (await db.get_one(Person, "a")).name == "Ada"


@in_memory
async def test_a_read_only_field_is_set_at_creation_and_never_again(db: Db) -> None:
    await arrange(db, new_person(born=1815))
    async with db.transaction() as tx:
        ada = await tx.get_one(Person, "a")
        for value in (1816, 1815, None):
            with pytest.raises(InvalidFieldError, match="it is read-only"):
                ada.born = value
        new = tx.create(new_person(id="b"))
        with pytest.raises(InvalidFieldError, match="it is read-only"):
            new.born = 1816
    assert (await db.get_one(Person, "a")).born == 1815


@in_memory
async def test_a_read_only_list_cannot_be_changed_in_place_either(db: Db) -> None:
    await arrange(db, new_person(badges=["first"]))
    with expect_failure(InvalidFieldError, r"Person\.badges: it is read-only, but was changed in place"):
        async with db.transaction() as tx:
            ada = await tx.get_one(Person, "a")
            ada.badges.append("second")
    assert (await db.get_one(Person, "a")).badges == ["first"]
    assert "UpdateItem" not in db.kinds()


class Route(Model):
    stops: Key[list[str]]
    options: Key[dict[str, Any]]
    note: str | None = None


class OwnRoute(Model, table="Route"):
    stops: Key[list[str]]
    options: Key[dict[str, Any]]
    note: str | None = None


@everywhere
@pytest.mark.parametrize("route", [Route, OwnRoute], ids=["one table", "own table"])
async def test_a_list_or_map_in_a_key_cannot_be_changed_in_place(db: Db, route: type[Any]) -> None:
    options: dict[str, Any] = {"via": ["Linz"]}
    with expect_failure(InvalidFieldError, r"Route\.stops: it is part of the key, but was changed in place"):
        async with db.transaction() as tx:
            tx.create(route, stops=["Wien"], options=options).stops.append("Graz")
    with expect_failure(InvalidFieldError, r"Route\.options: it is part of the key"):
        async with db.transaction() as tx:
            tx.create(route, stops=["Wien"], options=options)
            options["via"].append("Graz")
    assert db.list_sent() == []
    await arrange(db, route(stops=["Wien"], options={}))
    with expect_failure(InvalidFieldError, r"Route\.stops: it is part of the key"):
        async with db.transaction() as tx:
            (row,) = await tx.query(route, stops=["Wien"], options={}).all()
            row.stops.append("Graz")
            row.note = "x"
    assert (await db.get_one(route, stops=["Wien"], options={})).stops == ["Wien"]


@in_memory
async def test_keys_cannot_be_changed(db: Db) -> None:
    await arrange(db, Order(id="a"))
    async with db.transaction() as tx:
        order = await tx.get_one(Order, "a")
        for value in ("b", "a", None):
            with pytest.raises(InvalidFieldError, match="part of the key"):
                order.id = value  # type: ignore[assignment]


# --- old and foreign items --------------------------------------------------------------------------------


@everywhere
async def test_an_invalid_stored_value_fails_only_when_it_is_read(db: Db) -> None:
    key = Order.key("a")
    bad = {**raw_key(key), **encode_item({"id": "a", "product": 5, "quantity": 3})}
    await put_raw(db, Order, bad)
    async with db.transaction() as tx:
        order = await tx.get_one(key)
        order.quantity += 1
        with pytest.raises(InvalidFieldError, match=r"Order\.product: the stored value") as caught:
            order.product  # noqa: B018
        assert caught.value.stored == {"N": "5"}
        assert "<unreadable>" in repr(order)
    stored = await db.raw(key)
    assert stored is not None
    assert (stored["quantity"], stored["product"]) == ({"N": "4"}, {"N": "5"})
    async with db.transaction() as tx:
        (await tx.get_one(key)).product = "tea"
    assert (await db.get_one(key)).product == "tea"


@in_memory
async def test_a_missing_required_value_fails_when_it_is_read_and_can_be_assigned(
    db: Db,
) -> None:
    key = Person.key("a")
    await put_raw(db, Person, {**raw_key(key), "id": {"S": "a"}})
    async with db.transaction() as tx:
        ada = await tx.get_one(key)
        with pytest.raises(InvalidFieldError, match=r"Person\.name: it has no value"):
            ada.name  # noqa: B018
        ada.name = "Ada"
    assert (await db.get_one(key)).name == "Ada"


@everywhere
async def test_a_stored_null_is_none_and_assigning_none_removes_it(db: Db) -> None:
    key = Order.key("a")
    await put_raw(db, Order, {**raw_key(key), **encode_item({"id": "a", "product": "tea", "note": None})})
    async with db.transaction() as tx:
        order = await tx.get_one(key)
        assert order.note is None
        order.product = "milk"
    async with db.transaction() as tx:
        order = await tx.get_one(key)
        order.note = None
    stored = await db.raw(key)
    assert stored is not None
    assert "note" not in stored


@everywhere
async def test_numbers_are_kept_exactly(db: Db) -> None:
    class Amount(Model):
        id: Key[str]
        whole: int
        exact: Decimal
        real: float

    big, small = 10**37 + 1, Decimal("0.1234567890123456789012345678901234567")
    await arrange(db, Amount(id="a", whole=big, exact=small, real=0.1))
    async with db.transaction() as tx:
        amount = await tx.get_one(Amount, "a")
        assert (amount.whole, amount.exact, amount.real) == (big, small, 0.1)
        amount.real = 1e-7
    assert (await db.get_one(Amount, "a")).real == 1e-7

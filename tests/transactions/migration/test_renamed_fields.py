"""Renamed fields: an old item is read under the new names, and the next write stores it under them."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from annotated_types import Ge
from migration_rig import (
    Db,
    arrange,
    everywhere,
    expect_contention,
    expect_failure,
    fetch_item,
    in_memory,
    meanwhile,
    put_raw,
    raw_key,
    scan_model,
    update_raw,
    version,
)

from holdall import Key, Model, SortKey, col, field
from holdall.core import encode_item
from holdall.errors import InvalidFieldError, InvalidModelUpdateError, ModelDefinitionError


@version
class OldParcel(Model, name="Parcel"):
    street: Key[str]
    number: SortKey[int]
    qty: Annotated[int, Ge(0)] = 0
    weight: float | None = None
    labels: list[str] = field(default_factory=list)
    note: str | None = None


@version
class Parcel(Model, name="Parcel"):
    street: Key[str]
    number: SortKey[int]
    quantity: Annotated[int, Ge(0)] = field(aliases=["qty"])
    kilos: float | None = field(default=None, aliases=["weight", "mass"])
    tags: list[str] = field(default_factory=list, aliases=["labels"])
    note: str | None = None
    insured: bool = False
    views: int = 0


@version
class OldOwn(Model, name="Own", table="Own"):
    id: Key[str]
    qty: int = 0
    weight: float | None = None


@version
class Own(Model, name="Own", table="Own"):
    id: Key[str]
    quantity: int = field(default=0, aliases=["qty"])
    kilos: float | None = field(default=None, aliases=["weight"])
    insured: bool = False


KEY = Parcel.key(street="main", number=1)
OLD_KEY = OldParcel.key(street="main", number=1)


async def arrange_old(db: Db, **values: Any) -> None:
    await arrange(db, OldParcel(street="main", number=1, **{"qty": 3, "weight": 1.5, **values}))


# --- reading ----------------------------------------------------------------------------------------------


@everywhere
async def test_every_kind_of_read_finds_old_values_under_the_new_names(db: Db) -> None:
    await arrange_old(db, labels=["fragile"])
    rows = [
        await db.get(KEY),
        await db.get_one(KEY, consistent=False),
        *await db.get_all([KEY]),
        *await db.get_all([KEY], consistent=False),
        *await db.query(Parcel, street="main").all(),
        *await scan_model(db, Parcel),
    ]
    async with db.transaction() as tx:
        rows += [row async for row in tx.query(Parcel, street="main")]
        rows.append(await tx.get(KEY))
    values = {(row.quantity, row.kilos, tuple(row.tags), row.insured) for row in rows if row is not None}
    assert len(rows) == 8
    assert values == {(3, 1.5, ("fragile",), False)}


@everywhere
async def test_a_projection_finds_old_values_too(db: Db) -> None:
    await arrange_old(db)
    (row,) = await db.query(Parcel, street="main", only=["quantity", "kilos"]).all()
    assert (row.quantity, row.kilos) == (3, 1.5)
    (row,) = await scan_model(db, Parcel, only=["quantity"])
    assert row.quantity == 3
    with pytest.raises(InvalidFieldError, match="not fetched"):
        row.kilos  # noqa: B018


@in_memory
async def test_reading_writes_nothing(db: Db) -> None:
    await arrange_old(db)
    before = await db.raw(KEY)
    async with db.transaction() as tx:
        parcel = await tx.get_one(KEY)
        assert (parcel.quantity, parcel.is_new) == (3, False)
        assert tx.changes() == []
    assert db.kinds() == ["GetItem"]
    assert await db.raw(KEY) == before


@in_memory
async def test_if_several_names_are_stored_the_new_name_wins_and_then_the_first_alias(db: Db) -> None:
    names = {"street": "main", "number": 1, "qty": 1, "quantity": 2, "mass": 7, "weight": 8}
    await put_raw(db, Parcel, {**raw_key(KEY), **encode_item(names)})
    parcel = await db.get_one(KEY)
    assert (parcel.quantity, parcel.kilos) == (2, 8.0)
    await meanwhile(db, KEY, note="x")
    assert await fetch_item(db, KEY) == {
        **raw_key(KEY),
        "_type": {"S": "Parcel"},
        **encode_item({"street": "main", "number": 1, "quantity": 2, "kilos": 8, "note": "x"}),
    }


@in_memory
async def test_a_condition_of_a_query_sees_only_the_new_name(db: Db) -> None:
    """The store evaluates it and does not know the aliases: run the bulk migration first."""
    await arrange_old(db)
    query = db.query(Parcel, street="main", where=col(Parcel.quantity) == 3)
    assert await query.all() == []
    await db.migrate(Parcel)
    assert [row.quantity for row in await query.all()] == [3]


@in_memory
async def test_tx_changes_uses_the_new_names(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).quantity = 4
        (change,) = tx.changes()
    assert change.before is not None
    assert change.after is not None
    assert (change.before["quantity"], change.after["quantity"]) == (3, 4)
    assert "qty" not in {**change.before, **change.after}


# --- writing ----------------------------------------------------------------------------------------------


@everywhere
async def test_a_write_moves_all_values_to_their_new_names(db: Db) -> None:
    await arrange_old(db, labels=["fragile"])
    await meanwhile(db, KEY, note="left at the door")
    assert await fetch_item(db, KEY) == {
        **raw_key(KEY),
        "_type": {"S": "Parcel"},
        **encode_item({"street": "main", "number": 1, "quantity": 3, "kilos": 1.5}),
        **encode_item({"tags": ["fragile"], "note": "left at the door"}),
    }


@everywhere
async def test_renamed_fields_in_a_table_of_their_own_move_too(db: Db) -> None:
    await arrange(db, OldOwn(id="a", qty=3, weight=1.5), OldOwn(id="b", qty=4))
    assert [(own.quantity, own.kilos) for own in await scan_model(db, Own)] == [(3, 1.5), (4, None)]
    await meanwhile(db, Own.key("a"), quantity=5)
    assert await fetch_item(db, Own.key("a")) == encode_item({"_id": "a", "quantity": 5, "kilos": 1.5})
    assert await fetch_item(db, Own.key("b")) == encode_item({"_id": "b", "qty": 4})


@in_memory
async def test_unknown_attributes_and_untouched_values_stay_exactly_as_stored(db: Db) -> None:
    odd = {"weight": {"N": "1.50000000000000000000000000000000001"}, "colour": {"S": "red"}}
    await put_raw(
        db, Parcel, {**raw_key(KEY), **encode_item({"street": "main", "number": 1, "qty": 1}), **odd}
    )
    await meanwhile(db, KEY, quantity=2)
    found = await fetch_item(db, KEY)
    assert (found["kilos"], found["colour"]) == (odd["weight"], odd["colour"])


@in_memory
async def test_a_write_of_an_old_item_does_not_store_defaults(db: Db) -> None:
    await arrange_old(db)
    await meanwhile(db, KEY, quantity=4)
    found = await fetch_item(db, KEY)
    assert found["quantity"] == {"N": "4"}
    assert {"insured", "views"}.isdisjoint(found)


@in_memory
async def test_an_invalid_stored_value_does_not_prevent_writes_of_other_fields(db: Db) -> None:
    await arrange_old(db)
    await db.send(update_raw(db, KEY, insured={"S": "by Lloyd's"}))
    await meanwhile(db, KEY, quantity=4)
    found = await fetch_item(db, KEY)
    assert (found["quantity"], found["insured"]) == ({"N": "4"}, {"S": "by Lloyd's"})
    await meanwhile(db, KEY, insured=True)
    assert (await db.get_one(KEY)).insured


@in_memory
async def test_a_list_that_is_changed_in_place_is_stored_under_the_new_name(db: Db) -> None:
    await arrange_old(db, labels=["fragile"])
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).tags.append("heavy")
    found = await fetch_item(db, KEY)
    assert found["tags"] == {"L": [{"S": "fragile"}, {"S": "heavy"}]}
    assert "labels" not in found


@in_memory
async def test_removing_a_value_removes_it_under_both_names(db: Db) -> None:
    await arrange_old(db)
    await meanwhile(db, KEY, kilos=None)
    assert {"weight", "kilos"}.isdisjoint(await fetch_item(db, KEY))


@everywhere
async def test_an_increment_adds_to_the_old_value(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).field("quantity").increment_by(-2)
    found = await fetch_item(db, KEY)
    assert found["quantity"] == {"N": "1"}
    assert "qty" not in found
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).field("quantity").increment_by(4)
    assert (await db.get_one(KEY)).quantity == 5


@in_memory
async def test_an_increment_below_the_bound_is_refused_on_an_old_item_too(db: Db) -> None:
    await arrange_old(db)
    with expect_failure(InvalidFieldError, "quantity"):
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).field("quantity").increment_by(-4)
    assert (await fetch_item(db, KEY))["qty"] == {"N": "3"}


@everywhere
async def test_an_old_item_can_be_deleted(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        tx.delete(await tx.get_one(KEY))
    assert await db.raw(KEY) is None


@everywhere
async def test_several_old_items_move_in_one_transaction(db: Db) -> None:
    await arrange(db, *(OldParcel(street="main", number=n, qty=n) for n in range(3)))
    async with db.transaction() as tx:
        for row in [row async for row in tx.query(Parcel, street="main")]:
            if row.number:
                row.quantity += 10
    found = [await fetch_item(db, Parcel.key(street="main", number=n)) for n in range(3)]
    assert [("qty" in item, item.get("quantity")) for item in found] == [
        (True, None),
        (False, {"N": "11"}),
        (False, {"N": "12"}),
    ]


# --- locks and contention ---------------------------------------------------------------------------------


@everywhere
async def test_a_change_by_another_program_under_an_old_name_is_contention(db: Db) -> None:
    await arrange_old(db)
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).quantity += 1
            await meanwhile(db, OLD_KEY, qty=9)
    found = await fetch_item(db, KEY)
    assert found["qty"] == {"N": "9"}
    assert "quantity" not in found


@everywhere
async def test_a_field_that_another_program_adds_meanwhile_is_contention(db: Db) -> None:
    """The field was not stored, and this transaction never read it."""
    await arrange_old(db)
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(KEY)).quantity += 1
            await db.send(update_raw(db, KEY, views={"N": "5"}))
    assert (await db.get_one(KEY)).views == 5
    await meanwhile(db, KEY, quantity=4)
    assert (await db.get_one(KEY)).views == 5


@everywhere
async def test_an_unknown_attribute_that_another_program_adds_meanwhile_is_kept(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        (await tx.get_one(KEY)).quantity += 1
        await db.send(update_raw(db, KEY, colour={"S": "red"}))
    found = await fetch_item(db, KEY)
    assert (found["quantity"], found["colour"]) == ({"N": "4"}, {"S": "red"})


@everywhere
@pytest.mark.parametrize("use", ["read", "written", "incremented"])
async def test_a_field_that_appears_under_an_old_name_meanwhile_is_contention(db: Db, use: str) -> None:
    assert await db.get(Own, "a") is None  # the first use creates the table
    await put_raw(db, Own, encode_item({"_id": "a", "insured": False}))
    with expect_contention():
        async with db.transaction() as tx:
            own = await tx.get_one(Own, "a")
            if use == "read":
                own.insured = own.quantity == 0
                own.insured = True
            elif use == "written":
                own.quantity = 1
            else:
                own.field("quantity").increment_by(1)
            await db.send(update_raw(db, Own.key("a"), qty={"N": "5"}))
    assert (await db.get_one(Own, "a")).quantity == 5


@in_memory
async def test_an_old_item_that_was_only_read_is_locked_under_its_stored_names(db: Db) -> None:
    await arrange(db, OldParcel(street="main", number=1, qty=3), OldParcel(street="main", number=2))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(Parcel, street="main", number=2)).quantity = (await tx.get_one(KEY)).quantity
            await meanwhile(db, OLD_KEY, qty=9)
    async with db.transaction() as tx:
        (await tx.get_one(Parcel, street="main", number=2)).quantity = (await tx.get_one(KEY)).quantity
    assert (await db.get_one(Parcel, street="main", number=2)).quantity == 9
    assert (await fetch_item(db, KEY))["qty"] == {"N": "9"}


@in_memory
async def test_rows_whose_fields_were_not_read_are_not_locked(db: Db) -> None:
    await arrange(db, *(OldParcel(street="main", number=n) for n in range(3)))
    async with db.transaction() as tx:
        rows = [row async for row in tx.query(Parcel, street="main")]
        rows[0].quantity = 1
        await meanwhile(db, OLD_KEY, qty=9)
    assert [row.quantity for row in await db.query(Parcel, street="main").all()] == [1, 9, 0]


@in_memory
async def test_a_read_only_transaction_detects_a_change_under_an_old_name(db: Db) -> None:
    await arrange(db, OldParcel(street="main", number=1), OldParcel(street="main", number=2))
    with expect_contention():
        async with db.transaction(read_only=True) as tx:
            assert (await tx.get_one(KEY)).quantity == 0
            await meanwhile(db, OLD_KEY, qty=9)
            assert (await tx.get_one(Parcel, street="main", number=2)).quantity == 0


@in_memory
async def test_a_retry_after_contention_uses_the_new_stored_value(db: Db) -> None:
    await arrange_old(db)
    disturbed = iter([True, False])

    async def body(tx: Any) -> int:
        parcel = await tx.get_one(KEY)
        parcel.quantity += 1
        if next(disturbed):
            await meanwhile(db, OLD_KEY, qty=9)
        return int(parcel.quantity)

    assert await db.run(body) == 10


# --- blind writes -----------------------------------------------------------------------------------------


@everywhere
async def test_a_blind_update_of_a_value_stored_under_an_old_name_is_refused(db: Db) -> None:
    await arrange_old(db)
    for expected in (1.5, None):
        with expect_failure(InvalidModelUpdateError):
            async with db.transaction() as tx:
                tx.update(Parcel, {"street": "main", "number": 1, "kilos": expected}, {"kilos": 2.5})
    assert (await db.get_one(KEY)).kilos == 1.5
    for update in (col(Parcel.kilos).set(2.5), col(Parcel.kilos).increment_by(1)):
        with expect_failure(InvalidModelUpdateError):
            async with db.transaction() as tx:
                tx.update(KEY, update)
    with expect_failure(InvalidModelUpdateError):
        async with db.transaction() as tx:
            tx.update(KEY, col(Parcel.note).set("x"), where=col(Parcel.kilos).absent())
    await db.migrate(Parcel)
    async with db.transaction() as tx:
        tx.update(Parcel, {"street": "main", "number": 1, "kilos": 1.5}, {"kilos": 2.5})
    assert (await db.get_one(KEY)).kilos == 2.5


@in_memory
async def test_a_blind_update_of_other_fields_keeps_old_names(db: Db) -> None:
    await arrange_old(db)
    async with db.transaction() as tx:
        tx.update(Parcel, {"street": "main", "number": 1, "note": None}, {"note": "x"})
    parcel = await db.get_one(KEY)
    assert (parcel.note, parcel.quantity) == ("x", 3)


@everywhere
async def test_create_or_put_checks_both_names_and_removes_old_ones(db: Db) -> None:
    await arrange_old(db)
    new = {"street": "main", "number": 1, "quantity": 1}
    with expect_contention():
        async with db.transaction() as tx:
            tx.create_or_put(Parcel, {"kilos": None}, new)
    assert (await db.get_one(KEY)).quantity == 3
    async with db.transaction() as tx:
        tx.create_or_put(Parcel, {}, new)
    found = await fetch_item(db, KEY)
    assert found["quantity"] == {"N": "1"}
    assert {"qty", "weight", "kilos"}.isdisjoint(found)


# --- declarations -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"aliases": "qty"}, "aliases must be a list of names"),
        ({"aliases": ["note"]}, "'note' begins with an underscore, or is the name of another field"),
        ({"aliases": ["former"]}, "'former' begins with an underscore, or is the name of another field"),
        ({"aliases": ["_v"]}, "'_v' begins with an underscore, or is the name of another field"),
        ({"aliases": ["mail"], "unique": True}, "a unique field cannot be renamed"),
    ],
)
def test_an_invalid_alias_is_refused_when_the_class_is_defined(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ModelDefinitionError, match=problem):

        class Wrong(Model):
            id: Key[str]
            note: str = field(default="", aliases=["former"])
            other: str = field(default="", **options)  # type: ignore[misc]


def test_a_part_of_a_key_cannot_be_renamed() -> None:
    with pytest.raises(ModelDefinitionError, match="part of a key cannot be renamed"):

        class Wrong(Model):
            id: Key[str] = field(aliases=["key"])


@version
class Base(Model, name="Base"):
    id: Key[str]
    kind: SortKey[str] = field(default="plain")
    size: int = field(default=0, aliases=["length"])


class Derived(Base):
    kind = "special"
    colour: str = field(default="red", aliases=["color"])


@in_memory
async def test_a_derived_model_has_its_own_aliases_and_those_of_its_base(db: Db) -> None:
    key = Derived.key("a")
    item = {**raw_key(key), **encode_item({"id": "a", "kind": "special", "length": 3, "color": "blue"})}
    await put_raw(db, Derived, item)
    for found in (await db.get_one(Derived, "a"), *await db.query(Base, id="a").all()):
        assert isinstance(found, Derived)
        assert (found.size, found.colour) == (3, "blue")
    await meanwhile(db, key, colour="green")
    assert (await fetch_item(db, Derived.key("a")))["size"] == {"N": "3"}

"""Overlapping models: classes that share a key space, in the shared table and in their own table."""

from __future__ import annotations

from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory
from rig.behaviour_models import arrange, expect_failure

from holdall import Key, Model, SortKey, field
from holdall.errors import ModelDefinitionError, ModelMismatchError, ModelTrackedTwiceError


class Inventory(Model):
    user: Key[str]
    kind: SortKey[str] = field(default="anything")
    items: dict[str, int] = field(default_factory=dict)


class Currency(Inventory):
    kind = field(default="money")


class Weapon(Inventory):
    kind = field(default="weapon")
    skill: int = 0


class OwnInventory(Model, table="Inventory"):
    user: Key[str] = field(name="userID")
    kind: SortKey[str] = field(default="anything", name="typeKey")
    items: dict[str, int] = field(default_factory=dict)


class OwnCurrency(OwnInventory):
    kind = field(default="money")


class OwnWeapon(OwnInventory):
    kind = field(default="weapon")
    skill: int = 0


class OwnStranger(Model, table="Inventory"):
    """In the same table, without a common base."""

    user: Key[str] = field(name="userID")
    kind: SortKey[str] = field(default="stranger", name="typeKey")
    n: int = 0


Family = tuple[type[Any], type[Any], type[Any]]
both_layouts = pytest.mark.parametrize(
    "family",
    [(Inventory, Currency, Weapon), (OwnInventory, OwnCurrency, OwnWeapon)],
    ids=["shared table", "own table"],
)


@everywhere
@both_layouts
async def test_a_query_for_the_base_returns_each_item_as_its_own_class(db: Db, family: Family) -> None:
    base, currency, weapon = family
    await arrange(db, base(user="a"), currency(user="a", items={"usd": 5}), weapon(user="a", skill=3))
    rows = await db.query(base, user="a").all()
    assert [type(row) for row in rows] == [base, currency, weapon]
    assert (rows[1].items, rows[2].skill) == ({"usd": 5}, 3)


@everywhere
@both_layouts
async def test_each_class_finds_its_own_item_by_its_default(db: Db, family: Family) -> None:
    base, currency, weapon = family
    await arrange(db, currency(user="a"), weapon(user="a", skill=3))
    async with db.transaction() as tx:
        money, arms = await tx.get_one(currency, "a"), await tx.get_one(weapon, "a")
        assert (type(money), type(arms)) == (currency, weapon)
        assert await tx.get(base, "a") is None
        arms.skill += 1
        money.items["usd"] = 1
    assert (await db.get_one(weapon, "a")).skill == 4
    assert (await db.get_one(currency, "a")).items == {"usd": 1}


@everywhere
@both_layouts
async def test_an_item_read_through_the_base_is_the_derived_one(db: Db, family: Family) -> None:
    base, _, weapon = family
    await arrange(db, weapon(user="a", skill=3))
    async with db.transaction() as tx:
        arms = await tx.get_one(base, user="a", kind="weapon")
        assert type(arms) is weapon
        assert await tx.get_one(weapon, "a") is arms
        arms.items["ax"] = 1
    assert db.kinds() == ["GetItem", "UpdateItem" if weapon is Weapon else "TransactWrite"]
    arms = await db.get_one(weapon, "a")
    assert (arms.skill, arms.items) == (3, {"ax": 1})


@everywhere
@both_layouts
@pytest.mark.parametrize("consistent", [True, False])
async def test_items_of_several_classes_are_read_together_each_as_its_own_class(
    db: Db, family: Family, consistent: bool
) -> None:
    base, currency, weapon = family
    await arrange(db, base(user="a"), currency(user="a"), weapon(user="a", skill=3))
    keys = [weapon.key("a"), base.key("a"), currency.key("a"), weapon.key("b")]
    found = await db.get_all(keys, consistent=consistent)
    assert [type(item) for item in found] == [weapon, base, currency, type(None)]


@in_memory
@both_layouts
async def test_one_item_has_one_role_whichever_class_names_it(db: Db, family: Family) -> None:
    base, _, weapon = family
    async with db.transaction() as tx:
        arms = tx.create(weapon, user="a")
        assert await tx.get(base.key(user="a", kind="weapon")) is arms
        with pytest.raises(ModelTrackedTwiceError):
            tx.create(base, user="a", kind="weapon")
        with pytest.raises(ModelTrackedTwiceError):
            tx.create_or_put(base, {"user": "a", "kind": "weapon"}, {})


@everywhere
async def test_an_item_of_another_class_is_refused_by_get_and_left_out_by_queries(db: Db) -> None:
    await arrange(db, Currency(user="a", kind="weapon"))
    with pytest.raises(ModelMismatchError, match="is a Currency, not a Weapon"):
        await db.get(Weapon, "a")
    async with db.transaction() as tx:
        assert await tx.query(Weapon, user="a").all() == []
        with pytest.raises(ModelMismatchError):
            await tx.get(Weapon, "a")


@everywhere
async def test_unrelated_models_share_a_table_and_are_distinguished_by_their_keys(db: Db) -> None:
    await arrange(db, OwnWeapon(user="a", skill=3), OwnStranger(user="a", n=5))
    found = await db.get_all([OwnStranger.key("a"), OwnWeapon.key("a")], consistent=False)
    assert [type(item) for item in found] == [OwnStranger, OwnWeapon]


@in_memory
async def test_unrelated_models_cannot_have_one_item_in_one_transaction(db: Db) -> None:
    await arrange(db, OwnWeapon(user="a"))
    async with db.transaction() as tx:
        await tx.get_one(OwnWeapon, "a")
        with pytest.raises(ModelMismatchError):
            await tx.get(OwnStranger, user="a", kind="weapon")
        with pytest.raises(ModelTrackedTwiceError):
            tx.create(OwnStranger, user="a", kind="weapon")


@in_memory
async def test_models_that_share_only_an_abstract_base_share_no_keys(db: Db) -> None:
    class Dated(Model, abstract=True):
        year: int = 2026

        def age(self, now: int) -> int:
            return now - self.year

    class Wine(Dated):
        id: Key[str]

    class Cheese(Dated):
        id: Key[str]
        year: int = 2025

    await arrange(db, Wine(id="a"), Cheese(id="a"))
    wine, cheese = await db.get_one(Wine, "a"), await db.get_one(Cheese, "a")
    assert (wine.age(2030), cheese.age(2030)) == (4, 5)
    assert wine.key != cheese.key
    assert wine != cheese


class Note(Model, ttl="until"):
    id: Key[str]
    kind: SortKey[str] = field(default="note")
    text: str = ""
    until: int | None = None


class Reminder(Note):
    pass


@everywhere
async def test_items_of_a_family_expire_alike_whichever_class_reads_them(db: Db) -> None:
    await arrange(db, Reminder(id="a", until=db.clock.epoch + 100), Note(id="b"))
    db.clock.forward(200)
    assert await db.query(Note, id="a").all() == []
    async with db.transaction() as tx:
        assert await tx.get(Note, "a") is None
        (await tx.get_one(Note, "b")).text = "seen"
    async with db.transaction() as tx:
        tx.create(Note, id="a", text="again")
    assert (await db.get_one(Note, "a")).text == "again"


@in_memory
async def test_a_derived_class_cannot_expire_if_its_base_does_not(db: Db) -> None:
    with expect_failure(ModelDefinitionError, "must expire by the same field"):

        class Wrong(Inventory, ttl="until"):
            until: int


@in_memory
async def test_a_derived_class_has_the_key_of_its_base(db: Db) -> None:
    with expect_failure(TypeError, "must have exactly the key of Inventory"):

        class Wrong(Inventory):
            extra: Key[str]

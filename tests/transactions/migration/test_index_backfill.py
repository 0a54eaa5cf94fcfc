"""A new index on old items: a bulk run adds those that belong in it, with the values that are stored at that time."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from migration_rig import (
    Db,
    RivalWriter,
    add_layer,
    arrange,
    create_tables,
    everywhere,
    fetch_item,
    in_memory,
    meanwhile,
    scan_model,
    update_raw,
    version,
)

from holdall import Database, Index, Key, Model, SortKey, field
from holdall.core import AddIndex, IndexSchema, KeyAttribute, TransactWrite, encode_item
from holdall.errors import ConfigurationError

BY_PLACE = Index("by_place", key=["country", "city"], sort_key=["people"])


@version
class OldTown(Model, name="Town"):
    id: Key[str]
    country: str = "x"
    city: str | None = "y"
    people: int = 0


@version
class Town(Model, name="Town", indexes=[BY_PLACE], ttl="until"):
    id: Key[str]
    country: str = "x"
    city: str | None = "y"
    people: int = 0
    until: int | None = None


@version
class OldOwnTown(Model, name="OwnTown", table="Town"):
    id: Key[str]
    country: str = "x"
    city: str | None = "y"
    people: int = 0


@version
class OwnTown(
    Model,
    name="OwnTown",
    table="Town",
    indexes=[Index("by_place", key=["country", "city"], sort_key=["people"], sparse=True)],
):
    id: Key[str]
    country: str = "x"
    city: str | None = "y"
    people: int = 0


Town_ = type[Any]
both_layouts = pytest.mark.parametrize(
    ("old", "town"), [(OldTown, Town), (OldOwnTown, OwnTown)], ids=["one table", "own table"]
)


async def list_towns(db: Db, town: Town_, country: str = "x", city: str = "y") -> list[str]:
    return [row.id for row in await db.query(town, index="by_place", country=country, city=city).all()]


@everywhere
@both_layouts
async def test_a_run_adds_old_items_to_a_new_index_in_its_order(db: Db, old: Town_, town: Town_) -> None:
    await create_tables(db, town)
    await arrange(db, *(old(id=name, people=people) for name, people in (("a", 10), ("b", 9), ("c", -1))))
    await arrange(db, old(id="elsewhere", city="z"), old(id="nowhere", city=None))
    assert await list_towns(db, town) == []
    report = await db.migrate(town)
    assert (report.found, report.changed, report.failed) == (5, 4, 0)
    assert await list_towns(db, town) == ["c", "b", "a"]
    assert await list_towns(db, town, city="z") == ["elsewhere"]
    again = await db.migrate(town)
    assert (again.found, again.changed) == (5, 0)


@everywhere
@both_layouts
async def test_a_run_changes_only_the_index_attributes(db: Db, old: Town_, town: Town_) -> None:
    await arrange(db, old(id="a", people=42))
    before = await fetch_item(db, old.key("a"))
    await db.migrate(town)
    index = {"gsi1_pk": {"S": "Town#by_place#x#y"}, "gsi1_sk": {"S": "p50242"}}
    added = index if town is Town else encode_item({"_c_city_country": "y\x00x"})
    assert await fetch_item(db, town.key("a")) == {**before, **added}


@everywhere
@both_layouts
async def test_the_next_run_corrects_index_attributes_after_changes_by_an_old_program(
    db: Db, old: Town_, town: Town_
) -> None:
    """An old program changes the fields but does not know the index."""
    await create_tables(db, town)
    await arrange(db, town(id="a"), town(id="b"))
    await meanwhile(db, old.key("a"), city="z")
    await meanwhile(db, old.key("b"), city=None)
    assert sorted(await list_towns(db, town)) == ["a", "b"]
    report = await db.migrate(town)
    assert report.changed == 2
    assert await list_towns(db, town) == []
    assert await list_towns(db, town, city="z") == ["a"]


@everywhere
@both_layouts
async def test_a_change_between_the_read_and_the_write_of_a_run_is_not_missed(
    db: Db, old: Town_, town: Town_
) -> None:
    await arrange(db, old(id="a"), old(id="b"))
    moves = tuple(update_raw(db, town.key(name), city={"S": "z"}) for name in "ab")
    add_layer(db, RivalWriter).requests = [TransactWrite(moves, str(uuid4()))]
    report = await db.migrate(town)
    assert (report.found, report.changed, report.failed) == (2, 2, 0)
    for name in "ab":
        found = await fetch_item(db, town.key(name))
        assert found["gsi1_pk" if town is Town else "_c_city_country"] == (
            {"S": "Town#by_place#x#z"} if town is Town else {"S": "z\x00x"}
        )


@in_memory
async def test_the_expiry_is_backfilled_too(db: Db) -> None:
    await arrange(db, OldTown(id="a"))
    await db.send(update_raw(db, Town.key("a"), until={"N": "9999999999"}))
    await db.migrate(Town)
    assert (await fetch_item(db, Town.key("a")))["_ttl"] == {"N": "9999999999"}


@in_memory
async def test_a_model_without_expiry_still_finds_items_that_expired_under_an_older_version(db: Db) -> None:
    """Until the store deletes the item, because its ``_ttl`` is still stored."""
    await arrange(db, Town(id="a", until=5))
    assert await db.get(Town, "a") is None
    assert await scan_model(db, Town) == []
    assert await db.get(OldTown, "a") is not None
    assert len(await scan_model(db, OldTown)) == 1
    await meanwhile(db, OldTown.key("a"), people=7)


@in_memory
async def test_a_run_removes_items_that_lack_a_key_part_from_the_index(db: Db) -> None:
    await arrange(db, Town(id="a"))
    await db.send(update_raw(db, Town.key("a"), city=None))
    assert await list_towns(db, Town) == ["a"]
    await db.migrate(Town)
    found = await fetch_item(db, Town.key("a"))
    assert {"gsi1_pk", "gsi1_sk"}.isdisjoint(found)


# --- key parts that are not stored ------------------------------------------------------------------------

numbers = count()


@version
class OldBook(Model, name="Book"):
    id: Key[str]


@version
class Book(Model, name="Book", indexes=[Index("by_shelf", ["shelf"], ["title"])]):
    id: Key[str]
    title: str = "untitled"
    shelf: str = field(default_factory=lambda: f"shelf {next(numbers)}")


@version
class SignedBook(Model, name="Book", indexes=[Index("by_author", ["author"])]):
    id: Key[str]
    author: str


@in_memory
async def test_a_default_that_an_index_uses_is_stored_with_the_index_attributes(db: Db) -> None:
    """The factory's next value differs; without the stored one, the index would find the row under a wrong value."""
    await arrange(db, *(OldBook(id=name) for name in "abcd"))
    async with db.transaction() as tx:
        (await tx.get_one(Book, "a")).title = "changed"
        book = await tx.get_one(Book, "b")
        book.title = f"on {book.shelf}"
    assert (await db.migrate(Book)).changed == 2
    assert (await db.migrate(Book)).changed == 0
    for name in "abcd":
        book = await db.get_one(Book, name)
        assert [row.id for row in await db.query(Book, index="by_shelf", shelf=book.shelf).all()] == [name]
    assert (await db.get_one(Book, "b")).title == f"on {(await db.get_one(Book, 'b')).shelf}"


@in_memory
async def test_a_missing_required_key_part_is_reported(db: Db) -> None:
    await arrange(db, OldBook(id="a"), SignedBook(id="b", author="bo"))
    await db.send(update_raw(db, SignedBook.key("b"), gsi1_pk=None, gsi1_sk=None))
    report = await db.migrate(SignedBook)
    assert (report.found, report.changed, report.failed) == (2, 1, 1)
    assert "Book#a" in report.problems[0]
    assert "author" in report.problems[0]


# --- other models in the same table -----------------------------------------------------------------------


class Shop(Model, indexes=[Index("by_name", ["name"])]):
    """Another model whose index uses the same attributes."""

    id: Key[str]
    name: str = "y"


class Kiosk(Model):
    id: Key[str]
    kind: SortKey[str] = field(default="kiosk")
    name: str = "y"


class Bakery(Kiosk, indexes=[Index("by_name", ["name"])]):
    kind = "bakery"


@everywhere
async def test_items_of_other_models_are_not_touched(db: Db) -> None:
    await arrange(db, OldTown(id="a"), Shop(id="a"), Kiosk(id="a"))
    await db.send(update_raw(db, Shop.key("a"), gsi1_pk={"S": "wrong"}))
    before = [await db.raw(key) for key in (Shop.key("a"), Kiosk.key("a"))]
    report = await db.migrate(Town)
    assert (report.scanned, report.found, report.changed) == (3, 1, 1)
    assert [await db.raw(key) for key in (Shop.key("a"), Kiosk.key("a"))] == before


@in_memory
async def test_a_derived_model_is_migrated_with_its_base_or_alone(db: Db) -> None:
    await arrange(db, Kiosk(id="a"), Bakery(id="a"))
    await db.send(update_raw(db, Bakery.key("a"), gsi1_pk=None, gsi1_sk=None))
    report = await db.migrate(Bakery, dry_run=True)
    assert (report.found, report.changed) == (1, 1)
    report = await db.migrate(Kiosk)
    assert (report.found, report.changed) == (2, 1)
    assert [row.kind for row in await db.query(Bakery, index="by_name", name="y").all()] == ["bakery"]


class OwnKiosk(Model, table="Kiosk"):
    id: Key[str]
    kind: SortKey[str] = field(default="kiosk")
    name: str = "y"
    city: str = "c"


class OwnBakery(OwnKiosk, indexes=[Index("by_name", ["name", "city"])]):
    kind = "bakery"


@everywhere
async def test_in_a_table_of_its_own_a_derived_model_is_recognized_by_its_sort_key(db: Db) -> None:
    await arrange(db, OwnKiosk(id="a"), OwnKiosk(id="a", kind="other"), OwnBakery(id="a"))
    await db.send(update_raw(db, OwnBakery.key("a"), _c_city_name=None))
    report = await db.migrate(OwnBakery)
    assert (report.scanned, report.found, report.changed) == (3, 1, 1)
    assert (await fetch_item(db, OwnBakery.key("a")))["_c_city_name"] == {"S": "c\x00y"}
    assert "_c_city_name" not in await fetch_item(db, OwnKiosk.key("a"))


# --- tables that Holdall does not manage ------------------------------------------------------------------


def test_an_unmanaged_table_can_be_backfilled_before_its_index_is_added() -> None:
    with Database("memory:", manage_table=False) as db:
        db.table.create()
        with db.transaction() as tx:
            for number in range(3):
                tx.create(OldTown, id=str(number), people=number)
        wanted = db.query(Town, index="by_place", country="x", city="y")
        with pytest.raises(ConfigurationError, match="has no index gsi1") as caught:
            wanted.all()
        assert caught.value.hint is not None
        assert '"AttributeName": "gsi1_pk"' in caught.value.hint
        assert db.migrate(Town).changed == 3  # before the index exists
        db.send(AddIndex("holdall", IndexSchema("gsi1", KeyAttribute("gsi1_pk"), KeyAttribute("gsi1_sk"))))
        assert [row.id for row in wanted.all()] == ["0", "1", "2"]

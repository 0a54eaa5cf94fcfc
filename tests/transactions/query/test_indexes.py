"""Indexes follow their items: every change to a field of an index writes the index correctly, or fails.

Most tests run with a model in the shared table and one in its own table, whose index attributes are those of the
JavaScript library.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import arrange, expect_contention, meanwhile, put_raw

from holdall import Index, Key, Model, SortKey, field
from holdall.core import CreateTable, KeyAttribute, TableSchema, encode_item
from holdall.errors import InvalidOptionsError, TableExistsError

BY_PLACE = Index("by_place", key=["country", "city"], sort_key=["people"])


class Town(Model, indexes=[BY_PLACE]):
    id: Key[str]
    country: str = "x"
    city: str = "y"
    people: int = 0
    note: str | None = None


class OwnTown(Model, table="Town", indexes=[BY_PLACE]):
    id: Key[str]
    country: str = "x"
    city: str = "y"
    people: int = 0
    note: str | None = None


Town_ = type[Any]
both_layouts = pytest.mark.parametrize("town", [Town, OwnTown], ids=["one table", "own table"])


async def create_tables(db: Db, *models: type[Model]) -> None:
    """Create tables together with their indexes, because adding an index later takes a server more than a second."""
    for model in models:
        own = model._schema.table is not None
        partition, sort = (KeyAttribute("_id"), None) if own else (KeyAttribute("pk"), KeyAttribute("sk"))
        indexes = tuple(index.schema for index in model._schema.indexes.values())
        with suppress(TableExistsError):  # DynamoDB Local's shared table has all its indexes from the start
            await db.send(CreateTable(TableSchema(db.table_of(model), partition, sort, indexes)))


async def list_towns(db: Db, town: Town_, country: str, city: str) -> list[str]:
    return [row.id for row in await db.query(town, index="by_place", country=country, city=city).all()]


@in_memory
@both_layouts
async def test_an_index_is_created_when_it_is_first_used(db: Db, town: Town_) -> None:
    await arrange(db, town(id="a"))
    assert await list_towns(db, town, "x", "y") == ["a"]


# --- stored attributes ------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_a_query_of_an_index_finds_items_in_its_order(db: Db, town: Town_) -> None:
    await create_tables(db, town)
    await arrange(db, town(id="a", people=10), town(id="b", people=9), town(id="c", city="z"))
    assert await list_towns(db, town, "x", "y") == ["b", "a"]
    await meanwhile(db, town.key("a"), people=-5)
    await meanwhile(db, town.key("c"), city="y", people=9)
    assert (await list_towns(db, town, "x", "y"))[0] == "a"
    assert sorted(await list_towns(db, town, "x", "y")) == ["a", "b", "c"]
    assert await list_towns(db, town, "x", "z") == []


@everywhere
async def test_the_attributes_of_both_layouts_are_as_documented(db: Db) -> None:
    await create_tables(db, Town, OwnTown)
    await arrange(db, Town(id="a", people=42), OwnTown(id="a", people=42))
    shared, own = await db.raw(Town.key("a")), await db.raw(OwnTown.key("a"))
    assert shared is not None
    assert (shared["gsi1_pk"], shared["gsi1_sk"]) == ({"S": "Town#by_place#x#y"}, {"S": "p50242"})
    assert own == encode_item(
        {"_id": "a", "country": "x", "city": "y", "people": 42, "_c_city_country": "y\x00x"}
    )


# --- changes of single parts ------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_two_writers_of_different_parts_cannot_leave_a_wrong_index_value(db: Db, town: Town_) -> None:
    await create_tables(db, town)
    await arrange(db, town(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(town, "a")).city = "new city"
            await meanwhile(db, town.key("a"), country="new country")
    assert await list_towns(db, town, "new country", "y") == ["a"]
    await meanwhile(db, town.key("a"), city="new city")
    assert await list_towns(db, town, "new country", "new city") == ["a"]


@everywhere
@both_layouts
async def test_incrementing_a_part_moves_the_item_in_the_index(db: Db, town: Town_) -> None:
    await create_tables(db, town)
    await arrange(db, town(id="a", people=1), town(id="b", people=5))
    async with db.transaction() as tx:
        (await tx.get_one(town, "a")).field("people").increment_by(10)
    assert await list_towns(db, town, "x", "y") == ["b", "a"]


@everywhere
@both_layouts
async def test_a_change_of_another_field_does_not_touch_the_index(db: Db, town: Town_) -> None:
    await create_tables(db, town)
    await arrange(db, town(id="a"))
    async with db.transaction() as tx:
        (await tx.get_one(town, "a")).note = "x"
        await meanwhile(db, town.key("a"), country="new country")
    assert await list_towns(db, town, "new country", "y") == ["a"]


# --- old items --------------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_reading_an_old_item_whose_default_is_in_an_index_writes_nothing(db: Db, town: Town_) -> None:
    await create_tables(db, town)
    await put_raw(
        db, town, raw_key(town.key("a")) if town is OwnTown else {**raw_key(town.key("a")), "id": {"S": "a"}}
    )
    async with db.transaction(read_only=True) as tx:
        assert (await tx.get_one(town, "a")).city == "y"
    async with db.transaction() as tx:
        assert (await tx.get_one(town, "a")).country == "x"
    assert db.kinds() == ["GetItem", "GetItem"]


@everywhere
@both_layouts
async def test_old_items_are_added_to_a_new_index_by_a_change_or_by_migrate(db: Db, town: Town_) -> None:
    await create_tables(db, town)
    own = town is OwnTown
    for id in "ab":
        extra = {} if own else {"id": id}
        row = {"country": "x", "city": "y", "people": 1, **extra}
        await put_raw(db, town, {**raw_key(town.key(id)), **encode_item(row)})
    await meanwhile(db, town.key("a"), people=2)
    assert await list_towns(db, town, "x", "y") == ["a"]
    report = await db.migrate(town)
    assert (report.found, report.changed, report.failed) == (2, 1, 0)
    assert await list_towns(db, town, "x", "y") == ["b", "a"]


# --- names and order --------------------------------------------------------------------------------------


class Odd(Model):
    """A model whose fields have the names of query methods."""

    run: Key[str]
    fetch: SortKey[int]
    all: int = 0
    first: int = 0


@in_memory
async def test_fields_can_have_the_names_of_query_methods(db: Db) -> None:
    await arrange(db, Odd(run="a", fetch=1, all=2), Odd(run="a", fetch=2))
    rows = await db.query(Odd, run="a", sort=Odd.fetch < 2).all()
    assert [(row.fetch, row.all) for row in rows] == [(1, 2)]


class Sprint(Model):
    index: Key[int]
    limit: SortKey[int] = field(default=0)


@in_memory
async def test_a_key_with_the_name_of_a_query_option_is_not_confused_with_the_option(db: Db) -> None:
    """``get`` accepts such a key; ``query`` treats the name as its option, and raises an error."""
    await arrange(db, Sprint(index=5), Sprint(index=5, limit=3))
    sprint = await db.get_one(Sprint, index=5, limit=3)
    assert (sprint.index, sprint.limit) == (5, 3)
    with pytest.raises(InvalidOptionsError, match="has no index 5"):
        db.query(Sprint, index=5)  # type: ignore[call-overload]


class Day(Model):
    station: Key[str]
    year: SortKey[int]
    month: SortKey[int]


class OwnDay(Model, table="Day"):
    station: Key[str]
    month: SortKey[int]
    year: SortKey[int]


@everywhere
async def test_sort_keys_of_several_numbers_are_ordered_as_numbers_and_can_be_queried_in_part(
    db: Db,
) -> None:
    months = [(2025, 12), (2026, 1), (2026, 9), (2026, 10), (2027, 2)]
    await arrange(db, *(Day(station="a", year=year, month=month) for year, month in months))
    assert [(day.year, day.month) for day in await db.query(Day, station="a").all()] == months
    found = await db.query(Day, station="a", sort=Day.year == 2026).all()
    assert [day.month for day in found] == [1, 9, 10]
    found = await db.query(Day, station="a", sort=(Day.year == 2026) & (Day.month >= 9)).all()
    assert [day.month for day in found] == [9, 10]


@everywhere
async def test_in_a_models_own_table_sort_keys_of_several_numbers_are_ordered_as_text(db: Db) -> None:
    """The layout is the JavaScript library's, in which 10 comes before 9."""
    await arrange(db, *(OwnDay(station="a", year=2026, month=month) for month in (9, 10)))
    assert [day.month for day in await db.query(OwnDay, station="a").all()] == [10, 9]

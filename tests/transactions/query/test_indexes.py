"""Indexes that follow their items: every change to a field of an index writes it correctly, or fails.

Each test has a model in the one table and one in a table of its own, whose index attributes are the JavaScript
library's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from rig.behaviour import Db, everywhere, in_memory, raw_key
from rig.behaviour_models import arrange, expect_contention, expect_failure, meanwhile, put_raw

from holdall import Index, Key, Model, SortKey, field
from holdall.core import CreateTable, KeyAttribute, TableSchema, encode_item
from holdall.errors import (
    FrozenItemError,
    InvalidFieldError,
    InvalidOptionsError,
    ModelDefinitionError,
    TableExistsError,
)

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


class Film(Model, table="Film", indexes=[Index("by_year", key=["year_of", "kind_of"], include=["title"])]):
    """Field names with underscores, numbers as text, and an index that does not hold everything."""

    id: Key[str]
    year_of: str = "2026"
    kind_of: str = "7"
    title: str = ""
    minutes: int = 90


Town_ = type[Any]
both_layouts = pytest.mark.parametrize("town", [Town, OwnTown], ids=["one table", "own table"])


async def make_tables(db: Db, *models: type[Model]) -> None:
    """Make tables with their indexes at once: adding an index later takes a server a second and more."""
    for model in models:
        own = model._schema.table is not None
        partition, sort = (KeyAttribute("_id"), None) if own else (KeyAttribute("pk"), KeyAttribute("sk"))
        indexes = tuple(index.schema for index in model._schema.indexes.values())
        with suppress(TableExistsError):  # DynamoDB Local's shared table has all its indexes from the start
            await db.send(CreateTable(TableSchema(db.table_of(model), partition, sort, indexes)))


async def towns(db: Db, town: Town_, country: str, city: str) -> list[str]:
    return [row.id for row in await db.query(town, index="by_place", country=country, city=city).all()]


@in_memory
@both_layouts
async def test_an_index_is_made_when_it_is_first_needed(db: Db, town: Town_) -> None:
    await arrange(db, town(id="a"))
    assert await towns(db, town, "x", "y") == ["a"]


# --- what is stored ---------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_items_are_found_by_their_index_in_its_order(db: Db, town: Town_) -> None:
    await make_tables(db, town)
    await arrange(db, town(id="a", people=10), town(id="b", people=9), town(id="c", city="z"))
    assert await towns(db, town, "x", "y") == ["b", "a"]
    await meanwhile(db, town.key("a"), people=-5)
    await meanwhile(db, town.key("c"), city="y", people=9)
    assert (await towns(db, town, "x", "y"))[0] == "a"
    assert sorted(await towns(db, town, "x", "y")) == ["a", "b", "c"]
    assert await towns(db, town, "x", "z") == []


@everywhere
async def test_the_attributes_of_both_layouts_are_as_documented(db: Db) -> None:
    await make_tables(db, Town, OwnTown)
    await arrange(db, Town(id="a", people=42), OwnTown(id="a", people=42))
    ours, own = await db.raw(Town.key("a")), await db.raw(OwnTown.key("a"))
    assert ours is not None
    assert (ours["gsi1_pk"], ours["gsi1_sk"]) == ({"S": "Town#by_place#x#y"}, {"S": "p50242"})
    assert own == encode_item(
        {"_id": "a", "country": "x", "city": "y", "people": 42, "_c_city_country": "y\x00x"}
    )


# --- those who change a part of it --------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_two_that_change_different_parts_cannot_leave_a_value_of_neither(db: Db, town: Town_) -> None:
    await make_tables(db, town)
    await arrange(db, town(id="a"))
    with expect_contention():
        async with db.transaction() as tx:
            (await tx.get_one(town, "a")).city = "new city"
            await meanwhile(db, town.key("a"), country="new country")
    assert await towns(db, town, "new country", "y") == ["a"]
    await meanwhile(db, town.key("a"), city="new city")
    assert await towns(db, town, "new country", "new city") == ["a"]


@everywhere
@both_layouts
async def test_adding_to_a_part_moves_the_item_in_the_index(db: Db, town: Town_) -> None:
    await make_tables(db, town)
    await arrange(db, town(id="a", people=1), town(id="b", people=5))
    async with db.transaction() as tx:
        (await tx.get_one(town, "a")).field("people").increment_by(10)
    assert await towns(db, town, "x", "y") == ["b", "a"]


@everywhere
@both_layouts
async def test_a_blind_update_has_to_know_all_parts(db: Db, town: Town_) -> None:
    await make_tables(db, town)
    await arrange(db, town(id="a"))
    db.forget()
    async with db.transaction() as tx:
        with pytest.raises(InvalidFieldError, match="its value is needed too"):
            tx.update(town, {"id": "a", "city": "y"}, {"city": "z"})
    assert db.list_sent() == []
    assert await towns(db, town, "x", "y") == ["a"]
    async with db.transaction() as tx:
        tx.update(town, {"id": "a", "city": "y", "country": "x", "people": 0}, {"city": "z"})
    assert await towns(db, town, "x", "z") == ["a"]


@everywhere
@both_layouts
async def test_another_field_is_changed_without_touching_the_index(db: Db, town: Town_) -> None:
    await make_tables(db, town)
    await arrange(db, town(id="a"))
    async with db.transaction() as tx:
        (await tx.get_one(town, "a")).note = "x"
        await meanwhile(db, town.key("a"), country="new country")
    assert await towns(db, town, "new country", "y") == ["a"]


# --- old rows -----------------------------------------------------------------------------------------------


@everywhere
@both_layouts
async def test_looking_at_an_old_row_whose_default_is_in_an_index_writes_nothing(db: Db, town: Town_) -> None:
    await make_tables(db, town)
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
async def test_old_rows_come_into_a_new_index_by_a_change_or_by_migrate(db: Db, town: Town_) -> None:
    await make_tables(db, town)
    own = town is OwnTown
    for id in "ab":
        extra = {} if own else {"id": id}
        row = {"country": "x", "city": "y", "people": 1, **extra}
        await put_raw(db, town, {**raw_key(town.key(id)), **encode_item(row)})
    await meanwhile(db, town.key("a"), people=2)
    assert await towns(db, town, "x", "y") == ["a"]
    report = await db.migrate(town)
    assert (report.found, report.changed, report.failed) == (2, 1, 0)
    assert await towns(db, town, "x", "y") == ["b", "a"]


# --- indexes that do not hold everything ----------------------------------------------------------------------


@everywhere
async def test_a_field_that_an_index_does_not_hold_is_an_error_for_its_rows_alone(db: Db) -> None:
    await make_tables(db, Film)
    await arrange(db, Film(id="a", title="Metropolis", minutes=153))
    (row,) = await db.query(Film, index="by_year", year_of="2026", kind_of="7").all()
    assert (row.id, row.title, row.year_of, row.kind_of) == ("a", "Metropolis", "2026", "7")
    with pytest.raises(InvalidFieldError, match=r"Film\.minutes"):
        row.minutes  # noqa: B018
    with pytest.raises(FrozenItemError, match="only some fields"):
        row.title = "M"
    film = await db.get_one(Film, "a")
    assert film.minutes == 153
    with pytest.raises(InvalidFieldError, match=r"Film\.minutes"):
        Film(id="b", minutes=None)  # type: ignore[arg-type]


@in_memory
async def test_names_that_would_share_one_attribute_are_refused(db: Db) -> None:
    with expect_failure(ModelDefinitionError, "would hold two different values"):

        class Clash(
            Model, table="Clash", indexes=[Index("one", key=["a_b", "c"]), Index("two", key=["a", "b_c"])]
        ):
            id: Key[str]
            a_b: str = ""
            c: str = ""
            a: str = ""
            b_c: str = ""


# --- names and order ------------------------------------------------------------------------------------------


class Odd(Model):
    """Fields called like the words of queries."""

    run: Key[str]
    fetch: SortKey[int]
    all: int = 0
    first: int = 0


@in_memory
async def test_fields_may_be_called_like_the_words_of_queries(db: Db) -> None:
    await arrange(db, Odd(run="a", fetch=1, all=2), Odd(run="a", fetch=2))
    rows = await db.query(Odd, run="a", sort=Odd.fetch < 2).all()
    assert [(row.fetch, row.all) for row in rows] == [(1, 2)]


class Sprint(Model):
    index: Key[int]
    limit: SortKey[int] = field(default=0)


@in_memory
async def test_a_key_that_is_called_like_an_option_of_queries_is_never_taken_for_it(db: Db) -> None:
    """Such an item is got by its key; a query cannot name it, and says so rather than give other rows."""
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
async def test_sort_keys_of_several_numbers_are_ordered_as_numbers_and_can_be_asked_for_in_part(
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
async def test_in_a_table_of_its_own_several_numbers_are_text_and_sort_so(db: Db) -> None:
    """The layout is not ours to change: 10 comes before 9."""
    await arrange(db, *(OwnDay(station="a", year=2026, month=month) for month in (9, 10)))
    assert [day.month for day in await db.query(OwnDay, station="a").all()] == [10, 9]

"""Conditions and options of queries: what they mean for every type, and which ones are refused at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from annotated_types import Ge
from pydantic import BaseModel
from queries_rig import Db, arrange, everywhere, fresh, in_memory, raw, table_of

from holdall import Index, Key, Model, SortKey, col, field
from holdall.core import PutItem
from holdall.errors import (
    InvalidExpressionError,
    InvalidFieldError,
    InvalidModelUpdateError,
    InvalidOptionsError,
    ModelDefinitionError,
    QueryNotSupported,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    city: str
    zip: str | None = None
    lines: list[str] = []


class Thing(Model, indexes=[Index("by_colour", ["colour"], ["when"])]):
    shelf: Key[str]
    number: SortKey[int]
    colour: Colour = Colour.RED
    size: Annotated[int, Ge(0)] = 1
    price: Decimal = Decimal("1.50")
    when: datetime | None = None
    day: date | None = None
    lasts: timedelta | None = None
    owner: UUID | None = None
    level: Literal["low", "high"] = "low"
    home: Address | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    tags: frozenset[Colour] = frozenset()
    renamed: str | None = field(default=None, name="otherName")


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
OWNER = UUID("12345678-1234-5678-1234-567812345678")
FULL: dict[str, Any] = {
    "colour": Colour.BLUE,
    "size": 7,
    "price": Decimal("2.25"),
    "when": NOON,
    "day": date(2026, 1, 31),
    "lasts": timedelta(seconds=90),
    "owner": OWNER,
    "level": "high",
    "home": Address(city="Zürich", lines=["a", "b"]),
    "extra": {"x": None, "y": {"z": 5}, "list": [1, {"w": "v"}]},
    "tags": frozenset([Colour.RED]),
    "renamed": "new",
}

# only the second thing meets these conditions
SELECTING: list[Callable[[], Any]] = [
    lambda: col(Thing.colour) == Colour.BLUE,
    lambda: col(Thing.colour).in_(Colour.BLUE),
    lambda: col(Thing.colour) != Colour.RED,
    lambda: col(Thing.size) > 6.5,  # type: ignore[operator]
    lambda: col(Thing.size) == 7,
    lambda: (col(Thing.size) > 1) & (col(Thing.size) > -5),
    lambda: col(Thing.price) == Decimal("2.250"),
    lambda: col(Thing.price).between(Decimal(2), Decimal(3)),
    lambda: col(Thing.price) > 2,  # type: ignore[operator]
    lambda: col(Thing.when) == NOON.astimezone(),
    lambda: col(Thing.when) >= NOON - timedelta(days=1),
    lambda: col(Thing.when).begins_with("2026-01"),
    lambda: col(Thing.day) < date(2027, 1, 1),
    lambda: col(Thing.lasts) >= timedelta(minutes=1),
    lambda: col(Thing.owner) == OWNER,
    lambda: col(Thing.owner).begins_with("12345678-1234"),
    lambda: col(Thing.level) == "high",
    lambda: col(Thing.home)["city"] == "Zürich",
    lambda: col(Thing.home)["city"].begins_with("Z"),
    lambda: col(Thing.home)["lines"][1] == "b",
    lambda: col(Thing.home)["lines"].contains("a"),
    lambda: col(Thing.home)["lines"].size == 2,
    lambda: col(Thing.home) == Address(city="Zürich", lines=["a", "b"]),
    lambda: col(Thing.extra)["y"]["z"] == 5,
    lambda: col(Thing.extra)["list"][1]["w"] == "v",
    lambda: col(Thing.extra).size == 3,
    lambda: col(Thing.tags).contains(Colour.RED),
    lambda: col(Thing.tags) == frozenset([Colour.RED]),
    lambda: col(Thing.renamed) == "new",
    lambda: col(Thing.renamed).exists(),
    lambda: ~col(Thing.when).absent(),
    lambda: Thing.number == 2,
    lambda: col(Thing.number).in_(2, 3),
    lambda: (col(Thing.size) == 7) | (col(Thing.size) == 99),
    lambda: ~((col(Thing.size) == 1) | (col(Thing.size) == 99)),
    # None inside a field is a value for the store, but not for Holdall
    lambda: (col(Thing.extra)["y"] != None) & (col(Thing.extra)["x"] == None),  # noqa: E711
    lambda: col(Thing.extra)["x"].absent() & col(Thing.extra)["y"].exists(),
    lambda: (col(Thing.home)["city"] != None) & (col(Thing.home)["zip"] == None),  # noqa: E711
]


@everywhere
async def test_conditions_follow_the_type_of_their_field(db: Db) -> None:
    shelf = fresh("shelf")
    await arrange(db, Thing(shelf=shelf, number=1), Thing(shelf=shelf, number=2, **FULL))
    for place, make in enumerate(SELECTING):
        rows = await db.query(Thing, shelf=shelf, where=make()).all()
        assert [row.number for row in rows] == [2], f"condition {place}"
        others = await db.query(Thing, shelf=shelf, where=~make()).all()
        assert [row.number for row in others] == [1], f"the opposite of condition {place}"


@in_memory
async def test_none_inside_a_field_counts_as_absent(db: Db) -> None:
    shelf = fresh("shelf")
    extras: list[dict[str, Any]] = [{}, {"x": None}, {"x": 0}, {"x": ""}]
    await arrange(db, *(Thing(shelf=shelf, number=n, extra=extra) for n, extra in enumerate(extras)))
    inside = col(Thing.extra)["x"]
    for clause, numbers in (
        (inside == None, [0, 1]),  # noqa: E711
        (inside.absent(), [0, 1]),
        (inside != None, [2, 3]),  # noqa: E711
        (inside.exists(), [2, 3]),
        (~(inside == None), [2, 3]),  # noqa: E711
        (inside != 0, [0, 1, 3]),
    ):
        assert [row.number for row in await db.query(Thing, shelf=shelf, where=clause).all()] == numbers


@everywhere
async def test_a_null_that_another_program_stored_counts_as_absent(db: Db) -> None:
    shelf = fresh("shelf")
    await arrange(db, *(Thing(shelf=shelf, number=n, when=NOON if n == 2 else None) for n in range(3)))
    stored = await raw(db, Thing.key(shelf=shelf, number=1))
    await db.send(PutItem(table_of(db, Thing), {**stored, "when": {"NULL": True}}))
    for clause, numbers in (
        (col(Thing.when) == None, [0, 1]),  # noqa: E711
        (col(Thing.when).absent(), [0, 1]),
        (col(Thing.when) != None, [2]),  # noqa: E711
        (col(Thing.when).exists(), [2]),
        (~(col(Thing.when) == None), [2]),  # noqa: E711
    ):
        found = await db.query(Thing, shelf=shelf, where=clause).all()
        assert [(row.number, row.when) for row in found] == [(n, NOON if n == 2 else None) for n in numbers]
    key = Thing.key(shelf=shelf, number=1)
    async with db.transaction() as tx:
        tx.update(key, col(Thing.size).set(5), where=col(Thing.when) == None)  # noqa: E711
    with pytest.raises(InvalidModelUpdateError, match="expected a value"):
        async with db.transaction() as tx:
            tx.update(key, col(Thing.size).set(6), where=col(Thing.when) != None)  # noqa: E711
    assert (await db.get_one(key)).size == 5


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: col(Thing.size) == "7", "size"),
    (lambda: col(Thing.size) > "7", "size"),  # type: ignore[operator]
    (lambda: col(Thing.size) == True, "size"),  # noqa: E712
    (lambda: col(Thing.level) == 5, "level"),
    (lambda: col(Thing.colour) == 5, "colour"),
    (lambda: col(Thing.when) > 5, "when"),  # type: ignore[operator]
    (lambda: col(Thing.owner) == 7, "owner"),
    (lambda: col(Thing.extra)["x"] == object(), "extra"),
    (lambda: col(Thing.price) == float("nan"), "price"),
    (lambda: col(Thing.when) < None, "when"),
    (lambda: col(Thing.when).in_(NOON, None), "when"),
    (lambda: col(Thing.when).between(None, NOON), "when"),
    (lambda: col(Thing.renamed).begins_with(None), "renamed"),  # type: ignore[arg-type]
    (lambda: col(Thing.renamed).size > "5", "renamed"),  # type: ignore[operator]
    (lambda: col(Thing.renamed).size == True, "renamed"),  # noqa: E712
    (lambda: col(Thing.renamed).size.begins_with("a"), "renamed"),
    (lambda: col(Thing.renamed).size.exists(), "renamed"),
]


@in_memory
@pytest.mark.parametrize(("make", "name"), REFUSED)
async def test_the_error_for_an_invalid_comparison_names_the_field(
    db: Db, make: Callable[[], Any], name: str
) -> None:
    with pytest.raises(InvalidFieldError, match=rf"Thing\.{name}"):
        await db.query(Thing, shelf="a", where=make()).all()


@in_memory
async def test_conditions_beyond_the_limits_of_the_store_are_refused_before_anything_is_sent(db: Db) -> None:
    clauses: list[Any] = [
        col(Thing.size).in_(),
        col(Thing.size).in_(*range(101)),
        col(Thing.size).between(5, 1),
    ]
    for clause in clauses:
        with pytest.raises(InvalidExpressionError):
            await db.query(Thing, shelf="a", where=clause).all()


def test_conditions_have_no_truth_value() -> None:
    makers: list[Callable[[], Any]] = [
        lambda: bool(Thing.number > 1),
        lambda: (Thing.number > 1) and (Thing.number < 5),
        lambda: (col(Thing.size) == 1) or True,
        lambda: 1 < col(Thing.size) < 5,
    ]
    for make in makers:
        with pytest.raises(TypeError, match="neither true nor false"):
            make()


def test_conditions_combine_with_conditions_only() -> None:
    clause: Any = Thing.number > 1
    for other in (True, None, "x", Thing.number):
        with pytest.raises(TypeError, match="combined only with another condition"):
            clause & other
        with pytest.raises(TypeError, match="combined only with another condition"):
            clause | other


def test_col_accepts_only_a_field() -> None:
    for odd in ("size", 5, None, Thing(shelf="a", number=1).size, Thing):
        with pytest.raises(TypeError, match="col\\(\\) takes a field"):
            col(odd)


def test_a_column_is_not_hashable() -> None:
    with pytest.raises(TypeError):
        hash(col(Thing.size))


# --- options ----------------------------------------------------------------------------------------------

ODD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({}, InvalidFieldError, "shelf.*every field of the partition key"),
    ({"shelf": 5}, InvalidFieldError, "shelf"),
    ({"shelf": None}, InvalidFieldError, "shelf"),
    ({"shelf": "a", "number": 5}, InvalidFieldError, "number.*not part of the partition key"),
    ({"shelf": "a", "size": 5}, InvalidFieldError, "size.*not part of the partition key"),
    ({"shelf": "a", "shef": 5}, InvalidFieldError, "no such field"),
    ({"shelf": "a", "limit": 0}, InvalidOptionsError, "limit must be .*, not 0"),
    ({"shelf": "a", "limit": True}, InvalidOptionsError, "limit must be .*, not True"),
    ({"shelf": "a", "limit": 2.0}, InvalidOptionsError, "limit must be .*, not 2.0"),
    ({"shelf": "a", "reverse": 1}, InvalidOptionsError, "reverse must be .*, not 1"),
    ({"shelf": "a", "consistent": "yes"}, InvalidOptionsError, "consistent must be .*, not 'yes'"),
    ({"shelf": "a", "where": True}, InvalidOptionsError, "where must be .*, not True"),
    ({"shelf": "a", "sort": "number > 5"}, InvalidOptionsError, "sort must be .*, not 'number > 5'"),
    ({"shelf": "a", "index": "by_x"}, InvalidOptionsError, "no index 'by_x'"),
    ({"shelf": "a", "index": "by_colour"}, InvalidFieldError, "shelf.*not part of the partition key"),
    ({"index": "by_colour"}, InvalidFieldError, "colour.*every field of the partition key"),
    (
        {"index": "by_colour", "colour": Colour.RED, "consistent": True},
        InvalidOptionsError,
        "cannot be read consistently",
    ),
    ({"index": "by_colour", "colour": Colour.RED, "sort": Thing.number > 5}, QueryNotSupported, "when"),
]


@in_memory
@pytest.mark.parametrize(("arguments", "error", "problem"), ODD)
async def test_an_invalid_query_is_refused_when_it_is_built(
    db: Db, arguments: dict[str, Any], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        db.query(Thing, **arguments)


@in_memory
async def test_an_abstract_model_cannot_be_queried(db: Db) -> None:
    class Base(Model, abstract=True):
        id: Key[str]

    with pytest.raises((InvalidOptionsError, TypeError, ModelDefinitionError)):
        await db.query(Base, id="a").all()


@everywhere
async def test_a_condition_can_use_a_value_outside_the_bounds_of_its_field(db: Db) -> None:
    shelf = fresh("shelf")
    await arrange(db, Thing(shelf=shelf, number=-3, size=0), Thing(shelf=shelf, number=4))
    assert await db.query(Thing, shelf=shelf, where=col(Thing.size) > -1).count() == 2
    assert await db.query(Thing, shelf=shelf, where=col(Thing.size) < 0.5).count() == 1  # type: ignore[operator]
    assert await db.query(Thing, shelf=shelf, sort=Thing.number > -3.5).count() == 2  # type: ignore[operator]
    assert await db.query(Gauge, shelf=shelf, sort=Gauge.level > Decimal("-0.5")).count() == 0
    assert await db.query(Gauge, shelf=shelf, sort=Gauge.level <= -1).count() == 0  # type: ignore[operator]


class Gauge(Model):
    shelf: Key[str]
    level: SortKey[Annotated[Decimal, Ge(0)]]


@everywhere
async def test_begins_with_works_for_times_and_texts(db: Db) -> None:
    shelf = fresh("shelf")
    days = [
        datetime(2025, 12, 31, tzinfo=UTC),
        NOON,
        NOON + timedelta(hours=1),
        datetime(2026, 2, 1, tzinfo=UTC),
    ]
    await arrange(db, *(Diary(shelf=shelf, when=day, title=f"t{n}%#") for n, day in enumerate(days)))
    found = await db.query(Diary, shelf=shelf, sort=Diary.when.begins_with("2026-01-31")).all()
    assert [row.when for row in found] == days[1:3]
    exact = (Diary.when == NOON) & Diary.title.begins_with("t1%")
    assert [row.title for row in await db.query(Diary, shelf=shelf, sort=exact).all()] == ["t1%#"]


@everywhere
async def test_begins_with_accepts_the_usual_spellings_of_a_uuid(db: Db) -> None:
    shelf = fresh("shelf")
    await arrange(db, Copy(shelf=shelf, id=OWNER), Copy(shelf=shelf, id=UUID(int=1)))
    for start in ("12345678-12", "1234567812", "12345678-1234-5678-1234-567812345678".upper()):
        found = await db.query(Copy, shelf=shelf, sort=Copy.id.begins_with(start)).all()
        assert [row.id for row in found] == [OWNER]


class Copy(Model):
    shelf: Key[str]
    id: SortKey[UUID]


class Diary(Model):
    shelf: Key[str]
    when: SortKey[datetime]
    title: SortKey[str]

"""A value that a field accepts comes back unchanged from a database; reading and writing it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from holdall import Database, Key, Model, field
from holdall.errors import InvalidFieldError


class Colour(Enum):
    RED = "red"
    ONE = 1
    PAIR = (1, "x")


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: float


@dataclass
class Box:
    width: int
    height: float = 1.0
    labels: set[str] = dataclass_field(default_factory=set)


class Address(BaseModel):
    street: str
    number: int | None = None
    seen: datetime | None = None
    more: list[Address] = []


class Thing(Model):
    k: Key[int]
    text: str | None = None
    whole: int | None = None
    number: float | None = None
    exact: Decimal | None = None
    flag: bool | None = None
    raw: bytes | None = None
    moment: datetime | None = None
    day: date | None = None
    clock: time | None = None
    length: timedelta | None = None
    ref: UUID | None = None
    colour: Colour | None = None
    level: Level | None = None
    choice: Literal["a", 1, b"x"] | None = None
    anything: Any = None
    list_of_any: list[Any] | None = None
    dict_of_any: dict[str, Any] | None = None
    numbers: list[int] | None = None
    days: dict[int, date] | None = None
    words: set[str] | None = None
    sizes: frozenset[float] | None = None
    raws: set[bytes] | None = None
    mixed: set[int | str] | None = None
    colours: set[Colour] | None = None
    pair: tuple[int, str] | None = None
    point: Point | None = None
    box: Box | None = None
    address: Address | None = None
    addresses: list[Address] | None = None
    union: int | str | list[float] | None = None


class Required(Model):
    k: Key[int]
    anything: Any
    tags: list[str] = field(default_factory=lambda: ["x"])
    box: Box = field(default_factory=lambda: Box(1))


text = st.text(max_size=8)
floats = st.floats() | st.integers(-9, 9).map(float)
moments = st.datetimes(timezones=st.none() | st.timezones(), allow_imaginary=True)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | floats | text | st.binary(max_size=4) | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(text, inner, max_size=3)
        | st.sets(text, max_size=2)
        | st.tuples(inner)
    ),
    max_leaves=5,
)
addresses = st.builds(Address, street=text, number=st.none() | st.integers(), seen=st.none() | moments)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": text,
    "whole": st.integers() | st.booleans(),
    "number": floats | st.integers(),
    "exact": st.decimals() | st.integers(),
    "flag": st.booleans() | st.integers(0, 1),
    "raw": st.binary(),
    "moment": moments,
    "day": st.dates() | moments,
    "clock": st.times(timezones=st.none() | st.timezones()),
    "length": st.timedeltas(),
    "ref": st.uuids(),
    "colour": st.sampled_from(Colour),
    "level": st.sampled_from(Level) | st.integers(0, 3),
    "choice": st.sampled_from(["a", 1, b"x", True, 1.0, "b"]),
    "anything": plain,
    "list_of_any": st.lists(plain, max_size=3),
    "dict_of_any": st.dictionaries(text, plain, max_size=3),
    "numbers": st.lists(st.integers()),
    "days": st.dictionaries(st.integers(), st.dates()),
    "words": st.sets(text),
    "sizes": st.frozensets(floats),
    "raws": st.sets(st.binary()),
    "mixed": st.sets(st.integers() | text),
    "colours": st.sets(st.sampled_from(Colour)),
    "pair": st.tuples(st.integers(), text),
    "point": st.builds(Point, st.integers(), floats),
    "box": st.builds(Box, st.integers(), floats, st.sets(text)),
    "address": addresses,
    "addresses": st.lists(addresses, max_size=2),
    "union": st.integers() | text | st.lists(floats, max_size=2),
}


def same(one: Any, two: Any) -> bool:
    """Whether two values have the same type and content. Numbers need only be equal, datetimes the same moment."""
    numbers = (int, float, Decimal)
    if type(one) in numbers and type(two) in numbers:
        return bool(one == two)
    if type(one) is not type(two):
        return False
    if isinstance(one, Mapping):
        return one.keys() == two.keys() and all(same(value, two[name]) for name, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, datetime) and one.tzinfo is not None:
        return two.tzinfo is not None and one.astimezone(UTC) == two.astimezone(UTC)
    if isinstance(one, BaseModel):
        return same(dict(one), dict(two))
    return bool(one == two)


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with Database("memory:") as opened:
        yield opened


def test_every_field_has_its_values() -> None:
    assert {field.name for field in Thing._schema.plain} == VALUES.keys()


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
@settings(max_examples=max(8, settings().max_examples // 4))
def test_a_value_comes_back_unchanged_or_is_refused(name: str, data: st.DataObject, db: Database) -> None:
    given = data.draw(VALUES[name])
    try:
        kept = getattr(Thing(k=1, **{name: given}), name)
        db.run(lambda tx: tx.create_or_put(Thing, {"k": 1}, {name: given}))
    except InvalidFieldError:
        return
    assert same(getattr(db.get_one(Thing, 1), name), kept)

    with db.transaction() as tx:
        loaded = tx.get_one(Thing, 1)
        assert same(getattr(loaded, name), kept)
        assert tx.changes() == []

    with db.transaction() as tx:
        setattr(tx.get_one(Thing, 1), name, None)
    assert getattr(db.get_one(Thing, 1), name) is None

    with db.transaction() as tx:
        setattr(tx.get_one(Thing, 1), name, kept)
    assert same(getattr(db.get_one(Thing, 1), name), kept)


@given(plain)
def test_a_default_and_a_value_are_stored_alike(value: Any) -> None:
    with Database("memory:") as db:
        try:
            made = Required(k=1, anything=value)
        except InvalidFieldError:
            return
        db.run(lambda tx: tx.create(made))
        found = db.get_one(Required, 1)
        assert same(found.anything, made.anything)
        assert (found.tags, found.box) == (["x"], Box(1))


def test_a_change_inside_every_kind_of_container_is_written(db: Database) -> None:
    db.run(
        lambda tx: tx.create_or_put(
            Thing,
            {"k": 2},
            {
                "anything": {"a": [1]},
                "list_of_any": [[1]],
                "dict_of_any": {"a": {"b": 1}},
                "words": {"a"},
                "box": Box(1),
                "address": Address(street="Main", more=[Address(street="Side")]),
            },
        )
    )
    with db.transaction() as tx:
        thing = tx.get_one(Thing, 2)
        thing.anything["a"].append(2)
        assert thing.list_of_any is not None
        thing.list_of_any[0][0] = 5
        assert thing.dict_of_any is not None
        thing.dict_of_any["a"]["c"] = None
        assert thing.words is not None
        thing.words.add("b")
        assert thing.box is not None
        thing.box.labels.add("x")
        assert thing.address is not None
        thing.address.more[0].number = 7
    found = db.get_one(Thing, 2)
    assert (found.anything, found.list_of_any, found.dict_of_any) == (
        {"a": [1, 2]},
        [[5]],
        {"a": {"b": 1, "c": None}},
    )
    assert (found.words, found.box) == ({"a", "b"}, Box(1, labels={"x"}))
    assert found.address == Address(street="Main", more=[Address(street="Side", number=7)])

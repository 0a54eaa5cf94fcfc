"""Codecs: every value that a type admits is stored exactly and reads back equal; what a codec knows about its type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Gt, Interval, Le, Lt, MultipleOf
from codec_types import (
    TYPES,
    Address,
    Alias,
    Cat,
    Colour,
    Dog,
    Line,
    Point,
    Rank,
    Size,
    Tags,
    Terse,
    Tree,
    UserId,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    JsonValue,
    PlainSerializer,
    PositiveInt,
    conint,
)

from holdall.core.measure import canonical_item
from holdall.errors import InvalidValueError
from holdall.models.codec.codec import Bounds, codec_for


@pytest.mark.parametrize(("kind", "values"), TYPES, ids=[str(kind)[:60] for kind, _ in TYPES])
@settings(max_examples=300 if os.environ.get("HOLDALL_TORTURE") else 12)
@given(st.data())
def test_a_value_comes_back_equal_and_of_the_same_type(
    kind: Any, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    codec = codec_for(kind)
    attribute = codec.encode_checked(codec.validate(value))
    assert codec.encode(value) == attribute
    travelled = json.loads(json.dumps(attribute))
    back = codec.decode(travelled)
    assert back == value
    assert type(back) is type(value) or isinstance(value, int | float | Decimal)
    kept, _ = canonical_item({"value": travelled})
    assert kept["value"] == travelled  # a store keeps exactly this form
    if value is not None and codec.kind is not None:
        assert attribute.keys() == {codec.kind}


# --- what a codec knows about its type ------------------------------------------------------------------

NULLABLE: list[tuple[Any, bool]] = [
    (int, False),
    (int | None, True),
    (int | str, False),
    (int | str | None, True),
    (Annotated[int | None, Ge(0)], True),
    (Annotated[int, Ge(0)] | None, True),
    (Annotated[int | None, Ge(0)] | str, True),
    (Alias, True),
    (UserId, False),
    (Any, True),
    (object, True),
    (None, True),
    (Literal["a"], False),
    (Literal["a", None], True),
    (list[int | None], False),
    (dict[str, Any], False),
]


@pytest.mark.parametrize(("kind", "nullable"), NULLABLE)
def test_a_codec_knows_whether_none_is_a_value(kind: Any, nullable: bool) -> None:
    codec = codec_for(kind)
    assert codec.nullable is nullable
    if nullable:
        assert codec.validate(None) is None
        assert codec.encode_checked(None) == codec.encode(None) == {"NULL": True}
        assert codec.decode({"NULL": True}) is None
    else:
        with pytest.raises(InvalidValueError):
            codec.validate(None)


NUMBERS: list[tuple[Any, Bounds | None]] = [
    (int, Bounds()),
    (float | None, Bounds()),
    (UserId, Bounds()),
    (int | float, Bounds()),
    (Annotated[int, Ge(0)], Bounds(ge=0)),
    (Annotated[int, Ge(0)] | None, Bounds(ge=0)),
    (Annotated[int | None, Ge(0), Lt(9)], Bounds(ge=0, lt=9)),
    (Annotated[Decimal, Interval(gt=1, le=5)], Bounds(gt=1, le=5)),
    (Annotated[int, Field(ge=1, lt=5)], Bounds(ge=1, lt=5)),
    (Annotated[Annotated[int, Ge(3), Le(9)], Ge(1), Le(5)], Bounds(ge=3, le=5)),
    (Annotated[int, MultipleOf(2)], Bounds(more=True)),
    (PositiveInt, Bounds(gt=0)),
    (conint(ge=2), Bounds(ge=2)),
    (bool, None),
    (str, None),
    (Rank, None),
    (timedelta, None),
    (Literal[1], None),
    (int | str, None),
    (list[int], None),
]


@pytest.mark.parametrize(("kind", "bounds"), NUMBERS, ids=[str(row[0])[:60] for row in NUMBERS])
def test_a_codec_knows_the_bounds_of_a_number(kind: Any, bounds: Bounds | None) -> None:
    assert codec_for(kind).number == bounds


KINDS: list[tuple[Any, str | None]] = [
    (str, "S"),
    (str | None, "S"),
    (Annotated[int, Ge(0)], "N"),
    (timedelta, "N"),
    (Size, "S"),
    (Rank | None, "N"),
    (Colour, None),
    (Literal["a", "b"], "S"),
    (Literal["a", 1], None),
    (list[int], "L"),
    (tuple[int, ...], "L"),
    (list, "L"),
    (dict[str, Any] | None, "M"),
    (dict[int, str], "M"),
    (set[str], None),
    (Line, "M"),
    (Line | None, "M"),
    (Tree, "M"),
    (list[Tree], "L"),
    (Point, "M"),
    (Address, "M"),
    (Tags, "L"),
    (Cat | Dog, "M"),
    (Annotated[Cat | Dog, Field(discriminator="kind")], "M"),
    (int | float, "N"),
    (datetime | str | None, "S"),
    (int | str, None),
    (Annotated[int, AfterValidator(abs)], "N"),
    (Annotated[int, PlainSerializer(lambda number: str(number))], None),
    (Terse, None),
    (AwareDatetime, "S"),
    (Any, None),
    (JsonValue, None),
]


@pytest.mark.parametrize(("kind", "letter"), KINDS, ids=[str(row[0])[:60] for row in KINDS])
def test_a_codec_knows_the_dynamodb_type_of_its_values(kind: Any, letter: str | None) -> None:
    assert codec_for(kind).kind == letter


def test_a_codec_knows_whether_its_type_is_a_time() -> None:
    assert codec_for(datetime).is_time
    assert codec_for(Annotated[datetime | None, Gt(datetime(2026, 1, 1))]).is_time
    assert not codec_for(date).is_time
    assert not codec_for(int).is_time


def test_the_adapter_gives_the_json_schema() -> None:
    assert codec_for(Annotated[int, Ge(0)]).adapter.json_schema() == {"minimum": 0, "type": "integer"}
    assert codec_for(str).adapter.json_schema() == {"type": "string"}
    assert codec_for(Line).adapter.json_schema()["required"] == ["sku", "price"]


def test_the_same_type_has_the_same_codec() -> None:
    assert codec_for(list[int]) is codec_for(list[int])
    assert codec_for(int | str) is not codec_for(str | int)
    assert codec_for(Literal[1]) is not codec_for(Literal[True])
    unhashable: Any = Annotated[int, Ge(0), ["a list"]]
    assert codec_for(unhashable).validate(5) == 5
    assert repr(codec_for(list[int])) == "codec_for(list[int])"


# --- imports --------------------------------------------------------------------------------------------

LIGHT = """
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID
from holdall.models.codec.codec import codec_for

class Colour(Enum):
    RED = "red"

values = ["a", 1, 1.5, True, b"a", Decimal(1), datetime(2026, 1, 1), date(2026, 1, 1), time(9), timedelta(1)]
values += [UUID(int=1), Colour.RED]
for value in values:
    for kind in (type(value), type(value) | None):
        codec = codec_for(kind)
        assert codec.decode(codec.encode_checked(codec.validate(value))) == value
        codec.kind, codec.number, codec.nullable, codec.mutable(value)
for kind, value in [(Literal["a"], "a"), (Any, [1]), (dict[str, Any], {"a": 1}), (list[Any], [1]), (dict, {})]:
    codec = codec_for(kind)
    assert codec.decode(codec.encode_checked(codec.validate(value))) == value
lists = codec_for(list[int])
before = {name.partition(".")[0] for name in sys.modules} & {"pydantic", "pydantic_core", "annotated_types", "inspect"}
lists.validate([1])
after = {name.partition(".")[0] for name in sys.modules} & {"pydantic"}
print(sorted(before), sorted(after))
"""


def test_everyday_types_do_not_load_pydantic() -> None:
    result = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("[] ['pydantic']\n", "")

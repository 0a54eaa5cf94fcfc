"""The exact stored form of every kind of value, and how an attribute is read without a type."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, localcontext
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from holdall.core.measure import canonical_item
from holdall.core.numbers import number_text
from holdall.errors import InvalidValueError
from holdall.models.codec.difference import difference
from holdall.models.codec.stored_form import encode_value, plain, scalar_of, show


class Colour(Enum):
    RED = "red"
    BLUE = 2


class Size(StrEnum):
    LARGE = "L"


class Rank(IntEnum):
    FIRST = 1


class Spot(NamedTuple):
    x: int
    when: date


HELSINKI = timezone(timedelta(hours=2))

FORMS: list[tuple[Any, dict[str, Any]]] = [
    ("ada", {"S": "ada"}),
    ("", {"S": ""}),
    ("né 😀", {"S": "né 😀"}),
    (True, {"BOOL": True}),
    (False, {"BOOL": False}),
    (None, {"NULL": True}),
    (42, {"N": "42"}),
    (-7, {"N": "-7"}),
    (1.5, {"N": "1.5"}),
    (5.0, {"N": "5"}),
    (-0.0, {"N": "0"}),
    (1e22, {"N": "10000000000000000000000"}),
    (Decimal("1.50"), {"N": "1.5"}),
    (Decimal("1E+3"), {"N": "1000"}),
    (b"\x00\xff", {"B": "AP8="}),
    (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), {"S": "2026-01-31T09:30:00.000000Z"}),
    (datetime(2026, 1, 31, 9, 30, 0, 5, HELSINKI), {"S": "2026-01-31T07:30:00.000005Z"}),
    (datetime(2026, 1, 31, 9, 30), {"S": "2026-01-31T09:30:00.000000"}),
    (datetime(33, 1, 2, tzinfo=UTC), {"S": "0033-01-02T00:00:00.000000Z"}),
    (date(2026, 1, 31), {"S": "2026-01-31"}),
    (time(9, 30), {"S": "09:30:00"}),
    (time(9, 30, 0, 1, HELSINKI), {"S": "09:30:00.000001+02:00"}),
    (timedelta(seconds=1.5), {"N": "1.5"}),
    (timedelta(days=1), {"N": "86400"}),
    (timedelta(microseconds=-1), {"N": "-0.000001"}),
    (timedelta.max, {"N": "86399999999999.999999"}),
    (UUID("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), {"S": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}),
    (Colour.RED, {"S": "red"}),
    (Colour.BLUE, {"N": "2"}),
    (Size.LARGE, {"S": "L"}),
    (Rank.FIRST, {"N": "1"}),
    ([1, "a", None], {"L": [{"N": "1"}, {"S": "a"}, {"NULL": True}]}),
    ((1, (2,)), {"L": [{"N": "1"}, {"L": [{"N": "2"}]}]}),
    (Spot(1, date(2026, 1, 31)), {"L": [{"N": "1"}, {"S": "2026-01-31"}]}),
    (deque([1]), {"L": [{"N": "1"}]}),
    ({}, {"M": {}}),
    ({"a": [True]}, {"M": {"a": {"L": [{"BOOL": True}]}}}),
    ({7: 1}, {"M": {"7": {"N": "1"}}}),
    ({1.5: 1}, {"M": {"1.5": {"N": "1"}}}),
    ({True: 1}, {"M": {"true": {"N": "1"}}}),
    ({date(2026, 1, 31): 1}, {"M": {"2026-01-31": {"N": "1"}}}),
    ({UUID(int=1): 1}, {"M": {"00000000-0000-0000-0000-000000000001": {"N": "1"}}}),
    ({Colour.RED: 1, Size.LARGE: 2}, {"M": {"red": {"N": "1"}, "L": {"N": "2"}}}),
    (MappingProxyType({"a": 1}), {"M": {"a": {"N": "1"}}}),
    (defaultdict(int, a=1), {"M": {"a": {"N": "1"}}}),
    (Counter("aa"), {"M": {"a": {"N": "2"}}}),
    (OrderedDict(a=1), {"M": {"a": {"N": "1"}}}),
    ({"b", "a"}, {"SS": ["a", "b"]}),
    ({10, 9}, {"NS": ["9", "10"]}),
    (frozenset({b"\xff", b"a"}), {"BS": ["YQ==", "/w=="]}),
    ({date(2026, 2, 1), date(2026, 1, 31)}, {"SS": ["2026-01-31", "2026-02-01"]}),
    ({Colour.RED}, {"SS": ["red"]}),
    ({"a": 1}.keys(), {"SS": ["a"]}),
    (set(), {"L": []}),
    (frozenset(), {"L": []}),
    ({True, False}, {"L": [{"BOOL": False}, {"BOOL": True}]}),
    ({"a", 1}, {"L": [{"N": "1"}, {"S": "a"}]}),
    ({(2,), (1,)}, {"L": [{"L": [{"N": "1"}]}, {"L": [{"N": "2"}]}]}),
    ({frozenset({"b", "a"})}, {"L": [{"SS": ["a", "b"]}]}),
    (Path("/etc/hosts"), {"S": "/etc/hosts"}),
]


@pytest.mark.parametrize(("value", "form"), FORMS, ids=[str(form)[:40] for _, form in FORMS])
def test_a_value_has_exactly_this_form(value: Any, form: dict[str, Any]) -> None:
    assert encode_value(value) == form


@pytest.mark.parametrize(("value", "form"), FORMS, ids=[str(form)[:40] for _, form in FORMS])
def test_a_store_keeps_a_form_exactly(value: Any, form: dict[str, Any]) -> None:
    assert canonical_item({"value": form})[0] == {"value": form}


REFUSED: list[tuple[Any, str, str]] = [
    (float("nan"), "", "not a number"),
    (float("inf"), "", "not a number"),
    (1e-200, "", "outside"),
    (10**39 + 1, "", "40 significant digits"),
    ("\ud800", "", "lone surrogate"),
    (["a", {"b": ["\ud800"]}], "[1].b[0]", "lone surrogate"),
    ({"": 1}, "", "non-empty"),
    ({"\ud800": 1}, "", "lone surrogate"),
    ({None: 1}, "", "NoneType cannot be the key of a map"),
    ({(1, 2): 1}, "", "tuple cannot be the key of a map"),
    ({b"a": 1}, "", "bytes cannot be the key of a map"),
    ({1: "a", "1": "b"}, "", "both be stored as '1'"),
    (datetime(1, 1, 1, tzinfo=HELSINKI), "", "outside the years"),
    (time(9, tzinfo=timezone(timedelta(seconds=90))), "", "whole minutes"),
    (object(), "", "a value of type object cannot be stored"),
    ([object()], "[0]", "a value of type object cannot be stored"),
]


@pytest.mark.parametrize(
    ("value", "place", "problem"), REFUSED, ids=[f"{type(row[0]).__name__} {row[2]}"[:60] for row in REFUSED]
)
def test_a_value_without_a_form_is_refused_with_its_place(value: Any, place: str, problem: str) -> None:
    with pytest.raises(InvalidValueError) as refusal:
        encode_value(value)
    assert problem in refusal.value.problem
    assert refusal.value.place == place


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(HELSINKI)))
def test_texts_of_moments_sort_as_the_moments(one: datetime, other: datetime) -> None:
    try:
        texts = encode_value(one)["S"], encode_value(other)["S"]
    except InvalidValueError:
        assert other.year == 1  # before the year 1, seen from UTC
        return
    assert (texts[0] < texts[1]) == (one < other)


@given(st.timedeltas())
def test_a_length_of_time_is_exact_whatever_the_decimal_context(length: timedelta) -> None:
    scalar = scalar_of(timedelta)
    assert scalar is not None
    assert scalar.read is not None
    with localcontext() as context:
        context.prec = 3
        text = encode_value(length)["N"]
        assert scalar.read(text) == length
    assert Decimal(text) * 10**6 == Decimal(length // timedelta(microseconds=1))


class Repeating(tzinfo):
    """A time zone whose clocks are set back, so that every hour occurs twice."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1 if moment is not None and moment.fold else 2)

    def tzname(self, moment: datetime | None) -> str:
        return "repeating"

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)


def test_a_repeated_hour_is_stored_as_its_moment() -> None:
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=Repeating(), fold=fold) for fold in (0, 1))
    assert encode_value(first) == {"S": "2026-10-25T00:30:00.000000Z"}
    assert encode_value(second) == {"S": "2026-10-25T01:30:00.000000Z"}


def test_a_set_of_anything_has_one_form_whatever_its_order() -> None:
    values = [(1, "a"), (1, "b"), (0,), ()]
    assert encode_value(frozenset(values)) == encode_value(frozenset(reversed(values)))


# --- attributes without a type --------------------------------------------------------------------------

NUMBERS: list[tuple[str, int | float | Decimal]] = [
    ("5", 5),
    ("-5", -5),
    ("5.0", 5),
    ("5E0", 5),
    ("1.5", 1.5),
    ("1.50", 1.5),
    ("0.1", 0.1),
    ("0.00001", 0.00001),
    ("-0.000001", -0.000001),
    ("0.1000000000000000055", Decimal("0.1000000000000000055")),
    ("99999999999999999999999999999999999999", 10**38 - 1),
    ("1" + "0" * 125, 10**125),
]


@pytest.mark.parametrize(("text", "number"), NUMBERS)
def test_a_number_is_an_int_a_float_or_a_decimal_in_that_order(
    text: str, number: int | float | Decimal
) -> None:
    found = plain({"N": text})
    assert found == number
    assert type(found) is type(number)


@given(st.floats(1e-120, 1e120) | st.floats(-1e120, -1e-120))
def test_a_float_with_a_fraction_is_read_as_itself(number: float) -> None:
    found = plain({"N": number_text(number)})
    assert float(found) == number
    if not number.is_integer():
        assert type(found) is float


@given(
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30).filter(
        lambda number: not number or (abs(number) > Decimal("1e-60") and len(number.as_tuple().digits) <= 38)
    )
)
def test_no_digit_of_a_number_is_lost(number: Decimal) -> None:
    found = plain({"N": number_text(number)})
    assert number_text(found) == number_text(number)


def test_all_ten_types_can_be_read_without_a_python_type() -> None:
    attribute = {
        "M": {
            "s": {"S": "a"},
            "n": {"N": "1"},
            "b": {"B": "YQ=="},
            "flag": {"BOOL": False},
            "null": {"NULL": True},
            "list": {"L": [{"S": "a"}, {"L": []}]},
            "ss": {"SS": ["a"]},
            "ns": {"NS": ["1", "1.5"]},
            "bs": {"BS": ["YQ=="]},
        }
    }
    assert plain(attribute) == {
        "s": "a",
        "n": 1,
        "b": b"a",
        "flag": False,
        "null": None,
        "list": ["a", []],
        "ss": {"a"},
        "ns": {1, 1.5},
        "bs": {b"a"},
    }


@pytest.mark.parametrize("attribute", [{}, {"X": 1}, {"S": "a", "N": "1"}, {"L": [{"Q": 1}]}, {"N": "five"}])
def test_a_value_that_is_not_an_attribute_is_refused(attribute: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="not in DynamoDB's JSON form"):
        plain(attribute)


# --- differences ----------------------------------------------------------------------------------------


class Line(BaseModel):
    sku: str
    count: int = 1


class Discounted(Line):
    percent: int = 5


@dataclass
class Point:
    x: int
    tags: list[str]


DIFFERENT: list[tuple[Any, Any, str]] = [
    (1, "1", ""),
    (1, True, ""),
    (1, 2, ""),
    ((1,), [1], ""),
    ([1], [1, 2], "[1]"),
    ([1, 2], [1], "[1]"),
    ({"a": 1}, {"b": 1}, ".a"),
    ({}, {"b": 1}, ".b"),
    ({"a": {"b": [1, "x"]}}, {"a": {"b": [1, "y"]}}, ".a.b[1]"),
    ({"L": 1}, {Size.LARGE: 1}, ".L"),
    (Size.LARGE, "L", ""),
    (Line(sku="a"), Line(sku="b"), ".sku"),
    ([Discounted(sku="a")], [Line(sku="a")], "[0]"),
    (Point(1, ["a"]), Point(1, ["b"]), ".tags[0]"),
    (0.1, Decimal("0.1"), ""),
    (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), ""),
    ({1}, {2}, ""),
    ({1}, {1, 2}, ""),
    ({"L"}, {Size.LARGE}, ""),
]


@pytest.mark.parametrize(("old", "new", "place"), DIFFERENT)
def test_a_difference_is_found_at_its_place(old: Any, new: Any, place: str) -> None:
    found = difference(old, new)
    assert found is not None
    assert found[0] == place


SAME: list[tuple[Any, Any]] = [
    (5, 5.0),
    (5, Decimal("5.00")),
    (-0.0, 0),
    (
        datetime(2026, 10, 25, 2, 30, tzinfo=Repeating(), fold=1),
        datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
    ),
    (Line(sku="a"), Line(sku="a", count=1)),
    ([], []),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_equivalent_values_have_no_difference(old: Any, new: Any) -> None:
    assert difference(old, new) is None


def test_types_can_be_compared_alone() -> None:
    assert difference(["a", 1], ["b", 2], types_only=True) is None
    assert difference({"a", "A"}, {"a"}, types_only=True) is None
    assert difference({"a": 1}, {"A": 1}, types_only=True) is None
    assert difference(["a", 1], ["b", "2"], types_only=True) == ("[1]", 1, "2")


# --- messages -------------------------------------------------------------------------------------------


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_a_shown_value_is_short() -> None:
    assert show("ada") == "'ada'"
    text = show(list(range(1000)))
    assert len(text) == 60
    assert text.startswith("[0, 1, 2")
    assert text.endswith("998, 999]")
    assert show(Unshowable()) == "<Unshowable whose repr fails: RuntimeError>"

"""Order-preserving texts: a sorts before b if and only if text(a) sorts before text(b), and texts can be decoded."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from core_strategies import decimals, floats, integers, texts
from hypothesis import example, given
from hypothesis import strategies as st

from holdall.core.keys import number_order, order_number, sort_parts, sort_text
from holdall.errors import InvalidKeyError, InvalidValueError

zones = st.builds(lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(-1439, 1439))
times = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=zones) | st.datetimes(
    datetime(2026, 1, 1), datetime(2026, 1, 3), timezones=zones
)
numbers = decimals() | integers() | floats()
controlled = st.text("\x00\x01\x02\x03a~\U0010ffff", max_size=4) | texts

PARTS: dict[type[Any], st.SearchStrategy[Any]] = {
    str: controlled,
    int: integers() | st.integers(-3, 3),
    Decimal: decimals() | st.sampled_from([Decimal("0.1"), Decimal(1), Decimal("1.1"), Decimal(-1)]),
    float: floats(),
    datetime: times,
    UUID: st.uuids(),
    bytes: st.binary(max_size=3),
    bool: st.booleans(),
}


class Colour(str, Enum):  # noqa: UP042 - the older kind, whose str() is not its value
    """A str that does not print as itself."""

    RED = "red"


class Mood(StrEnum):
    """A str enum of the newer kind."""

    GLAD = "glad"


class Level(IntEnum):
    """An int with a name."""

    HIGH = 42


def _exact(number: int | float | Decimal) -> Decimal:
    """The number that is stored: for a float, that of its shortest text."""
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


def _comparable(part: Any) -> Any:
    """A value that Python compares correctly; times are converted to UTC."""
    if isinstance(part, datetime):
        return part.astimezone(UTC)
    return _exact(part) if isinstance(part, int | float | Decimal) and not isinstance(part, bool) else part


def _way(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _assert_same_order(left: tuple[Any, ...], right: tuple[Any, ...]) -> None:
    mine, yours = sort_text(*left), sort_text(*right)
    expected = _way(tuple(map(_comparable, left)), tuple(map(_comparable, right)))
    assert _way(mine, yours) == expected
    assert _way(mine.encode(), yours.encode()) == expected


# --- numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (42, "p50242"),
        (-42, "n49757~"),
        (0, "o"),
        (0.0, "o"),
        (Decimal("-0.00"), "o"),
        (1, "p5011"),
        (-1, "n4988~"),
        (10, "p5021"),
        (Decimal("4.2"), "p50142"),
        (Decimal("0.5"), "p5005"),
        (0.05, "p4995"),
        (-0.05, "n5004~"),
        (10**125, "p6261"),
        (-(10**125), "n3738~"),
        (Decimal("1E-130"), "p3711"),
        (Decimal("-1E-130"), "n6288~"),
        (10**38 - 1, "p538" + "9" * 38),
        (1 - 10**38, "n461" + "0" * 38 + "~"),
    ],
)
def test_a_number_has_this_text(number: int | float | Decimal, text: str) -> None:
    assert order_number(number) == sort_text(number) == text
    assert number_order(text) == _exact(number)


@given(numbers, numbers)
@example(Decimal("1.1"), Decimal(1))
@example(Decimal("-1.1"), Decimal(-1))
@example(-1, 0)
@example(9, 10)
@example(-9, -10)
@example(Decimal("1E-130"), 0)
@example(Decimal("9E125"), Decimal("9.1E125"))
def test_numbers_keep_their_order(left: Any, right: Any) -> None:
    _assert_same_order((left,), (right,))


@given(st.lists(decimals() | st.integers(-30, 30).map(Decimal), max_size=30))
def test_sorting_texts_sorts_numbers(many: list[Decimal]) -> None:
    assert [number_order(text) for text in sorted(map(order_number, many))] == sorted(many)


@given(decimals() | integers().map(Decimal))
def test_a_number_comes_back_with_all_38_digits(number: Decimal) -> None:
    assert number_order(order_number(number)) == number
    assert sort_parts(sort_text(number), Decimal) == (number,)


@given(decimals(), st.sampled_from([1, -1]))
def test_neighbours_in_the_38th_digit_have_different_texts(number: Decimal, step: int) -> None:
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    full = int("".join(map(str, digits)).ljust(38, "0"))
    neighbour = full + step
    if not 10**37 <= neighbour < 10**38:
        neighbour = full - step
    other = Decimal((sign, tuple(map(int, str(neighbour))), exponent + len(digits) - 38))
    assert order_number(other) != order_number(number)
    _assert_same_order((number,), (other,))


@given(decimals())
def test_equal_numbers_have_one_text(number: Decimal) -> None:
    assert order_number(str(number)) == order_number(number) == order_number(f"{number:f}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0",
        "42",
        "oo",
        "p",
        "p50",
        "p502",
        "p50242~",
        "p5020",
        "p50204",
        "p50240",
        "p5x242",
        "p5024a",
        "p50 42",
        "p-0142",
        "p502４２",
        "n",
        "n497",
        "n497~",
        "n49757",
        "n49797~",
        "n49759~",
        "n497x~",
        "n49757~~",
        "P50242",
    ],
)
def test_a_malformed_number_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidKeyError, match="not a valid number in a sort key"):
        number_order(text)


@pytest.mark.parametrize("text", ["p9991", "p0011", "n0008~", "p501" + "1" * 39])
def test_the_text_of_a_number_that_cannot_be_stored_is_refused(text: str) -> None:
    with pytest.raises(InvalidKeyError):
        number_order(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**126, int("1" * 39), Decimal("1E-131")])
def test_a_number_that_dynamodb_cannot_store_is_not_a_key(number: float) -> None:
    with pytest.raises(InvalidValueError):
        sort_text(number)


# --- other types ----------------------------------------------------------------------------------------

singles = st.sampled_from(sorted(PARTS, key=lambda kind: kind.__name__)).flatmap(
    lambda kind: st.tuples(st.just(kind), PARTS[kind], PARTS[kind])
)


@given(singles)
def test_every_type_keeps_its_order(case: tuple[type[Any], Any, Any]) -> None:
    _, left, right = case
    _assert_same_order((left,), (right,))


@given(singles)
def test_a_value_of_every_type_comes_back(case: tuple[type[Any], Any, Any]) -> None:
    kind, part, _ = case
    (back,) = sort_parts(sort_text(part), kind)
    assert back == part
    assert type(back) is kind


@given(times, times)
def test_times_keep_their_order_in_any_time_zones(left: datetime, right: datetime) -> None:
    _assert_same_order((left,), (right,))


@given(times, zones)
def test_a_time_has_one_text_whatever_its_time_zone(moment: datetime, zone: timezone) -> None:
    assert sort_text(moment.astimezone(zone)) == sort_text(moment)


def test_a_time_is_written_in_utc_to_the_microsecond() -> None:
    berlin = timezone(timedelta(hours=1))
    moment = datetime(2026, 11, 15, 0, 30, tzinfo=berlin)
    assert sort_text(moment) == "2026-11-14T23:30:00.000000Z"
    (back,) = sort_parts(sort_text(moment), datetime)
    assert back == moment
    assert back.utcoffset() == timedelta(0)
    assert sort_text(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"


def test_a_time_without_a_time_zone_is_not_a_key() -> None:
    with pytest.raises(InvalidKeyError, match="without a time zone"):
        sort_text(datetime(2026, 11, 15))


def test_a_time_whose_year_in_utc_is_out_of_range_is_not_a_key() -> None:
    with pytest.raises(InvalidKeyError, match="years 1 to 9999"):
        sort_text(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))))


def test_examples_of_other_types() -> None:
    assert sort_text("a\x00b") == "a\x00b"
    assert sort_text("") == ""
    assert sort_text(True) == "1"
    assert sort_text(False) == "0"
    assert sort_text(b"\x00\xab") == "00ab"
    assert sort_text(UUID("12345678-ABCD-5678-1234-567812345678")) == "12345678abcd56781234567812345678"


@pytest.mark.parametrize("member", [Colour.RED, Mood.GLAD])
def test_an_enum_of_strings_is_its_value(member: str) -> None:
    assert sort_text(member) == member.value  # type: ignore[attr-defined]
    assert sort_text(member, "x") == f"{member.value}\x00x"  # type: ignore[attr-defined]
    assert type(sort_text(member)) is str


def test_an_enum_of_numbers_is_its_value() -> None:
    assert sort_text(Level.HIGH) == "p50242"


@pytest.mark.parametrize("part", [None, 1j, date(2026, 1, 1), (1,), bytearray(b"a"), object()])
def test_a_value_without_an_order_is_not_a_key(part: Any) -> None:
    with pytest.raises(InvalidKeyError, match=type(part).__name__):
        sort_text(part)
    with pytest.raises(InvalidKeyError, match=type(part).__name__):
        sort_text("a", part)


@pytest.mark.parametrize("parts", [("\ud800",), ("a", "\udfff")])
def test_a_lone_surrogate_is_not_a_key(parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidKeyError, match="surrogate"):
        sort_text(*parts)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("2", bool),
        ("", bool),
        ("true", bool),
        ("p50142", int),
        ("42", int),
        ("42", Decimal),
        ("4.2", float),
        ("abc", bytes),
        ("zz", bytes),
        ("AB", bytes),
        ("ab cd", bytes),
        ("1234", UUID),
        ("g" * 32, UUID),
        ("A" * 32, UUID),
        ("12345678-1234-5678-1234-567812345678", UUID),
        ("{12345678123456781234567812345678}", UUID),
        ("urn:uuid:12345678123456781234567812345678", UUID),
        ("1" * 15 + "_" + "1" * 16, UUID),
        ("", datetime),
        ("2026-11-15T10:00:00Z", datetime),
        ("2026-11-15T10:00:00.000000", datetime),
        ("2026-11-15T10:00:00.000000+", datetime),
        ("2026-11-15 10:00:00.000000Z", datetime),
        ("2026-13-15T10:00:00.000000Z", datetime),
        ("2026-11-15T10:00:00,000000Z", datetime),
        ("2026-W46-7T10:00:00.000000Z", datetime),
        ("2026-11-15T10:00:00.000+01Z", datetime),
    ],
)
def test_a_text_that_sort_text_would_not_write_is_refused(text: str, kind: type[Any]) -> None:
    with pytest.raises(InvalidKeyError, match=f"not a valid (number|{kind.__name__}) in a sort key"):
        sort_parts(text, kind)


def test_a_type_without_an_order_cannot_be_read() -> None:
    with pytest.raises(InvalidKeyError, match="list cannot be part of a sort key"):
        sort_parts("x", list)


# --- several parts --------------------------------------------------------------------------------------

shapes = st.lists(st.sampled_from(sorted(PARTS, key=lambda kind: kind.__name__)), min_size=2, max_size=4)
pairs = shapes.flatmap(
    lambda kinds: st.tuples(
        st.just(tuple(kinds)),
        st.tuples(*(PARTS[kind] for kind in kinds)),
        st.tuples(*(PARTS[kind] for kind in kinds)),
    )
)


@given(pairs)
def test_tuples_keep_their_order(
    case: tuple[tuple[type[Any], ...], tuple[Any, ...], tuple[Any, ...]],
) -> None:
    _, left, right = case
    _assert_same_order(left, right)


@given(pairs, st.integers(0, 3))
def test_tuples_that_share_a_beginning_keep_their_order(
    case: tuple[tuple[type[Any], ...], tuple[Any, ...], tuple[Any, ...]], shared: int
) -> None:
    _, left, right = case
    _assert_same_order(left, (*left[:shared], *right[shared:]))


@given(st.tuples(controlled, controlled), st.tuples(controlled, controlled))
@example(("a", "b"), ("a\x00", "b"))
@example(("a", ""), ("a\x00", ""))
@example(("a\x00", "b"), ("a\x01", "b"))
@example(("a\x01", "b"), ("a\x02", "b"))
@example(("", "\x00"), ("\x00", ""))
@example(("a\x01\x01", ""), ("a\x00", ""))
def test_strings_with_the_separator_and_the_escape_keep_their_order(
    left: tuple[str, str], right: tuple[str, str]
) -> None:
    _assert_same_order(left, right)


@given(pairs)
def test_tuples_come_back(case: tuple[tuple[type[Any], ...], tuple[Any, ...], tuple[Any, ...]]) -> None:
    kinds, parts, _ = case
    back = sort_parts(sort_text(*parts), *kinds)
    assert back == parts
    assert tuple(map(type, back)) == kinds


@given(st.lists(st.tuples(controlled, st.integers(-20, 20), st.booleans()), max_size=20))
def test_sorting_compound_texts_sorts_the_tuples(many: list[tuple[str, int, bool]]) -> None:
    assert sorted(many, key=lambda parts: sort_text(*parts)) == sorted(many)


def test_examples_of_compound_keys() -> None:
    assert sort_text("ada", 42) == "ada\x00p50242"
    assert sort_text("", "") == "\x00"
    assert sort_text("a\x00b", "c") == "a\x01\x01b\x00c"
    assert sort_text("a\x01b", "c") == "a\x01\x02b\x00c"
    assert sort_text(True, b"\xff", "x") == "1\x00ff\x00x"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a", (str, str)),
        ("a\x00b\x00c", (str, str)),
        ("", ()),
        ("a\x00x", (str, int)),
        ("a\x01\x00b", (str, str)),
        ("a\x01x\x00b", (str, str)),
        ("a\x01\x03\x00b", (str, str)),
        ("a\x01", (str, str)),
        ("a\x00b\x01", (str, str)),
        ("a\x00\x01\x01\x01", (str, str)),
    ],
)
def test_a_malformed_compound_is_refused(text: str, kinds: tuple[type[Any], ...]) -> None:
    with pytest.raises(InvalidKeyError):
        sort_parts(text, *kinds)

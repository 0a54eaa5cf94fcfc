"""The attribute codec: ten types to and from Python, exactly; errors name the place of an unsupported value."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple
from copy import deepcopy
from datetime import datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from core_strategies import (
    attributes,
    decimals,
    floats,
    integers,
    items,
    plain_items,
    plain_values,
    texts,
)
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.measure import attribute_size, canonical_item, item_size
from holdall.core.values import decode, decode_item, encode, encode_item
from holdall.errors import InvalidValueError


class Colour(str, Enum):  # noqa: UP042 - the older kind, whose str() is not its value
    """A str that does not print as itself."""

    RED = "red"


class Level(IntEnum):
    """An int with a name."""

    HIGH = 3


class Mood(StrEnum):
    """A str enum of the newer kind."""

    GLAD = "glad"


Point = namedtuple("Point", "x y")


# --- Python → attribute → Python ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (None, {"NULL": True}),
        (True, {"BOOL": True}),
        (False, {"BOOL": False}),
        ("", {"S": ""}),
        ("ada\x00é😀", {"S": "ada\x00é😀"}),
        (42, {"N": "42"}),
        (-7, {"N": "-7"}),
        (Decimal("1.50"), {"N": "1.5"}),
        (2.5, {"N": "2.5"}),
        (b"", {"B": ""}),
        (b"\x00\xff", {"B": "AP8="}),
        ([], {"L": []}),
        ([1, "a", None], {"L": [{"N": "1"}, {"S": "a"}, {"NULL": True}]}),
        ({}, {"M": {}}),
        ({"a": {"b": []}}, {"M": {"a": {"M": {"b": {"L": []}}}}}),
        ({"b", "a"}, {"SS": ["a", "b"]}),
        ({10, 9, Decimal("-0.5")}, {"NS": ["-0.5", "9", "10"]}),
        ({b"b", b"a"}, {"BS": ["YQ==", "Yg=="]}),
    ],
)
def test_each_type_has_its_form(value: object, attribute: dict[str, Any]) -> None:
    assert encode(value) == attribute
    assert decode(attribute) == value


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (bytearray(b"a"), {"B": "YQ=="}),
        (memoryview(b"a"), {"B": "YQ=="}),
        ((1, 2), {"L": [{"N": "1"}, {"N": "2"}]}),
        (Point(1, 2), {"L": [{"N": "1"}, {"N": "2"}]}),
        (frozenset({"a"}), {"SS": ["a"]}),
        (OrderedDict(a=1), {"M": {"a": {"N": "1"}}}),
        (UserDict({"a": 1}), {"M": {"a": {"N": "1"}}}),
        (Colour.RED, {"S": "red"}),
        (Mood.GLAD, {"S": "glad"}),
        (Level.HIGH, {"N": "3"}),
        ({Colour.RED}, {"SS": ["red"]}),
    ],
)
def test_subclasses_and_similar_types_are_encoded_as_the_plain_types(
    value: object, attribute: dict[str, Any]
) -> None:
    encoded = encode(value)
    assert encoded == attribute
    assert all(type(content) in (str, list, dict) for content in encoded.values())


@given(plain_values())
def test_a_value_comes_back_equal(value: Any) -> None:
    assert decode(encode(value)) == value


@given(plain_items())
def test_an_item_comes_back_equal(values: dict[str, Any]) -> None:
    assert decode_item(encode_item(values)) == values
    kept, _ = canonical_item(encode_item(values))
    assert decode_item(kept) == values


@given(st.none() | st.booleans() | integers() | texts | st.binary())
def test_a_scalar_comes_back_with_its_type(value: object) -> None:
    assert type(decode(encode(value))) is type(value)


@given(floats())
def test_a_float_comes_back_equal_after_conversion_to_float(number: float) -> None:
    assert float(decode(encode(number))) == number


@given(decimals())
def test_a_decimal_comes_back_exactly(number: Decimal) -> None:
    assert decode(encode(number)) == number


@given(plain_values())
def test_encode_writes_the_canonical_form(value: Any) -> None:
    attribute = encode(value)
    assert canonical_item({"x": attribute})[0] == {"x": attribute}


def test_members_of_a_set_with_equal_texts_are_written_once() -> None:
    # These pairs differ in Python (a float is not exactly its shortest text), but not in DynamoDB.
    assert encode({0.1, Decimal("0.1")}) == {"NS": ["0.1"]}
    assert encode({1e23, 10**23}) == {"NS": ["1" + "0" * 23]}


# --- refusals of encode ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [object(), 1j, datetime(2026, 1, 1), UUID(int=0), range(3), Ellipsis, int, iter(()), encode],
    ids=lambda value: type(value).__name__,
)
def test_the_error_of_an_unsupported_type_names_it(value: object) -> None:
    with pytest.raises(InvalidValueError, match=type(value).__name__) as caught:
        encode(value)
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), float("-inf"), Decimal("NaN"), Decimal("Infinity")]
)
def test_encode_refuses_nan_and_infinity(number: object) -> None:
    with pytest.raises(InvalidValueError, match="not a number"):
        encode(number)


@pytest.mark.parametrize("number", [int("1" * 39), Decimal("0." + "1" * 39)])
def test_encode_refuses_numbers_with_39_digits(number: object) -> None:
    with pytest.raises(InvalidValueError, match="39 significant digits"):
        encode(number)


@pytest.mark.parametrize("number", [10**126, -(10**126), Decimal("1E-131"), 1e-200, 1e300, Decimal("-1E126")])
def test_encode_refuses_numbers_out_of_range(number: object) -> None:
    with pytest.raises(InvalidValueError, match="range"):
        encode(number)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (set(), "is empty"),
        ({1, "a"}, "N and S"),
        ({b"a", "a"}, "B and S"),
        ({True, "a"}, "BOOL and S"),
        ({None}, "NULL"),
        ({True}, "BOOL"),
        ({(1, 2)}, "L"),
        ({frozenset({"a"})}, "SS"),
    ],
)
def test_a_set_must_have_members_of_one_scalar_type(members: set[object], message: str) -> None:
    with pytest.raises(InvalidValueError, match=f"the set .*{message}"):
        encode(members)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"a": float("nan")}, "a"),
        ({"lines": [{"price": 1}, {"price": object()}]}, "lines[1].price"),
        ({"a": [[1], [2, set()]]}, "a[1][1]"),
        ({"a": {"b": {"c": {1, "x"}}}}, "a.b.c"),
        ({"a": {"b": [float("inf")]}}, "a.b[0]"),
        ({"a": [{1: 2}]}, "a[0]"),
    ],
)
def test_a_refusal_names_the_place(values: dict[str, object], place: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        encode_item(values)
    assert caught.value.place == place
    assert str(caught.value).startswith(f"{place}: {caught.value.problem}")


def test_an_endlessly_nested_list_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidValueError, match="nested"):
        encode(endless)


def test_encode_refuses_a_lone_surrogate() -> None:
    with pytest.raises(InvalidValueError, match="surrogate"):
        encode("a\ud800")


# --- decode ---------------------------------------------------------------------------------------------

MALFORMED: list[Any] = [
    {},
    {"S": "a", "N": "1"},
    {"X": "a"},
    {"s": "a"},
    "a",
    None,
    5,
    [],
    {"N": "many"},
    {"N": "1.x"},
    {"N": 1},
    {"B": "a"},
    {"L": 5},
    {"L": ["a"]},
    {"M": []},
    {"M": {"a": "b"}},
    {"NS": ["x"]},
]


@pytest.mark.parametrize("attribute", MALFORMED, ids=repr)
def test_a_malformed_attribute_is_not_decoded(attribute: Any) -> None:
    with pytest.raises(InvalidValueError):
        decode(attribute)


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"a": {"X": 1}}, "a"),
        ({"a": {"L": [{"S": "x"}, {"M": {"b": {"N": "many"}}}]}}, "a[1].b"),
    ],
)
def test_the_error_of_decoding_names_the_place(item: Any, place: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        decode_item(item)
    assert caught.value.place == place


# --- the stored form ------------------------------------------------------------------------------------


@given(items())
def test_the_stored_form_is_stable_and_decodes_to_the_same_values(item: dict[str, Any]) -> None:
    before = deepcopy(item)
    kept, size = canonical_item(item)
    assert item == before
    assert decode_item(kept) == decode_item(item)
    assert canonical_item(kept) == (kept, size)
    assert item_size(item) == size


@given(attributes())
def test_a_value_has_the_same_size_in_any_spelling(attribute: dict[str, Any]) -> None:
    kept = canonical_item({"x": attribute})[0]["x"]
    assert attribute_size(attribute) == attribute_size(kept) == item_size({"x": attribute}) - 1


def test_the_stored_form_normalizes_numbers_sets_and_base64() -> None:
    item: dict[str, Any] = {
        "n": {"N": "1.50e1"},
        "ns": {"NS": ["10", "9.0"]},
        "ss": {"SS": ("b", "a")},
        "bs": {"BS": ["/w==", "QR=="]},
        "b": {"B": "QR=="},
        "l": {"L": ({"N": "01"},)},
        "m": {"M": {"x": {"N": "-0"}}},
    }
    assert canonical_item(item)[0] == {
        "n": {"N": "15"},
        "ns": {"NS": ["9", "10"]},
        "ss": {"SS": ["a", "b"]},
        "bs": {"BS": ["QQ==", "/w=="]},
        "b": {"B": "QQ=="},
        "l": {"L": [{"N": "1"}]},
        "m": {"M": {"x": {"N": "0"}}},
    }


@pytest.mark.parametrize(
    "attribute",
    [
        *(a for a in MALFORMED if a != {"B": "a"}),
        {"B": "a"},
        {"B": "YQ= ="},
        {"B": b"YQ=="},
        {"S": 5},
        {"S": None},
        {"S": b"bytes"},
        {"N": None},
        {"N": b"1"},
        {"N": "NaN"},
        {"BOOL": 1},
        {"BOOL": "true"},
        {"NULL": False},
        {"NULL": None},
        {"SS": []},
        {"SS": "ab"},
        {"SS": [1]},
        {"SS": [b"a"]},
        {"SS": ["a", "a"]},
        {"NS": ["1", "1.0"]},
        {"NS": [1]},
        {"BS": ["QQ==", "QR=="]},
        {"BS": ["?"]},
        {"L": "ab"},
        {"M": {"": {"S": "a"}}},
        {"M": {1: {"S": "a"}}},
    ],
    ids=repr,
)
def test_a_malformed_attribute_is_not_stored(attribute: Any) -> None:
    with pytest.raises(InvalidValueError) as caught:
        canonical_item({"spot": attribute})
    assert caught.value.place.startswith("spot")


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"a": {"S": "\ud800"}}, "a"),
        ({"a": {"L": [{"S": "x"}, {"S": "\udfff"}]}}, "a[1]"),
        ({"a": {"M": {"b": {"SS": ["\ud800"]}}}}, "a.b"),
    ],
)
def test_a_lone_surrogate_is_not_stored(item: Any, place: str) -> None:
    with pytest.raises(InvalidValueError, match="surrogate") as caught:
        canonical_item(item)
    assert caught.value.place == place


@pytest.mark.parametrize("name", ["", "\ud800", 5, None])
def test_an_attribute_needs_a_valid_name(name: Any) -> None:
    with pytest.raises(InvalidValueError, match="name"):
        canonical_item({name: {"S": "a"}})


def _nest(levels: int, *, maps: bool) -> dict[str, Any]:
    attribute: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        attribute = {"M": {"a": attribute}} if maps else {"L": [attribute]}
    return attribute


@pytest.mark.parametrize("maps", [True, False])
def test_32_levels_are_stored_and_33_are_not(maps: bool) -> None:
    item = {"a": _nest(31, maps=maps)}  # the innermost value is the 32nd level
    assert canonical_item(item)[0] == item
    for levels in (32, 2000):
        with pytest.raises(InvalidValueError, match="nested more than 32 levels deep") as caught:
            canonical_item({"a": _nest(levels, maps=maps)})
        assert caught.value.place == "a" + (".a" if maps else "[0]") * 31


def test_an_empty_container_is_a_level_too() -> None:
    for levels, fits in ((30, True), (31, False)):
        attribute: dict[str, Any] = {"L": []}
        for _ in range(levels):
            attribute = {"L": [attribute]}
        if fits:
            canonical_item({"a": attribute})
        else:
            with pytest.raises(InvalidValueError, match="nested more than 32 levels deep"):
                canonical_item({"a": attribute})

"""Keys of own tables: the JavaScript library's vectors, values that cannot be keys, and decoding."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.values import decode, encode
from holdall.errors import InvalidKeyError, InvalidValueError
from holdall.models.keys.foreign import Kind, StoredKey, decode_key, encode_key


class Colour(StrEnum):
    RED = "red"


def kinds_of(values: Mapping[str, object]) -> dict[str, Kind]:
    return {name: kind_of(value) for name, value in values.items()}


def kind_of(value: object) -> Kind:
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "json"


# --- vectors --------------------------------------------------------------------------------------------


def keys_of(vector: Mapping[str, Any]) -> list[tuple[dict[str, object], StoredKey]]:
    """The keys of a vector, each with its components. If there is a sort key, the partition key is ``id`` alone."""
    values, out = vector["in"], vector["out"]
    if "_sk" not in out:
        return [(values, out["_id"])]
    sort = {name: value for name, value in values.items() if name != "id"}
    return [({"id": values["id"]}, out["_id"]), (sort, out["_sk"])]


FILE = Path(__file__).parents[1] / "fixtures" / "models" / "model_keys.jsonl"
VECTORS = [json.loads(line) for line in FILE.read_text().splitlines()]
KEYS = [key for vector in VECTORS if "key" in vector for key in keys_of(vector)]
KEYS += [
    ({"Z": False, "a": "", "a2": ["😀"], "b": 1e21, "é": "q"}, 'false\0\0["😀"]\x001e+21\0q'),
    (
        {"id": {"b": 1, "a": {"d": "é\0", "c": None}, "10": 1, "9": 1}},
        r'{"10":1,"9":1,"a":{"c":null,"d":"é\u0000"},"b":1}',
    ),
    ({"\ue000": "after", "😀": "before"}, "before\0after"),
    ({"9": -0.0, "10": 2**60}, "1152921504606847000\x000"),
    ({"id": ""}, ""),
]

every_key = pytest.mark.parametrize(("values", "stored"), KEYS)


def test_there_are_eleven_vectors_of_keys() -> None:
    assert sum("key" in vector for vector in VECTORS) == 11


@every_key
def test_encoding_the_values_of_a_vector_gives_its_key(values: dict[str, object], stored: StoredKey) -> None:
    written = encode_key(values, kinds_of(values), numeric=True)
    assert (isinstance(written, str), written) == (isinstance(stored, str), stored)


@every_key
def test_decoding_the_key_of_a_vector_gives_its_values(values: dict[str, object], stored: StoredKey) -> None:
    assert decode_key(stored, kinds_of(values)) == values


# --- keys of one number ---------------------------------------------------------------------------------


def test_a_number_alone_is_text_in_a_table_from_before_numeric_keys() -> None:
    assert encode_key({"id": 123}, {"id": "number"}, numeric=False) == "123"
    assert decode_key("123", {"id": "number"}) == {"id": 123}


def test_a_number_among_several_components_is_text_in_every_table() -> None:
    assert encode_key({"b": 1.0, "a": 2}, {"a": "number", "b": "number"}, numeric=True) == "2\x001"


def test_only_a_number_is_stored_as_a_number() -> None:
    assert encode_key({"id": True}, {"id": "json"}, numeric=True) == "true"
    assert encode_key({"id": "5"}, {"id": "text"}, numeric=True) == "5"


def test_a_number_read_from_the_store_is_an_int_when_whole_and_else_a_float() -> None:
    for stored, value in ((Decimal("0.1"), 0.1), (Decimal(5), 5), (5.0, 5), (2**60, 2**60)):
        (found,) = decode_key(stored, {"id": "number"}).values()
        assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("stored", [2**53 + 1, Decimal("0.10000000000000000001")])
def test_a_stored_number_that_no_float_holds_is_not_rounded(stored: StoredKey) -> None:
    assert decode_key(stored, {"id": "number"}) == {"id": stored}


@pytest.mark.parametrize("kinds", [{"id": "text"}, {"id": "json"}, {"a": "number", "b": "number"}])
def test_a_stored_number_is_not_a_key_of_a_model_with_a_string_key(kinds: dict[str, Kind]) -> None:
    with pytest.raises(InvalidKeyError, match="number 5"):
        decode_key(5, kinds)


# --- values that cannot be keys -------------------------------------------------------------------------


@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        ("a\0b", "text", "U\\+0000"),
        ("\ud800", "text", "surrogate"),
        (5, "text", "a string, not int"),
        (None, "text", "a string, not NoneType"),
        ("5", "number", "a number, not str"),
        (True, "number", "a number, not bool"),
        (None, "json", "a JSON value, not NoneType"),
        (math.nan, "json", "a JSON value, not float"),
    ],
)
def test_a_value_that_cannot_be_a_component_is_refused_by_name(
    value: object, kind: Kind, problem: str, numeric: bool
) -> None:
    with pytest.raises(InvalidKeyError, match=f"^part: .*{problem}"):
        encode_key({"part": value}, {"part": kind}, numeric=numeric)


def test_a_nul_is_allowed_only_inside_an_object() -> None:
    with pytest.raises(InvalidKeyError, match="hint: put it inside an object"):
        encode_key({"id": "pr\0blem"}, {"id": "text"}, numeric=True)
    key = encode_key({"id": {"raw": "no pr\0blem"}}, {"id": "json"}, numeric=True)
    assert key == r'{"raw":"no pr\u0000blem"}'
    assert decode_key(key, {"id": "json"}) == {"id": {"raw": "no pr\0blem"}}


@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53 + 1, Decimal("0.10000000000000000001")])
def test_a_number_that_javascript_cannot_hold_cannot_be_a_key(value: object, numeric: bool) -> None:
    with pytest.raises(InvalidValueError) as caught:
        encode_key({"id": value}, {"id": "number"}, numeric=numeric)
    assert caught.value.place == "id"


def test_a_value_without_json_is_refused_by_its_place_in_the_key() -> None:
    with pytest.raises(InvalidValueError) as caught:
        encode_key({"id": [{"a": b"raw"}]}, {"id": "json"}, numeric=True)
    assert caught.value.place == "id[0].a"


@pytest.mark.parametrize("values", [{}, {"a": "1"}, {"a": "1", "b": "2", "c": "3"}, {"a": "1", "c": "3"}])
def test_a_key_has_the_components_of_its_model(values: dict[str, object]) -> None:
    with pytest.raises(InvalidKeyError, match=r"the model expects a, b$"):
        encode_key(values, {"b": "text", "a": "text"}, numeric=True)


def test_an_enum_of_strings_is_stored_as_its_value() -> None:
    key = encode_key({"id": Colour.RED}, {"id": "text"}, numeric=True)
    assert (key, type(key)) == ("red", str)


# --- reading --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x", "x\0y\0z", ""])
def test_a_key_with_the_wrong_number_of_components_is_refused(text: str) -> None:
    with pytest.raises(InvalidKeyError, match=r"components, but the model expects a, b$"):
        decode_key(text, {"a": "text", "b": "text"})


def test_an_object_is_read_with_its_members_in_any_order() -> None:
    values = {"id": {"a": [{"c": 1, "d": 2}], "b": 1.5}}
    assert decode_key('{"b":1.5,"a":[{"d":2,"c":1}]}', {"id": "json"}) == values


ODD_NUMBERS = ["", " 1", "1.0", "-0", "01", "+1", ".5", "5.", "1e3", "1e21", "1E+21", "0.0000001", "1e400"]
ODD_NUMBERS += [
    "9007199254740993",
    "1" * 5000,
    "0x10",
    "1_0",
    "٣",
    "NaN",
    "nan",
    "inf",
    '"1"',
    "[1]",
    "true",
    "null",
]

ODD_JSON = [
    "",
    "null",
    "tru",
    "{",
    "[1, 2]",
    "[1.0]",
    "[-0]",
    "[NaN]",
    "[1e400]",
    "[9007199254740993]",
    "[1]x",
]
ODD_JSON += [
    '{"a":1,"a":1}',
    "{'a':1}",
    r'["\u00e9"]',
    r'["\/"]',
    r'["\uD800"]',
    r'["\ud83d\ude00"]',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", ODD_NUMBERS, ids=lambda text: text[:20])
def test_a_number_in_another_spelling_is_not_a_key(text: str) -> None:
    with pytest.raises(InvalidKeyError, match=r"^id: .* is not the key text of a number"):
        decode_key(text, {"id": "number"})


@pytest.mark.parametrize("text", ODD_JSON, ids=lambda text: text[:20])
def test_json_in_another_spelling_is_not_a_key(text: str) -> None:
    with pytest.raises(InvalidKeyError, match=r"^id: .* is not the key text of a JSON value"):
        decode_key(text, {"id": "json"})


# --- round trips ----------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
arrays_and_objects = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
).filter(lambda value: value is not None and not isinstance(value, str | int | float))
components = texts | numbers | st.booleans() | arrays_and_objects
keys = st.dictionaries(texts, components, min_size=1, max_size=4)


@given(keys, st.booleans())
def test_a_key_reads_back_as_its_components(values: dict[str, object], numeric: bool) -> None:
    kinds = kinds_of(values)
    assert decode_key(encode_key(values, kinds, numeric=numeric), kinds) == values


@given(keys, st.randoms(use_true_random=False))
def test_the_order_of_declaration_does_not_matter(values: dict[str, object], chance: Any) -> None:
    shuffled = list(values.items())
    chance.shuffle(shuffled)
    assert encode_key(dict(shuffled), kinds_of(values), numeric=True) == encode_key(
        values, kinds_of(dict(shuffled)), numeric=True
    )


SAFE = 2**53 - 1


@given(st.floats(-SAFE, SAFE).filter(lambda number: number == 0 or abs(number) > 1e-100))
def test_a_numeric_key_comes_back_through_the_store(value: float) -> None:
    stored = encode(encode_key({"id": value}, {"id": "number"}, numeric=True))
    assert decode_key(decode(stored), {"id": "number"}) == {"id": value}


@given(
    st.sampled_from(["number", "json"]),
    st.text("0123456789eE+-. ") | st.from_regex(r"\[[\d.,\[\]\"ae+-]*\]"),
)
def test_a_text_that_can_be_read_is_written_back_unchanged(kind: Kind, text: str) -> None:
    try:
        values = decode_key(text, {"id": kind})
    except InvalidKeyError:
        return
    assert encode_key(values, {"id": kind}, numeric=False) == text

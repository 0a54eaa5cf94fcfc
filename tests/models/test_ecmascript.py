"""Numbers and JSON are spelt exactly as JavaScript spells them; if node is installed, the tests compare with it."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.numbers import Number
from holdall.errors import InvalidValueError
from holdall.models.codec.ecmascript import number_text, plain_json, stable_json, utf16_order

SEED = int(os.environ.get("HOLDALL_SEED", "20261115"))
HIGH, LOW = "\ud83d", "\ude00"  # the two halves of 😀


class Size(IntEnum):
    SMALL = 7


class Colour(StrEnum):
    RED = "red"


# --- numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0, "0"),
        (-0.0, "0"),
        (Decimal("-0.00"), "0"),
        (1.0, "1"),
        (-7, "-7"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (0.1 + 0.2, "0.30000000000000004"),
        (100.0, "100"),
        (123.456, "123.456"),
        (1e-6, "0.000001"),
        (-1.25e-6, "-0.00000125"),
        (9.99e-7, "9.99e-7"),
        (1e-7, "1e-7"),
        (1.5e-10, "1.5e-10"),
        (1e16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (999999999999999900000.0, "999999999999999900000"),
        (1e21, "1e+21"),
        (-1.5e21, "-1.5e+21"),
        (1e100, "1e+100"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (2.2250738585072014e-308, "2.2250738585072014e-308"),
        (2**53 - 1, "9007199254740991"),
        (2**53, "9007199254740992"),
        (-(2**53), "-9007199254740992"),
        (2**60, "1152921504606847000"),
        (10**21, "1e+21"),
        (int(1e23), "1e+23"),
        (Decimal("0.10"), "0.1"),
        (Decimal("1E+2"), "100"),
        (Decimal("1e23"), "1e+23"),
        (Decimal(1152921504606847000), "1152921504606847000"),
        (Size.SMALL, "7"),
    ],
)
def test_a_number_has_the_text_javascript_gives_it(value: Number, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
        2**53 + 1,
        -(2**53) - 1,
        10**23,  # the nearest double, 1e23, is another number
        10**400,
        -(10**5000),
        Decimal("1e400"),
        Decimal("1e-400"),
        Decimal("0.10000000000000000001"),
        Decimal("0.1000000000000000055511151231257827021181583404541015625"),  # the double 0.1, written out
        Decimal(2**60),  # reads as …847000
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_number_that_javascript_cannot_hold_is_refused(value: Number) -> None:
    with pytest.raises(InvalidValueError, match="JavaScript"):
        number_text(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_float_reads_back_as_the_float(value: float) -> None:
    assert float(number_text(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_and_the_decimal_of_its_text_are_spelt_alike(value: float) -> None:
    assert number_text(Decimal(number_text(value))) == number_text(value)


@given(st.integers() | st.integers(-(2**80), 2**80))
def test_an_int_is_spelt_as_its_double_or_refused(value: int) -> None:
    if float(value) == value:
        assert number_text(value) == number_text(float(value))
    else:
        with pytest.raises(InvalidValueError):
            number_text(value)


# --- strings and JSON -----------------------------------------------------------------------------------


def test_strings_sort_by_their_utf16_code_units() -> None:
    ordered = ["", "10", "9", "B", "_x", "a", "aa", "é", HIGH, "😀", "\U0010ffff", LOW, "\ue000", "\uffff"]
    assert sorted(set(ordered), key=utf16_order) == ordered


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("", '""'),
        ('say "\\"', r'"say \"\\\""'),
        ("\0\x01\b\t\n\v\f\r\x1f", r'"\u0000\u0001\b\t\n\u000b\f\r\u001f"'),
        ("é/\x7f\u2028\u2029\ufffd😀", '"é/\x7f\u2028\u2029\ufffd😀"'),
        (HIGH, r'"\ud83d"'),
        (f"a{LOW}{HIGH}", r'"a\ude00\ud83d"'),
        (f"{HIGH}{LOW}", '"😀"'),
        (f"{HIGH}{HIGH}{LOW}", r'"\ud83d😀"'),
        (Colour.RED, '"red"'),
        ([], "[]"),
        ((1, [2.0, None]), "[1,[2,null]]"),
        ([-0.0, 1e21, 1e-7, Decimal("0.5")], "[0,1e+21,1e-7,0.5]"),
        ([math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("Infinity")], "[null,null,null,null,null]"),
        ({}, "{}"),
        ({"": 1}, '{"":1}'),
        (MappingProxyType({"b": [{"d": 1, "c": 2}], "a": {}}), '{"a":{},"b":[{"c":2,"d":1}]}'),
        ({"a": 1, "B": 1, "9": 1, "10": 1}, '{"10":1,"9":1,"B":1,"a":1}'),
        ({"\ue000": 1, "😀": 1}, '{"😀":1,"\ue000":1}'),
        ({"__proto__": {"toJSON": 1}}, '{"__proto__":{"toJSON":1}}'),
    ],
)
def test_a_value_has_the_json_javascript_gives_it(value: object, text: str) -> None:
    assert stable_json(value) == text


def test_plain_json_keeps_the_order_of_members() -> None:
    assert plain_json({"b": {"d": 1, "c": 2}, "a": 1.0}) == '{"b":{"d":1,"c":2},"a":1}'


@pytest.mark.parametrize(
    ("value", "place", "problem"),
    [
        (b"raw", "", "bytes"),
        ([1, {"a": {2, 3}}], "[1].a", "set"),
        ({"a": [0, {"b": 2**53 + 1}]}, "a[1].b", "JavaScript"),
        ({"a": {1: "one"}}, "a", "must be strings, not int"),
        ({"a": {"😀": 1, HIGH + LOW: 2}}, "a", "the same string"),
    ],
)
def test_a_value_without_a_json_form_is_refused_with_its_place(
    value: object, place: str, problem: str
) -> None:
    with pytest.raises(InvalidValueError, match=problem) as caught:
        stable_json(value)
    assert caught.value.place == place


def test_a_list_inside_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidValueError, match="contain themselves"):
        stable_json(endless)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(json_values)
def test_stable_json_is_read_back_by_any_json_reader(value: object) -> None:
    assert json.loads(stable_json(value), parse_int=float) == value  # all its numbers are doubles


@given(st.dictionaries(st.text(), json_values), st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter_to_stable_json(
    value: dict[str, object], chance: random.Random
) -> None:
    members = list(value.items())
    chance.shuffle(members)
    assert stable_json(dict(members)) == stable_json(value)


# --- comparison with node -------------------------------------------------------------------------------

needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed, so there is nothing to compare with"
)


def ask_node(function: str, questions: Sequence[object]) -> list[str]:
    """Call a JavaScript function with each question and return its answers."""
    script = (
        f"const answer = {function};"
        'const questions = JSON.parse(require("fs").readFileSync(0, "utf8"));'
        "console.log(JSON.stringify(questions.map(question => answer(question))))"
    )
    done = subprocess.run(
        ["node", "-e", script], input=json.dumps(questions), capture_output=True, text=True, check=True
    )
    answers: list[str] = json.loads(done.stdout)
    return answers


def find_differences(
    ours: Callable[[Any], str], theirs: Sequence[str], questions: Sequence[object]
) -> list[tuple[object, str, str]]:
    pairs = zip(questions, theirs, strict=True)
    return [(question, ours(question), text) for question, text in pairs if ours(question) != text]


def pick_floats(chance: random.Random) -> list[float]:
    """Doubles of every size, and the neighbours of those where the spelling changes or rounding is hard."""
    edges = [2.0**power for power in range(-1074, 1024)] + [float(f"1e{power}") for power in range(-323, 309)]
    edges += [math.nextafter(edge, toward) for edge in edges for toward in (0, math.inf)]
    anywhere = [struct.unpack(">d", chance.randbytes(8))[0] for _ in range(10_000)]
    short = [float(f"{chance.randrange(10**6)}e{chance.randrange(-30, 30)}") for _ in range(3_000)]
    whole = [float(chance.randrange(2**90) >> chance.randrange(90)) for _ in range(3_000)]
    return [
        sign * value for value in edges + anywhere + short + whole if math.isfinite(value) for sign in (1, -1)
    ]


@needs_node
def test_node_gives_every_number_the_same_text() -> None:
    numbers = pick_floats(random.Random(SEED))
    texts = ask_node(
        'bits => String(Buffer.from(bits, "hex").readDoubleBE())',
        [struct.pack(">d", number).hex() for number in numbers],
    )
    assert find_differences(number_text, texts, numbers) == []


def pick_value(chance: random.Random, depth: int = 3) -> object:
    kind = chance.randrange(7 if depth else 5)
    if kind == 5:
        return [pick_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 6:
        return {pick_text(chance): pick_value(chance, depth - 1) for _ in range(chance.randrange(6))}
    if kind > 2:
        return pick_text(chance)
    return chance.choice([None, True, False, chance.randrange(2**53), chance.uniform(-1e3, 1e3), 1e-7, 1e21])


def pick_text(chance: random.Random) -> str:
    pool = [
        "1",
        "10",
        "9",
        "a",
        "B",
        "_",
        '"',
        "\\",
        "/",
        "\x7f",
        "é",
        "\u2028",
        "\ue000",
        "\uffff",
        "😀",
        HIGH,
    ]
    pool += [LOW, chr(chance.randrange(0x20)), chr(chance.randrange(0x110000)), "__proto__", "toJSON"]
    text = "".join(chance.choice(pool) for _ in range(chance.randrange(4)))
    return utf16_order(text).decode("utf-16-be", "surrogatepass")  # the same text must not have two spellings


STABLE = """function stable(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (Array.isArray(value)) return "[" + value.map(stable).join() + "]"
  return "{" + Object.keys(value).sort().map(name => JSON.stringify(name) + ":" + stable(value[name])).join() + "}"
}"""


@needs_node
def test_node_gives_every_value_the_same_json() -> None:
    chance = random.Random(SEED)
    values = [pick_value(chance) for _ in range(3_000)]
    assert find_differences(stable_json, ask_node(STABLE, values), values) == []


@needs_node
def test_node_escapes_every_code_unit_alike() -> None:
    units = [chr(unit) for unit in range(0x10000)]
    assert find_differences(stable_json, ask_node("JSON.stringify", units), units) == []

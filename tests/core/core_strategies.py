"""Random numbers, values, items and expressions for the properties of the core.

Names and values come from small pools on purpose, because a condition that never matches an item proves nothing.
"""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from holdall.core.expressions import (
    Add,
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Delete,
    Exists,
    IfNotExists,
    In,
    ListAppend,
    Minus,
    Not,
    NotExists,
    Or,
    Path,
    Plus,
    Remove,
    Set,
    Size,
    TypeIs,
    Update,
    Value,
)

TYPES = ("S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS")


# --- numbers --------------------------------------------------------------------------------------------


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    """Any number DynamoDB can hold: up to 38 digits, over the whole range of exponents."""
    length = draw(st.integers(1, 38))
    digits = draw(st.integers(10 ** (length - 1), 10**length - 1))
    exponent = draw(st.integers(-130, 125) | st.integers(-3, 40)) - length + 1
    return Decimal((draw(st.integers(0, 1)), tuple(map(int, str(digits))), exponent))


def integers() -> st.SearchStrategy[int]:
    """Integers of up to 38 digits."""
    return st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-1000, 1000)


def floats() -> st.SearchStrategy[float]:
    """Floats inside DynamoDB's range."""
    large = st.floats(1e-130, 9e125)
    return st.just(0.0) | large | large.map(lambda number: -number) | st.floats(-1e6, 1e6).filter(_in_range)


def _in_range(number: float) -> bool:
    return number == 0 or abs(number) >= 1e-130


# --- Python values --------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


def plain_values() -> st.SearchStrategy[Any]:
    """Python values of all ten types, nested."""
    sets = (
        st.frozensets(texts, min_size=1, max_size=4)
        | st.frozensets(decimals() | integers(), min_size=1, max_size=4)
        | st.frozensets(st.binary(max_size=6), min_size=1, max_size=4)
    )
    leaves = (
        st.none() | st.booleans() | integers() | decimals() | texts | st.binary(max_size=20) | sets.map(set)
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
        max_leaves=8,
    )


def plain_items() -> st.SearchStrategy[dict[str, Any]]:
    """Python mappings that are items."""
    return st.dictionaries(names, plain_values(), max_size=5)


# --- attributes and items from small pools --------------------------------------------------------------

_NAMES = ("a", "b", "c")
_STRINGS = ("", "a", "ab", "b", "é", "\uffff", "😀")
_NUMBERS = ("0", "-1", "1", "1.0", "2", "2e0", "10", "12345678901234567890123456789012345678")
_BINARIES = tuple(b64encode(raw).decode() for raw in (b"", b"a", b"ab", b"\xff"))


def _set_of(pool: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique_by=_by_value)


def _by_value(member: str) -> object:
    try:
        return Decimal(member)
    except ArithmeticError:
        return member


def _sets() -> st.SearchStrategy[dict[str, Any]]:
    return (
        _set_of(_STRINGS).map(lambda members: {"SS": members})
        | _set_of(_NUMBERS).map(lambda members: {"NS": members})
        | _set_of(_BINARIES).map(lambda members: {"BS": members})
    )


def _numbers() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(_NUMBERS).map(lambda text: {"N": text})


def attributes() -> st.SearchStrategy[dict[str, Any]]:
    """Attributes in DynamoDB's form; some numbers are not in canonical form."""
    leaves = st.one_of(
        st.sampled_from(_STRINGS).map(lambda text: {"S": text}),
        _numbers(),
        st.sampled_from(_BINARIES).map(lambda text: {"B": text}),
        st.booleans().map(lambda flag: {"BOOL": flag}),
        st.just({"NULL": True}),
        _sets(),
    )
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3).map(lambda members: {"L": members})
            | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3).map(lambda members: {"M": members})
        ),
        max_leaves=5,
    )


def items() -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Items with some of the attributes a, b and c."""
    return st.dictionaries(st.sampled_from(_NAMES), attributes(), max_size=3)


# --- expressions ----------------------------------------------------------------------------------------


def paths(heads: tuple[str, ...] = _NAMES) -> st.SearchStrategy[Path]:
    """Paths of up to three parts."""
    part = st.sampled_from(heads) | st.integers(0, 2)
    return st.builds(
        lambda head, rest: Path((head, *rest)), st.sampled_from(heads), st.lists(part, max_size=2)
    )


def conditions(heads: tuple[str, ...] = _NAMES) -> st.SearchStrategy[Condition]:
    """Conditions with every kind of node and operand, sensible or not."""
    path = paths(heads)
    operand = path | attributes().map(Value) | path.map(Size)
    leaves = st.one_of(
        st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), operand, operand),
        st.builds(Between, operand, operand, operand),
        st.builds(In, operand, st.lists(operand, min_size=1, max_size=3).map(tuple)),
        st.builds(Exists, path),
        st.builds(NotExists, path),
        st.builds(TypeIs, path, st.sampled_from(TYPES)),
        st.builds(BeginsWith, path, operand),
        st.builds(Contains, path, operand),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Not, inner),
        ),
        max_leaves=5,
    )


def updates(heads: tuple[str, ...] = _NAMES) -> st.SearchStrategy[Update]:
    """Well-formed updates with every action and right-hand side, whether or not an item fits them."""
    path = paths(heads)
    literal = attributes().map(Value)
    number = _numbers().map(Value)
    sequence = st.lists(attributes(), max_size=2).map(lambda members: Value({"L": members}))
    new = st.one_of(
        path,
        literal,
        st.builds(IfNotExists, path, path | literal),
        st.builds(ListAppend, path | st.builds(IfNotExists, path, sequence), path | sequence),
        st.builds(Plus, path | st.builds(IfNotExists, path, number), path | number),
        st.builds(Minus, path | number, path | number),
    )
    action = st.one_of(
        st.builds(Set, path, new),
        st.builds(Remove, path),
        st.builds(Add, path, (_numbers() | _sets()).map(Value)),
        st.builds(Delete, path, _sets().map(Value)),
    )
    # steps on different attributes, so that no two overlap
    several = st.lists(action, min_size=1, max_size=4, unique_by=lambda step: step.path.parts[0])
    return st.builds(Update, several.map(tuple))

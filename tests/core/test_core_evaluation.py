"""Conditions and projections on items: examples for each operator, and all of them compared with an oracle."""

from __future__ import annotations

from base64 import b64decode
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from core_strategies import TYPES, attributes, conditions, items, paths
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.comparison import equal, order
from holdall.core.expressions import (
    And,
    BeginsWith,
    Between,
    Comparator,
    Compare,
    Condition,
    Contains,
    Exists,
    In,
    Not,
    NotExists,
    Operand,
    Or,
    Path,
    Size,
    TypeIs,
    Value,
    path,
    value,
)
from holdall.core.expressions.evaluation import holds, project, resolve
from holdall.core.values import encode_item

ITEM = encode_item(
    {
        "n": 5,
        "s": "banana",
        "b": b"\x01\x02\x03",
        "yes": True,
        "no": False,
        "null": None,
        "l": [1, "two", [3, {"four": 4}]],
        "m": {"x": 1, "deep": {"er": ["z"]}},
        "ss": {"a", "b"},
        "ns": {1, 2},
        "bs": {b"a", b"b"},
        "smile": "a😀é",
        "empty": "",
    }
)


# --- paths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        (("n",), {"N": "5"}),
        (("null",), {"NULL": True}),
        (("l", 0), {"N": "1"}),
        (("l", 2, 1, "four"), {"N": "4"}),
        (("m", "deep", "er", 0), {"S": "z"}),
        (("gone",), None),
        (("gone", "x", 0), None),
        (("l", 3), None),
        (("l", "x"), None),
        (("m", 0), None),
        (("m", "y"), None),
        (("n", "x"), None),
        (("s", 0), None),
        (("ss", 0), None),
        (("null", "x"), None),
        (("m.x",), None),
    ],
)
def test_a_path_finds_an_existing_attribute(parts: tuple[str | int, ...], found: object) -> None:
    assert resolve(Path(parts), ITEM) == found
    assert holds(Exists(Path(parts)), ITEM) is (found is not None)
    assert holds(NotExists(Path(parts)), ITEM) is (found is None)


def test_a_missing_item_has_no_attributes() -> None:
    assert holds(NotExists(path("n")), None)
    assert not holds(Exists(path("n")), None)
    assert holds(Compare("<>", path("n"), value(1)), None)
    assert not holds(Compare("=", path("n"), value(1)), None)


# --- comparisons ----------------------------------------------------------------------------------------

COMPARATORS: tuple[Comparator, ...] = ("=", "<>", "<", "<=", ">", ">=")
TRUE_OF = {-1: {"<>", "<", "<="}, 0: {"=", "<=", ">="}, 1: {"<>", ">", ">="}}


@pytest.mark.parametrize("comparator", COMPARATORS)
@pytest.mark.parametrize(
    ("left", "right", "way"),
    [
        (1, 2, -1),
        (2, 10, -1),
        (-1, -2, 1),
        (Decimal("0.1"), Decimal("0.10"), 0),
        (10**37, 10**37 + 1, -1),
        ("a", "b", -1),
        ("a", "ab", -1),
        ("", "a", -1),
        ("Z", "a", -1),
        ("\uffff", "😀", -1),  # by UTF-8 bytes; UTF-16 units have the opposite order
        ("é", "é", 0),
        (b"\x7f", b"\x80", -1),
        (b"a", b"a\x00", -1),
        (b"", b"", 0),
    ],
)
def test_numbers_strings_and_bytes_have_an_order(
    left: object, right: object, way: int, comparator: Comparator
) -> None:
    item = encode_item({"left": left, "right": right})
    assert holds(Compare(comparator, path("left"), path("right")), item) is (comparator in TRUE_OF[way])
    assert holds(Compare(comparator, path("left"), value(right)), item) is (comparator in TRUE_OF[way])
    assert holds(Compare(comparator, path("right"), path("left")), item) is (comparator in TRUE_OF[-way])


@pytest.mark.parametrize("comparator", COMPARATORS)
@pytest.mark.parametrize(
    ("left", "right"),
    [("1", 1), (1, b"1"), ("a", b"a"), (1, True), (None, False), ([], {}), ({"a"}, ["a"]), ({1}, {"1"})],
)
def test_values_of_different_types_satisfy_only_unequal(
    left: object, right: object, comparator: Comparator
) -> None:
    item = encode_item({"left": left, "right": right})
    assert holds(Compare(comparator, path("left"), path("right")), item) is (comparator == "<>")


@pytest.mark.parametrize("comparator", COMPARATORS)
def test_a_missing_operand_satisfies_only_unequal(comparator: Comparator) -> None:
    only_unequal = comparator == "<>"
    assert holds(Compare(comparator, path("gone"), value(1)), ITEM) is only_unequal
    assert holds(Compare(comparator, value(1), path("gone")), ITEM) is only_unequal
    assert holds(Compare(comparator, path("gone"), path("gone")), ITEM) is only_unequal
    assert holds(Compare(comparator, Size(path("gone")), value(1)), ITEM) is only_unequal


@pytest.mark.parametrize("comparator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("name", ["yes", "null", "l", "m", "ss", "ns", "bs"])
def test_the_other_types_have_no_order(name: str, comparator: Comparator) -> None:
    assert not holds(Compare(comparator, path(name), Value(ITEM[name])), ITEM)
    assert order(ITEM[name]) is None


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"N": "1"}, {"N": "1.0"}, True),
        ({"N": "100"}, {"N": "1e2"}, True),
        ({"N": "0"}, {"N": "-0.0"}, True),
        ({"N": "1"}, {"S": "1"}, False),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, True),
        ({"SS": ["a", "b"]}, {"SS": ["a"]}, False),
        ({"NS": ["1", "2"]}, {"NS": ["2.0", "1e0"]}, True),
        ({"NS": ["1"]}, {"NS": ["2"]}, False),
        ({"BS": ["YQ==", "Yg=="]}, {"BS": ["Yg==", "YQ=="]}, True),
        ({"L": [{"N": "1"}, {"S": "a"}]}, {"L": [{"N": "1.0"}, {"S": "a"}]}, True),
        ({"L": [{"N": "1"}, {"N": "2"}]}, {"L": [{"N": "2"}, {"N": "1"}]}, False),
        ({"L": [{"N": "1"}]}, {"L": [{"N": "1"}, {"N": "1"}]}, False),
        ({"M": {"a": {"N": "1"}, "b": {"S": ""}}}, {"M": {"b": {"S": ""}, "a": {"N": "1.0"}}}, True),
        ({"M": {"a": {"N": "1"}}}, {"M": {"b": {"N": "1"}}}, False),
        ({"M": {"a": {"N": "1"}}}, {"M": {}}, False),
        ({"M": {}}, {"L": []}, False),
        ({"BOOL": True}, {"BOOL": False}, False),
        ({"BOOL": True}, {"BOOL": True}, True),
        ({"NULL": True}, {"NULL": True}, True),
        ({"S": "é"}, {"S": "e\u0301"}, False),
        ({"B": "QQ=="}, {"B": "QR=="}, True),  # both spell the byte 0x41
        ({"BS": ["QQ=="]}, {"BS": ["QR=="]}, True),
    ],
)
def test_equality_compares_values_and_not_their_spelling(left: Any, right: Any, same: bool) -> None:
    assert equal(left, right) is same
    assert equal(right, left) is same


def test_a_set_contains_bytes_in_any_base64_spelling() -> None:
    assert holds(Contains(path("bs"), Value({"B": "YR=="})), ITEM)  # the byte 0x61, usually YQ==


# --- the other operators --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [(1, 9, True), (5, 5, True), (5, 9, True), (1, 5, True), (6, 9, False), (1, 4, False), ("1", "9", False)],
)
def test_between_includes_both_ends(low: object, high: object, inside: bool) -> None:
    assert holds(Between(path("n"), value(low), value(high)), ITEM) is inside


def test_between_with_a_missing_operand_is_false() -> None:
    assert not holds(Between(path("gone"), value(1), value(9)), ITEM)
    assert not holds(Between(path("n"), path("gone"), value(9)), ITEM)
    assert not holds(Between(path("n"), value(1), path("gone")), ITEM)
    assert holds(Between(value(3), path("l", 0), path("n")), ITEM)
    assert holds(Between(Size(path("s")), path("n"), value(6)), ITEM)


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("n", (1, 5), True),
        ("n", (Decimal("5.0"),), True),
        ("n", ("5",), False),
        ("s", ("apple", "banana"), True),
        ("ss", ({"b", "a"},), True),
        ("l", ([1, "two", [3, {"four": 4}]],), True),
        ("gone", (None,), False),
        ("null", (None,), True),
    ],
)
def test_in_looks_for_an_equal_option(name: str, options: tuple[object, ...], found: bool) -> None:
    assert holds(In(path(name), tuple(map(value, options))), ITEM) is found


def test_in_skips_an_option_that_is_missing() -> None:
    assert not holds(In(path("n"), (path("gone"),)), ITEM)
    assert not holds(In(path("gone"), (path("gone"),)), ITEM)
    assert holds(In(path("n"), (path("gone"), path("n"))), ITEM)


NAMES_OF_TYPES = dict(zip(TYPES, ("s", "n", "b", "yes", "null", "l", "m", "ss", "ns", "bs"), strict=True))


@pytest.mark.parametrize("expected", TYPES)
@pytest.mark.parametrize("stored", TYPES)
def test_attribute_type_holds_for_that_type_only(expected: str, stored: str) -> None:
    assert holds(TypeIs(path(NAMES_OF_TYPES[stored]), expected), ITEM) is (expected == stored)
    assert not holds(TypeIs(path("gone"), expected), ITEM)


@pytest.mark.parametrize(
    ("name", "prefix", "begins"),
    [
        ("s", "ban", True),
        ("s", "", True),
        ("s", "banana", True),
        ("s", "bananas", False),
        ("s", "Ban", False),
        ("s", b"ban", False),
        ("b", b"\x01\x02", True),
        ("b", b"\x02", False),
        ("b", "\x01", False),
        ("n", "5", False),
        ("l", "b", False),
        ("ss", "a", False),
        ("gone", "", False),
    ],
)
def test_begins_with_compares_strings_and_bytes(name: str, prefix: object, begins: bool) -> None:
    assert holds(BeginsWith(path(name), value(prefix)), ITEM) is begins


def test_a_prefix_can_be_another_attribute() -> None:
    assert holds(BeginsWith(path("s"), path("empty")), ITEM)
    assert not holds(BeginsWith(path("s"), path("gone")), ITEM)
    assert not holds(BeginsWith(path("s"), Size(path("s"))), ITEM)


@pytest.mark.parametrize(
    ("name", "member", "contained"),
    [
        ("s", "nan", True),
        ("s", "", True),
        ("s", "nab", False),
        ("s", b"nan", False),
        ("b", b"\x02\x03", True),
        ("b", b"\x03\x02", False),
        ("l", 1, True),
        ("l", Decimal("1.0"), True),
        ("l", [3, {"four": 4}], True),
        ("l", {"four": 4}, False),
        ("l", "1", False),
        ("ss", "a", True),
        ("ss", "ab", False),
        ("ss", b"a", False),
        ("ns", 2, True),
        ("ns", Decimal("2.0"), True),
        ("ns", 3, False),
        ("ns", "2", False),
        ("bs", b"a", True),
        ("bs", b"c", False),
        ("m", "x", False),
        ("n", 5, False),
        ("yes", True, False),
        ("gone", "a", False),
    ],
)
def test_contains_finds_substrings_and_members(name: str, member: object, contained: bool) -> None:
    assert holds(Contains(path(name), value(member)), ITEM) is contained


def test_contains_accepts_sizes_and_paths_and_is_false_for_missing_ones() -> None:
    assert holds(Contains(path("ns"), Size(path("ss"))), ITEM)
    assert holds(Contains(path("l"), path("m", "x")), ITEM)
    assert not holds(Contains(path("l"), path("gone")), ITEM)


@pytest.mark.parametrize(
    ("name", "size"),
    [("s", 6), ("smile", 4), ("empty", 0), ("b", 3), ("l", 3), ("m", 2), ("ss", 2), ("ns", 2), ("bs", 2)],
)
def test_sizes_count_utf16_units_bytes_or_members(name: str, size: int) -> None:
    assert holds(Compare("=", Size(path(name)), value(size)), ITEM)
    assert holds(Compare("<", Size(path(name)), value(size + 1)), ITEM)
    assert not holds(Compare("=", Size(path(name)), value(str(size))), ITEM)


@pytest.mark.parametrize("name", ["n", "yes", "null", "gone"])
def test_the_size_of_a_value_without_one_counts_as_missing(name: str) -> None:
    assert not holds(Compare("=", Size(path(name)), value(1)), ITEM)
    assert not holds(Compare(">=", Size(path(name)), value(0)), ITEM)
    assert holds(Compare("<>", Size(path(name)), value(1)), ITEM)


def test_and_or_and_not_combine_conditions() -> None:
    yes, no = Exists(path("n")), NotExists(path("n"))
    assert holds(And((yes, yes)), ITEM)
    assert not holds(And((yes, no)), ITEM)
    assert holds(Or((no, yes)), ITEM)
    assert not holds(Or((no, no)), ITEM)
    assert holds(~no, ITEM)
    assert not holds(~yes, ITEM)


# --- comparison with an oracle --------------------------------------------------------------------------
# A fact is a value that Python compares as DynamoDB does: a type, and something hashable.

Fact = tuple[Any, ...]


def _fact(attribute: Any) -> Fact:
    ((kind, content),) = attribute.items()
    plain: dict[str, Any] = {
        "S": lambda text: text.encode(),
        "N": Fraction,
        "B": b64decode,
        "L": lambda members: tuple(map(_fact, members)),
        "M": lambda members: frozenset((name, _fact(member)) for name, member in members.items()),
        "BOOL": bool,
        "NULL": bool,
    }
    if kind in ("SS", "NS", "BS"):
        return kind, frozenset(map(plain[kind[0]], content))
    return kind, plain[kind](content)


def _look(parts: tuple[str | int, ...], item: Any) -> Any:
    found: Any = {"M": item}
    for part in parts:
        try:
            found = found["L" if isinstance(part, int) else "M"][part]
        except (KeyError, IndexError):
            return None
    return found


def _operand(operand: Operand, item: Any) -> Fact | None:
    if isinstance(operand, Value):
        return _fact(operand.attribute)
    found = _look(operand.path.parts if isinstance(operand, Size) else operand.parts, item)
    if found is None or isinstance(operand, Path):
        return None if found is None else _fact(found)
    ((kind, content),) = found.items()
    if kind == "S":
        return "N", Fraction(sum(2 if ord(character) > 0xFFFF else 1 for character in content))
    if kind in ("N", "BOOL", "NULL"):
        return None
    return "N", Fraction(len(_fact(found)[1]))


def _sorts(*facts: Fact | None) -> bool:
    kinds = {None if fact is None else fact[0] for fact in facts}
    return len(kinds) == 1 and kinds <= {"S", "N", "B"}


def _oracle(condition: Condition, item: Any) -> bool:
    match condition:
        case And(several):
            return all(_oracle(inner, item) for inner in several)
        case Or(several):
            return any(_oracle(inner, item) for inner in several)
        case Not(inner):
            return not _oracle(inner, item)
        case Exists(Path(parts)):
            return _look(parts, item) is not None
        case NotExists(Path(parts)):
            return _look(parts, item) is None
        case TypeIs(Path(parts), kind):
            return list(_look(parts, item) or ()) == [kind]
        case In(subject, options):
            fact = _operand(subject, item)
            return fact is not None and fact in [_operand(option, item) for option in options]
        case Between(subject, low, high):
            least, fact, most = (_operand(operand, item) for operand in (low, subject, high))
            return bool(_sorts(least, fact, most) and least <= fact <= most)  # type: ignore[operator]
        case Compare(comparator, left, right):
            return _compares(comparator, _operand(left, item), _operand(right, item))
        case BeginsWith(subject, prefix):
            mine, wanted = _operand(subject, item), _operand(prefix, item)
            return bool(_sorts(mine, wanted) and mine[0] != "N" and mine[1].startswith(wanted[1]))  # type: ignore[index]
        case Contains(subject, member):
            return _contains(_operand(subject, item), _operand(member, item))
    raise AssertionError(condition)


def _compares(comparator: Comparator, left: Fact | None, right: Fact | None) -> bool:
    if comparator in ("=", "<>"):
        return (left is not None and left == right) is (comparator == "=")
    if not _sorts(left, right):
        return False
    assert left is not None
    assert right is not None
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[comparator])


def _contains(subject: Fact | None, member: Fact | None) -> bool:
    if subject is None or member is None:
        return False
    kind, content = subject
    if kind == "L":
        return member in content
    if kind in ("S", "B", "SS", "NS", "BS"):
        return member[0] == kind[0] and member[1] in content
    return False


@given(conditions(), items())
def test_a_condition_holds_when_the_oracle_says_so(condition: Condition, item: dict[str, Any]) -> None:
    before = deepcopy(item)
    assert holds(condition, item) is _oracle(condition, item)
    assert item == before


@given(conditions())
def test_a_condition_on_a_missing_item_equals_that_on_an_empty_item(condition: Condition) -> None:
    assert holds(condition, None) is _oracle(condition, {})


@given(attributes(), attributes())
def test_equality_agrees_with_the_oracle(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert equal(left, right) is (_fact(left) == _fact(right))
    assert equal(left, left)


# --- projections ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "picked"),
    [
        ([path("n")], {"n": 5}),
        ([path("n"), path("s")], {"n": 5, "s": "banana"}),
        ([path("m", "x")], {"m": {"x": 1}}),
        ([path("m", "x"), path("m", "deep", "er")], {"m": {"x": 1, "deep": {"er": ["z"]}}}),
        ([path("l", 1)], {"l": ["two"]}),
        ([path("l", 2), path("l", 0)], {"l": [1, [3, {"four": 4}]]}),
        ([path("l", 2, 1, "four"), path("l", 0)], {"l": [1, [{"four": 4}]]}),
        ([path("l", 7), path("l", 1)], {"l": ["two"]}),
        ([path("gone")], {}),
        ([path("l", 7)], {}),
        ([path("m", "gone")], {}),
        ([path("m", "gone", "x"), path("n")], {"n": 5}),
        ([path("n", "x")], {}),
        ([path("m", 0)], {}),
        ([path("l", "x")], {}),
        ([], {}),
    ],
)
def test_a_projection_keeps_the_attributes_of_its_paths(paths: list[Path], picked: dict[str, Any]) -> None:
    assert project(paths, ITEM) == encode_item(picked)


@given(st.lists(paths(), max_size=3), items())
def test_a_projection_only_removes_attributes(chosen: list[Path], item: dict[str, Any]) -> None:
    before = deepcopy(item)
    picked = project(chosen, item)
    assert item == before
    assert picked.keys() <= {str(one.parts[0]) for one in chosen} & item.keys()


@given(paths(), items())
def test_a_single_path_picks_exactly_what_it_finds(one: Path, item: dict[str, Any]) -> None:
    found = resolve(one, item)
    # gaps in lists are closed, so a member at any index is now at index 0
    closed = Path(tuple(0 if isinstance(part, int) else part for part in one.parts))
    picked = project([one], item)
    assert (resolve(closed, picked) if picked else None) == found

"""Updates of items: every action on existing, missing and unsuitable attributes."""

from __future__ import annotations

from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from core_strategies import decimals, items, updates
from hypothesis import given, reject
from hypothesis import strategies as st

from holdall.core.expressions import (
    Add,
    Delete,
    IfNotExists,
    ListAppend,
    Minus,
    Plus,
    Remove,
    Set,
    SetValue,
    Term,
    Update,
    UpdateAction,
    Value,
    path,
    value,
)
from holdall.core.expressions.application import apply_update
from holdall.core.measure import canonical_item
from holdall.core.numbers import number_text
from holdall.core.rules.expression import check_update
from holdall.core.values import decode_item, encode, encode_item
from holdall.errors import InvalidExpressionError


def _after(values: dict[str, Any], *actions: UpdateAction) -> dict[str, Any]:
    """Apply the actions to Python values, and check that the argument does not change."""
    item = encode_item(values)
    before = deepcopy(item)
    outcome = apply_update(Update(actions), item)
    assert item == before
    return decode_item(canonical_item(outcome)[0])


def _assert_refused(values: dict[str, Any], *actions: UpdateAction, message: str) -> None:
    item = encode_item(values)
    before = deepcopy(item)
    with pytest.raises(InvalidExpressionError, match=message):
        apply_update(Update(actions), item)
    assert item == before


# --- SET ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "where", "new", "outcome"),
    [
        ({}, path("a"), value(1), {"a": 1}),
        ({"a": 1}, path("a"), value("x"), {"a": "x"}),
        ({"a": 1, "b": 2}, path("a"), path("b"), {"a": 2, "b": 2}),
        ({"a": {"b": 1}}, path("a", "b"), value(2), {"a": {"b": 2}}),
        ({"a": {}}, path("a", "b"), value(2), {"a": {"b": 2}}),
        ({"a": {"b": [1, {"c": 2}]}}, path("a", "b", 1, "c"), value(3), {"a": {"b": [1, {"c": 3}]}}),
        ({"a": [1, 2, 3]}, path("a", 1), value("x"), {"a": [1, "x", 3]}),
        ({"a": [1]}, path("a", 1), value(2), {"a": [1, 2]}),
        ({"a": [1]}, path("a", 99), value(2), {"a": [1, 2]}),
        ({"a": []}, path("a", 5), value(2), {"a": [2]}),
        ({"a": 5}, path("a"), path("a"), {"a": 5}),
        ({"a.b": 1}, path("a.b"), value(2), {"a.b": 2}),
    ],
)
def test_set_stores_a_value_at_its_path(
    values: dict[str, Any], where: Any, new: SetValue, outcome: dict[str, Any]
) -> None:
    assert _after(values, Set(where, new)) == outcome


def test_several_sets_past_the_end_append_in_the_order_of_their_indexes() -> None:
    outcome = _after(
        {"l": [1, 2, 3]},
        Set(path("l", 9), value("nine")),
        Set(path("l", 5), value("five")),
        Set(path("l", 1), value("one")),
        Set(path("l", 7), value("seven")),
    )
    assert outcome == {"l": [1, "one", 3, "five", "seven", "nine"]}


def test_a_set_past_the_end_and_a_removal_both_use_the_indexes_of_the_old_list() -> None:
    assert _after({"l": [1, 2, 3]}, Set(path("l", 9), value(9)), Remove(path("l", 0))) == {"l": [2, 3, 9]}
    assert _after({"l": [1, 2, 3]}, Remove(path("l", 0)), Set(path("l", 1), value(9))) == {"l": [9, 3]}


@given(
    st.lists(st.integers(0, 9), max_size=6),
    st.lists(st.integers(0, 9), unique=True, max_size=6),
    st.integers(0, 6),
)
def test_indexes_always_refer_to_the_old_list(old: list[int], places: list[int], split: int) -> None:
    puts, removals = places[:split], places[split:]
    actions = [Set(path("l", place), value(f"new {place}")) for place in puts]
    outcome = _after({"l": old}, *(Remove(path("l", place)) for place in removals), *actions)
    kept = [f"new {i}" if i in puts else member for i, member in enumerate(old) if i not in removals]
    assert outcome == {"l": kept + [f"new {i}" for i in sorted(puts) if i >= len(old)]}


def test_every_right_hand_side_reads_the_old_item() -> None:
    assert _after({"a": 1, "b": 2}, Set(path("a"), path("b")), Set(path("b"), path("a"))) == {"a": 2, "b": 1}
    assert _after({"a": 1}, Set(path("b"), path("a")), Remove(path("a"))) == {"b": 1}
    assert _after({"a": 1}, Set(path("b"), Plus(path("a"), value(1))), Add(path("a"), value(10))) == {
        "a": 11,
        "b": 2,
    }
    assert _after({"l": [1, 2]}, Set(path("l", 0), path("l", 1)), Set(path("l", 1), path("l", 0))) == {
        "l": [2, 1]
    }


def test_a_copied_container_is_not_shared_with_its_source() -> None:
    item = encode_item({"a": {"x": 1}})
    once = apply_update(Update((Set(path("b"), path("a")),)), item)
    twice = apply_update(Update((Set(path("b", "x"), value(2)),)), once)
    assert decode_item(twice) == {"a": {"x": 1}, "b": {"x": 2}}
    assert decode_item(once) == {"a": {"x": 1}, "b": {"x": 1}}


def test_a_copy_of_a_map_does_not_contain_the_changes_of_other_steps() -> None:
    outcome = _after({"a": {"x": 1}}, Set(path("b"), path("a")), Set(path("a", "x"), value(2)))
    assert outcome == {"a": {"x": 2}, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("values", "term", "found"),
    [
        ({"a": 5}, IfNotExists(path("a"), value(1)), 5),
        ({}, IfNotExists(path("a"), value(1)), 1),
        ({"a": None}, IfNotExists(path("a"), value(1)), None),
        ({"b": 7}, IfNotExists(path("a"), path("b")), 7),
        ({"a": {}}, IfNotExists(path("a", "x"), value(1)), 1),
        ({}, IfNotExists(path("a"), IfNotExists(path("b"), value(3))), 3),
        ({"l": [1]}, IfNotExists(path("l", 0), value(9)), 1),
        ({"l": [1]}, IfNotExists(path("l", 1), value(9)), 9),
    ],
)
def test_if_not_exists_falls_back_only_if_the_attribute_is_missing(
    values: dict[str, Any], term: SetValue, found: object
) -> None:
    assert _after(values, Set(path("out"), term))["out"] == found


def test_a_fallback_is_not_read_unless_it_is_needed() -> None:
    assert _after({"a": 1}, Set(path("out"), IfNotExists(path("a"), path("gone"))))["out"] == 1


@pytest.mark.parametrize(
    ("values", "first", "second", "found"),
    [
        ({"a": [1]}, path("a"), value([2, 3]), [1, 2, 3]),
        ({"a": [1]}, value([2]), path("a"), [2, 1]),
        ({"a": [1]}, path("a"), path("a"), [1, 1]),
        ({}, IfNotExists(path("a"), value([])), value([1]), [1]),
    ],
)
def test_list_append_joins_two_lists(
    values: dict[str, Any], first: Term, second: Term, found: list[Any]
) -> None:
    assert _after(values, Set(path("out"), ListAppend(first, second)))["out"] == found


@pytest.mark.parametrize(
    ("values", "new", "found"),
    [
        ({"a": 5}, Plus(path("a"), value(2)), 7),
        ({"a": 5}, Minus(path("a"), value(2)), 3),
        ({"a": 5}, Minus(value(2), path("a")), -3),
        ({"a": Decimal("0.1")}, Plus(path("a"), value(Decimal("0.2"))), Decimal("0.3")),
        ({}, Plus(IfNotExists(path("a"), value(0)), value(1)), 1),
        ({"a": {"b": 1}}, Plus(path("a", "b"), path("a", "b")), 2),
        ({"a": 0}, Minus(path("a"), value(10**38 - 1)), 1 - 10**38),
    ],
)
def test_sums_are_exact(values: dict[str, Any], new: SetValue, found: object) -> None:
    assert _after(values, Set(path("out"), new))["out"] == found


@given(decimals(), decimals())
def test_any_sum_and_difference_is_exact_or_refused(left: Decimal, right: Decimal) -> None:
    item = encode_item({"a": left, "b": right})
    wanted: list[tuple[SetValue, Fraction]] = [
        (Plus(path("a"), path("b")), Fraction(left) + Fraction(right)),
        (Minus(path("a"), path("b")), Fraction(left) - Fraction(right)),
    ]
    for new, exact in wanted:
        try:
            outcome = apply_update(Update((Set(path("c"), new),)), item)
        except InvalidExpressionError:
            continue
        assert Fraction(outcome["c"]["N"]) == exact


@pytest.mark.parametrize(
    ("values", "new", "message"),
    [
        ({}, path("gone"), "reads gone, which the item does not have"),
        ({}, Plus(path("gone"), value(1)), "reads gone"),
        ({}, ListAppend(path("gone"), value([])), "reads gone"),
        ({}, IfNotExists(path("gone"), path("too")), "reads too"),
        ({"a": "x"}, Plus(path("a"), value(1)), "must be of type N, but the item has S"),
        ({"a": 1}, Minus(path("a"), value("1")), "must be of type N"),
        ({"a": 1}, ListAppend(path("a"), value([])), "must be of type L, but the item has N"),
        ({"a": {"x"}}, ListAppend(path("a"), value([])), "must be of type L, but the item has SS"),
        ({"a": 9 * 10**125}, Plus(path("a"), path("a")), "outside DynamoDB's range"),
        ({"a": 10**38 - 1}, Plus(path("a"), value(Decimal("0.1"))), "39 significant digits"),
    ],
)
def test_a_right_hand_side_that_does_not_fit_is_refused(
    values: dict[str, Any], new: SetValue, message: str
) -> None:
    _assert_refused(values, Set(path("out"), new), message=message)


# --- REMOVE ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "wheres", "outcome"),
    [
        ({"a": 1, "b": 2}, [path("a")], {"b": 2}),
        ({"b": 2}, [path("a")], {"b": 2}),
        ({"a": {"x": 1, "y": 2}}, [path("a", "x")], {"a": {"y": 2}}),
        ({"a": {"x": 1}}, [path("a", "x")], {"a": {}}),
        ({"a": {}}, [path("a", "x")], {"a": {}}),
        ({"a": [1, 2, 3]}, [path("a", 1)], {"a": [1, 3]}),
        ({"a": [1]}, [path("a", 0)], {"a": []}),
        ({"a": [1]}, [path("a", 7)], {"a": [1]}),
        ({"a": [1, 2, 3, 4, 5]}, [path("a", 0), path("a", 2), path("a", 4)], {"a": [2, 4]}),
        ({"a": [1, 2, 3, 4]}, [path("a", 2), path("a", 0)], {"a": [2, 4]}),
        ({"a": [[1, 2], [3, 4]]}, [path("a", 0, 1), path("a", 1, 0)], {"a": [[1], [4]]}),
        ({"a": [{"x": 1, "y": 2}, 5]}, [path("a", 0, "x"), path("a", 1)], {"a": [{"y": 2}]}),
    ],
)
def test_remove_deletes_attributes_and_closes_gaps_in_lists(
    values: dict[str, Any], wheres: list[Any], outcome: dict[str, Any]
) -> None:
    assert _after(values, *map(Remove, wheres)) == outcome
    assert _after(values, *map(Remove, reversed(wheres))) == outcome


# --- ADD ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "where", "amount", "outcome"),
    [
        ({"a": 5}, path("a"), 2, {"a": 7}),
        ({"a": 5}, path("a"), -7, {"a": -2}),
        ({}, path("a"), 2, {"a": 2}),
        ({}, path("a"), {"x"}, {"a": {"x"}}),
        ({"a": {"x"}}, path("a"), {"x", "y"}, {"a": {"x", "y"}}),
        ({"a": {1, 2}}, path("a"), {2, 3}, {"a": {1, 2, 3}}),
        ({"a": {b"x"}}, path("a"), {b"y"}, {"a": {b"x", b"y"}}),
        ({"a": {}}, path("a", "n"), 1, {"a": {"n": 1}}),
        ({"a": [1, 2]}, path("a", 1), 5, {"a": [1, 7]}),
        ({"a": [1]}, path("a", 9), 5, {"a": [1, 5]}),
    ],
)
def test_add_increments_numbers_and_adds_members_to_sets(
    values: dict[str, Any], where: Any, amount: object, outcome: dict[str, Any]
) -> None:
    assert _after(values, Add(where, value(amount))) == outcome


def test_a_number_is_added_to_a_set_once_in_any_spelling() -> None:
    item = encode_item({"a": {1, 3}})
    outcome = apply_update(Update((Add(path("a"), Value({"NS": ["1.0", "2e0"]})),)), item)
    assert canonical_item(outcome)[0] == {"a": {"NS": ["1", "2", "3"]}}


@pytest.mark.parametrize(
    ("present", "amount", "message"),
    [
        ("x", 1, "for ADD, a must be of type N, but the item has S"),
        (1, {1}, "must be of type NS, but the item has N"),
        ({1}, 1, "must be of type N, but the item has NS"),
        ({"x"}, {1}, "must be of type NS, but the item has SS"),
        ([1], {1}, "must be of type NS, but the item has L"),
        (9 * 10**125, 9 * 10**125, "outside DynamoDB's range"),
    ],
)
def test_add_to_another_type_is_refused(present: object, amount: object, message: str) -> None:
    _assert_refused({"a": present}, Add(path("a"), value(amount)), message=message)


# --- DELETE ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "where", "members", "outcome"),
    [
        ({"a": {"x", "y"}}, path("a"), {"x"}, {"a": {"y"}}),
        ({"a": {"x", "y"}}, path("a"), {"z"}, {"a": {"x", "y"}}),
        ({"a": {"x", "y"}}, path("a"), {"x", "y", "z"}, {}),
        ({"a": {1, 2}}, path("a"), {2}, {"a": {1}}),
        ({"a": {b"x", b"y"}}, path("a"), {b"y"}, {"a": {b"x"}}),
        ({}, path("a"), {"x"}, {}),
        ({"m": {"a": {"x"}}}, path("m", "a"), {"x"}, {"m": {}}),
        ({"l": [{"x"}, 2]}, path("l", 0), {"x"}, {"l": [2]}),
        ({"l": [1]}, path("l", 9), {"x"}, {"l": [1]}),
    ],
)
def test_delete_removes_members_and_removes_a_set_that_becomes_empty(
    values: dict[str, Any], where: Any, members: object, outcome: dict[str, Any]
) -> None:
    assert _after(values, Delete(where, value(members))) == outcome


@pytest.mark.parametrize(
    ("attribute", "literal"),
    [
        ({"NS": ["1", "3"]}, {"NS": ["1.0"]}),
        ({"BS": ["QQ==", "/w=="]}, {"BS": ["QR=="]}),  # both spell the byte 0x41
    ],
)
def test_delete_finds_a_member_in_any_spelling(attribute: dict[str, Any], literal: dict[str, Any]) -> None:
    outcome = apply_update(Update((Delete(path("a"), Value(literal)),)), {"a": attribute})
    ((kind, members),) = attribute.items()
    assert outcome == {"a": {kind: members[1:]}}


@pytest.mark.parametrize("present", ["x", 1, [1], {1}, {b"x"}])
def test_delete_from_another_type_is_refused(present: object) -> None:
    _assert_refused(
        {"a": present}, Delete(path("a"), value({"x"})), message="for DELETE, a must be of type SS"
    )


@given(st.frozensets(st.integers(0, 5), min_size=1), st.frozensets(st.integers(0, 5), min_size=1))
def test_add_and_delete_equal_pythons_union_and_difference(
    old: frozenset[int], given: frozenset[int]
) -> None:
    assert _after({"a": old}, Add(path("a"), value(given))) == {"a": old | given}
    left = old - given
    assert _after({"a": old}, Delete(path("a"), value(given))) == ({"a": left} if left else {})


# --- parents and whole updates --------------------------------------------------------------------------

THROUGH_NOTHING: list[UpdateAction] = [
    Set(path("m", "x"), value(1)),
    Set(path("m", 0), value(1)),
    Remove(path("m", "x")),
    Remove(path("m", 0)),
    Add(path("m", "x"), value(1)),
    Delete(path("m", "x"), value({"x"})),
    Set(path("m", "x", "y"), value(1)),
]


@pytest.mark.parametrize("action", THROUGH_NOTHING)
def test_a_step_through_a_missing_parent_is_refused(action: UpdateAction) -> None:
    _assert_refused({"other": 1}, action, message="the item has no (map|list) at m")


@pytest.mark.parametrize("parent", ["text", 5, None, {"x"}])
@pytest.mark.parametrize("action", THROUGH_NOTHING)
def test_a_step_through_a_scalar_is_refused(action: UpdateAction, parent: object) -> None:
    _assert_refused({"m": parent}, action, message="the item has no (map|list) at m")


def test_a_list_has_no_names_and_a_map_no_indexes() -> None:
    _assert_refused({"m": [1]}, Set(path("m", "x"), value(1)), message="no map at m")
    _assert_refused({"m": {"x": 1}}, Set(path("m", 0), value(1)), message="no list at m")
    _assert_refused({"m": {"x": 1}}, Remove(path("m", 0)), message="no list at m")


def test_a_parent_that_another_step_creates_counts_as_missing() -> None:
    _assert_refused({}, Set(path("a"), value({})), Set(path("b", "x"), value(1)), message="no map at b")


def test_steps_of_all_kinds_can_be_combined() -> None:
    outcome = _after(
        {"n": 1, "gone": 2, "tags": {"x", "y"}, "l": [1, 2], "m": {"k": "v"}},
        Set(path("m", "k"), value("w")),
        Set(path("copy"), path("m")),
        Remove(path("gone")),
        Remove(path("l", 0)),
        Add(path("n"), value(1)),
        Delete(path("tags"), value({"x"})),
    )
    assert outcome == {"n": 2, "tags": {"y"}, "l": [2], "m": {"k": "w"}, "copy": {"k": "v"}}


def test_an_update_without_steps_changes_nothing() -> None:
    assert _after({"a": 1}) == {"a": 1}


@given(updates(), items())
def test_the_arguments_are_not_changed(update: Update, item: dict[str, Any]) -> None:
    try:
        check_update(update)
    except InvalidExpressionError:
        reject()
    before, sent = deepcopy(item), deepcopy(update)
    try:
        outcome = apply_update(update, item)
    except InvalidExpressionError:
        pass
    else:
        touched = {str(action.path.parts[0]) for action in update.actions}
        assert {n: a for n, a in outcome.items() if n not in touched} == {
            n: a for n, a in item.items() if n not in touched
        }
    assert item == before
    assert update == sent


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_adding_twice_is_adding_the_sum(first: int, second: int) -> None:
    once = apply_update(Update((Add(path("n"), value(first)),)), {})
    twice = apply_update(Update((Add(path("n"), value(second)),)), once)
    assert twice["n"] == encode(first + second) == {"N": number_text(first + second)}

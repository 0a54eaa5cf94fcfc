"""DynamoDB's limits on expressions, which we check first: operators, text, types, overlaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from core_strategies import conditions, paths
from hypothesis import given
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
    UpdateAction,
    Value,
    path,
    value,
)
from holdall.core.expressions.evaluation import holds
from holdall.core.expressions.renderer import Renderer
from holdall.core.rules.expression import (
    check_condition,
    check_paths,
    check_update,
    paths_of,
)
from holdall.errors import InvalidExpressionError, InvalidRequestError, InvalidValueError

A, B, C = (Exists(path(name)) for name in "abc")
MOST_TEXT = 4096


def _passes(check: Callable[[], object]) -> bool:
    try:
        check()
    except InvalidExpressionError:
        return False
    return True


# --- operators ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "operators"),
    [
        (Compare("=", path("a"), value(1)), 1),
        (Compare("=", Size(path("a")), value(1)), 2),
        (Compare("=", Size(path("a")), Size(path("b"))), 3),
        (Between(path("a"), value(1), value(2)), 1),
        (In(path("a"), (value(1), value(2), value(3))), 1),
        (A, 1),
        (NotExists(path("a")), 1),
        (TypeIs(path("a"), "S"), 1),
        (BeginsWith(path("a"), value("x")), 1),
        (Contains(path("a"), Size(path("b"))), 2),
        (A & B, 3),
        (A & B & C, 5),
        (A | B | C, 5),
        (~A, 2),
        (~(A & B) | C, 6),
    ],
)
def test_operators_functions_and_connectives_count(condition: Condition, operators: int) -> None:
    filled = Or((condition, *(A,) * 150))  # another 150 functions and 150 connectives
    with pytest.raises(InvalidExpressionError, match=f"^the expression has {300 + operators} operators"):
        check_condition(filled)


def test_an_expression_has_at_most_300_operators() -> None:
    compares = [Compare("=", path("a"), value(number)) for number in range(151)]
    check_condition(Or(tuple(compares[:150])))
    check_condition(Or((*compares[:149], ~compares[149])))
    with pytest.raises(InvalidExpressionError, match="301 operators"):
        check_condition(Or(tuple(compares)))


def test_negations_count_one_by_one() -> None:
    negation = ~Compare("=", path("a"), value(1))
    check_condition(And((negation,) * 100))
    with pytest.raises(InvalidExpressionError, match="302 operators"):
        check_condition(And((negation,) * 101))


def test_conditions_can_be_nested_100_levels_deep() -> None:
    condition: Condition = A
    for _ in range(99):
        condition = Not(condition)
    check_condition(condition)
    assert isinstance(holds(condition, {}), bool)
    with pytest.raises(InvalidExpressionError, match="nested more than 100 levels deep"):
        check_condition(Not(condition))


def test_a_much_too_deep_expression_is_refused_without_exhausting_the_stack() -> None:
    condition: Condition = A
    for _ in range(5000):
        condition = Not(condition)
    with pytest.raises(InvalidExpressionError, match="nested more than 100 levels deep"):
        check_condition(condition)


def test_functions_and_sums_of_an_update_count() -> None:
    def update(steps: int) -> Update:
        # short paths leave room for many steps in 4 KB of text
        return Update(tuple(Set(path("a", place), Plus(path("b"), path("b"))) for place in range(steps)))

    check_update(update(200))
    with pytest.raises(InvalidExpressionError, match="301 operators"):
        check_update(update(301))


# --- the length of the text -----------------------------------------------------------------------------


def _indexes(size: int) -> list[int]:
    """List indexes whose text, including brackets, has exactly this many bytes (at least 3)."""
    chosen = []
    while size > 9:
        chosen.append(100)
        size -= len("[100]")
    return [*chosen, 10 ** (size - len("[1]"))]


def _condition_of(size: int) -> Condition:
    """A condition whose text has exactly this many bytes."""
    several = (NotExists(path("a")),) * 146
    missing = size - len(Renderer().condition(Or(several)))
    return Or((*several[:-1], NotExists(path("a", *_indexes(missing)))))


@pytest.mark.parametrize(("size", "fits"), [(MOST_TEXT - 1, True), (MOST_TEXT, True), (MOST_TEXT + 1, False)])
def test_a_condition_has_up_to_4096_bytes_of_text(size: int, fits: bool) -> None:
    condition = _condition_of(size)
    assert len(Renderer().condition(condition)) == size
    assert _passes(lambda: check_condition(condition)) is fits


def _paths_of_text(size: int) -> list[Path]:
    several = [path(f"name {place}") for place in range(695)]
    missing = size - len(Renderer().projection(several))
    return [*several[:-1], path("name 694", *_indexes(missing))]


@pytest.mark.parametrize(("size", "fits"), [(MOST_TEXT, True), (MOST_TEXT + 1, False)])
def test_a_projection_has_up_to_4096_bytes_of_text(size: int, fits: bool) -> None:
    chosen = _paths_of_text(size)
    assert len(Renderer().projection(chosen)) == size
    assert _passes(lambda: check_paths(chosen, "projection")) is fits


@pytest.mark.parametrize(("size", "fits"), [(MOST_TEXT, True), (MOST_TEXT + 1, False)])
def test_an_update_has_up_to_4096_bytes_of_text(size: int, fits: bool) -> None:
    update = Update(tuple(map(Remove, _paths_of_text(size - len("REMOVE ")))))
    assert len(Renderer().update(update)) == size
    assert _passes(lambda: check_update(update)) is fits


def test_the_length_of_names_and_values_does_not_count_as_text() -> None:
    check_condition(Compare("=", path("n" * 5000), value("v" * 5000)))
    check_update(Update((Set(path("n" * 5000), value("v" * 5000)),)))
    check_paths([path("n" * 5000)], "projection")


@given(
    st.integers(1, 100),
    st.integers(0, 31),
    st.integers(0, 31),
    st.sampled_from([0, 99, 9_999_999, 2_147_483_647]),
)
def test_the_limit_applies_to_the_rendered_text(options: int, inner: int, indexes: int, index: int) -> None:
    parts: tuple[str | int, ...] = ("a", *("b",) * min(inner, 31 - indexes), *(index,) * indexes)
    condition = In(path("x"), (Path(parts),) * options)
    fits = len(Renderer().condition(condition)) <= MOST_TEXT
    assert _passes(lambda: check_condition(condition)) is fits


@given(st.integers(1, 40), st.integers(0, 31), st.sampled_from([0, 99, 9_999_999, 2_147_483_647]))
def test_the_limit_applies_to_the_rendered_text_of_updates_and_projections_too(
    steps: int, indexes: int, index: int
) -> None:
    places = [path(f"n{place}", *(index,) * indexes) for place in range(steps)]
    assert _passes(lambda: check_paths(places, "projection")) is (
        len(Renderer().projection(places)) <= MOST_TEXT
    )
    update = Update(tuple(Set(place, IfNotExists(place, value(1))) for place in places))
    assert _passes(lambda: check_update(update)) is (len(Renderer().update(update)) <= MOST_TEXT)


# --- conditions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "fits"), [(0, False), (1, True), (100, True), (101, False)])
def test_in_has_1_to_100_options(options: int, fits: bool) -> None:
    condition = In(path("a"), tuple(map(value, range(options))))
    assert _passes(lambda: check_condition(condition)) is fits


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [
        (1, 2, True),
        (1, 1, True),
        (2, 1, False),
        (9, 10, True),
        ("a", "b", True),
        ("b", "a", False),
        (b"a", b"b", True),
        (b"b", b"a", False),
        (1, "b", False),
        ("a", b"b", False),
        (True, True, False),
        (None, None, False),
        ([1], [2], False),
        ({1}, {2}, False),
    ],
)
def test_between_has_ordered_bounds_of_one_type(low: object, high: object, fits: bool) -> None:
    condition = Between(path("a"), value(low), value(high))
    assert _passes(lambda: check_condition(condition)) is fits


def test_between_accepts_any_path_as_a_bound() -> None:
    check_condition(Between(path("a"), path("b"), value(1)))
    check_condition(Between(value(3), path("b"), path("c")))
    check_condition(Between(Size(path("a")), value(1), Size(path("b"))))
    with pytest.raises(InvalidExpressionError, match="BETWEEN takes S or N or B, not BOOL"):
        check_condition(Between(path("a"), path("b"), value(True)))


@pytest.mark.parametrize("comparator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("operand", [True, None, [1], {"a": 1}, {"a"}, {1}, {b"a"}])
def test_an_order_comparison_accepts_only_types_with_an_order(comparator: Any, operand: object) -> None:
    with pytest.raises(InvalidExpressionError, match=f"^{comparator} takes S or N or B"):
        check_condition(Compare(comparator, path("a"), value(operand)))
    with pytest.raises(InvalidExpressionError, match=f"^{comparator} takes S or N or B"):
        check_condition(Compare(comparator, value(operand), path("a")))


@pytest.mark.parametrize("comparator", ["=", "<>"])
@pytest.mark.parametrize("operand", ["s", 1, b"b", True, None, [1], {"a": 1}, {"a"}])
def test_an_equality_comparison_accepts_any_type(comparator: Any, operand: object) -> None:
    check_condition(Compare(comparator, path("a"), value(operand)))


@pytest.mark.parametrize("comparator", ["==", "!=", "", "IN", "=>"])
def test_an_unknown_comparison_is_refused(comparator: Any) -> None:
    with pytest.raises(InvalidExpressionError, match="not a comparison"):
        check_condition(Compare(comparator, path("a"), value(1)))


@pytest.mark.parametrize("prefix", [1, True, None, ["a"], {"a"}])
def test_begins_with_accepts_strings_and_binaries(prefix: object) -> None:
    check_condition(BeginsWith(path("a"), value("x")))
    check_condition(BeginsWith(path("a"), value(b"x")))
    check_condition(BeginsWith(path("a"), path("b")))
    with pytest.raises(InvalidExpressionError, match="begins_with takes S or B"):
        check_condition(BeginsWith(path("a"), value(prefix)))


def test_a_size_cannot_be_a_prefix() -> None:
    with pytest.raises(InvalidExpressionError, match="begins_with"):
        check_condition(BeginsWith(path("a"), Size(path("b"))))


@pytest.mark.parametrize("kind", ["", "s", "STRING", "X", "LIST"])
def test_an_unknown_type_is_refused(kind: str) -> None:
    with pytest.raises(InvalidExpressionError, match="not a DynamoDB type"):
        check_condition(TypeIs(path("a"), kind))


@pytest.mark.parametrize("empty", [And(()), Or(()), ~And(()), A & B | And(())])
def test_a_connective_without_conditions_is_refused(empty: Condition) -> None:
    with pytest.raises(InvalidExpressionError, match="needs at least one condition"):
        check_condition(empty)


@pytest.mark.parametrize(
    "condition",
    [
        Compare("=", path("a"), path("a")),
        Compare("<", path("a", 0), path("a", 0)),
        Between(path("a"), path("a"), value(9)),
        Between(path("a"), value(1), path("a")),
        In(path("a"), (value(1), path("a"))),
        Contains(path("a"), path("a")),
        BeginsWith(path("a"), path("a")),
    ],
)
def test_a_path_cannot_be_compared_with_itself(condition: Condition) -> None:
    # DynamoDB requires that the first operand differ from the others.
    with pytest.raises(InvalidExpressionError):
        check_condition(condition)


def test_a_size_can_be_compared_with_its_attribute_and_with_itself() -> None:
    check_condition(Compare("=", Size(path("a")), path("a")))
    check_condition(Compare("=", Size(path("a")), Size(path("a"))))
    check_condition(Compare("=", value(1), value(1)))


@pytest.mark.parametrize("node", [Condition(), "a = b", None, path("a")])
def test_an_object_that_is_not_a_condition_is_refused(node: Any) -> None:
    with pytest.raises(InvalidExpressionError, match="a condition was expected"):
        check_condition(node)
    with pytest.raises(InvalidExpressionError, match="a condition was expected"):
        check_condition(A & Not(node))


@pytest.mark.parametrize("operand", ["a", 1, None, A])
def test_an_object_that_is_not_an_operand_is_refused(operand: Any) -> None:
    with pytest.raises(InvalidExpressionError, match="a path or a value was expected"):
        check_condition(Compare("=", path("a"), operand))


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (Add(path("a"), path("b")), "takes a literal"),  # type: ignore[arg-type]
        (Delete(path("a"), path("b")), "takes a literal"),  # type: ignore[arg-type]
        (Set(value(1), value(2)), "must begin with a path"),  # type: ignore[arg-type]
    ],
)
def test_a_step_needs_a_path_and_add_and_delete_need_literals(step: UpdateAction, problem: str) -> None:
    with pytest.raises(InvalidExpressionError, match=problem):
        check_update(Update((step,)))


@pytest.mark.parametrize("attribute", [{"N": "many"}, {"S": "\ud800"}, {"SS": []}, {"X": 1}, {}])
def test_a_malformed_literal_is_refused(attribute: Any) -> None:
    with pytest.raises(InvalidValueError):
        check_condition(Compare("=", path("a"), Value(attribute)))
    with pytest.raises(InvalidValueError):
        check_update(Update((Set(path("a"), Value(attribute)),)))


@given(conditions())
def test_paths_of_returns_all_paths_that_a_condition_renders(condition: Condition) -> None:
    renderer = Renderer()
    renderer.condition(condition)
    named = {part for found in paths_of(condition) for part in found.parts if isinstance(part, str)}
    assert named == set(renderer.names.values())


# --- paths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (0,),
        ("",),
        ("a", ""),
        ("a", -1),
        ("a", True),
        ("a", None),
        ("a", 1.5),
        ("a", 2_147_483_648),
        ("a",) * 33,
    ],
)
def test_a_malformed_path_is_refused(parts: Any) -> None:
    checks: list[Callable[[], object]] = [
        lambda: check_condition(Exists(Path(parts))),
        lambda: check_condition(Compare("=", Size(Path(parts)), value(1))),
        lambda: check_update(Update((Remove(Path(parts)),))),
        lambda: check_update(Update((Set(path("x"), Path(parts)),))),
        lambda: check_update(Update((Set(path("x"), IfNotExists(Path(parts), value(1))),))),
        lambda: check_paths([Path(parts)], "projection"),
    ]
    for check in checks:
        with pytest.raises(InvalidExpressionError):
            check()


def test_a_path_has_up_to_32_parts() -> None:
    check_condition(Exists(Path(("a",) * 32)))
    check_condition(Exists(path("a", 2_147_483_647)))
    check_paths([path("a.b[0]", "select", 0)], "projection")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (path("a"), path("a")),
        (path("a"), path("a", "b")),
        (path("a"), path("a", 0)),
        (path("a", "b"), path("a", "b", "c", 0)),
        (path("a", 0), path("a", 0)),
        (path("a", 0), path("a", 0, "x")),
        (path("a", 0), path("a", "b")),
        (path("a", "b", 0, "x"), path("a", "b", "c")),
    ],
)
def test_paths_that_overlap_or_conflict_are_refused(first: Path, second: Path) -> None:
    for pair in ([first, second], [second, first], [path("z"), first, path("y", 0), second]):
        with pytest.raises(InvalidExpressionError, match="two paths of the projection overlap"):
            check_paths(pair, "projection")
        with pytest.raises(InvalidExpressionError, match="two paths of the update overlap"):
            check_update(Update(tuple(map(Remove, pair))))


@pytest.mark.parametrize(
    "several",
    [
        [path("a"), path("b")],
        [path("a", "b"), path("a", "c")],
        [path("a", 0), path("a", 1), path("a", 10)],
        [path("a", "b", 0), path("a", "b", 1), path("a", "c"), path("b", 0)],
        [path("a.b"), path("a", "b")],
    ],
)
def test_paths_that_do_not_overlap_are_accepted(several: list[Path]) -> None:
    check_paths(several, "projection")
    check_paths(several[::-1], "projection")
    check_update(Update(tuple(map(Remove, several))))


def _collide(one: Path, other: Path) -> bool:
    """Whether one path contains the other, or they treat one container as a list and as a map."""
    for mine, yours in zip(one.parts, other.parts, strict=False):
        if isinstance(mine, int) != isinstance(yours, int):
            return True
        if mine != yours:
            return False
    return True


@given(st.lists(paths(), min_size=1, max_size=5))
def test_paths_are_refused_when_any_two_collide(several: list[Path]) -> None:
    pairs = [(one, other) for place, one in enumerate(several) for other in several[:place]]
    fits = not any(_collide(*pair) for pair in pairs)
    assert _passes(lambda: check_paths(several, "projection")) is fits
    assert _passes(lambda: check_update(Update(tuple(map(Remove, several))))) is fits


# --- updates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "fits"),
    [
        (Add(path("a"), value(1)), True),
        (Add(path("a"), value({"x"})), True),
        (Add(path("a"), value({1})), True),
        (Add(path("a"), value({b"x"})), True),
        (Add(path("a"), value("x")), False),
        (Add(path("a"), value([1])), False),
        (Add(path("a"), value(None)), False),
        (Delete(path("a"), value({"x"})), True),
        (Delete(path("a"), value({1})), True),
        (Delete(path("a"), value({b"x"})), True),
        (Delete(path("a"), value(1)), False),
        (Delete(path("a"), value(["x"])), False),
        (Set(path("a"), value(None)), True),
        (Set(path("a"), Plus(path("a"), value(1))), True),
        (Set(path("a"), Minus(IfNotExists(path("a"), value(0)), IfNotExists(path("b"), value(0)))), True),
        (Set(path("a"), ListAppend(IfNotExists(path("a"), value([])), value([1]))), True),
        (Set(path("a"), IfNotExists(path("a"), IfNotExists(path("b"), value(1)))), True),
        (Set(path("a"), Plus(path("a"), value("1"))), False),
        (Set(path("a"), Minus(value([1]), path("a"))), False),
        (Set(path("a"), ListAppend(path("a"), value(1))), False),
        (Set(path("a"), ListAppend(value({"x"}), path("a"))), False),
    ],
)
def test_a_literal_must_have_a_type_that_fits_its_operator(action: UpdateAction, fits: bool) -> None:
    assert _passes(lambda: check_update(Update((action,)))) is fits


LISTS: Any = ListAppend(path("l"), value([1]))
SUM: Any = Plus(path("b"), value(1))


@pytest.mark.parametrize(
    "new",
    [
        ListAppend(LISTS, value([2])),
        ListAppend(value([2]), LISTS),
        IfNotExists(path("a"), LISTS),
        Plus(SUM, value(1)),
        Minus(path("a"), SUM),
        IfNotExists(path("a"), SUM),
        Plus(LISTS, value(1)),
    ],
)
def test_a_nesting_that_dynamodbs_grammar_does_not_allow_is_refused(new: Any) -> None:
    # A sum or list_append must be outermost; only if_not_exists can be inside.
    with pytest.raises(InvalidExpressionError):
        check_update(Update((Set(path("x"), new),)))


@pytest.mark.parametrize("new", ["x", 1, None, Size(path("a")), A])
def test_an_object_that_is_not_a_right_hand_side_is_refused(new: Any) -> None:
    with pytest.raises(InvalidExpressionError):
        check_update(Update((Set(path("x"), new),)))
    with pytest.raises(InvalidExpressionError):
        check_update(Update((Set(path("x"), IfNotExists(path("x"), new)),)))


@pytest.mark.parametrize("action", ["SET a = 1", None, A])
def test_an_object_that_is_not_an_action_is_refused(action: Any) -> None:
    with pytest.raises(InvalidExpressionError):
        check_update(Update((action,)))


# --- refusals of servers --------------------------------------------------------------------------------


def test_a_literal_as_the_subject_of_between_must_have_an_order() -> None:
    with pytest.raises(InvalidExpressionError, match="BETWEEN takes S or N or B, not L"):
        check_condition(Between(value([]), path("a"), path("b")))


def test_if_not_exists_cannot_fall_back_to_its_own_path() -> None:
    with pytest.raises(InvalidExpressionError, match="are both b"):
        check_update(Update((Set(path("a"), IfNotExists(path("b"), path("b"))),)))
    check_update(Update((Set(path("a"), IfNotExists(path("a"), path("b"))),)))


@pytest.mark.parametrize("name", ["n" * 65_536, "é" * 32_768, "\ud800"])
def test_a_name_in_a_path_is_utf8_of_at_most_65535_bytes(name: str) -> None:
    with pytest.raises(InvalidRequestError):
        check_condition(Exists(path(name)))
    with pytest.raises(InvalidRequestError):
        check_condition(Exists(path("a", name)))
    check_condition(Exists(path("n" * 65_535)))

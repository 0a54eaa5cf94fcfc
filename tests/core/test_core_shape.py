"""What is remembered of a shape is what would be found again: the same texts, the same verdicts."""

from __future__ import annotations

import pytest
from core_strategies import attributes, conditions, paths, updates
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.expressions import (
    Between,
    Compare,
    Condition,
    Exists,
    KeyCondition,
    Not,
    Path,
    Set,
    TypeIs,
    Update,
    Value,
    path,
    renderer,
    shape,
    value,
)
from holdall.core.expressions.renderer import Renderer, render
from holdall.core.expressions.shape import MAX_SHAPES, Expression, Memory, shape_of
from holdall.core.rules import expression
from holdall.core.rules.expression import check_condition, check_update
from holdall.core.values import Attribute
from holdall.errors import InvalidExpressionError, InvalidValueError

expressions = (
    conditions()
    | updates()
    | st.builds(KeyCondition, st.text(min_size=1), attributes())
    | st.lists(paths(), min_size=1, max_size=4).map(tuple)
)


def anew(expression: Expression) -> dict[str, object]:
    """What the renderer says without any memory."""
    each = Renderer()
    parameters: dict[str, object] = {"E": each.text(expression)}
    if each.names:
        parameters["ExpressionAttributeNames"] = each.names
    if each.values:
        parameters["ExpressionAttributeValues"] = each.values
    return parameters


def verdict(check: object, expression: object) -> str:
    try:
        check(expression)  # type: ignore[operator]
    except (InvalidExpressionError, InvalidValueError) as error:
        return str(error)
    return "sound"


@given(st.lists(expressions, min_size=1, max_size=6))
def test_a_text_from_memory_is_the_text_rendered_anew(several: list[Expression]) -> None:
    for each in (*several, *several):
        assert render({"E": each}) == anew(each)


@given(st.lists(conditions(), min_size=1, max_size=6))
def test_a_verdict_from_memory_is_the_verdict_found_anew(several: list[Condition]) -> None:
    remembered = [verdict(check_condition, condition) for condition in (*several, *several)]
    expression._sound.clear()
    for condition, before in zip((*several, *several), remembered, strict=True):
        assert verdict(check_condition, condition) == before
        expression._sound.clear()


@given(st.lists(updates(), min_size=1, max_size=6))
def test_an_update_has_one_verdict_too(several: list[Update]) -> None:
    remembered = [verdict(check_update, update) for update in (*several, *several)]
    for update, before in zip((*several, *several), remembered, strict=True):
        expression._sound.clear()
        assert verdict(check_update, update) == before


@given(expressions)
def test_literals_come_in_the_order_of_their_aliases(expression: Expression) -> None:
    literals: list[Attribute] = []
    each = Renderer()
    each.text(expression)
    assert shape_of(expression, literals) is not None
    assert literals == list(each.values.values())


def test_requests_that_differ_in_values_share_a_text() -> None:
    before = len(renderer._known)
    for number in range(50):
        render({"ConditionExpression": Compare("=", path("shared text"), value(number))})
    assert len(renderer._known) == before + 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Compare("=", path("N"), path("x")), Compare("=", Value({"N": "1"}), path("x"))),
        (Compare("=", path("a"), value(1)), Compare("=", path("a"), value("1"))),
        (Compare("=", path("a"), value(1)), Compare("<", path("a"), value(1))),
        (Exists(path("a", "b")), Exists(path("a.b"))),
        (Exists(path("a", 0)), Exists(path("a", "0"))),
        (TypeIs(path("a"), "S"), TypeIs(path("a"), "N")),
        (Exists(path("a")), Not(Exists(path("a")))),
    ],
)
def test_what_reads_differently_has_another_shape(one: Condition, other: Condition) -> None:
    assert shape_of(one, []) != shape_of(other, [])


def test_an_index_that_only_equals_a_number_stays_refused() -> None:
    check_condition(Exists(Path(("list", 1))))
    with pytest.raises(InvalidExpressionError):
        check_condition(Exists(Path(("list", True))))


def test_a_malformed_literal_is_refused_in_a_known_shape() -> None:
    check_condition(Compare("=", path("known"), Value({"N": "1"})))
    with pytest.raises(InvalidValueError):
        check_condition(Compare("=", path("known"), Value({"N": "one"})))
    check_update(Update((Set(path("known"), Value({"S": "a"})),)))
    with pytest.raises(InvalidValueError):
        check_update(Update((Set(path("known"), Value({"S": 1})),)))


def test_the_bounds_of_between_are_compared_every_time() -> None:
    check_condition(Between(path("bounded"), value(1), value(2)))
    with pytest.raises(InvalidExpressionError, match="below"):
        check_condition(Between(path("bounded"), value(2), value(1)))


def test_what_is_no_expression_has_no_shape() -> None:
    nested: Condition = Exists(path("a"))
    for _ in range(10_000):
        nested = Not(nested)
    senseless: list[object] = [5, Compare("=", "a", 1), Exists("a"), Value({}), Update([]), nested]  # type: ignore[arg-type]
    assert [shape_of(part, []) for part in senseless] == [None] * len(senseless)  # type: ignore[arg-type]


def test_memory_has_an_end() -> None:
    memory: Memory[int] = Memory()
    for number in range(MAX_SHAPES + 1):
        memory.keep(number, number)
    assert memory == {MAX_SHAPES: MAX_SHAPES}
    assert shape.MAX_SHAPES == MAX_SHAPES

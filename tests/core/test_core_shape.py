"""The cache of expression shapes returns the same texts and verdicts that would be computed again."""

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


def render_uncached(expression: Expression) -> dict[str, object]:
    """Render the expression without the cache."""
    each = Renderer()
    parameters: dict[str, object] = {"E": each.text(expression)}
    if each.names:
        parameters["ExpressionAttributeNames"] = each.names
    if each.values:
        parameters["ExpressionAttributeValues"] = each.values
    return parameters


def get_verdict(check: object, expression: object) -> str:
    try:
        check(expression)  # type: ignore[operator]
    except (InvalidExpressionError, InvalidValueError) as error:
        return str(error)
    return "sound"


@given(st.lists(expressions, min_size=1, max_size=6))
def test_a_cached_text_equals_the_text_rendered_without_the_cache(several: list[Expression]) -> None:
    for each in (*several, *several):
        assert render({"E": each}) == render_uncached(each)


@given(st.lists(conditions(), min_size=1, max_size=6))
def test_a_cached_verdict_on_a_condition_equals_the_verdict_without_the_cache(
    several: list[Condition],
) -> None:
    cached = [get_verdict(check_condition, condition) for condition in (*several, *several)]
    expression._sound.clear()
    for condition, before in zip((*several, *several), cached, strict=True):
        assert get_verdict(check_condition, condition) == before
        expression._sound.clear()


@given(st.lists(updates(), min_size=1, max_size=6))
def test_a_cached_verdict_on_an_update_equals_the_verdict_without_the_cache(several: list[Update]) -> None:
    cached = [get_verdict(check_update, update) for update in (*several, *several)]
    for update, before in zip((*several, *several), cached, strict=True):
        expression._sound.clear()
        assert get_verdict(check_update, update) == before


@given(expressions)
def test_literals_are_in_the_order_of_their_aliases(expression: Expression) -> None:
    literals: list[Attribute] = []
    each = Renderer()
    each.text(expression)
    assert shape_of(expression, literals) is not None
    assert literals == list(each.values.values())


def test_requests_that_differ_only_in_values_share_a_text() -> None:
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
def test_expressions_with_different_texts_have_different_shapes(one: Condition, other: Condition) -> None:
    assert shape_of(one, []) != shape_of(other, [])


def test_a_boolean_index_is_refused_even_after_an_equal_number_was_cached() -> None:
    check_condition(Exists(Path(("list", 1))))
    with pytest.raises(InvalidExpressionError):
        check_condition(Exists(Path(("list", True))))


def test_a_malformed_literal_is_refused_in_a_cached_shape() -> None:
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


def test_an_object_that_is_not_an_expression_has_no_shape() -> None:
    nested: Condition = Exists(path("a"))
    for _ in range(10_000):
        nested = Not(nested)
    senseless: list[object] = [5, Compare("=", "a", 1), Exists("a"), Value({}), Update([]), nested]  # type: ignore[arg-type]
    assert [shape_of(part, []) for part in senseless] == [None] * len(senseless)  # type: ignore[arg-type]


def test_the_cache_is_bounded() -> None:
    memory: Memory[int] = Memory()
    for number in range(MAX_SHAPES + 1):
        memory.keep(number, number)
    assert memory == {MAX_SHAPES: MAX_SHAPES}
    assert shape.MAX_SHAPES == MAX_SHAPES

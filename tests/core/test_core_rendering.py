"""The text of expressions: exact for each node; every alias is defined and used; the user's names are never in it."""

from __future__ import annotations

import re

import pytest
from core_strategies import attributes, conditions, paths, updates
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
    KeyCondition,
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
from holdall.core.expressions.renderer import Renderer
from holdall.core.values import decode_item

ODD = ("select", "size", "AND", "a.b", "a-b[0]", "#0", ":0", "naïve name", "名", "_w", "'; --", "x y")
"""Reserved words, operators, aliases, punctuation, other scripts."""

A, B, C = (Exists(path(name)) for name in "abc")


# --- exact texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "text", "names", "values"),
    [
        (Compare("=", path("a"), value(1)), "#0 = :0", "a", [1]),
        (Compare("<>", path("a"), path("b")), "#0 <> #1", "ab", []),
        (Compare("<", path("a"), value(1)), "#0 < :0", "a", [1]),
        (Compare("<=", Size(path("a")), value(1)), "size(#0) <= :0", "a", [1]),
        (Compare(">", path("a", "b", 3, "a"), value(1)), "#0.#1[3].#0 > :0", "ab", [1]),
        (Compare(">=", path("a", 0, 1), value(1)), "#0[0][1] >= :0", "a", [1]),
        (Between(path("a"), value(1), value(2)), "#0 BETWEEN :0 AND :1", "a", [1, 2]),
        (In(path("a"), (value(1), path("b"), value("x"))), "#0 IN (:0, #1, :1)", "ab", [1, "x"]),
        (Exists(path("a")), "attribute_exists(#0)", "a", []),
        (NotExists(path("a")), "attribute_not_exists(#0)", "a", []),
        (TypeIs(path("a"), "NS"), "attribute_type(#0, :0)", "a", ["NS"]),
        (BeginsWith(path("a"), value("x")), "begins_with(#0, :0)", "a", ["x"]),
        (Contains(path("a"), value("x")), "contains(#0, :0)", "a", ["x"]),
        (A & B & C, "attribute_exists(#0) AND attribute_exists(#1) AND attribute_exists(#2)", "abc", []),
        (A | B, "attribute_exists(#0) OR attribute_exists(#1)", "ab", []),
        (~A, "NOT attribute_exists(#0)", "a", []),
        ((A | B) & C, "(attribute_exists(#0) OR attribute_exists(#1)) AND attribute_exists(#2)", "abc", []),
        (~(A & B), "NOT (attribute_exists(#0) AND attribute_exists(#1))", "ab", []),
        (~~A, "NOT (NOT attribute_exists(#0))", "a", []),
        (And((A,)), "attribute_exists(#0)", "a", []),
    ],
)
def test_a_condition_has_this_text(condition: Condition, text: str, names: str, values: list[object]) -> None:
    renderer = Renderer()
    assert renderer.condition(condition) == text
    assert renderer.names == {f"#{place}": name for place, name in enumerate(names)}
    assert decode_item(renderer.values) == {f":{place}": plain for place, plain in enumerate(values)}


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ([Set(path("a"), value(1))], "SET #0 = :0"),
        ([Set(path("a"), path("b", 1))], "SET #0 = #1[1]"),
        ([Set(path("a"), IfNotExists(path("a"), value(1)))], "SET #0 = if_not_exists(#0, :0)"),
        ([Set(path("a"), ListAppend(path("a"), value([])))], "SET #0 = list_append(#0, :0)"),
        ([Set(path("a"), Plus(path("a"), value(1)))], "SET #0 = #0 + :0"),
        (
            [Set(path("a"), Minus(IfNotExists(path("b"), value(0)), value(1)))],
            "SET #0 = if_not_exists(#1, :0) - :1",
        ),
        ([Remove(path("a", 2))], "REMOVE #0[2]"),
        ([Add(path("a"), value(1))], "ADD #0 :0"),
        ([Delete(path("a"), value({"x"}))], "DELETE #0 :0"),
        (
            [
                Remove(path("a")),
                Set(path("b"), value(1)),
                Add(path("c"), value(2)),
                Set(path("d"), value(3)),
                Remove(path("e")),
                Delete(path("f"), value({"x"})),
            ],
            "REMOVE #0, #4 SET #1 = :0, #3 = :2 ADD #2 :1 DELETE #5 :3",
        ),
    ],
)
def test_an_update_has_this_text(actions: list[UpdateAction], text: str) -> None:
    assert Renderer().update(Update(tuple(actions))) == text


def test_a_projection_has_this_text() -> None:
    renderer = Renderer()
    assert renderer.projection([path("a"), path("b", 0, "a"), path("c", "d")]) == "#0, #1[0].#0, #2.#3"
    assert renderer.names == {"#0": "a", "#1": "b", "#2": "c", "#3": "d"}


@pytest.mark.parametrize(
    ("sort", "text"),
    [
        (None, "#0 = :0"),
        (Compare("<", path("s"), value(1)), "#0 = :0 AND #1 < :1"),
        (Between(path("s"), value(1), value(2)), "#0 = :0 AND #1 BETWEEN :1 AND :2"),
        (BeginsWith(path("s"), value("x")), "#0 = :0 AND begins_with(#1, :1)"),
    ],
)
def test_a_key_condition_has_this_text(sort: Compare | Between | BeginsWith | None, text: str) -> None:
    renderer = Renderer()
    assert renderer.key_condition(KeyCondition("p", {"S": "x"}, sort)) == text
    assert renderer.values[":0"] == {"S": "x"}


def test_an_object_that_is_not_a_condition_is_not_rendered() -> None:
    with pytest.raises(TypeError, match="not a condition"):
        Renderer().condition(Condition())


# --- properties -----------------------------------------------------------------------------------------

requests = st.tuples(
    st.none() | conditions(ODD),
    st.none() | updates(ODD),
    st.lists(paths(ODD), max_size=3),
    st.none() | st.builds(KeyCondition, st.sampled_from(ODD), attributes()),
)
Request = tuple[Condition | None, Update | None, list[Path], KeyCondition | None]


def _render(request: Request) -> tuple[Renderer, str]:
    condition, update, projection, key = request
    renderer = Renderer()
    texts = [
        "" if condition is None else renderer.condition(condition),
        "" if update is None else renderer.update(update),
        renderer.projection(projection),
        "" if key is None else renderer.key_condition(key),
    ]
    return renderer, " ".join(texts)


@given(requests)
def test_every_alias_of_a_request_is_defined_and_used(request: Request) -> None:
    renderer, text = _render(request)
    assert set(re.findall(r"#\d+", text)) == renderer.names.keys()
    assert set(re.findall(r":\d+", text)) == renderer.values.keys()
    assert len(set(renderer.names.values())) == len(renderer.names)


WORDS = (
    "AND|OR|NOT|BETWEEN|IN|SET|REMOVE|ADD|DELETE|size|attribute_exists|attribute_not_exists|attribute_type"
    "|begins_with|contains|if_not_exists|list_append"
)
GRAMMAR = re.compile(rf"(?:(?:{WORDS})\b|[#:]\d+|\[\d+\]|<>|<=|>=|[=<>+\-.,() ])*")


@given(requests)
def test_a_name_never_appears_in_the_text_itself(request: Request) -> None:
    renderer, text = _render(request)
    assert GRAMMAR.fullmatch(text)
    assert set(renderer.names.values()) <= set(ODD)


@given(conditions(ODD))
def test_each_literal_has_its_own_alias_in_the_order_of_the_text(condition: Condition) -> None:
    renderer = Renderer()
    text = renderer.condition(condition)
    assert sorted(re.findall(r":\d+", text)) == sorted(renderer.values)
    assert renderer.values.keys() == {f":{place}" for place in range(len(renderer.values))}


connected = st.recursive(
    st.sampled_from([A, B, C]),
    lambda inner: (
        st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=8,
)


def _truth(condition: Condition, present: set[str]) -> bool:
    match condition:
        case Exists(Path((name,))):
            return name in present
        case And(conditions):
            return all(_truth(inner, present) for inner in conditions)
        case Or(conditions):
            return any(_truth(inner, present) for inner in conditions)
        case Not(inner):
            return not _truth(inner, present)
    raise AssertionError(condition)


@given(connected, st.sets(st.sampled_from("abc")))
def test_the_text_has_the_same_meaning_as_the_tree(condition: Condition, present: set[str]) -> None:
    # Python gives NOT, AND and OR the same precedence as DynamoDB does.
    renderer = Renderer()
    text = renderer.condition(condition)
    facts = {alias: str(name in present) for alias, name in renderer.names.items()}
    text = re.sub(r"attribute_exists\((#\d+)\)", lambda found: facts[found[1]], text)
    assert eval(re.sub(r"AND|OR|NOT", lambda word: word[0].lower(), text)) is _truth(condition, present)


def test_a_value_is_not_changed() -> None:
    renderer = Renderer()
    renderer.condition(Compare("=", path("a"), Value({"N": "1.0"})))
    assert renderer.values == {":0": {"N": "1.0"}}


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (
            And((And((Or((Exists(path("a")),)),)), Exists(path("b")))),
            "attribute_exists(#0) AND attribute_exists(#1)",
        ),
        (
            Not(And((Or((Exists(path("a")), Exists(path("b")))),))),
            "NOT (attribute_exists(#0) OR attribute_exists(#1))",
        ),
        (Or((And((Not(Exists(path("a"))),)),)), "(NOT attribute_exists(#0))"),
    ],
)
def test_no_parentheses_are_redundant(condition: Condition, text: str) -> None:
    assert Renderer().condition(condition) == text

"""Expression trees: how they are built and combined, and that they are immutable values."""

from __future__ import annotations

import dataclasses

import pytest

from holdall.core.expressions import (
    And,
    Compare,
    Condition,
    Exists,
    KeyCondition,
    Not,
    NotExists,
    Or,
    Path,
    Set,
    Size,
    Update,
    Value,
    path,
    value,
)
from holdall.errors import InvalidValueError

A, B, C = Exists(path("a")), Exists(path("b")), NotExists(path("c"))


def test_a_path_consists_of_names_and_indexes() -> None:
    assert path("lines", 0, "price") == Path(("lines", 0, "price"))
    assert str(path("lines", 0, "price")) == "lines[0].price"
    assert str(path("a", "b")) == "a.b"
    assert path("a.b[0]").parts == ("a.b[0]",)


def test_a_literal_is_encoded() -> None:
    assert value(42) == Value({"N": "42"})
    assert value(None) == Value({"NULL": True})
    with pytest.raises(InvalidValueError):
        value(float("nan"))


def test_conditions_combine_with_operators() -> None:
    assert And((A, B)) == (A & B)
    assert Or((A, B)) == (A | B)
    assert Not(A) == ~A


def test_a_chain_of_one_connective_is_flat() -> None:
    assert (A & B & C) == (A & (B & C)) == And((A, B, C))
    assert (A | B | C) == (A | (B | C)) == Or((A, B, C))
    assert And((A, B, B, C)) == ((A & B) & (B & C))


def test_different_connectives_stay_apart() -> None:
    assert Or((And((A, B)), C)) == ((A & B) | C)
    assert And((A, Or((B, C)))) == (A & (B | C))
    assert Not(And((A, B))) == ~(A & B)
    assert And((Not(A), B)) == ((~A) & B)


@pytest.mark.parametrize(
    "node",
    [
        path("a"),
        value(1),
        Size(path("a")),
        Compare("=", path("a"), value(1)),
        A & B,
        Update((Set(path("a"), value(1)),)),
        KeyCondition("k", {"S": "x"}),
    ],
    ids=lambda node: type(node).__name__,
)
def test_a_tree_cannot_be_changed(node: object) -> None:
    assert dataclasses.is_dataclass(node)
    name = dataclasses.fields(node)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(node, name, None)


def test_trees_compare_by_value() -> None:
    def tree() -> Condition:
        return Compare("<", Size(path("a", 1)), value(3)) & ~NotExists(path("b"))

    assert tree() == tree()
    assert tree() != (tree() | A)

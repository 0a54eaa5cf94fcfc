"""The shape of an expression: its tree without the literals, cheap to take and hashable.

Pure. The requests of one place in a program differ in their values, seldom in their form. What follows from the form
alone (the text, its aliases, that it is within the limits) is found once per shape and kept in a `Memory`.

A path's shape is its parts, a literal's the letter of its type, any other node's a tuple that begins with its class.
Two trees of one shape render to the same text and pass the same checks, but for the content of their literals.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeAlias, TypeVar

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
    Value,
)
from holdall.core.values import Attribute

__all__ = ["Expression", "Memory", "shape_of"]

Expression: TypeAlias = Condition | Update | KeyCondition | tuple[Path, ...]
"""What one expression of a request is made of; a tuple of paths is a projection."""

T = TypeVar("T")

MAX_SHAPES = 1_000


class Memory(dict[Hashable, T], Generic[T]):
    """What was found for each shape; forgets everything when there are too many, because some are made up of data."""

    def keep(self, shape: Hashable, found: T) -> None:
        """Remember it."""
        if len(self) >= MAX_SHAPES:
            self.clear()
        self[shape] = found


def shape_of(expression: Expression, literals: list[Attribute]) -> Hashable:
    """The shape, with its literals added to the list in the order in which they are rendered.

    None for what is no proper expression; the list is of no use then.
    """
    try:
        return _shape(expression, literals)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def _shape(node: Any, literals: list[Attribute]) -> Hashable:
    return _SHAPES[type(node)](node, literals)


def _path(path: Path, literals: list[Attribute]) -> Hashable:
    for part in path.parts:
        if type(part) is not str and type(part) is not int:  # True is equal to 1, and no index
            raise TypeError
    return path.parts


def _value(literal: Value, literals: list[Attribute]) -> Hashable:
    (kind,) = literal.attribute
    literals.append(literal.attribute)
    return kind


def _size(size: Size, literals: list[Attribute]) -> Hashable:
    return (Size, _path(size.path, literals))


def _compare(node: Compare, literals: list[Attribute]) -> Hashable:
    return (Compare, str(node.comparator), _shape(node.left, literals), _shape(node.right, literals))


def _between(node: Between, literals: list[Attribute]) -> Hashable:
    operand = _shape(node.operand, literals)
    return (Between, operand, _shape(node.low, literals), _shape(node.high, literals))


def _in(node: In, literals: list[Attribute]) -> Hashable:
    return (In, _shape(node.operand, literals), _each(node.options, literals))


def _type_is(node: TypeIs, literals: list[Attribute]) -> Hashable:
    literals.append({"S": node.type})
    return (TypeIs, _path(node.path, literals), str(node.type))


def _begins_with(node: BeginsWith, literals: list[Attribute]) -> Hashable:
    return (BeginsWith, _path(node.path, literals), _shape(node.prefix, literals))


def _contains(node: Contains, literals: list[Attribute]) -> Hashable:
    return (Contains, _path(node.path, literals), _shape(node.member, literals))


def _alone(node: Exists | NotExists | Remove, literals: list[Attribute]) -> Hashable:
    return (type(node), _path(node.path, literals))


def _joined(node: And | Or, literals: list[Attribute]) -> Hashable:
    return (type(node), _each(node.conditions, literals))


def _not(node: Not, literals: list[Attribute]) -> Hashable:
    return (Not, _shape(node.condition, literals))


def _step(node: Set | Add | Delete, literals: list[Attribute]) -> Hashable:
    return (type(node), _path(node.path, literals), _shape(node.value, literals))


def _if_not_exists(node: IfNotExists, literals: list[Attribute]) -> Hashable:
    return (IfNotExists, _path(node.path, literals), _shape(node.fallback, literals))


def _list_append(node: ListAppend, literals: list[Attribute]) -> Hashable:
    return (ListAppend, _shape(node.first, literals), _shape(node.second, literals))


def _sum(node: Plus | Minus, literals: list[Attribute]) -> Hashable:
    return (type(node), _shape(node.left, literals), _shape(node.right, literals))


def _update(node: Update, literals: list[Attribute]) -> Hashable:
    return (Update, _each(node.actions, literals))


def _key_condition(node: KeyCondition, literals: list[Attribute]) -> Hashable:
    (kind,) = node.equals
    literals.append(node.equals)
    sort = None if node.sort is None else _shape(node.sort, literals)
    return (KeyCondition, str(node.partition), kind, sort)


def _projection(paths: tuple[Path, ...], literals: list[Attribute]) -> Hashable:
    return (Path, _each(paths, literals))


def _each(nodes: Iterable[Any], literals: list[Attribute]) -> Hashable:
    if type(nodes) is not tuple:
        raise TypeError
    return tuple([_SHAPES[type(node)](node, literals) for node in nodes])


_SHAPES: dict[type[Any], Callable[[Any, list[Attribute]], Hashable]] = {
    Path: _path,
    Value: _value,
    Size: _size,
    Compare: _compare,
    Between: _between,
    In: _in,
    TypeIs: _type_is,
    BeginsWith: _begins_with,
    Contains: _contains,
    Exists: _alone,
    NotExists: _alone,
    And: _joined,
    Or: _joined,
    Not: _not,
    Set: _step,
    Add: _step,
    Delete: _step,
    Remove: _alone,
    IfNotExists: _if_not_exists,
    ListAppend: _list_append,
    Plus: _sum,
    Minus: _sum,
    Update: _update,
    KeyCondition: _key_condition,
    tuple: _projection,
}

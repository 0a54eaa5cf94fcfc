"""The shape of an expression: its tree without the literals, cheap to compute and hashable.

Pure. Requests from one place in a program differ in their values, but seldom in their form. What depends only on the
form (the text, its aliases, whether it is within the limits) is computed once for each shape and kept in a `Memory`.

The shape of a path is its parts, of a literal the letter of its type, of any other node its class, form and operands.
Two trees of the same shape render to the same text and pass the same checks, except those of the literals' content.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeAlias, TypeVar

from holdall.core.expressions import Condition, KeyCondition, Node, Path, Update, Value
from holdall.core.values import Attribute

Expression: TypeAlias = Condition | Update | KeyCondition | tuple[Path, ...]
"""One expression of a request; a tuple of paths is a projection."""

T = TypeVar("T")

_TREES = (Condition, Update)
MAX_SHAPES = 1_000
_keep: Any = vars(Node)["shaped"].__set__  # sets the slot although nodes are frozen


class Memory(dict[Hashable, T], Generic[T]):
    """What was computed for each shape. Drops everything when it is full, because names that are data make endless
    shapes."""

    def keep(self, shape: Hashable, found: T) -> None:
        """Remember a result."""
        if len(self) >= MAX_SHAPES:
            self.clear()
        self[shape] = found


def shape_of(expression: Expression, literals: list[Attribute]) -> Hashable:
    """Return the shape of an expression, and add its literals to the list, in the order in which they are rendered.

    Returns None for a malformed expression, and the list is then useless. A tree remembers its shape, because a request
    is first checked and then rendered.
    """
    try:
        if isinstance(expression, _TREES):
            known = getattr(expression, "shaped", None)
            if known is None:
                own: list[Attribute] = []
                known = _shape(type(expression), expression.form, expression.operands, own), own
                _keep(expression, known)
            literals += known[1]
            return known[0]
        if isinstance(expression, tuple):
            return _shape(tuple, None, expression, literals)
        (letter,) = expression.equals
        literals.append(expression.equals)
        also: list[str] = []
        for name, equals in expression.also:
            also += str(name), *equals
            literals.append(equals)
        sort = None if expression.sort is None else shape_of(expression.sort, literals)
        return (KeyCondition, str(expression.partition), letter, tuple(also), sort)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _shape(
    kind: type[Any], form: str | None, operands: tuple[Node, ...], literals: list[Attribute]
) -> Hashable:
    if type(operands) is not tuple or (form is not None and type(form) is not str):
        raise TypeError
    shape: list[Any] = [kind, form]
    for operand in operands:  # leaves without another call, because every request passes here
        inner = type(operand)
        if inner is Value:
            (letter,) = operand.attribute  # type: ignore[attr-defined]
            literals.append(operand.attribute)  # type: ignore[attr-defined]
            shape.append(letter)
        elif inner is Path:
            for part in operand.parts:  # type: ignore[attr-defined]
                if type(part) is not str and type(part) is not int:  # True equals 1, but is not an index
                    raise TypeError
            shape.append(operand.parts)  # type: ignore[attr-defined]
        else:
            shape.append(_shape(inner, operand.form, operand.operands, literals))
    return tuple(shape)

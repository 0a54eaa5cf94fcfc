"""The shape of an expression: its tree without the literals, cheap to take and hashable.

Pure. The requests of one place in a program differ in their values, seldom in their form. What follows from the form
alone (the text, its aliases, that it is within the limits) is found once per shape and kept in a `Memory`.

A path's shape is its parts, a literal's the letter of its type, any other node's its class, form and operands.
Two trees of one shape render to the same text and pass the same checks, but for the content of their literals.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeAlias, TypeVar

from holdall.core.expressions import Condition, KeyCondition, Node, Path, Update, Value
from holdall.core.values import Attribute

Expression: TypeAlias = Condition | Update | KeyCondition | tuple[Path, ...]
"""What one expression of a request is made of; a tuple of paths is a projection."""

T = TypeVar("T")

_TREES = (Condition, Update)
MAX_SHAPES = 1_000
_keep: Any = vars(Node)["shaped"].__set__  # past the refusal of frozen nodes


class Memory(dict[Hashable, T], Generic[T]):
    """What was found for each shape; forgets everything when there are too many, because some are made up of data."""

    def keep(self, shape: Hashable, found: T) -> None:
        """Remember it."""
        if len(self) >= MAX_SHAPES:
            self.clear()
        self[shape] = found


def shape_of(expression: Expression, literals: list[Attribute]) -> Hashable:
    """The shape, with its literals added to the list in the order in which they are rendered.

    None for what is no proper expression; the list is of no use then. A tree keeps its shape, because a request is
    checked first and rendered after.
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
        sort = None if expression.sort is None else shape_of(expression.sort, literals)
        return (KeyCondition, str(expression.partition), letter, sort)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _shape(
    kind: type[Any], form: str | None, operands: tuple[Node, ...], literals: list[Attribute]
) -> Hashable:
    if type(operands) is not tuple or (form is not None and type(form) is not str):
        raise TypeError
    shape: list[Any] = [kind, form]
    for operand in operands:  # leaves here and not by another call: every request comes this way
        inner = type(operand)
        if inner is Value:
            (letter,) = operand.attribute  # type: ignore[attr-defined]
            literals.append(operand.attribute)  # type: ignore[attr-defined]
            shape.append(letter)
        elif inner is Path:
            for part in operand.parts:  # type: ignore[attr-defined]
                if type(part) is not str and type(part) is not int:  # True is equal to 1, and no index
                    raise TypeError
            shape.append(operand.parts)  # type: ignore[attr-defined]
        else:
            shape.append(_shape(inner, operand.form, operand.operands, literals))
    return tuple(shape)

"""Expressions as values: conditions, updates and projections as small trees, never as text.

Pure. A tree is built here, checked in `validation`, turned into DynamoDB's expression text by
`rendering`, and evaluated directly on items by `evaluation` and `change`. Nodes are frozen and comparable.
Conditions combine with ``&``, ``|`` and ``~``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from holdall.core.frozen import dataclass
from holdall.core.values import Attribute, encode

__all__ = [
    "Add",
    "And",
    "BeginsWith",
    "Between",
    "Compare",
    "Comparator",
    "Condition",
    "Contains",
    "Delete",
    "Exists",
    "IfNotExists",
    "In",
    "KeyCondition",
    "ListAppend",
    "Minus",
    "Not",
    "NotExists",
    "Operand",
    "Or",
    "Path",
    "Plus",
    "Remove",
    "Set",
    "SetValue",
    "Size",
    "Term",
    "TypeIs",
    "Update",
    "UpdateAction",
    "Value",
    "path",
    "value",
]


@dataclass(frozen=True, slots=True)
class Path:
    """The place of a value in an item: an attribute's name, then names inside maps and list indexes."""

    parts: tuple[str | int, ...]

    def __str__(self) -> str:
        head, *rest = self.parts
        return str(head) + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)


@dataclass(frozen=True, slots=True)
class Value:
    """A literal, as an attribute."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class Size:
    """The size of what is at a path: UTF-16 units of a string, bytes of a binary, members of the rest."""

    path: Path


Operand: TypeAlias = Path | Value | Size
"""What a condition can compare."""

Comparator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
"""The comparison operators, spelt as DynamoDB spells them."""


def path(*parts: str | int) -> Path:
    """A path from its parts: ``path("lines", 0, "price")``. Dots and brackets in a name are just names."""
    return Path(parts)


def value(plain: object) -> Value:
    """A literal from a Python value."""
    return Value(encode(plain))


# --- conditions -----------------------------------------------------------------------------------------


class Condition:
    """The base of all conditions: ``a & b``, ``a | b``, ``~a``."""

    __slots__ = ()

    def __and__(self, other: Condition) -> And:
        return And((*_members(And, self), *_members(And, other)))

    def __or__(self, other: Condition) -> Or:
        return Or((*_members(Or, self), *_members(Or, other)))

    def __invert__(self) -> Not:
        return Not(self)


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    """``left = right`` and its five siblings. A missing operand makes only ``<>`` true."""

    comparator: Comparator
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between(Condition):
    """``low <= operand <= high``, all of one type."""

    operand: Operand
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class In(Condition):
    """The operand equals one of up to 100 options."""

    operand: Operand
    options: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Exists(Condition):
    """There is something at the path, be it NULL."""

    path: Path


@dataclass(frozen=True, slots=True)
class NotExists(Condition):
    """There is nothing at the path."""

    path: Path


@dataclass(frozen=True, slots=True)
class TypeIs(Condition):
    """What is at the path has this DynamoDB type: ``S N B BOOL NULL L M SS NS BS``."""

    path: Path
    type: str


@dataclass(frozen=True, slots=True)
class BeginsWith(Condition):
    """The string or binary at the path begins with the operand."""

    path: Path
    prefix: Operand


@dataclass(frozen=True, slots=True)
class Contains(Condition):
    """The string has this substring, or the set or list this member."""

    path: Path
    member: Operand


@dataclass(frozen=True, slots=True)
class And(Condition):
    """All of them hold."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or(Condition):
    """At least one of them holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """It does not hold."""

    condition: Condition


def _members(kind: type[And] | type[Or], condition: Condition) -> tuple[Condition, ...]:
    return condition.conditions if isinstance(condition, kind) else (condition,)


# --- updates --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IfNotExists:
    """What is at the path, or the fallback when nothing is."""

    path: Path
    fallback: Term


@dataclass(frozen=True, slots=True)
class ListAppend:
    """Two lists, one after the other."""

    first: Term
    second: Term


@dataclass(frozen=True, slots=True)
class Plus:
    """The exact sum of two numbers."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Minus:
    """The exact difference of two numbers."""

    left: Term
    right: Term


Term: TypeAlias = Path | Value | IfNotExists
"""What can be added, subtracted, appended or fallen back to."""

SetValue: TypeAlias = Term | ListAppend | Plus | Minus
"""The right-hand side of a `Set`, read from the item as it was before the update."""


@dataclass(frozen=True, slots=True)
class Set:
    """Put a value at a path; past the end of a list it is appended."""

    path: Path
    value: SetValue


@dataclass(frozen=True, slots=True)
class Remove:
    """Take away what is at the path; later list members move up."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add:
    """Add to a number (missing counts as 0) or to a set (missing counts as empty)."""

    path: Path
    value: Value


@dataclass(frozen=True, slots=True)
class Delete:
    """Take members out of a set; a set left empty is removed."""

    path: Path
    value: Value


UpdateAction: TypeAlias = Set | Remove | Add | Delete
"""One step of an update."""


@dataclass(frozen=True, slots=True)
class Update:
    """The steps of an update. They all see the item as it was before, and may not overlap."""

    actions: tuple[UpdateAction, ...]


# --- keys of a query ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """The rows a query reads: one partition, and at most one range condition on the sort key.

    ``sort`` is a `Compare` (not ``<>``), `Between` or `BeginsWith` whose subject is the sort key's path
    and whose other operands are values.
    """

    partition: str
    equals: Attribute
    sort: Compare | Between | BeginsWith | None = None

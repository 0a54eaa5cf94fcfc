"""Conditions, and the key condition of a query. Pure."""

from __future__ import annotations

from operator import attrgetter
from typing import ClassVar, Literal, TypeAlias

from holdall.core.comparison import order
from holdall.core.expressions.node import Node, Operand, Path, Size, Value, check_literals
from holdall.core.frozen import dataclass
from holdall.core.values import Attribute
from holdall.errors import InvalidExpressionError

MAX_OPTIONS = 100

_TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})
_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})

Comparator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
"""The comparison operators, in DynamoDB's spelling."""


class Condition(Node):
    """The base class of all conditions. They combine: ``a & b``, ``a | b``, ``~a``."""

    __slots__ = ()
    takes: ClassVar[tuple[type[Node], ...]] = (Path, Value, Size)

    def check(self) -> None:
        """Also check that nothing is compared with itself."""
        if "__match_args__" not in vars(type(self)):
            raise InvalidExpressionError(f"a condition was expected, not {type(self).__name__}")
        super().check()
        first, *rest = self.operands or (None,)
        if isinstance(first, Path) and first in rest:
            raise InvalidExpressionError(
                f"{first} is compared with itself, which DynamoDB does not allow",
                hint="compare it with a value or with another path",
            )

    def refuse_operand(self, operand: object) -> InvalidExpressionError:
        """Return the error for an operand of the wrong class."""
        if Condition in self.takes:
            return InvalidExpressionError(f"a condition was expected, not {type(operand).__name__}")
        return super().refuse_operand(operand)

    def __and__(self, other: Condition) -> And:
        return And((*_members(And, self), *_members(And, other)))

    def __or__(self, other: Condition) -> Or:
        return Or((*_members(Or, self), *_members(Or, other)))

    def __invert__(self) -> Not:
        return Not(self)


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    """A comparison: ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``. If an operand is missing, only ``<>`` is true."""

    comparator: Comparator
    left: Operand
    right: Operand

    form = property(attrgetter("comparator"), doc="The operator.")
    operands = property(attrgetter("left", "right"), doc="The two sides of the comparison.")

    def check(self) -> None:
        """Also check the operator, and that the literals of an ordered comparison have an order."""
        if self.comparator not in _COMPARATORS:
            raise InvalidExpressionError(
                f"{self.comparator!r} is not a comparison operator", hint="use one of: = <> < <= > >="
            )
        if self.comparator not in ("=", "<>"):
            check_literals(self.comparator, self.operands, "S", "N", "B")
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class Between(Condition):
    """``low <= operand <= high``, all of one type."""

    checked_by_shape: ClassVar[bool] = False  # the check compares the bounds with each other
    operand: Operand
    low: Operand
    high: Operand

    def check(self) -> None:
        """Also check that literal bounds have the same type, and that the lower bound is not above the upper one."""
        check_literals("BETWEEN", self.operands, "S", "N", "B")
        if isinstance(self.low, Value) and isinstance(self.high, Value):
            least, most = order(self.low.attribute), order(self.high.attribute)
            assert least is not None
            assert most is not None
            if least[0] != most[0]:
                raise InvalidExpressionError(
                    f"the bounds of BETWEEN must have the same type, not {least[0]} and {most[0]}"
                )
            if least[1] > most[1]:
                raise InvalidExpressionError("the upper bound of BETWEEN is below its lower bound")
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class In(Condition):
    """The operand equals one of up to 100 options."""

    operand: Operand
    options: tuple[Operand, ...]

    @property
    def operands(self) -> tuple[Node, ...]:
        """The operand, then the options."""
        return (self.operand, *self.options)

    def check(self) -> None:
        """Also check that there are 1 to 100 options."""
        if not 1 <= len(self.options) <= MAX_OPTIONS:
            raise InvalidExpressionError(
                f"IN has {len(self.options)} options; DynamoDB allows 1 to {MAX_OPTIONS}"
            )
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class Exists(Condition):
    """The item has a value at the path, even if it is NULL."""

    path: Path


@dataclass(frozen=True, slots=True)
class NotExists(Condition):
    """The item has no value at the path."""

    path: Path


@dataclass(frozen=True, slots=True)
class TypeIs(Condition):
    """The value at the path has this DynamoDB type: ``S N B BOOL NULL L M SS NS BS``."""

    path: Path
    type: str

    form = property(attrgetter("type"), doc="The type.")

    @property
    def operands(self) -> tuple[Node, ...]:
        """The path, and the type as a literal, because requests send it as one."""
        return (self.path, Value({"S": self.type}))

    def check(self) -> None:
        """Also check that DynamoDB has the type."""
        if self.type not in _TYPES:
            raise InvalidExpressionError(
                f"{self.type!r} is not a DynamoDB type", hint=f"use one of: {' '.join(sorted(_TYPES))}"
            )
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class BeginsWith(Condition):
    """The string or binary at the path begins with the operand."""

    path: Path
    prefix: Operand

    def check(self) -> None:
        """Also check that the prefix is a string or binary."""
        if isinstance(self.prefix, Size):
            raise InvalidExpressionError("begins_with takes S or B, not a size, which is a number")
        check_literals("begins_with", (self.prefix,), "S", "B")
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class Contains(Condition):
    """The string at the path contains this substring, or the set or list contains this member."""

    path: Path
    member: Operand


class _Connective(Condition):
    """Several conditions joined into one."""

    __slots__ = ()
    takes: ClassVar[tuple[type[Node], ...]] = (Condition,)
    conditions: tuple[Condition, ...]

    @property
    def operators(self) -> int:
        """One for each ``AND`` or ``OR`` between the conditions."""
        return max(1, len(self.conditions) - 1)

    def check(self) -> None:
        """Also check that there is a condition."""
        if not self.conditions:
            raise InvalidExpressionError(f"{type(self).__name__} needs at least one condition")
        super().check()


@dataclass(frozen=True, slots=True)
class And(_Connective):
    """All the conditions are true."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or(_Connective):
    """At least one of the conditions is true."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The condition is false."""

    takes: ClassVar[tuple[type[Node], ...]] = (Condition,)
    condition: Condition


def _members(kind: type[And] | type[Or], condition: Condition) -> tuple[Condition, ...]:
    return condition.conditions if isinstance(condition, kind) else (condition,)


@dataclass(frozen=True, slots=True)
class KeyCondition:
    """The items that a query reads: one partition, and at most one range condition on the sort key.

    ``sort`` is a `Compare` (but not ``<>``), `Between` or `BeginsWith`. Its first operand is the sort key's path, and
    its other operands are values. In an index whose keys have several attributes, ``also`` has the values of the other
    attributes of the partition key, then of those attributes of the sort key that precede the one in ``sort``.
    """

    partition: str
    equals: Attribute
    sort: Compare | Between | BeginsWith | None = None
    also: tuple[tuple[str, Attribute], ...] = ()

    @property
    def equalities(self) -> tuple[tuple[str, Attribute], ...]:
        """All attributes that have one value."""
        return ((self.partition, self.equals), *self.also)

"""Expressions as values: conditions, updates and projections are small trees, never text.

Pure. This module defines the nodes. `expression_limits` checks a tree, `renderer` turns it into DynamoDB's expression
text, and `evaluation` and `change` evaluate it directly on items. Nodes are frozen and comparable. Conditions combine
with ``&``, ``|`` and ``~``.

A node knows its operands and its own rules, so code that walks a tree needs to know only the leaves, `Path` and
`Value`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeAlias

from holdall.core.comparison import order
from holdall.core.frozen import dataclass
from holdall.core.values import Attribute, attribute_size, encode, name_size
from holdall.errors import InvalidExpressionError

MAX_OPTIONS = 100
MAX_PATH = 32
MAX_INDEX = 2**31 - 1

_TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})
_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})


class Node:
    """The base class of all parts of an expression.

    A node's operands are its fields, in the order in which they are rendered, unless its class overrides `operands`.
    """

    __slots__ = ("shaped",)
    shaped: tuple[Hashable, list[Attribute]]  # its shape and literals, once `shapes` has computed them
    form: ClassVar[str | None] = (
        None  # what distinguishes it from other nodes of its class, besides its operands
    )
    takes: ClassVar[tuple[type[Node], ...]] = ()  # the classes that its operands may have
    checked_by_shape: ClassVar[bool] = True  # whether all nodes of its shape pass the check if one does

    def __init_subclass__(cls) -> None:
        kinds: dict[str, str] = vars(cls).get("__annotations__", {})
        names = [name for name, kind in kinds.items() if not kind.startswith("ClassVar[")]
        if names and "operands" not in vars(cls):
            get: Any = attrgetter(*names)
            several = len(names) > 1 or kinds[names[0]].startswith("tuple[")
            found = get if several else lambda node: (get(node),)
            cls.operands = property(found, doc="Its fields.")  # type: ignore[assignment,method-assign]

    @property
    def operands(self) -> tuple[Node, ...]:
        """The nodes directly inside it."""
        return ()

    @property
    def operators(self) -> int:
        """How many operators DynamoDB counts for it, besides those of its operands."""
        return 1

    def check(self) -> None:
        """Raise `InvalidExpressionError` if this node breaks a rule of DynamoDB. Does not check its operands."""
        for operand in self.operands:
            if not isinstance(operand, self.takes):
                raise _refuse_misplaced(operand, self.takes)


class _Leaf(Node):
    """A node without operands."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Do nothing: the fields of a leaf are not operands."""

    @property
    def operators(self) -> int:
        """Zero: a leaf has no operator."""
        return 0


@dataclass(frozen=True, slots=True)
class Path(_Leaf):
    """The place of a value in an item: an attribute's name, then names in maps and indexes in lists."""

    parts: tuple[str | int, ...]

    def __str__(self) -> str:
        head, *rest = self.parts
        return str(head) + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)

    def check(self) -> None:
        """Check that the path begins with a name and consists of names and indexes."""
        parts = self.parts
        if not parts or not isinstance(parts[0], str):
            raise InvalidExpressionError("a path must begin with an attribute's name")
        if len(parts) > MAX_PATH:
            raise InvalidExpressionError(f"the path has {len(parts)} parts; DynamoDB allows {MAX_PATH}")
        for part in parts:
            if not (part if type(part) is str else type(part) is int and 0 <= part <= MAX_INDEX):
                raise InvalidExpressionError(
                    f"a part of a path must be a name or an index from 0 to {MAX_INDEX:,}, not {part!r}"
                )
            if type(part) is str:
                name_size(part)


@dataclass(frozen=True, slots=True)
class Value(_Leaf):
    """A literal value, held as an attribute."""

    attribute: Attribute

    def check(self) -> None:
        """Raise `InvalidValueError` if DynamoDB cannot store the value."""
        attribute_size(self.attribute)


@dataclass(frozen=True, slots=True)
class Size(Node):
    """The size of the value at a path: a string's UTF-16 units, a binary's bytes, or the number of members."""

    takes: ClassVar[tuple[type[Node], ...]] = (Path,)
    path: Path


Operand: TypeAlias = Path | Value | Size
"""The operands that a condition can compare."""

Comparator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
"""The comparison operators, in DynamoDB's spelling."""


def path(*parts: str | int) -> Path:
    """Make a path from its parts: ``path("lines", 0, "price")``. Dots and brackets in a name have no meaning."""
    return Path(parts)


def value(plain: object) -> Value:
    """Make a literal from a Python value."""
    return Value(encode(plain))


# --- conditions -----------------------------------------------------------------------------------------


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
            _check_literals(self.comparator, self.operands, "S", "N", "B")
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
        _check_literals("BETWEEN", self.operands, "S", "N", "B")
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
        _check_literals("begins_with", (self.prefix,), "S", "B")
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


# --- updates --------------------------------------------------------------------------------------------


class _Term(Node):
    """An expression from which an update computes a value."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class IfNotExists(_Term):
    """The value at the path, or the fallback if the item has no value there."""

    path: Path
    fallback: Term

    def check(self) -> None:
        """Also check that the fallback is not the path itself."""
        if self.fallback == self.path:
            raise InvalidExpressionError(
                f"the path and the fallback of if_not_exists are both {self.path}, which DynamoDB does not allow",
                hint="fall back to a value or to another path",
            )
        _Term.check(self)


_Term.takes = (Path, Value, IfNotExists)


@dataclass(frozen=True, slots=True)
class ListAppend(_Term):
    """The first list followed by the second."""

    first: Term
    second: Term

    def check(self) -> None:
        """Also check that literals are lists."""
        _check_literals("list_append", self.operands, "L")
        _Term.check(self)


class _Sum(_Term):
    """The sum or difference of two numbers."""

    __slots__ = ()

    def check(self) -> None:
        """Also check that literals are numbers."""
        _check_literals("a sum", self.operands, "N")
        super().check()


@dataclass(frozen=True, slots=True)
class Plus(_Sum):
    """The exact sum of two numbers."""

    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Minus(_Sum):
    """The exact difference of two numbers."""

    left: Term
    right: Term


Term: TypeAlias = Path | Value | IfNotExists
"""The terms that can be added, subtracted, appended or used as a fallback."""

SetValue: TypeAlias = Term | ListAppend | Plus | Minus
"""The right-hand side of a `Set`, read from the item as it was before the update."""


class _Clause(Node):
    """One clause of an update."""

    __slots__ = ()
    takes: ClassVar[tuple[type[Node], ...]] = (Path, Value)
    path: Path

    @property
    def operators(self) -> int:
        """Zero: DynamoDB does not count the actions of an update."""
        return 0

    def check(self) -> None:
        """Also check that the action has a path."""
        super().check()
        if not isinstance(self.path, Path):
            raise InvalidExpressionError(
                f"an update action must begin with a path, not {type(self.path).__name__}"
            )


@dataclass(frozen=True, slots=True)
class Set(_Clause):
    """Set the value at a path. An index past the end of a list appends the value."""

    takes: ClassVar[tuple[type[Node], ...]] = (Path, Value, IfNotExists, ListAppend, Plus, Minus)
    path: Path
    value: SetValue


@dataclass(frozen=True, slots=True)
class Remove(_Clause):
    """Remove the value at a path. Later members of a list move up."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add(_Clause):
    """Add to a number (0 if missing) or to a set (empty if missing)."""

    path: Path
    value: Value

    def check(self) -> None:
        """Also check that the added value is a literal number or set."""
        _check_literals(f"ADD at {self.path}", (self.value,), "N", "SS", "NS", "BS", alone=True)
        _Clause.check(self)


@dataclass(frozen=True, slots=True)
class Delete(_Clause):
    """Remove members from a set. A set that becomes empty is removed."""

    path: Path
    value: Value

    def check(self) -> None:
        """Also check that the members are a literal set."""
        _check_literals(f"DELETE at {self.path}", (self.value,), "SS", "NS", "BS", alone=True)
        _Clause.check(self)


UpdateAction: TypeAlias = Set | Remove | Add | Delete
"""One clause of an update."""


@dataclass(frozen=True, slots=True)
class Update(Node):
    """The actions of an update. Each reads the item as it was before the update; their paths must not overlap."""

    takes: ClassVar[tuple[type[Node], ...]] = (_Clause,)
    actions: tuple[UpdateAction, ...]

    @property
    def operators(self) -> int:
        """Zero: DynamoDB does not count the actions of an update."""
        return 0

    def check(self) -> None:
        """Also check that the actions are a tuple."""
        if not isinstance(self.actions, tuple):
            raise InvalidExpressionError(
                f"the actions of an update must be a tuple, not {type(self.actions).__name__}",
                hint="write Update((action, action, ...))",
            )
        Node.check(self)


# --- keys of a query ------------------------------------------------------------------------------------


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


# --- rules ----------------------------------------------------------------------------------------------


def _check_literals(what: str, operands: Iterable[Node], *kinds: str, alone: bool = False) -> None:
    """Check that the literals among the operands have one of these types; ``alone``: all operands must be literals."""
    for operand in operands:
        if isinstance(operand, Value):
            operand.check()  # whether it is a value at all, before its type
            if not any(kind in operand.attribute for kind in kinds):
                raise InvalidExpressionError(
                    f"{what} takes {' or '.join(kinds)}, not {next(iter(operand.attribute))}"
                )
        elif alone:
            raise InvalidExpressionError(
                f"{what} takes a literal, not {type(operand).__name__}", hint="wrap a literal: value(5)"
            )


def _refuse_misplaced(operand: object, wanted: tuple[type[Node], ...]) -> InvalidExpressionError:
    found = type(operand).__name__
    if Condition in wanted:
        return InvalidExpressionError(f"a condition was expected, not {found}")
    if _Clause in wanted:
        return InvalidExpressionError(
            f"an update action was expected, not {found}", hint="use Set, Remove, Add or Delete"
        )
    if isinstance(operand, ListAppend | Plus | Minus):
        # DynamoDB's grammar allows one sum or one list_append, outermost; only if_not_exists may be nested.
        name = "list_append" if isinstance(operand, ListAppend) else "a sum"
        return InvalidExpressionError(f"{name} cannot be nested inside another term", hint="send two updates")
    return InvalidExpressionError(
        f"a path or a value was expected, not {found}", hint="wrap a literal: value(5)"
    )

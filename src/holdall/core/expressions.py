"""Expressions as values: conditions, updates and projections as small trees, never as text.

Pure. A tree is built here, checked in `expression_limits`, turned into DynamoDB's expression text by `renderer`, and
evaluated directly on items by `evaluation` and `change`. Nodes are frozen and comparable. Conditions combine with
``&``, ``|`` and ``~``.

A node knows its operands and its own rules, so code that walks a tree names no classes but the leaves, `Path` and
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
    """The base of everything that an expression is made of.

    A node's fields are its operands, in the order in which they are rendered, unless its class says otherwise.
    """

    __slots__ = ("shaped",)
    shaped: tuple[Hashable, list[Attribute]]  # its shape and literals, once `shapes` has taken them
    form: ClassVar[str | None] = None  # what tells it from others of its class, besides its operands
    takes: ClassVar[tuple[type[Node], ...]] = ()  # the classes of its operands
    checked_by_shape: ClassVar[bool] = True  # whether all nodes of its shape pass the check, if one does

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
        """Raise `InvalidExpressionError` if it breaks a rule of DynamoDB's; its operands are checked by themselves."""
        for operand in self.operands:
            if not isinstance(operand, self.takes):
                raise _refuse_misplaced(operand, self.takes)


class _Leaf(Node):
    """A node without operands."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Its fields are no operands."""

    @property
    def operators(self) -> int:
        """None."""
        return 0


@dataclass(frozen=True, slots=True)
class Path(_Leaf):
    """The place of a value in an item: an attribute's name, then names inside maps and list indexes."""

    parts: tuple[str | int, ...]

    def __str__(self) -> str:
        head, *rest = self.parts
        return str(head) + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in rest)

    def check(self) -> None:
        """Names and indexes, beginning with a name."""
        parts = self.parts
        if not parts or not isinstance(parts[0], str):
            raise InvalidExpressionError("a path begins with an attribute's name")
        if len(parts) > MAX_PATH:
            raise InvalidExpressionError(f"a path of {len(parts)} parts; the most is {MAX_PATH}")
        for part in parts:
            if not (part if type(part) is str else type(part) is int and 0 <= part <= MAX_INDEX):
                raise InvalidExpressionError(
                    f"{part!r} in a path: parts are names and indexes from 0 to {MAX_INDEX:,}"
                )
            if type(part) is str:
                name_size(part)


@dataclass(frozen=True, slots=True)
class Value(_Leaf):
    """A literal, as an attribute."""

    attribute: Attribute

    def check(self) -> None:
        """A value that DynamoDB has; `InvalidValueError` otherwise."""
        attribute_size(self.attribute)


@dataclass(frozen=True, slots=True)
class Size(Node):
    """The size of what is at a path: UTF-16 units of a string, bytes of a binary, members of the rest."""

    takes: ClassVar[tuple[type[Node], ...]] = (Path,)
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


class Condition(Node):
    """The base of all conditions: ``a & b``, ``a | b``, ``~a``."""

    __slots__ = ()
    takes: ClassVar[tuple[type[Node], ...]] = (Path, Value, Size)

    def check(self) -> None:
        """Also that nothing is compared with itself."""
        if "__match_args__" not in vars(type(self)):
            raise InvalidExpressionError(f"not a condition: {type(self).__name__}")
        super().check()
        first, *rest = self.operands or (None,)
        if isinstance(first, Path) and first in rest:
            raise InvalidExpressionError(
                f"{first} is compared with itself", hint="DynamoDB takes no such operands"
            )

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

    form = property(attrgetter("comparator"), doc="The comparison.")
    operands = property(attrgetter("left", "right"), doc="What is compared.")

    def check(self) -> None:
        """One of the six comparisons; only what has an order is asked for it."""
        if self.comparator not in _COMPARATORS:
            raise InvalidExpressionError(f"{self.comparator!r} is not a comparison")
        if self.comparator not in ("=", "<>"):
            _check_literals(self.comparator, self.operands, "S", "N", "B")
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class Between(Condition):
    """``low <= operand <= high``, all of one type."""

    checked_by_shape: ClassVar[bool] = False  # its bounds are compared with each other
    operand: Operand
    low: Operand
    high: Operand

    def check(self) -> None:
        """Also that bounds that are literals have one type, and the lower one is not above the other."""
        _check_literals("BETWEEN", self.operands, "S", "N", "B")
        if isinstance(self.low, Value) and isinstance(self.high, Value):
            least, most = order(self.low.attribute), order(self.high.attribute)
            assert least is not None
            assert most is not None
            if least[0] != most[0]:
                raise InvalidExpressionError(f"BETWEEN a {least[0]} and a {most[0]}: the types differ")
            if least[1] > most[1]:
                raise InvalidExpressionError("BETWEEN with its upper bound below its lower bound")
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
        """Also that there are 1 to 100 options."""
        if not 1 <= len(self.options) <= MAX_OPTIONS:
            raise InvalidExpressionError(f"IN with {len(self.options)} options; it takes 1 to {MAX_OPTIONS}")
        Condition.check(self)


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

    form = property(attrgetter("type"), doc="The type.")

    @property
    def operands(self) -> tuple[Node, ...]:
        """The path, and the type as the literal that it is in a request."""
        return (self.path, Value({"S": self.type}))

    def check(self) -> None:
        """Also that there is such a type."""
        if self.type not in _TYPES:
            raise InvalidExpressionError(f"{self.type!r} is not a DynamoDB type")
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class BeginsWith(Condition):
    """The string or binary at the path begins with the operand."""

    path: Path
    prefix: Operand

    def check(self) -> None:
        """Also that the prefix can be one."""
        if isinstance(self.prefix, Size):
            raise InvalidExpressionError("begins_with takes S or B, not the number that a size is")
        _check_literals("begins_with", (self.prefix,), "S", "B")
        Condition.check(self)


@dataclass(frozen=True, slots=True)
class Contains(Condition):
    """The string has this substring, or the set or list this member."""

    path: Path
    member: Operand


class _Connective(Condition):
    """Several conditions as one."""

    __slots__ = ()
    takes: ClassVar[tuple[type[Node], ...]] = (Condition,)
    conditions: tuple[Condition, ...]

    @property
    def operators(self) -> int:
        """The words between them."""
        return max(1, len(self.conditions) - 1)

    def check(self) -> None:
        """Also that there is something to connect."""
        if not self.conditions:
            raise InvalidExpressionError(f"{type(self).__name__} of no conditions")
        super().check()


@dataclass(frozen=True, slots=True)
class And(_Connective):
    """All of them hold."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or(_Connective):
    """At least one of them holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """It does not hold."""

    takes: ClassVar[tuple[type[Node], ...]] = (Condition,)
    condition: Condition


def _members(kind: type[And] | type[Or], condition: Condition) -> tuple[Condition, ...]:
    return condition.conditions if isinstance(condition, kind) else (condition,)


# --- updates --------------------------------------------------------------------------------------------


class _Term(Node):
    """What an update computes a value from."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class IfNotExists(_Term):
    """What is at the path, or the fallback when nothing is."""

    path: Path
    fallback: Term

    def check(self) -> None:
        """Also that it does not fall back to itself."""
        if self.fallback == self.path:
            raise InvalidExpressionError(
                f"if_not_exists falls back from {self.path} to itself", hint="DynamoDB takes no such operands"
            )
        _Term.check(self)


_Term.takes = (Path, Value, IfNotExists)


@dataclass(frozen=True, slots=True)
class ListAppend(_Term):
    """Two lists, one after the other."""

    first: Term
    second: Term

    def check(self) -> None:
        """Also that literals are lists."""
        _check_literals("list_append", self.operands, "L")
        _Term.check(self)


class _Sum(_Term):
    """Two numbers as one."""

    __slots__ = ()

    def check(self) -> None:
        """Also that literals are numbers."""
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
"""What can be added, subtracted, appended or fallen back to."""

SetValue: TypeAlias = Term | ListAppend | Plus | Minus
"""The right-hand side of a `Set`, read from the item as it was before the update."""


class _Clause(Node):
    """One clause of an update."""

    __slots__ = ()
    takes: ClassVar[tuple[type[Node], ...]] = (Path, Value)
    path: Path

    @property
    def operators(self) -> int:
        """None: steps are not counted."""
        return 0

    def check(self) -> None:
        """Also that it goes to a path."""
        super().check()
        if not isinstance(self.path, Path):
            raise InvalidExpressionError(f"an update goes to a path, not to a {type(self.path).__name__}")


@dataclass(frozen=True, slots=True)
class Set(_Clause):
    """Put a value at a path; past the end of a list it is appended."""

    takes: ClassVar[tuple[type[Node], ...]] = (Path, Value, IfNotExists, ListAppend, Plus, Minus)
    path: Path
    value: SetValue


@dataclass(frozen=True, slots=True)
class Remove(_Clause):
    """Take away what is at the path; later list members move up."""

    path: Path


@dataclass(frozen=True, slots=True)
class Add(_Clause):
    """Add to a number (missing counts as 0) or to a set (missing counts as empty)."""

    path: Path
    value: Value

    def check(self) -> None:
        """Also that it adds a literal of a number or set."""
        _check_literals(f"ADD at {self.path}", (self.value,), "N", "SS", "NS", "BS", alone=True)
        _Clause.check(self)


@dataclass(frozen=True, slots=True)
class Delete(_Clause):
    """Take members out of a set; a set left empty is removed."""

    path: Path
    value: Value

    def check(self) -> None:
        """Also that the members are a literal."""
        _check_literals(f"DELETE at {self.path}", (self.value,), "SS", "NS", "BS", alone=True)
        _Clause.check(self)


UpdateAction: TypeAlias = Set | Remove | Add | Delete
"""One clause of an update."""


@dataclass(frozen=True, slots=True)
class Update(Node):
    """The steps of an update. They all see the item as it was before, and may not overlap."""

    takes: ClassVar[tuple[type[Node], ...]] = (_Clause,)
    actions: tuple[UpdateAction, ...]

    @property
    def operators(self) -> int:
        """None: steps are not counted."""
        return 0

    def check(self) -> None:
        """Also that its steps are a tuple."""
        if not isinstance(self.actions, tuple):
            raise InvalidExpressionError("not an update", hint="it is Update((action, action, ...))")
        Node.check(self)


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


# --- rules ----------------------------------------------------------------------------------------------


def _check_literals(what: str, operands: Iterable[Node], *kinds: str, alone: bool = False) -> None:
    """Literals among the operands have one of these types; ``alone``: there is nothing but literals."""
    for operand in operands:
        if isinstance(operand, Value):
            operand.check()  # a value at all, before its type is looked at
            if not any(kind in operand.attribute for kind in kinds):
                raise InvalidExpressionError(
                    f"{what} takes {' or '.join(kinds)}, not {next(iter(operand.attribute))}"
                )
        elif alone:
            raise InvalidExpressionError(f"{what} takes a literal, not a {type(operand).__name__}")


def _refuse_misplaced(operand: object, wanted: tuple[type[Node], ...]) -> InvalidExpressionError:
    found = type(operand).__name__
    if Condition in wanted:
        return InvalidExpressionError(f"not a condition: {found}")
    if _Clause in wanted:
        return InvalidExpressionError(f"not an update action: {found}")
    if isinstance(operand, ListAppend | Plus | Minus):
        # DynamoDB's grammar has one sum or one list_append, outermost; only if_not_exists goes inside.
        name = "list_append" if isinstance(operand, ListAppend) else "a sum"
        return InvalidExpressionError(f"{name} inside another term", hint="take two updates")
    return InvalidExpressionError(f"not a path or value: {found}", hint="wrap a literal: value(5)")

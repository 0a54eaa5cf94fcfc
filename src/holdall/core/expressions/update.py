"""Updates: their actions, and the terms that compute new values. Pure."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from holdall.core.expressions.node import Node, Path, Value, check_literals
from holdall.core.frozen import dataclass
from holdall.errors import InvalidExpressionError


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

    outermost: ClassVar[str | None] = "list_append"
    first: Term
    second: Term

    def check(self) -> None:
        """Also check that literals are lists."""
        check_literals("list_append", self.operands, "L")
        _Term.check(self)


class _Sum(_Term):
    """The sum or difference of two numbers."""

    __slots__ = ()
    outermost: ClassVar[str | None] = "a sum"  # DynamoDB's grammar nests only if_not_exists

    def check(self) -> None:
        """Also check that literals are numbers."""
        check_literals("a sum", self.operands, "N")
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
        check_literals(f"ADD at {self.path}", (self.value,), "N", "SS", "NS", "BS", alone=True)
        _Clause.check(self)


@dataclass(frozen=True, slots=True)
class Delete(_Clause):
    """Remove members from a set. A set that becomes empty is removed."""

    path: Path
    value: Value

    def check(self) -> None:
        """Also check that the members are a literal set."""
        check_literals(f"DELETE at {self.path}", (self.value,), "SS", "NS", "BS", alone=True)
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

    def refuse_operand(self, operand: object) -> InvalidExpressionError:
        """Return the error for an action of the wrong class."""
        return InvalidExpressionError(
            f"an update action was expected, not {type(operand).__name__}",
            hint="use Set, Remove, Add or Delete",
        )

    def check(self) -> None:
        """Also check that the actions are a tuple."""
        if not isinstance(self.actions, tuple):
            raise InvalidExpressionError(
                f"the actions of an update must be a tuple, not {type(self.actions).__name__}",
                hint="write Update((action, action, ...))",
            )
        Node.check(self)

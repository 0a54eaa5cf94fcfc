"""What all expressions consist of: nodes, and the leaves `Path` and `Value`. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias

from holdall.core.frozen import dataclass
from holdall.core.measure import attribute_size, name_size
from holdall.core.values import Attribute, encode
from holdall.errors import InvalidExpressionError

MAX_PATH = 32
MAX_INDEX = 2**31 - 1


class Node:
    """The base class of all parts of an expression.

    A node's operands are its fields, in the order in which they are rendered, unless its class overrides `operands`.
    """

    __slots__ = ("shaped",)
    shaped: tuple[Hashable, list[Attribute]]  # its shape and literals, once `shape` has computed them
    form: ClassVar[str | None] = None  # what distinguishes it from others of its class, besides its operands
    takes: ClassVar[tuple[type[Node], ...]] = ()  # the classes that its operands may have
    outermost: ClassVar[str | None] = None  # its name in messages, if it cannot be inside another term
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
                raise self.refuse_operand(operand)

    def refuse_operand(self, operand: object) -> InvalidExpressionError:
        """Return the error for an operand of the wrong class."""
        name = getattr(operand, "outermost", None)
        if name is not None:
            return InvalidExpressionError(
                f"{name} cannot be nested inside another term", hint="send two updates"
            )
        return InvalidExpressionError(
            f"a path or a value was expected, not {type(operand).__name__}", hint="wrap a literal: value(5)"
        )


class Leaf(Node):
    """A node without operands."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Do nothing: the fields of a leaf are not operands."""

    @property
    def operators(self) -> int:
        """Zero: a leaf has no operator."""
        return 0


@dataclass(frozen=True, slots=True)
class Path(Leaf):
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
class Value(Leaf):
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


def path(*parts: str | int) -> Path:
    """Make a path from its parts: ``path("lines", 0, "price")``. Dots and brackets in a name have no meaning."""
    return Path(parts)


def value(plain: object) -> Value:
    """Make a literal from a Python value."""
    return Value(encode(plain))


def check_literals(what: str, operands: Iterable[Node], *kinds: str, alone: bool = False) -> None:
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

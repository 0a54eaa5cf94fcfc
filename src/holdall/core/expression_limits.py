"""What makes an expression tree acceptable to DynamoDB: operand types, limits, overlapping paths.

Pure. Counts operators exactly and bounds the length of the text; the text itself is rendered and measured
only when the bound comes near the limit. Raises `InvalidExpressionError`.

`check_condition` and `check_update` return the nested paths, and an upper bound of the expression's bytes in a request:
its text, its names and its values, with their aliases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdall.core.evaluation import order
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
    ListAppend,
    Minus,
    Not,
    NotExists,
    Operand,
    Or,
    Path,
    Plus,
    Remove,
    Set,
    SetValue,
    Size,
    TypeIs,
    Update,
    Value,
)
from holdall.core.rendering import Renderer
from holdall.core.shapes import Memory, shape_of
from holdall.core.values import Attribute, attribute_size, name_size
from holdall.errors import InvalidExpressionError

__all__ = ["check_condition", "check_paths", "check_update", "paths_of"]

MAX_OPERATORS = 300
MAX_TEXT = 4096
MAX_OPTIONS = 100
MAX_PATH = 32
MAX_NESTING = 100  # ours: evaluating goes as deep as the condition does
MAX_INDEX = 2**31 - 1
MAX_PART_TEXT = 12  # an index of ten digits in its brackets
MAX_ACTION_TEXT = 48  # no operator, function or action of ours renders to more, paths aside
MAX_ALIAS = 5  # there are fewer than ten thousand of them in 4 KB of text

_TYPES = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})
_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})


_sound: Memory[tuple[tuple[Path, ...], int]] = Memory()
"""The shapes that passed, with their nested paths and an upper bound of their text and names; such a tree can fail only
because of its literals' content."""


def check_condition(condition: Condition) -> tuple[tuple[Path, ...], int]:
    """Types of literals, shapes of paths, 300 operators, 100 options, 4 KB of text."""
    literals: list[Attribute] = []
    shape = shape_of(condition, literals)
    found = _sound.get(shape)
    if found is None:
        whole_shape = _check_condition(condition)
        found = _findings(tuple(paths_of(condition)))
        if whole_shape and shape is not None:
            _sound.keep(shape, found)
    return found[0], found[1] + _literal_bound(literals)


def check_update(update: Update) -> tuple[tuple[Path, ...], int]:
    """Like `check_condition`, and that no two steps touch the same place."""
    literals: list[Attribute] = []
    shape = shape_of(update, literals)
    found = _sound.get(shape)
    if found is None:
        _check_update(update)
        found = _findings(tuple(_paths_of_update(update)))
        if shape is not None:
            _sound.keep(shape, found)
    return found[0], found[1] + _literal_bound(literals)


def _findings(paths: Sequence[Path]) -> tuple[tuple[Path, ...], int]:
    """The nested paths, and an upper bound of the bytes of a text with these names."""
    names = [name_size(part) + MAX_ALIAS for path in paths for part in path.parts if isinstance(part, str)]
    return tuple(path for path in paths if len(path.parts) > 1), MAX_TEXT + sum(names)


def _literal_bound(literals: Sequence[Attribute]) -> int:
    return sum(map(attribute_size, literals)) + MAX_ALIAS * len(literals)


def _check_condition(condition: Condition) -> bool:
    """Whether every condition of this shape passes; not so with BETWEEN, whose bounds are compared with each other."""
    operators = 0
    parts = 0
    bounded = False
    for node, depth in _walk(condition):
        if depth > MAX_NESTING:
            raise InvalidExpressionError(
                f"conditions nested more than {MAX_NESTING} deep",
                hint="put them side by side in one And or Or",
            )
        _check_node(node)
        _check_distinct(node)
        bounded = bounded or isinstance(node, Between)
        operators += max(1, len(node.conditions) - 1) if isinstance(node, And | Or) else 1
        for operand in _operands(node):
            operators += isinstance(operand, Size)
            parts += _check_operand(operand)
    _check_operators(operators)
    if operators * MAX_ACTION_TEXT + parts * MAX_PART_TEXT > MAX_TEXT:
        _check_text(Renderer().condition(condition))
    return not bounded


def _check_update(update: Update) -> None:
    operators = 0
    parts = 0
    if not isinstance(update, Update) or not isinstance(update.actions, tuple):
        raise InvalidExpressionError("not an update", hint="it is Update((action, action, ...))")
    for action in update.actions:
        match action:
            case Set(_, new):
                for node in _terms(new):
                    operators += not isinstance(node, Path | Value)
                    if isinstance(node, IfNotExists):
                        parts += _check_operand(node.path)
                        if node.fallback == node.path:
                            raise InvalidExpressionError(
                                f"if_not_exists falls back from {node.path} to itself",
                                hint="DynamoDB takes no such operands",
                            )
                    elif isinstance(node, ListAppend | Plus | Minus):
                        _check_outermost(node, new)
                    elif isinstance(node, Path | Value):
                        parts += _check_operand(node)
                    else:
                        raise InvalidExpressionError(
                            f"not a path or value: {type(node).__name__}", hint="wrap a literal: value(5)"
                        )
            case Add(path, amount):
                parts += _check_operand(amount)
                _check_kind(amount, ("N", "SS", "NS", "BS"), f"ADD at {path}")
            case Delete(path, members):
                parts += _check_operand(members)
                _check_kind(members, ("SS", "NS", "BS"), f"DELETE at {path}")
            case Remove():
                pass
            case _:
                raise InvalidExpressionError(f"not an update action: {type(action).__name__}")
        parts += _check_operand(action.path)
    _check_operators(operators)
    if (len(update.actions) + operators) * MAX_ACTION_TEXT + parts * MAX_PART_TEXT > MAX_TEXT:
        _check_text(Renderer().update(update))
    _check_overlap([action.path for action in update.actions], "update")


def check_paths(paths: Sequence[Path], what: str) -> None:
    """Well-formed paths of which none contains another."""
    parts = sum(map(_check_operand, paths))
    if parts * MAX_PART_TEXT > MAX_TEXT:
        _check_text(Renderer().projection(paths))
    _check_overlap(paths, what)


def paths_of(condition: Condition) -> Iterator[Path]:
    """Every path a condition looks at."""
    for node, _ in _walk(condition):
        for operand in _operands(node):
            if isinstance(operand, Path):
                yield operand
            elif isinstance(operand, Size):
                yield operand.path


def _paths_of_update(update: Update) -> Iterator[Path]:
    """Every path an update reads or writes."""
    for action in update.actions:
        yield action.path
        if isinstance(action, Set):
            for node in _terms(action.value):
                if isinstance(node, Path):
                    yield node
                elif isinstance(node, IfNotExists):
                    yield node.path


def _walk(condition: Condition) -> Iterator[tuple[Condition, int]]:
    """Every condition inside, with how deep it is."""
    waiting = [(condition, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        if isinstance(node, And | Or):
            waiting.extend((part, depth + 1) for part in node.conditions)
        elif isinstance(node, Not):
            waiting.append((node.condition, depth + 1))


def _operands(node: Condition) -> tuple[Operand, ...]:
    match node:
        case Compare(_, left, right):
            return (left, right)
        case Between(operand, low, high):
            return (operand, low, high)
        case In(operand, options):
            return (operand, *options)
        case Exists(path) | NotExists(path) | TypeIs(path):
            return (path,)
        case BeginsWith(path, other) | Contains(path, other):
            return (path, other)
    return ()


def _check_node(node: Condition) -> None:
    match node:
        case Compare(comparator, left, right):
            if comparator not in _COMPARATORS:
                raise InvalidExpressionError(f"{comparator!r} is not a comparison")
            if comparator not in ("=", "<>"):
                _check_ordered((left, right), comparator)
        case Between(operand, low, high):
            _check_ordered((operand,), "BETWEEN")
            _check_bounds(low, high)
        case In(_, options):
            if not 1 <= len(options) <= MAX_OPTIONS:
                raise InvalidExpressionError(f"IN with {len(options)} options; it takes 1 to {MAX_OPTIONS}")
        case TypeIs(_, kind):
            if kind not in _TYPES:
                raise InvalidExpressionError(f"{kind!r} is not a DynamoDB type")
        case BeginsWith(_, Value() as prefix):
            _check_kind(prefix, ("S", "B"), "begins_with")
        case BeginsWith(_, Size()):
            raise InvalidExpressionError("begins_with takes S or B, not the number that a size is")
        case And(conditions) | Or(conditions):
            if not conditions:
                raise InvalidExpressionError(f"{type(node).__name__} of no conditions")
        case Exists() | NotExists() | BeginsWith() | Contains() | Not():
            pass
        case _:
            raise InvalidExpressionError(f"not a condition: {type(node).__name__}")


def _check_distinct(node: Condition) -> None:
    first, *rest = _operands(node) or (None,)
    if isinstance(first, Path) and first in rest:
        raise InvalidExpressionError(
            f"{first} is compared with itself", hint="DynamoDB takes no such operands"
        )


def _check_bounds(low: Operand, high: Operand) -> None:
    _check_ordered((low, high), "BETWEEN")
    if isinstance(low, Value) and isinstance(high, Value):
        least, most = order(low.attribute), order(high.attribute)
        assert least is not None
        assert most is not None
        if least[0] != most[0]:
            raise InvalidExpressionError(f"BETWEEN a {least[0]} and a {most[0]}: the types differ")
        if least[1] > most[1]:
            raise InvalidExpressionError("BETWEEN with its upper bound below its lower bound")


def _check_ordered(operands: Iterable[Operand], what: str) -> None:
    for operand in operands:
        if isinstance(operand, Value):
            _check_kind(operand, ("S", "N", "B"), what)


def _check_kind(literal: Value, kinds: tuple[str, ...], what: str) -> None:
    attribute_size(literal.attribute)  # a value at all, before its type is looked at
    if not any(kind in literal.attribute for kind in kinds):
        raise InvalidExpressionError(
            f"{what} takes {' or '.join(kinds)}, not {next(iter(literal.attribute), 'nothing')}"
        )


def _check_operand(operand: Operand) -> int:
    """The number of aliases it needs, after checking its form."""
    if isinstance(operand, Size):
        operand = operand.path
    if isinstance(operand, Value):
        attribute_size(operand.attribute)
        return 1
    if not isinstance(operand, Path):
        raise InvalidExpressionError(
            f"not a path or value: {type(operand).__name__}", hint="wrap a literal: value(5)"
        )
    parts = operand.parts
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
    return len(parts)


def _check_outermost(node: ListAppend | Plus | Minus, new: SetValue) -> None:
    """DynamoDB's grammar has one sum or one list_append, outermost; only if_not_exists goes inside."""
    name, kind = ("list_append", "L") if isinstance(node, ListAppend) else ("a sum", "N")
    if node is not new:
        raise InvalidExpressionError(f"{name} inside another term", hint="take two updates")
    operands = (node.first, node.second) if isinstance(node, ListAppend) else (node.left, node.right)
    for operand in operands:
        if isinstance(operand, Value):
            _check_kind(operand, (kind,), name)


def _terms(new: SetValue) -> Iterator[SetValue]:
    waiting: list[SetValue] = [new]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case IfNotExists(_, fallback):
                waiting.append(fallback)
            case ListAppend(first, second):
                waiting += (first, second)
            case Plus(left, right) | Minus(left, right):
                waiting += (left, right)


def _check_overlap(paths: Sequence[Path], what: str) -> None:
    if len(paths) < 2:
        return
    seen: dict[object, dict[object, object]] = {}
    ends: set[tuple[str | int, ...]] = set()
    for path in paths:
        branch = seen
        for depth, part in enumerate(path.parts):
            if path.parts[:depth] in ends:
                raise _overlap(path, what)
            if any(isinstance(part, int) != isinstance(other, int) for other in branch):
                raise _overlap(path, what)
            branch = branch.setdefault(part, {})  # type: ignore[assignment]
        if branch or path.parts in ends:
            raise _overlap(path, what)
        ends.add(path.parts)


def _overlap(path: Path, what: str) -> InvalidExpressionError:
    return InvalidExpressionError(
        f"two paths of the {what} overlap at {path}", hint="leave one of them out, or merge them"
    )


def _check_operators(count: int) -> None:
    if count > MAX_OPERATORS:
        raise InvalidExpressionError(
            f"an expression of {count} operators; DynamoDB takes {MAX_OPERATORS}",
            hint="split the request, or filter part of it in your code",
        )


def _check_text(text: str) -> None:
    size = len(text.encode())
    if size > MAX_TEXT:
        raise InvalidExpressionError(
            f"an expression of {size:,} bytes of text; DynamoDB takes {MAX_TEXT:,}",
            hint="split the request",
        )

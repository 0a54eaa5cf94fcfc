"""What makes an expression tree acceptable to DynamoDB: operand types, limits, overlapping paths.

Pure. Counts operators exactly and bounds the length of the text; the text itself is rendered and measured
only when the bound comes near the limit. Raises `InvalidExpressionError`.

`check_condition` and `check_update` return the nested paths, and an upper bound of the expression's bytes in a request:
its text, its names and its values, with their aliases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdall.core.expressions import Condition, Node, Path, Update, Value
from holdall.core.renderer import Renderer
from holdall.core.shapes import Memory, shape_of
from holdall.core.values import Attribute, attribute_size, name_size
from holdall.errors import InvalidExpressionError

MAX_OPERATORS = 300
MAX_TEXT = 4096
MAX_NESTING = 100  # ours: evaluating goes as deep as the condition does
MAX_PART_TEXT = 12  # an index of ten digits in its brackets
MAX_NODE_TEXT = 48  # no operator, function or action of ours renders to more, paths aside
MAX_ALIAS = 5  # there are fewer than ten thousand of them in 4 KB of text

_sound: Memory[tuple[tuple[Path, ...], int]] = Memory()
"""The shapes that passed, with their nested paths and an upper bound of their text and names; such a tree can fail only
because of its literals' content."""


def check_condition(condition: Condition) -> tuple[tuple[Path, ...], int]:
    """Types of literals, shapes of paths, 300 operators, 100 options, 4 KB of text."""
    if not isinstance(condition, Condition):
        raise InvalidExpressionError(f"not a condition: {type(condition).__name__}")
    return _check(condition)


def check_update(update: Update) -> tuple[tuple[Path, ...], int]:
    """Like `check_condition`, and that no two steps touch the same place."""
    if not isinstance(update, Update):
        raise InvalidExpressionError("not an update", hint="it is Update((action, action, ...))")
    return _check(update)


def _check(expression: Condition | Update) -> tuple[tuple[Path, ...], int]:
    literals: list[Attribute] = []
    shape = shape_of(expression, literals)
    found = _sound.get(shape)
    if found is None:
        by_shape = _check_tree(expression)
        paths = tuple(paths_of(expression))
        # the nested paths, and an upper bound of the bytes of a text with these names
        names = [name_size(part) + MAX_ALIAS for path in paths for part in path.parts if type(part) is str]
        found = tuple(path for path in paths if len(path.parts) > 1), MAX_TEXT + sum(names)
        if by_shape and shape is not None:
            _sound.keep(shape, found)
    bound = found[1]
    for literal in literals:
        bound += MAX_ALIAS + attribute_size(literal)
    return found[0], bound


def _check_tree(expression: Condition | Update) -> bool:
    """Check every node and the limits of the whole; whether every expression of this shape passes."""
    operators = longest = 0
    by_shape = True
    for node, depth in _walk(expression):
        if depth > MAX_NESTING and isinstance(node, Condition):
            raise InvalidExpressionError(
                f"conditions nested more than {MAX_NESTING} deep",
                hint="put them side by side in one And or Or",
            )
        node.check()
        operators += node.operators
        by_shape = by_shape and node.checked_by_shape
        if isinstance(node, Path):
            longest += len(node.parts) * MAX_PART_TEXT
        else:
            longest += MAX_PART_TEXT if isinstance(node, Value) else MAX_NODE_TEXT
    if operators > MAX_OPERATORS:
        raise InvalidExpressionError(
            f"an expression of {operators} operators; DynamoDB takes {MAX_OPERATORS}",
            hint="split the request, or filter part of it in your code",
        )
    if longest > MAX_TEXT:
        _check_text(Renderer().text(expression))
    if isinstance(expression, Update):
        _check_overlap([action.path for action in expression.actions], "update")
    return by_shape


def check_paths(paths: Sequence[Path], what: str) -> None:
    """Well-formed paths of which none contains another."""
    for path in paths:
        path.check()
    if sum([len(path.parts) for path in paths]) * MAX_PART_TEXT > MAX_TEXT:
        _check_text(Renderer().projection(paths))
    _check_overlap(paths, what)


def paths_of(expression: Node) -> Iterator[Path]:
    """Every path that an expression reads or writes."""
    return (node for node, _ in _walk(expression) if isinstance(node, Path))


def _walk(expression: Node) -> Iterator[tuple[Node, int]]:
    """Every node, with how deep it is; one comes before its operands, so that its check can refuse them."""
    waiting: list[tuple[Node, int]] = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        yield node, depth
        waiting.extend([(operand, depth + 1) for operand in node.operands])


def _check_overlap(paths: Sequence[Path], what: str) -> None:
    if len(paths) < 2:
        return
    seen: dict[object, dict[object, object]] = {}
    ends: set[tuple[str | int, ...]] = set()
    for path in paths:
        branch = seen
        for depth, part in enumerate(path.parts):
            if path.parts[:depth] in ends:
                raise _refuse_overlap(path, what)
            if any(isinstance(part, int) != isinstance(other, int) for other in branch):
                raise _refuse_overlap(path, what)
            branch = branch.setdefault(part, {})  # type: ignore[assignment]
        if branch or path.parts in ends:
            raise _refuse_overlap(path, what)
        ends.add(path.parts)


def _refuse_overlap(path: Path, what: str) -> InvalidExpressionError:
    return InvalidExpressionError(
        f"two paths of the {what} overlap at {path}", hint="leave one of them out, or merge them"
    )


def _check_text(text: str) -> None:
    size = len(text.encode())
    if size > MAX_TEXT:
        raise InvalidExpressionError(
            f"an expression of {size:,} bytes of text; DynamoDB takes {MAX_TEXT:,}",
            hint="split the request",
        )

"""DynamoDB's rules for an expression tree: operand types, limits, overlapping paths.

Pure. Counts operators exactly and estimates the length of the text; the text is rendered and measured
only if the estimate is above the limit. Raises `InvalidExpressionError`.

`check_condition` and `check_update` return the nested paths, and an upper bound of the expression's size in a request:
its text, its names and its values, with their aliases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdall.core.expressions import Condition, Node, Path, Update, Value
from holdall.core.expressions.renderer import Renderer
from holdall.core.expressions.shape import Memory, shape_of
from holdall.core.measure import measure_attribute, name_size
from holdall.core.values import Attribute
from holdall.errors import InvalidExpressionError

MAX_OPERATORS = 300
MAX_TEXT = 4096
MAX_NESTING = 100  # Holdall's own limit: evaluation recurses as deep as the condition is nested
MAX_PART_TEXT = 12  # an index of ten digits in its brackets
MAX_NODE_TEXT = 48  # the longest text of an operator, function or action, without its paths
MAX_ALIAS = 5  # 4 KB of text have fewer than ten thousand aliases

_sound: Memory[tuple[tuple[Path, ...], int, bool]] = Memory()
"""The shapes that passed, with their nested paths, an upper bound of the size of their text and names, and whether
every tree of the shape passes the check of its nodes."""


def check_condition(condition: Condition) -> tuple[tuple[Path, ...], int]:
    """Check a condition: types of literals, paths, and at most 300 operators, 100 options and 4 KB of text."""
    return check_expression(condition, Condition)


def check_update(update: Update) -> tuple[tuple[Path, ...], int]:
    """Check an update like `check_condition`, and that no two actions change the same place."""
    return check_expression(update, Update)


def check_expression(
    expression: Condition | Update, kind: type[Condition | Update]
) -> tuple[tuple[Path, ...], int]:
    """`check_condition` or `check_update`, in one call."""
    if not isinstance(expression, kind):
        raise _refuse_kind(expression, kind)
    literals: list[Attribute] = []
    shape = shape_of(expression, literals)
    found = _sound.get(shape)
    if found is None:
        by_shape = _check_tree(expression)
        paths = tuple(paths_of(expression))
        # the nested paths, and an upper bound of the size of a text with these names
        names = [name_size(part) + MAX_ALIAS for path in paths for part in path.parts if type(part) is str]
        found = tuple(path for path in paths if len(path.parts) > 1), MAX_TEXT + sum(names), by_shape
        if shape is not None:
            _sound.keep(shape, found)
    elif not found[2]:
        for node, _ in _walk(expression):
            if not node.checked_by_shape:
                node.check()
    bound = found[1]
    for literal in literals:
        bound += MAX_ALIAS + measure_attribute(literal)[1]
    return found[0], bound


def _refuse_kind(expression: object, kind: type[Condition | Update]) -> InvalidExpressionError:
    found = type(expression).__name__
    if kind is Condition:
        return InvalidExpressionError(f"a condition was expected, not {found}")
    return InvalidExpressionError(
        f"an update was expected, not {found}", hint="write Update((action, action, ...))"
    )


def _check_tree(expression: Condition | Update) -> bool:
    """Check every node and the limits of the whole; return whether every expression of this shape passes."""
    operators = longest = 0
    by_shape = True
    for node, depth in _walk(expression):
        if depth > MAX_NESTING and isinstance(node, Condition):
            raise InvalidExpressionError(
                f"conditions are nested more than {MAX_NESTING} levels deep",
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
            f"the expression has {operators} operators; DynamoDB allows {MAX_OPERATORS}",
            hint="split the request, or filter part of it in your code",
        )
    if longest > MAX_TEXT:
        _check_text(Renderer().text(expression))
    if isinstance(expression, Update):
        _check_overlap([action.path for action in expression.actions], "update")
    return by_shape


def check_paths(paths: Sequence[Path], what: str) -> None:
    """Check that the paths are well-formed and that none contains another."""
    for path in paths:
        path.check()
    if sum([len(path.parts) for path in paths]) * MAX_PART_TEXT > MAX_TEXT:
        _check_text(Renderer().projection(paths))
    _check_overlap(paths, what)


def paths_of(expression: Node) -> Iterator[Path]:
    """Yield every path that an expression reads or writes."""
    return (node for node, _ in _walk(expression) if isinstance(node, Path))


def _walk(expression: Node) -> Iterator[tuple[Node, int]]:
    """Yield every node with its depth. A node comes before its operands, so that its check can refuse them."""
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
        f"two paths of the {what} overlap at {path}", hint="remove one of them, or merge them"
    )


def _check_text(text: str) -> None:
    size = len(text.encode())
    if size > MAX_TEXT:
        raise InvalidExpressionError(
            f"the expression has {size:,} bytes of text; DynamoDB allows {MAX_TEXT:,}",
            hint="split the request",
        )

"""Applies updates to items.

Pure. `apply_update` returns the item after an update; every action reads the item as it was before the update, as in
DynamoDB. Raises `InvalidExpressionError` if the update does not fit the item (it adds to a string, or a path leads
through a missing map), which DynamoDB also finds out only when it reads the item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdall.core.expressions import (
    Add,
    Delete,
    IfNotExists,
    ListAppend,
    Minus,
    Path,
    Plus,
    Remove,
    Set,
    SetValue,
    Update,
    Value,
)
from holdall.core.expressions.evaluation import resolve
from holdall.core.measure import canonical_item
from holdall.core.numbers import add
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidExpressionError, InvalidValueError


def apply_update(update: Update, item: Item) -> dict[str, Attribute]:
    """Return the item after the update; the argument is not changed."""
    outcome = dict(item)
    # What each action sets at its path (None: remove it), all computed before anything changes.
    steps = [(action.path, _OUTCOMES[type(action)](action, item)) for action in update.actions]
    nested = [path for path, _ in steps if len(path.parts) > 1]
    if not nested:  # the usual case, in which no two actions change the same attribute
        for path, new in steps:
            if new is None:
                outcome.pop(str(path.parts[0]), None)
            else:
                outcome[str(path.parts[0])] = new
        return outcome
    for path in nested:
        _check_parent(path, item)
    for top in {str(path.parts[0]) for path in nested}:
        outcome[top] = _copy(outcome[top])
    # Indexes refer to the list before the update. So values are set first, in ascending order, so that indexes past
    # the end append in order; then members are removed, from the back.
    for path, new in sorted((s for s in steps if s[1] is not None), key=lambda step: _place(step[0])):
        assert new is not None
        _put(outcome, path, new)
    gone = (p for p, new in steps if new is None and resolve(p, item) is not None)
    for path in sorted(gone, key=_place, reverse=True):
        container, last = _container(outcome, path)
        del container[last]
    return outcome


def _place(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in path.parts)


def _add(action: Add, item: Item) -> Attribute:
    ((kind, amount),) = action.value.attribute.items()
    present = resolve(action.path, item)
    if present is None:
        return action.value.attribute
    if kind not in present:
        raise _refuse_type(f"for ADD, {action.path}", kind, present)
    if kind == "N":
        return {"N": _sum(present["N"], amount, 1)}
    return {kind: list(dict.fromkeys([*present[kind], *_members(kind, amount)]))}


def _delete(action: Delete, item: Item) -> Attribute | None:
    ((kind, members),) = action.value.attribute.items()
    present = resolve(action.path, item)
    if present is None:
        return None
    if kind not in present:
        raise _refuse_type(f"for DELETE, {action.path}", kind, present)
    gone = set(_members(kind, members))
    left = [member for member in present[kind] if member not in gone]
    return {kind: left} if left else None


def _members(kind: str, members: list[str]) -> list[str]:
    """Return a literal's members in their stored form, so that 1.0 matches 1."""
    return canonical_item({"members": {kind: members}})[0]["members"][kind]  # type: ignore[no-any-return]


_OUTCOMES: dict[type[Any], Callable[[Any, Item], Attribute | None]] = {
    Set: lambda action, item: _set_value(action.value, item),
    Remove: lambda action, item: None,
    Add: _add,
    Delete: _delete,
}


def _set_value(new: SetValue, item: Item) -> Attribute:
    match new:
        case Value(attribute):
            return attribute
        case Path():
            found = resolve(new, item)
            if found is None:
                raise InvalidExpressionError(
                    f"the update reads {new}, which the item does not have",
                    hint="add a fallback with IfNotExists",
                )
            return found
        case IfNotExists(path, fallback):
            found = resolve(path, item)
            return _set_value(fallback, item) if found is None else found
        case ListAppend(first, second):
            return {"L": [*_take(first, "L", item), *_take(second, "L", item)]}
        case Plus(left, right):
            return {"N": _sum(_take(left, "N", item), _take(right, "N", item), 1)}
        case Minus(left, right):
            return {"N": _sum(_take(left, "N", item), _take(right, "N", item), -1)}
    raise InvalidExpressionError(f"an update cannot set {type(new).__name__}")


def _take(term: SetValue, kind: str, item: Item) -> Any:
    found = _set_value(term, item)
    if kind not in found:
        raise _refuse_type("an operand of the update", kind, found)
    return found[kind]


def _sum(left: str, right: str, sign: int) -> str:
    try:
        return add(left, right, sign=sign)
    except InvalidValueError as error:
        raise InvalidExpressionError(f"the result of the update cannot be stored: {error.message}") from None


def _check_parent(path: Path, item: Item) -> None:
    parent = resolve(Path(path.parts[:-1]), item)
    if parent is None or ("L" if isinstance(path.parts[-1], int) else "M") not in parent:
        raise InvalidExpressionError(
            f"the update changes {path}, but the item has no "
            f"{'list' if isinstance(path.parts[-1], int) else 'map'} at {Path(path.parts[:-1])}",
            hint="set the whole list or map first",
        )


def _copy(attribute: Attribute) -> Attribute:
    """Return a copy whose lists and maps can be changed."""
    ((kind, content),) = attribute.items()
    if kind == "M":
        return {"M": {name: _copy(member) for name, member in content.items()}}
    return {"L": [_copy(member) for member in content]} if kind == "L" else attribute


def _container(item: dict[str, Any], path: Path) -> tuple[Any, str | int]:
    """Return the dict or list that holds the path's last part, and that part."""
    container: Any = item
    for part in path.parts[:-1]:
        found = container[part]
        container = found["M"] if "M" in found else found["L"]
    return container, path.parts[-1]


def _put(item: dict[str, Any], path: Path, new: Attribute) -> None:
    container, last = _container(item, path)
    if isinstance(last, int) and last >= len(container):
        container.append(new)
    else:
        container[last] = new


def _refuse_type(what: str, wanted: str, found: Attribute) -> InvalidExpressionError:
    return InvalidExpressionError(f"{what} must be of type {wanted}, but the item has {next(iter(found))}")

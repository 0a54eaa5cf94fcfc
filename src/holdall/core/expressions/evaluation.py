"""Evaluates conditions and projections on items.

Pure. Operators mean what they mean in DynamoDB: values of different types are neither equal nor ordered, a missing
operand makes every comparison except ``<>`` false, numbers compare by value, strings by their UTF-8
bytes (the same order as Python's), sets without order.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from holdall.core.comparison import equal, order
from holdall.core.expressions import (
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    In,
    Not,
    NotExists,
    Operand,
    Or,
    Path,
    Size,
    TypeIs,
    Value,
)
from holdall.core.values import Attribute, Item

_NOTHING: Item = {}


def holds(condition: Condition, item: Item | None) -> bool:
    """Whether the condition is true for the item; a missing item counts as one without attributes."""
    return _RULES[type(condition)](condition, _NOTHING if item is None else item)


def resolve(path: Path, item: Item) -> Attribute | None:
    """Return the attribute at a path of the item, or None."""
    parts = path.parts
    found = item.get(parts[0])  # type: ignore[arg-type]
    for part in parts[1:]:
        if found is None:
            return None
        if isinstance(part, int):
            members = found.get("L", ())
            found = members[part] if part < len(members) else None
        else:
            found = found.get("M", _NOTHING).get(part)
    return found


def project(paths: Iterable[Path], item: Item) -> dict[str, Attribute]:
    """Return the parts of an item at these paths. The chosen members of a list keep their order, without gaps."""
    tree: dict[str | int, Any] = {}
    for path in paths:
        branch = tree
        for part in path.parts:
            branch = branch.setdefault(part, {})
    return _pick(tree, item)


def _pick(tree: dict[Any, Any], members: Item) -> dict[str, Attribute]:
    picked = {}
    for name, branch in tree.items():
        found = members.get(name)
        if found is not None and (kept := _prune(branch, found)) is not None:
            picked[name] = kept
    return picked


def _prune(branch: dict[str | int, Any], found: Attribute) -> Attribute | None:
    if not branch:
        return found
    ((kind, content),) = found.items()
    if kind == "M":
        kept = _pick(branch, content)
        return {"M": kept} if kept else None
    if kind == "L":
        places = sorted(p for p in branch if isinstance(p, int) and p < len(content))
        pruned = (_prune(branch[place], content[place]) for place in places)
        members = [member for member in pruned if member is not None]
        return {"L": members} if members else None
    return None


def _value(operand: Operand, item: Item) -> Attribute | None:
    if type(operand) is Value:
        return operand.attribute
    if type(operand) is Path:
        return resolve(operand, item)
    assert isinstance(operand, Size)
    found = resolve(operand.path, item)
    return None if found is None else _size(found)


def _size(attribute: Attribute) -> Attribute | None:
    ((kind, content),) = attribute.items()
    if kind == "S":
        return {"N": str(len(content.encode("utf-16-le")) // 2)}
    if kind == "B":
        return {"N": str(len(b64decode(content)))}
    return {"N": str(len(content))} if kind in ("L", "M", "SS", "NS", "BS") else None


def _compare(condition: Compare, item: Item) -> bool:
    left = _value(condition.left, item)
    right = _value(condition.right, item)
    comparator = condition.comparator
    if comparator == "=" or comparator == "<>":
        same = left is not None and right is not None and equal(left, right)
        return same if comparator == "=" else not same
    return _is_ordered(comparator, left, right)


def _is_ordered(comparator: str, left: Attribute | None, right: Attribute | None) -> bool:
    if left is None or right is None:
        return False
    mine, yours = order(left), order(right)
    if mine is None or yours is None or mine[0] != yours[0]:
        return False
    if comparator[0] == "<":
        return bool(mine[1] < yours[1] or (comparator == "<=" and mine[1] == yours[1]))
    return bool(mine[1] > yours[1] or (comparator == ">=" and mine[1] == yours[1]))


def _between(condition: Between, item: Item) -> bool:
    operand = _value(condition.operand, item)
    return _is_ordered(">=", operand, _value(condition.low, item)) and _is_ordered(
        "<=", operand, _value(condition.high, item)
    )


def _in(condition: In, item: Item) -> bool:
    operand = _value(condition.operand, item)
    if operand is None:
        return False
    for option in condition.options:
        found = option.attribute if type(option) is Value else _value(option, item)
        if found == operand or (found is not None and equal(operand, found)):
            return True
    return False


def _begins_with(condition: BeginsWith, item: Item) -> bool:
    subject, prefix = resolve(condition.path, item), _value(condition.prefix, item)
    if subject is None or prefix is None:
        return False
    if "S" in subject and "S" in prefix:
        return bool(subject["S"].startswith(prefix["S"]))
    if "B" in subject and "B" in prefix:
        return b64decode(subject["B"]).startswith(b64decode(prefix["B"]))
    return False


def _contains(condition: Contains, item: Item) -> bool:
    subject, member = resolve(condition.path, item), _value(condition.member, item)
    if subject is None or member is None:
        return False
    ((kind, content),) = subject.items()
    ((sought, wanted),) = member.items()
    if kind == "L":
        return any(equal(member, candidate) for candidate in content)
    if kind == sought == "S":
        return wanted in content
    if kind == sought == "B":
        return b64decode(wanted) in b64decode(content)
    if kind == "NS" and sought == "N":
        return Decimal(wanted) in map(Decimal, content)
    if kind == "BS" and sought == "B":
        return b64decode(wanted) in map(b64decode, content)
    return kind == "SS" and sought == "S" and wanted in content


def _type_is(condition: TypeIs, item: Item) -> bool:
    found = resolve(condition.path, item)
    return found is not None and condition.type in found


_RULES: dict[type[Condition], Callable[[Any, Item], bool]] = {
    Compare: _compare,
    Between: _between,
    In: _in,
    Exists: lambda condition, item: resolve(condition.path, item) is not None,
    NotExists: lambda condition, item: resolve(condition.path, item) is None,
    TypeIs: _type_is,
    BeginsWith: _begins_with,
    Contains: _contains,
    And: lambda condition, item: all(holds(part, item) for part in condition.conditions),
    Or: lambda condition, item: any(holds(part, item) for part in condition.conditions),
    Not: lambda condition, item: not holds(condition.condition, item),
}

"""Checks that the items in a reply have the shape of items. Pure.

Every item that is read passes through here, so it is one plain loop. The decoder checks the content of numbers and
binaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdall.core.values import Item

__all__ = ["check_items", "is_item"]

_LEAVES: dict[str, type[Any]] = {"S": str, "N": str, "B": str, "BOOL": bool, "NULL": bool}
_SETS = ("SS", "NS", "BS")


def check_items(items: Sequence[Any]) -> Sequence[Item]:
    """Return the items; LookupError, TypeError, ValueError or AttributeError if one of them is not an item."""
    leaves = _LEAVES.get
    for item in items:
        for value in item.values():
            (kind,) = value
            if leaves(kind) is not type(value[kind]):
                _check_nested(kind, value[kind])
    return items


def is_item(item: Any) -> bool:
    """Whether it has the shape of an item."""
    try:
        check_items((item,))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return False
    return True


def _check_nested(kind: str, content: Any) -> None:
    if kind == "M" and type(content) is dict:
        check_items((content,))
    elif kind == "L" and type(content) is list:
        for value in content:
            check_items(({"member": value},))
    elif kind not in _SETS or type(content) is not list or not {*map(type, content)} <= {str}:
        raise TypeError(f"{kind!r:.20} with a {type(content).__name__}")

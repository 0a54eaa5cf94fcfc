"""Texts without which an item's stored body cannot match a filter, so that the body need not be decoded.

Pure. One encoder writes all bodies, so an attribute that is a given text always has the same form in them. A body that
contains that form may still belong to another item: the filter decides about it.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdall.core.expressions import And, Compare, Condition, Exists, In, Operand, Path, Value
from holdall.core.json_text import encode_json


def list_texts(filter: Condition | None) -> list[tuple[str, ...]]:
    """Groups of texts: the filter is false for an item whose body contains none of the texts of a group."""
    return [] if filter is None else [*_list_texts(filter)]


def _list_texts(condition: Condition) -> Iterator[tuple[str, ...]]:
    if isinstance(condition, And):
        for part in condition.conditions:
            yield from _list_texts(part)
    elif isinstance(condition, Exists):
        yield (f"{encode_json(condition.path.parts[0])}:",)
    elif isinstance(condition, Compare) and condition.comparator == "=":
        text = _find_text(condition.left, condition.right)
        if text is not None:
            yield (text,)
    elif isinstance(condition, In):
        texts = [_find_text(condition.operand, option) for option in condition.options]
        known = tuple(text for text in texts if text is not None)
        if len(known) == len(texts):
            yield known


def _find_text(operand: Operand, value: Operand) -> str | None:
    """The form of an attribute that is equal to a text; None if it may have several forms, as sets have."""
    if not isinstance(operand, Path) or not isinstance(value, Value) or "S" not in value.attribute:
        return None
    name = operand.parts[-1]
    form = encode_json({"S": value.attribute["S"]})
    return form if isinstance(name, int) else f"{encode_json(name)}:{form}"

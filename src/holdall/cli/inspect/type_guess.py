"""Guesses of types: the narrowest that reads all sampled values of an attribute. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from holdall.core import Attribute

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z?)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def infer_type(attributes: Iterable[Attribute]) -> tuple[str, bool]:
    """Return the type that reads all these attributes, and whether one of them is null; Any if they differ."""
    by_kind: dict[str, list[object]] = {}
    for attribute in attributes:
        for kind, content in attribute.items():
            by_kind.setdefault(kind, []).append(content)
    null = by_kind.pop("NULL", None) is not None
    if len(by_kind) == 2 and "L" in by_kind and not any(by_kind["L"]) and by_kind.keys() & {"SS", "NS", "BS"}:
        del by_kind["L"]  # Holdall stores an empty set as an empty list
    if len(by_kind) != 1:
        return "Any", null
    [(kind, contents)] = by_kind.items()
    return _infer(kind, contents), null


def _infer(kind: str, contents: Sequence[object]) -> str:
    if kind == "N":
        return "int" if all(_is_whole(str(text)) for text in contents) else "Decimal"
    if kind in ("SS", "NS", "BS"):
        members = [
            {kind[0]: each} for content in contents if isinstance(content, Sequence) for each in content
        ]
        return f"set[{infer_type(members)[0]}]"
    if kind == "L":
        return f"list[{_infer_members(each for c in contents if isinstance(c, Sequence) for each in c)}]"
    if kind == "M":
        inner = (each for c in contents if isinstance(c, Mapping) for each in c.values())
        return f"dict[str, {_infer_members(inner)}]"
    return {"S": "str", "B": "bytes", "BOOL": "bool"}[kind]


def _infer_members(members: Iterable[Attribute]) -> str:
    inner, null = infer_type(members)
    return f"{inner} | None" if null and inner != "Any" else inner


def infer_text(texts: Sequence[str]) -> str:
    """Return datetime or date if it stores exactly these texts, and otherwise str."""
    zones = {found[1] if (found := _MOMENT.fullmatch(text)) else None for text in texts}
    if len(zones) == 1 and None not in zones and all(is_moment(text) for text in texts):
        return "datetime"
    if texts and all(_DAY.fullmatch(text) and _is_day(text) for text in texts):
        return "date"
    return "str"


def _is_whole(text: str) -> bool:
    number = Decimal(text)
    return number == number.to_integral_value()


def is_moment(text: str) -> bool:
    """Whether a text is a time that Python can parse."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True

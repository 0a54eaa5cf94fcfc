"""Lines of JSON for items: plain where that loses nothing, typed where it would.

Pure. A line that begins a table is an array: ``["table", NAME, [KEY, ...]]``; the name of the database's table is null.
Every other line is an item, an object of its attributes. Text, numbers, booleans, null, lists and maps are plain JSON.
Any other value is an object with its type: ``{"$B": "base64"}``, ``{"$SS": [...]}``, ``{"$NS": [...]}``,
``{"$BS": [...]}``, ``{"$N": "text"}`` for a number that JSON would round, and ``{"$M": {...}}`` for a map that could be
mistaken for one of these.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

from holdall.core.measure import canonical_item
from holdall.core.values import Attribute, Item, encode
from holdall.errors import InvalidValueError

HINT = "see what holdall dump writes"
"""The hint for a line that cannot be read."""

_TYPED = {"$B", "$BS", "$M", "$N", "$NS", "$SS"}


class TableLine(NamedTuple):
    """The beginning of a table: its name, None for the database's, and its key attributes."""

    name: str | None
    keys: tuple[str, ...]


def format_table(name: str | None, keys: Sequence[str]) -> str:
    """The line that begins a table."""
    return json.dumps(["table", name, list(keys)], ensure_ascii=False)


def format_item(item: Item) -> str:
    """The line of an item; its attributes are in the order of their names."""
    return json.dumps({name: _show(item[name]) for name in sorted(item)}, ensure_ascii=False)


def _show(attribute: Attribute) -> Any:
    ((kind, content),) = attribute.items()
    if kind == "N":
        return _show_number(content)
    if kind == "NULL":
        return None
    if kind == "L":
        return [_show(each) for each in content]
    if kind == "M":
        shown = {name: _show(each) for name, each in content.items()}
        return {"$M": shown} if any(name.startswith("$") for name in shown) else shown
    return content if kind in ("S", "BOOL") else {f"${kind}": content}


def _show_number(text: str) -> Any:
    number = int(text) if text.removeprefix("-").isdigit() else float(text)
    return (
        number if encode(json.loads(json.dumps(number), parse_float=Decimal)) == {"N": text} else {"$N": text}
    )


def parse_line(line: str) -> TableLine | Item:
    """The table that a line begins, or its item; `InvalidValueError` if it is neither."""
    try:
        found = json.loads(line, parse_float=Decimal, parse_constant=_refuse_constant)
        if isinstance(found, list):
            match found:
                case ["table", str() | None as name, list() as keys]:
                    return TableLine(name, tuple(map(str, keys)))
            raise ValueError('a table begins with ["table", NAME, [KEY, ...]]')
        if not isinstance(found, dict):
            raise ValueError("it must be an object, the attributes of an item")
        return canonical_item({name: _read(value) for name, value in found.items()})[0]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = error.message if isinstance(error, InvalidValueError) else str(error)
        raise InvalidValueError(reason, hint=HINT) from None


def _read(value: Any) -> Attribute:
    if isinstance(value, list):
        return {"L": [_read(each) for each in value]}
    if not isinstance(value, dict):
        return encode(value)
    if len(value) == 1:
        ((name, content),) = value.items()
        if name == "$M":
            return {"M": {key: _read(each) for key, each in content.items()}}
        if name in _TYPED:
            return {name[1:]: content}
    return {"M": {name: _read(each) for name, each in value.items()}}


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that can be stored")

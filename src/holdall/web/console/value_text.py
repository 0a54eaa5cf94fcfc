"""Values of fields on pages and in forms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from typing import Any

from pydantic_core import to_jsonable_python

from holdall.errors import InvalidFieldError
from holdall.models import Field, parse_text
from holdall.web.console.visit import RefusedVisitError

_MOST_SHOWN = 4000
_MOST_ON_LINE = 60


def parse_number(text: str) -> int | None:
    """Return a whole number of up to nine digits; None for any other text."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def read_text(field: Field[Any], text: str) -> Any:
    """Return the value that a text stands for; a text that does not fit the field is refused."""
    try:
        return parse_text(field, text)
    except InvalidFieldError:
        shown = f"{text[:100]}…" if len(text) > 100 else text
        problem = f"{shown!r} is not a valid value of {field.name}."
        raise RefusedVisitError(422, problem) from None


def show_value(value: Any) -> str:
    """Return a value for people to read; a long one is cut."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bytes):
        text = f"0x{value[:_MOST_SHOWN].hex()}"
    elif isinstance(value, datetime):
        text = value.isoformat(sep=" ").removesuffix("+00:00")
        text = text if value.utcoffset() != timedelta() else f"{text} UTC"
    elif value is None or isinstance(value, bool):
        text = "null" if value is None else str(value).lower()
    elif isinstance(value, Mapping | Set | list | tuple):
        text = json.dumps(_plain(value), ensure_ascii=False)
        text = text if len(text) <= _MOST_ON_LINE else json.dumps(_plain(value), ensure_ascii=False, indent=2)
    else:
        text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text):,} characters)"


def _plain(value: Any) -> Any:
    """Return JSON data; sets are sorted, so that a page looks the same each time."""
    found = to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings")
    return sorted(found, key=str) if isinstance(value, Set) else found

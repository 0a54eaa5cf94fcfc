"""Values of fields as text: in URLs, in the inputs of forms, and on pages.

Pure. `write_text` and `read_text` are inverse for every value that a key can have. Texts stay as they are, bytes are
hexadecimal after ``0x``, and other types are written as in JSON. A field with values of several kinds, such as ``Any``,
has texts in JSON too, so that ``"5"`` is not 5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from holdall.models import Field
from holdall.web.console.visit import RefusedVisitError

_MOST_SHOWN = 4000


def write_text(field: Field[Any], value: Any) -> str:
    """Return the text that `read_text` reads as this value."""
    is_plain = field.codec.kind is not None
    if isinstance(value, bytes) and is_plain:
        return f"0x{value.hex()}"
    if isinstance(value, str) and is_plain:
        return value
    plain = field.codec.adapter.dump_python(value, mode="json")
    if isinstance(value, Set):
        plain = sorted(plain, key=json.dumps)
    return plain if isinstance(plain, str) and is_plain else json.dumps(plain, ensure_ascii=False)


def read_text(field: Field[Any], text: str) -> Any:
    """Return the value that a text stands for; a text that does not fit the field is refused."""
    adapter = field.codec.adapter
    if field.codec.kind == "B" and text.startswith("0x"):
        try:
            return adapter.validate_python(bytes.fromhex(text[2:]))
        except ValueError:
            raise _refuse(field, text) from None
    if field.codec.kind is not None:
        with suppress(ValueError):
            return adapter.validate_strings(text, strict=False)
    try:
        return adapter.validate_json(text)
    except ValueError:
        raise _refuse(field, text) from None


def _refuse(field: Field[Any], text: str) -> RefusedVisitError:
    shown = f"{text[:100]}…" if len(text) > 100 else text
    return RefusedVisitError(422, "Invalid value", f"{shown!r} is not a valid value of {field.name}.")


def show_value(value: Any) -> str:
    """Return a value for people to read; a long one is cut."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, bytes):
        text = f"0x{value[:_MOST_SHOWN].hex()}"
    elif isinstance(value, datetime):
        text = value.isoformat(sep=" ")
    elif value is None or isinstance(value, bool):
        text = json.dumps(value)
    elif isinstance(value, Mapping | Set | list | tuple):
        text = json.dumps(_plain(value), ensure_ascii=False, indent=2)
    else:
        text = str(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text):,} characters)"


def _plain(value: Any) -> Any:
    """Return JSON data; sets are sorted, so that a page looks the same each time."""
    found = to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings")
    return sorted(found, key=str) if isinstance(value, Set) else found

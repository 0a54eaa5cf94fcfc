"""Values of fields as text, as people type them: on the command line, in forms and in URLs.

Pure. `format_text` and `parse_text` are inverse for every value that a key can have. Texts stay as they are, bytes are
hexadecimal after ``0x``, and other types are written as in JSON. A field with values of several kinds, such as ``Any``,
has texts in JSON too, so that ``"5"`` is not 5.
"""

from __future__ import annotations

import json
from collections.abc import Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdall.models.fields.field import Field


def format_text(field: Field[Any], value: Any) -> str:
    """Return the text that `parse_text` reads as this value."""
    is_plain = field.codec.kind is not None
    if isinstance(value, bytes) and is_plain:
        return f"0x{value.hex()}"
    if isinstance(value, str) and is_plain:
        return value
    plain = field.codec.adapter.dump_python(value, mode="json")
    if isinstance(value, Set):
        plain = sorted(plain, key=json.dumps)
    return plain if isinstance(plain, str) and is_plain else json.dumps(plain, ensure_ascii=False)


def parse_text(field: Field[Any], text: str) -> Any:
    """Return the value that a text stands for; `InvalidFieldError` if it does not fit the field."""
    adapter = field.codec.adapter
    try:
        if field.codec.kind == "B" and text.startswith("0x"):
            return adapter.validate_python(bytes.fromhex(text[2:]))
        if field.codec.kind is not None:
            with suppress(ValueError):
                return adapter.validate_strings(text, strict=False)
        return adapter.validate_json(text)
    except ValueError:
        raise field.refusal(f"{text[:60]!r} is not a valid value") from None

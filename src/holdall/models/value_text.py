"""Values of fields as text, as people type them: on the command line, in forms and in URLs.

Pure. `format_text` and `parse_text` are inverse for every value that a key can have. Texts stay as they are, bytes are
hexadecimal after ``0x``, and other types are written as in JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdall.models.fields import Field


def format_text(field: Field[Any], value: Any) -> str:
    """Return the text that `parse_text` reads as this value."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, str):
        return value
    plain = field.codec.adapter.dump_python(value, mode="json")
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def parse_text(field: Field[Any], text: str) -> Any:
    """Return the value that a text stands for; `InvalidFieldError` if it does not fit the field."""
    adapter = field.codec.adapter
    try:
        if field.codec.kind == "B" and text.startswith("0x"):
            return adapter.validate_python(bytes.fromhex(text[2:]))
        try:
            return adapter.validate_strings(text, strict=False)
        except ValueError:
            return adapter.validate_json(text)
    except ValueError:
        raise field.refusal(f"{text[:60]!r} is not a valid value") from None

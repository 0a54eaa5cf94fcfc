"""The keys in models' own tables: the content of ``_id`` and ``_sk``, exactly as the JavaScript library writes it.

Pure. The components of a key, in the order of their names, become one string of pieces joined by U+0000: text
as it is, everything else as JSON. A single number can be stored as a number instead. `encode_key` writes,
`decode_key` reads; both raise `InvalidKeyError`, and `encode_key` raises `InvalidValueError` for a value
that has no such text.

Reading accepts what any version of the library wrote: older versions kept the members of an object in their original
order. It accepts nothing else, because ``1.0`` read as 1 would be written back as ``1``, which is another item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Literal, TypeAlias

from holdall.core.numbers import Number
from holdall.errors import InvalidKeyError, InvalidValueError
from holdall.models.codec.ecmascript import number_text, plain_json, stable_json, utf16_order

Kind: TypeAlias = Literal["text", "number", "json"]
"""How a component is written: as a string, a number, or any other JSON value."""

StoredKey: TypeAlias = str | Number
"""The content of a key attribute: a string, or a number if the table's key is numeric."""

_SEPARATOR = "\x00"


def encode_key(values: Mapping[str, object], kinds: Mapping[str, Kind], *, numeric: bool) -> StoredKey:
    """Make a key of these components; with ``numeric``, a single number stays a number."""
    if values.keys() != kinds.keys():
        raise InvalidKeyError(
            f"the key has {_list_names(values)}, but the model expects {_list_names(kinds)}"
        )
    pieces = [_write(name, kinds[name], values[name]) for name in _sort(kinds)]
    if numeric and list(kinds.values()) == ["number"]:
        (number,) = values.values()
        assert isinstance(number, int | float | Decimal)  # _write has refused anything else
        return number
    return _SEPARATOR.join(pieces)


def decode_key(stored: StoredKey, kinds: Mapping[str, Kind]) -> dict[str, object]:
    """Split a stored key into its components, whole numbers as int; the inverse of `encode_key`."""
    if not isinstance(stored, str):
        if list(kinds.values()) != ["number"]:
            raise InvalidKeyError(
                f"the key is the number {stored}, but the model expects {_list_names(kinds)}"
            )
        return dict.fromkeys(kinds, _whole_or_float(stored))
    pieces = stored.split(_SEPARATOR)
    if len(pieces) != len(kinds):
        raise InvalidKeyError(
            f"the key has {len(pieces)} components, but the model expects {_list_names(kinds)}"
        )
    return {name: _read(name, kinds[name], piece) for name, piece in zip(_sort(kinds), pieces, strict=True)}


def _sort(names: Iterable[str]) -> list[str]:
    return sorted(names, key=utf16_order)


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(_sort(names)) or "no components"


# --- one component --------------------------------------------------------------------------------------


_EXPECTED: dict[Kind, str] = {"text": "a string", "number": "a number", "json": "a JSON value"}


def _write(name: str, kind: Kind, value: object) -> str:
    try:
        if kind == "text" and isinstance(value, str):
            return _check(name, value)
        if kind == "number" and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return number_text(value)
        if kind == "json" and (text := stable_json(value)) != "null":
            return text
    except InvalidValueError as error:
        raise error.inside(name) from None
    raise InvalidKeyError(
        f"{name}: this part of the key must be {_EXPECTED[kind]}, not {type(value).__name__}"
    )


def _check(name: str, text: str) -> str:
    if _SEPARATOR in text:
        raise InvalidKeyError(
            f"{name}: a string that contains U+0000 cannot be part of a key",
            hint="put it inside an object, where it is escaped",
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidKeyError(f"{name}: a string with a lone surrogate cannot be part of a key") from None
    return str.__str__(text)  # str() of an enum is not its value


def _read(name: str, kind: Kind, piece: str) -> object:
    if kind == "text":
        return piece
    try:
        value = _number(piece) if kind == "number" else _loads(piece)
        if piece != "null" and plain_json(value) == piece:
            return value
    except (ValueError, RecursionError):  # plain_json raises these too
        pass
    raise InvalidKeyError(f"{name}: {piece[:60]!r} is not the key text of {_EXPECTED[kind]}")


def _number(text: str) -> int | float:
    """Read a number as JavaScript does: it writes the double 2**60 as ``1152921504606847000``."""
    number = float(text)
    return int(number) if number.is_integer() else number


_loads = json.JSONDecoder(parse_int=_number, parse_float=_number).decode


def _whole_or_float(stored: Number) -> Number:
    try:
        return _number(number_text(stored))
    except InvalidValueError:
        return stored  # more than a float can hold, so JavaScript did not write it

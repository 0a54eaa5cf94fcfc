"""The key text of own-table models: what ``_id`` and ``_sk`` hold, exactly as the JavaScript library has it.

Pure. The components of a key, in the order of their names, become one string of pieces joined by U+0000: text
as it is, everything else as JSON. A single number may be stored as a number instead. `encode_key` writes,
`decode_key` reads; both raise `InvalidKeyError`, and `encode_key` raises `InvalidValueError` for a value
that has no such text.

Reading takes what the library wrote at any time: it used to leave the members of an object in the order
they came. Nothing else is taken, because ``1.0`` read as 1 would be written back as ``1``, another item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Literal, TypeAlias

from holdall.core.numbers import Number
from holdall.errors import InvalidKeyError, InvalidValueError
from holdall.models.ecmascript import number_text, plain_json, stable_json, utf16_order

Kind: TypeAlias = Literal["text", "number", "json"]
"""How a component is spelt: a string, a number, or anything else JSON has."""

StoredKey: TypeAlias = str | Number
"""The content of a key attribute: a string, or a number where the table has it so."""

_SEPARATOR = "\x00"


def encode_key(values: Mapping[str, object], kinds: Mapping[str, Kind], *, numeric: bool) -> StoredKey:
    """The key made of these components; with ``numeric``, a number alone stays a number."""
    if values.keys() != kinds.keys():
        raise InvalidKeyError(f"a key of {_list_names(values)} where the model has {_list_names(kinds)}")
    pieces = [_write(name, kinds[name], values[name]) for name in _sort(kinds)]
    if numeric and list(kinds.values()) == ["number"]:
        (number,) = values.values()
        assert isinstance(number, int | float | Decimal)  # else it had no text
        return number
    return _SEPARATOR.join(pieces)


def decode_key(stored: StoredKey, kinds: Mapping[str, Kind]) -> dict[str, object]:
    """The components behind a stored key, numbers as int when they are whole; the inverse of `encode_key`."""
    if not isinstance(stored, str):
        if list(kinds.values()) != ["number"]:
            raise InvalidKeyError(f"the number {stored} as the key of a model with {_list_names(kinds)}")
        return dict.fromkeys(kinds, _whole_or_float(stored))
    pieces = stored.split(_SEPARATOR)
    if len(pieces) != len(kinds):
        raise InvalidKeyError(f"a key of {len(pieces)} components where the model has {_list_names(kinds)}")
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
    raise InvalidKeyError(f"{name}: this part of the key is {_EXPECTED[kind]}, not a {type(value).__name__}")


def _check(name: str, text: str) -> str:
    if _SEPARATOR in text:
        raise InvalidKeyError(
            f"{name}: a string with U+0000 in it cannot be part of a key",
            hint="put it inside an object; there it is escaped",
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
    except (ValueError, RecursionError):  # also what plain_json raises
        pass
    raise InvalidKeyError(f"{name}: {piece[:60]!r} is not the key text of {_EXPECTED[kind]}")


def _number(text: str) -> int | float:
    """A number as JavaScript reads it: ``1152921504606847000`` is how it spells the double 2**60."""
    number = float(text)
    return int(number) if number.is_integer() else number


_loads = json.JSONDecoder(parse_int=_number, parse_float=_number).decode


def _whole_or_float(stored: Number) -> Number:
    try:
        return _number(number_text(stored))
    except InvalidValueError:
        return stored  # not written by JavaScript, and more than a float can hold

"""Writes values as ECMAScript does: the text of a number, the order of strings, compact JSON.

Pure. A JavaScript library wrote the keys of models' own tables first, so these texts are stored data and must
be exact to the byte. `number_text` is ``Number::toString``; `plain_json` is ``JSON.stringify``; `stable_json`
is the same with the members of every object sorted. A number that a double cannot hold raises
`InvalidValueError`, which names the place inside the value, because JavaScript could not read it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from math import isfinite

from holdall.core.numbers import Number
from holdall.errors import InvalidValueError

MAX_SAFE_INTEGER = 2**53 - 1

_quote = json.JSONEncoder(ensure_ascii=False).encode
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


# --- numbers --------------------------------------------------------------------------------------------


def number_text(value: Number) -> str:
    """Return JavaScript's text of a number: ``1.0`` → ``1``, ``1e-07`` → ``1e-7``, ``1e20`` in full.

    An int is accepted if it is exactly a double, and is written as that double: ``2**60`` →
    ``1152921504606847000``. A Decimal is accepted if its digits are those of the text.
    """
    if isinstance(value, int) and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        return int.__repr__(value)
    # repr finds the same shortest digits as JavaScript; only their layout differs
    shortest = Decimal(float.__repr__(_double(value)))
    if isinstance(value, Decimal) and value != shortest:
        raise _not_a_double(value)
    sign, digits, exponent = shortest.as_tuple()
    assert isinstance(exponent, int)  # a finite number has one
    significant = "".join(map(str, digits)).lstrip("0")
    if not significant:
        return "0"
    return "-" * sign + _layout(significant.rstrip("0"), len(significant) + exponent)


def _double(value: Number) -> float:
    """Return a number as a double; a Decimal may still differ in its last digits."""
    try:
        double = float(value)
    except (OverflowError, ValueError):  # an int beyond the range; a signalling NaN
        raise _not_a_double(value) from None
    if not isfinite(double) or (isinstance(value, int) and double != value):
        raise _not_a_double(value)
    return double


def _layout(digits: str, point: int) -> str:
    """Write ``0.digits × 10^point``, with an exponent only from 1e21 on and below 1e-6."""
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    if 0 < point <= 21:
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
        return f"{whole}.{fraction}" if fraction else whole
    head, tail = digits[0], digits[1:]
    return f"{head}.{tail}e{point - 1:+d}" if tail else f"{head}e{point - 1:+d}"


def _not_a_double(value: Number) -> InvalidValueError:
    # Python refuses to convert a huge int to text
    shown = f"an integer of {value.bit_length()} bits" if isinstance(value, int) else str(value)[:60]
    return InvalidValueError(
        f"{shown} is not a number that JavaScript can hold",
        hint="use a finite number that a double holds exactly, or a string",
    )


# --- strings and JSON -----------------------------------------------------------------------------------


def utf16_order(text: str) -> bytes:
    """Return the sort key for JavaScript's order of strings, by UTF-16 code units: 😀 comes before U+E000."""
    return text.encode("utf-16-be", "surrogatepass")


def stable_json(value: object) -> str:
    """Return compact JSON with the members of every object in `utf16_order`: equal values have equal texts."""
    return _whole(value, lambda names: sorted(names, key=utf16_order))


def plain_json(value: object) -> str:
    """Return compact JSON with the members of every object in their original order."""
    return _whole(value, lambda names: names)


_Order = Callable[[Iterable[str]], Iterable[str]]


def _whole(value: object, order: _Order) -> str:
    try:
        return _json(value, order)
    except RecursionError:
        raise InvalidValueError("lists and objects are nested too deeply, or contain themselves") from None


def _json(value: object, order: _Order) -> str:
    match value:
        case None:
            return "null"
        case bool():  # before int, because bool is a subclass of int
            return "true" if value else "false"
        case str():
            return _string(value)
        case float() if not isfinite(value):
            return "null"
        case Decimal() if not value.is_finite():
            return "null"
        case int() | float() | Decimal():
            return number_text(value)
        case list() | tuple():
            return _array(value, order)
        case Mapping():
            return _object(value, order)
    raise InvalidValueError(
        f"a value of type {type(value).__name__} cannot be written as JSON",
        hint="use None, bool, int, float, Decimal, str, list or dict",
    )


def _string(text: str) -> str:
    if text.isascii():
        return _quote(text)
    # via UTF-16, a pair of surrogates becomes the one character that it is in JavaScript
    text = utf16_order(text).decode("utf-16-be", "surrogatepass")
    return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", _quote(text))


def _array(values: Iterable[object], order: _Order) -> str:
    parts = []
    for position, value in enumerate(values):
        try:
            parts.append(_json(value, order))
        except InvalidValueError as error:
            raise error.inside(f"[{position}]") from None
    return f"[{','.join(parts)}]"


def _object(members: Mapping[str, object], order: _Order) -> str:
    for name in members:
        if not isinstance(name, str):
            raise InvalidValueError(f"the keys of an object must be strings, not {type(name).__name__}")
    parts = {}
    for name in order(members):
        try:
            parts[_string(name)] = _json(members[name], order)
        except InvalidValueError as error:
            raise error.inside(name) from None
    if len(parts) < len(members):
        raise InvalidValueError("two keys of an object are the same string in UTF-16")
    return "{" + ",".join(f"{name}:{text}" for name, text in parts.items()) + "}"

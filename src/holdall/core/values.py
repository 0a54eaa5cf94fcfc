"""Attribute values: DynamoDB's ten types, converted to and from Python.

Pure. An *attribute* is a value in DynamoDB's JSON form: a dict with one entry, such as ``{"S": "ada"}`` or
``{"N": "42"}``; binary values are base64 text inside it. Items pass through the port in that form, so
a value that is not used is never converted, and a condition can repeat it exactly as it arrived. All raise
`InvalidValueError`, which names the place inside the item.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from holdall.core.measure import MAX_NAME, name_size, refuse_malformed, sort_set, utf8_size
from holdall.core.numbers import number_text, parse_number
from holdall.errors import InvalidValueError

Attribute: TypeAlias = Mapping[str, Any]
"""One value in DynamoDB's JSON form: a dict with a single entry, from the type's letter to the content."""

Item: TypeAlias = Mapping[str, Attribute]
"""An item: a dict from attribute names to attributes."""

_EXACT = 10**37  # whole numbers up to this are stored exactly, and their usual text is canonical


# --- Python → attribute ---------------------------------------------------------------------------------


def encode(value: object) -> dict[str, Any]:
    """Turn a Python value into an attribute; raise `InvalidValueError` if DynamoDB cannot store it."""
    encoder = _ENCODERS.get(type(value)) or _find_encoder(value)
    try:
        return encoder(value)
    except RecursionError:
        raise _refuse_depth() from None


def _find_encoder(value: object) -> Callable[[Any], dict[str, Any]]:
    """Find the encoder for a subclass (a str enum, a defaultdict) or for another kind of mapping."""
    for kind, encoder in _ENCODERS.items():
        if isinstance(value, kind):
            return encoder
    if isinstance(value, Mapping):
        return _encode_map
    raise InvalidValueError(
        f"DynamoDB cannot store a value of type {type(value).__name__}",
        hint="use None, bool, int, Decimal, float, str, bytes, list, dict or a set of str, numbers or bytes",
    )


def encode_item(values: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Turn a mapping of Python values into an item: `encode` for every value."""
    item = {}
    for name, value in values.items():
        if type(value) is str and value.isascii():  # the most common value, without another call
            item[name] = {"S": value}
            continue
        try:
            item[name] = (_ENCODERS.get(type(value)) or _find_encoder(value))(value)
        except InvalidValueError as error:
            raise error.inside(str(name)) from None
        except RecursionError:
            raise _refuse_depth() from None
    return item


def _refuse_depth() -> InvalidValueError:
    return InvalidValueError("lists and maps are nested too deeply, or contain themselves")


def _encode_none(value: None) -> dict[str, Any]:
    return {"NULL": True}


def _encode_bool(value: bool) -> dict[str, Any]:
    return {"BOOL": bool(value)}


def _encode_str(value: str) -> dict[str, Any]:
    if not value.isascii():
        utf8_size(value)
    return {"S": str.__str__(value)}


def _encode_int(value: int) -> dict[str, Any]:
    return {"N": int.__repr__(value) if -_EXACT <= value <= _EXACT else number_text(value)}


def _encode_number(value: float | Decimal) -> dict[str, Any]:
    return {"N": number_text(value)}


def _encode_bytes(value: bytes | bytearray | memoryview) -> dict[str, Any]:
    return {"B": b64encode(value).decode("ascii")}


def _encode_list(value: Iterable[object]) -> dict[str, Any]:
    parts = []
    for position, member in enumerate(value):
        try:
            parts.append(encode(member))
        except InvalidValueError as error:
            raise error.inside(f"[{position}]") from None
    return {"L": parts}


def _encode_map(value: Mapping[object, object]) -> dict[str, Any]:
    for name in value:
        if not isinstance(name, str):
            raise InvalidValueError(f"the keys of a map must be strings, not {type(name).__name__}")
        if not name.isascii() or not 0 < len(name) <= MAX_NAME:  # otherwise it needs no further check
            name_size(name)
    return {"M": encode_item(value)}  # type: ignore[arg-type]


def _encode_set(value: Collection[Any]) -> dict[str, Any]:
    if {*map(type, value)} == {str} and "".join(value).isascii():
        return {"SS": sorted(value)}
    kinds, contents = set(), []
    for member in value:
        ((kind, content),) = (_ENCODERS.get(type(member)) or _find_encoder(member))(member).items()
        kinds.add(kind)
        contents.append(content)
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        what = "is empty" if not kinds else "has members of type " + " and ".join(sorted(kinds))
        raise InvalidValueError(
            f"the set {what}",
            hint="a DynamoDB set holds only strings, only numbers or only bytes, and at least one of them; "
            "use a list, or omit the attribute",
        )
    # 0.1 and Decimal("0.1") are two members in Python, but one number in DynamoDB
    return {f"{kind}S": sort_set(kind, list(dict.fromkeys(contents)))}


_ENCODERS: dict[type, Callable[[Any], dict[str, Any]]] = {
    str: _encode_str,
    bool: _encode_bool,  # before int, because bool is a subclass of int
    int: _encode_int,
    float: _encode_number,
    Decimal: _encode_number,
    type(None): _encode_none,
    bytes: _encode_bytes,
    bytearray: _encode_bytes,
    memoryview: _encode_bytes,
    list: _encode_list,
    tuple: _encode_list,
    dict: _encode_map,
    set: _encode_set,
    frozenset: _encode_set,
}


# --- attribute → Python ---------------------------------------------------------------------------------


def decode(attribute: Attribute) -> Any:
    """Turn an attribute into a Python value: a number into int or Decimal, a set into a set, binary into bytes."""
    try:
        ((kind, content),) = attribute.items()
        return _DECODERS[kind](content)
    except InvalidValueError:
        raise
    except (KeyError, ValueError, AttributeError, TypeError, ArithmeticError):
        raise refuse_malformed(attribute) from None


def decode_item(item: Item) -> dict[str, Any]:
    """Turn an item into a dict of Python values: `decode` for every attribute."""
    values = {}
    try:
        for name, attribute in item.items():
            [kind] = attribute
            values[name] = attribute[kind] if kind == "S" else _DECODERS[kind](attribute[kind])
    except (KeyError, ValueError, AttributeError, TypeError, ArithmeticError):
        return _decode_by_name(item)
    return values


def _decode_by_name(item: Item) -> dict[str, Any]:
    """Decode an invalid item again, more slowly, so that the error names the place."""
    values = {}
    for name, attribute in item.items():
        try:
            values[name] = decode(attribute)
        except InvalidValueError as error:
            raise error.inside(str(name)) from None
    return values


def _decode_list(members: Iterable[Attribute]) -> list[Any]:
    values = []
    for position, member in enumerate(members):
        try:
            values.append(decode(member))
        except InvalidValueError as error:
            raise error.inside(f"[{position}]") from None
    return values


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "S": lambda content: content,
    "N": parse_number,
    "B": b64decode,
    "BOOL": lambda content: content,
    "NULL": lambda content: None,
    "L": _decode_list,
    "M": decode_item,
    "SS": set,
    "NS": lambda content: set(map(parse_number, content)),
    "BS": lambda content: set(map(b64decode, content)),
}

"""Attribute values: DynamoDB's ten types, converted to and from Python, with exact sizes.

Pure. An *attribute* is a value in DynamoDB's JSON form: a dict with one entry, such as ``{"S": "ada"}`` or
``{"N": "42"}``; binary values are base64 text inside it. Items pass through the port in that form, so
a value that is not used is never converted, and a condition can repeat it exactly as it arrived.
`encode` and `decode` convert from and to Python. `canonical_item` checks an item, normalises it to the form in
which it is stored, and measures its size. All raise `InvalidValueError`, which names the place inside the item.

Capacity units: a read costs one unit for each 4 KB, half of that if eventually consistent, twice that in a transaction.
A write costs one unit for each 1 KB of the item before or after it, whichever is larger; twice that in a transaction.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeAlias

from holdall.core.numbers import canonical_number, number_size, number_text, parse_number
from holdall.errors import InvalidValueError

Attribute: TypeAlias = Mapping[str, Any]
"""One value in DynamoDB's JSON form: a dict with a single entry, from the type's letter to the content."""

Item: TypeAlias = Mapping[str, Attribute]
"""An item: a dict from attribute names to attributes."""

MAX_DEPTH = 32
MAX_NAME = 65535
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
        _utf8_size(value)
    return {"S": str.__str__(value)}


def _encode_int(value: int) -> dict[str, Any]:
    return {"N": int.__repr__(value) if -_EXACT <= value <= _EXACT else number_text(value)}


def _encode_number(value: float | Decimal) -> dict[str, Any]:
    return {"N": number_text(value)}


def _encode_bytes(value: bytes | bytearray | memoryview) -> dict[str, Any]:
    return {"B": b64encode(value).decode("ascii")}


def _encode_list(value: Iterable[object]) -> dict[str, Any]:
    parts = []
    for place, member in enumerate(value):
        try:
            parts.append(encode(member))
        except InvalidValueError as error:
            raise error.inside(f"[{place}]") from None
    return {"L": parts}


def _encode_map(value: Mapping[object, object]) -> dict[str, Any]:
    for name in value:
        if not isinstance(name, str):
            raise InvalidValueError(f"the keys of a map must be strings, not {type(name).__name__}")
        name_size(name)
    return {"M": encode_item(value)}  # type: ignore[arg-type]


def _encode_set(value: Iterable[object]) -> dict[str, Any]:
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
    return {f"{kind}S": _sort_set(kind, list(dict.fromkeys(contents)))}


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
        raise _refuse_malformed(attribute) from None


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
    for place, member in enumerate(members):
        try:
            values.append(decode(member))
        except InvalidValueError as error:
            raise error.inside(f"[{place}]") from None
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


# --- the stored form ------------------------------------------------------------------------------------


def canonical_item(item: Item, depth: int = 1) -> tuple[dict[str, Attribute], int]:
    """Check an item; return it in its stored form, with its size in bytes as DynamoDB bills it.

    The stored form has numbers in canonical text and sets sorted. Parts that are already canonical are
    shared with the argument, not copied. ``depth`` is greater than 1 for a map inside an item.
    """
    kept: dict[str, Attribute] = dict(item)
    total = 0
    for name, attribute in item.items():
        try:
            text = attribute.get("S") if attribute.__class__ is dict and len(attribute) == 1 else None
            if text.__class__ is str:  # the most common attribute, without another call
                size = len(text) if text.isascii() else _utf8_size(text)
            else:
                kept[name], size = _canonical(attribute, depth)
            total += size + (_known_names.get(name) or _know_name(name))
        except InvalidValueError as error:
            raise error.inside(str(name)) from None
    return kept, total


_known_names: dict[object, int] = {}
"""The sizes of names that were checked before: a program uses the same few in all its items."""

_MOST_KNOWN = 4096


def _know_name(name: object) -> int:
    size = name_size(name)
    if len(_known_names) < _MOST_KNOWN and name.__class__ is str:
        _known_names[name] = size
    return size


def item_size(item: Item) -> int:
    """Return how many bytes DynamoDB bills for an item: its names plus its values."""
    return canonical_item(item)[1]


def attribute_size(attribute: Attribute) -> int:
    """Return how many bytes DynamoDB bills for one value, without its name."""
    return _canonical(attribute, 1)[1]


def _canonical(attribute: Attribute, depth: int) -> tuple[Attribute, int]:
    try:
        [kind] = attribute
        content = attribute[kind]
        if kind == "S":
            if not isinstance(content, str):
                raise _refuse_malformed(attribute)
            return attribute, len(content) if content.isascii() else _utf8_size(content)
        if kind == "N":
            text, size = _measure_number(content)
            return (attribute if text == content else {"N": text}), size
        rule = _CANONICAL[kind]
    except InvalidValueError:
        raise
    except (KeyError, ValueError, AttributeError, TypeError):
        raise _refuse_malformed(attribute) from None
    return rule(attribute, content, depth)


@lru_cache(maxsize=4096)
def _measure_number(text: str) -> tuple[str, int]:
    """The canonical text of a number, and its size; many items have the same few numbers."""
    canonical = canonical_number(text)
    return canonical, number_size(canonical)


def _canonical_flag(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    if content is not True and not (content is False and "BOOL" in attribute):
        raise _refuse_malformed(attribute)
    return attribute, 1


def _canonical_binary(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    text, size = _binary(content)
    return (attribute if text == content else {"B": text}), size


def _binary(content: object) -> tuple[str, int]:
    if not isinstance(content, str):
        raise InvalidValueError(f"a binary value must be base64 text, not {type(content).__name__}")
    try:
        raw = b64decode(content, validate=True)
    except (Base64Error, ValueError):
        raise InvalidValueError("a binary value must be valid base64 text") from None
    return b64encode(raw).decode("ascii"), len(raw)


def _canonical_list(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    if not isinstance(content, (list, tuple)):
        raise _refuse_malformed(attribute)
    _check_depth(depth)
    members: list[Attribute] = []
    total = 3
    for member in content:
        text = member.get("S") if member.__class__ is dict and len(member) == 1 else None
        if text.__class__ is str and text.isascii():
            members.append(member)
            total += len(text) + 1
            continue
        try:
            kept, size = _canonical(member, depth + 1)
        except InvalidValueError as error:
            raise error.inside(f"[{len(members)}]") from None
        members.append(kept)
        total += size + 1
    return {"L": members}, total


def _canonical_map(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    if content.__class__ is not dict and not isinstance(content, Mapping):
        raise _refuse_malformed(attribute)
    _check_depth(depth)
    members, total = canonical_item(content, depth + 1)
    return {"M": members}, 3 + total + len(members)


def _canonical_set(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    ((kind, _),) = attribute.items()
    if not isinstance(content, (list, tuple)):
        raise _refuse_malformed(attribute)
    if not content:
        raise InvalidValueError("the set is empty", hint="omit the attribute instead")
    members = []
    total = 0
    for member in content:
        if kind == "SS" and member.__class__ is str and member.isascii():
            members.append(member)
            total += len(member)
            continue
        kept, size = _canonical({kind[0]: member}, depth)
        members.append(kept[kind[0]])
        total += size
    if len(set(members)) != len(members):
        raise InvalidValueError("the set contains the same member twice")
    return {kind: _sort_set(kind[0], members)}, total


_CANONICAL: dict[str, Callable[[Attribute, Any, int], tuple[Attribute, int]]] = {
    "B": _canonical_binary,
    "BOOL": _canonical_flag,
    "NULL": _canonical_flag,
    "L": _canonical_list,
    "M": _canonical_map,
    "SS": _canonical_set,
    "NS": _canonical_set,
    "BS": _canonical_set,
}


def _sort_set(kind: str, members: list[str]) -> list[str]:
    if kind == "N":
        return sorted(members, key=Decimal)
    return sorted(members) if kind == "S" else sorted(members, key=b64decode)


def _utf8_size(text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidValueError(
            "the string has a lone surrogate, so it cannot be written as UTF-8", hint="store it as bytes"
        ) from None


def name_size(name: object) -> int:
    """Return the size of an attribute's name in bytes; raise `InvalidValueError` if it cannot be a name."""
    if not isinstance(name, str) or not name:
        raise InvalidValueError(f"an attribute's name must be a non-empty string, not {name!r}")
    try:
        size = len(name) if name.isascii() else len(name.encode())
    except UnicodeEncodeError:
        raise InvalidValueError("the name has a lone surrogate, so it cannot be written as UTF-8") from None
    if size > MAX_NAME:
        raise InvalidValueError(f"an attribute's name has {size:,} bytes; DynamoDB allows {MAX_NAME:,}")
    return size


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise InvalidValueError(f"lists and maps are nested more than {MAX_DEPTH} levels deep")


def _refuse_malformed(attribute: object) -> InvalidValueError:
    kinds = ", ".join(attribute) if isinstance(attribute, Mapping) else type(attribute).__name__
    return InvalidValueError(
        f"the value is not in DynamoDB's JSON form ({kinds})",
        hint='it must be a dict with one entry, such as {"S": "text"}; use holdall.core.encode() for Python values',
    )


def read_units(size: int, *, consistent: bool = False, transactional: bool = False) -> float:
    """Return the capacity units for reading ``size`` bytes: one item, or all the items of a page."""
    blocks = -(-size // 4096) or 1
    return blocks * (2.0 if transactional else 1.0 if consistent else 0.5)


def write_units(before: int, after: int, *, transactional: bool = False) -> float:
    """Return the capacity units for a write that changes an item's size; 0 stands for a missing item."""
    blocks = -(-max(before, after) // 1024) or 1
    return blocks * (2.0 if transactional else 1.0)

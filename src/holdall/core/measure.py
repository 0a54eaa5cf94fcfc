"""The stored form of items, their size as DynamoDB bills it, and the capacity units that they cost.

Pure. `canonical_item` checks an item, normalizes it to the form in which it is stored, and measures it. Raises
`InvalidValueError`, which names the place inside the item.

Capacity units: a read costs one unit for each 4 KB, half of that if eventually consistent, twice that in a transaction.
A write costs one unit for each 1 KB of the item before or after it, whichever is larger; twice that in a transaction.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from holdall.core.numbers import measure_number
from holdall.errors import InvalidValueError

if TYPE_CHECKING:
    from holdall.core.values import Attribute, Item

MAX_DEPTH = 32
MAX_NAME = 65535


class SealedItem(dict[str, "Attribute"]):
    """An item in its stored form, with its size. It is not checked again, so it must not be changed."""

    __slots__ = ("size",)
    size: int


def seal_item(item: Item) -> SealedItem:
    """Check an item once, for code that reads its size and then sends it."""
    kept, size = canonical_item(item)
    sealed = SealedItem(kept)
    sealed.size = size
    return sealed


def canonical_item(item: Item, depth: int = 1) -> tuple[dict[str, Attribute], int]:
    """Check an item; return it in its stored form, with its size in bytes as DynamoDB bills it.

    The stored form has numbers in canonical text and sets sorted. Parts that are already canonical are
    shared with the argument, not copied. ``depth`` is greater than 1 for a map inside an item.
    """
    if isinstance(item, SealedItem):
        return item, item.size
    kept: dict[str, Attribute] = dict(item)
    total, name = 0, ""
    try:
        for name, attribute in item.items():
            if (
                attribute.__class__ is dict
                and len(attribute) == 1
                and (text := attribute.get("S")).__class__ is str
                and text.isascii()
            ):
                size = len(text)  # the most common attribute, without another call
            else:
                kept[name], size = measure_attribute(attribute, depth)
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
    return measure_attribute(attribute)[1]


def measure_attribute(attribute: Attribute, depth: int = 1) -> tuple[Attribute, int]:
    """Check a value; return it in its stored form, with its size in bytes, without its name."""
    try:
        [kind] = attribute
        content = attribute[kind]
        if kind == "S":
            if not isinstance(content, str):
                raise refuse_malformed(attribute)
            return attribute, len(content) if content.isascii() else utf8_size(content)
        if kind == "N":
            text, size = measure_number(content)
            return (attribute if text == content else {"N": text}), size
        if kind == "BOOL" and content.__class__ is bool:
            return attribute, 1
        rule = _CANONICAL[kind]
    except InvalidValueError:
        raise
    except (KeyError, ValueError, AttributeError, TypeError):
        raise refuse_malformed(attribute) from None
    return rule(attribute, content, depth)


def _canonical_flag(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    if content is not True and not (content is False and "BOOL" in attribute):
        raise refuse_malformed(attribute)
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
        raise refuse_malformed(attribute)
    if depth >= MAX_DEPTH:
        raise _refuse_nesting()
    members: list[Attribute] = []
    total = 3
    for member in content:
        text = member.get("S") if member.__class__ is dict and len(member) == 1 else None
        if text.__class__ is str and text.isascii():
            members.append(member)
            total += len(text) + 1
            continue
        try:
            kept, size = measure_attribute(member, depth + 1)
        except InvalidValueError as error:
            raise error.inside(f"[{len(members)}]") from None
        members.append(kept)
        total += size + 1
    return {"L": members}, total


def _canonical_map(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    if content.__class__ is not dict and not isinstance(content, Mapping):
        raise refuse_malformed(attribute)
    if depth >= MAX_DEPTH:
        raise _refuse_nesting()
    members, total = canonical_item(content, depth + 1)
    return {"M": members}, 3 + total + len(members)


def _canonical_set(attribute: Attribute, content: object, depth: int) -> tuple[Attribute, int]:
    [kind] = attribute
    if not isinstance(content, (list, tuple)):
        raise refuse_malformed(attribute)
    if not content:
        raise InvalidValueError("the set is empty", hint="omit the attribute instead")
    members: list[Any]
    if kind == "SS" and {*map(type, content)} == {str} and (text := "".join(content)).isascii():
        members, total = sorted(content), len(text)
    else:
        measured = [measure_attribute({kind[0]: member}, depth) for member in content]
        members = sort_set(kind[0], [kept[kind[0]] for kept, _ in measured])
        total = sum([size for _, size in measured])
    if len(set(members)) != len(members):
        raise InvalidValueError("the set contains the same member twice")
    return {kind: members}, total


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


def sort_set(kind: str, members: list[str]) -> list[str]:
    """Return the members of a set of this kind in the order in which they are stored."""
    if kind == "N":
        return sorted(members, key=Decimal)
    return sorted(members) if kind == "S" else sorted(members, key=b64decode)


def utf8_size(text: str) -> int:
    """Return the size of a string in bytes; raise `InvalidValueError` if it cannot be written as UTF-8."""
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


def _refuse_nesting() -> InvalidValueError:
    return InvalidValueError(f"lists and maps are nested more than {MAX_DEPTH} levels deep")


def refuse_malformed(attribute: object) -> InvalidValueError:
    """The error for a value that is not an attribute."""
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

"""Pointers and objects of tempest's hybrid storage, the Kotlin library that this archive's keys come from. Pure.

There are two formats. In the first, the attribute ``s3Key`` holds the object's key, and the body is gzipped plain JSON.
In the second, ``_s3_pointer`` is ``s3://`` and the key, without a bucket; the body may be gzipped, and its attributes
are plain or typed. Neither has an etag or a digest, so all that can be verified is that the object belongs to the item:
the library let items overwrite each other's objects.

A body is typed only if all of its attributes are. In a plain one, a map is a map, a list is a list, and a number keeps
all of its digits.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from holdall.core.measure import canonical_item
from holdall.core.values import Item, encode_item
from holdall.errors import CorruptArchiveError, InvalidValueError

FIRST = "s3Key"
SECOND = "_s3_pointer"
NAMES = (FIRST, SECOND)

_FAR = 100_000_000_000
_SCHEME = "s3://"
_GZIP = b"\x1f\x8b"
_TYPES = frozenset(["S", "N", "B", "SS", "NS", "BS", "L", "M", "BOOL", "NULL"])


def read_key(item: Item) -> str:
    """Read the object's key from a pointer of either format; `CorruptArchiveError` if it has none."""
    name = SECOND if SECOND in item else FIRST
    text = item[name].get("S")
    key = text if name == FIRST or text is None else text.removeprefix(_SCHEME)
    if not key or (name == SECOND and key == text):
        raise CorruptArchiveError(
            f"the pointer of an archived item cannot be read: {name} is {item[name]!r:.200}"
        )
    return str(key)


def read_body(data: bytes, key: Item, where: str) -> Item:
    """Read the item in an object; `CorruptArchiveError` if that fails, or if it is not the item with this key."""
    item = open_body(data, where)
    for name, attribute in key.items():
        if name in item and item[name] != attribute:
            raise CorruptArchiveError(
                f"the archived object {where} belongs to another item",
                hint="both items had the same key in the archive, and the later object replaced the earlier; restore "
                "the earlier one from a backup or an older version of the object",
            )
    return item


def open_body(data: bytes, where: str) -> Item:
    """Read the item in an object, without comparing its key."""
    try:
        text = zlib.decompress(data, zlib.MAX_WBITS | 16) if data.startswith(_GZIP) else data
        document = json.loads(text, parse_float=Decimal, parse_constant=_refuse)
    except (ValueError, zlib.error, RecursionError) as error:
        raise CorruptArchiveError(f"the archived object {where} cannot be read: {error}") from None
    if not isinstance(document, dict) or not document:
        raise CorruptArchiveError(f"the object {where} is not an archived item")
    try:
        if all(map(_is_typed, document.values())):
            return canonical_item(document)[0]
        return canonical_item(encode_item(document))[0]
    except InvalidValueError as error:
        raise CorruptArchiveError(f"the archived object {where} cannot be read: {error.message}") from None


def read_moment(text: str) -> datetime | None:
    """Read a moment from an object's metadata: text, or seconds or milliseconds since 1970; None if unparseable."""
    try:
        if text.isdigit():
            seconds = int(text)
            return datetime.fromtimestamp(seconds / 1000 if seconds > _FAR else seconds, UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


def _is_typed(value: object) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in _TYPES

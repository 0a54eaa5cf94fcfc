"""Keys as bytes whose order is DynamoDB's: strings and binaries by their bytes, numbers by their value.

Pure. A table's key attribute has one type, so no type mark is needed.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass

from holdall.core.expressions import BeginsWith, Between, Compare, Value
from holdall.core.keys import order_number
from holdall.core.rules.key import MAX_PARTITION_KEY, MAX_SORT_KEY
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Attribute, Item


def key_bytes(attribute: Attribute) -> bytes:
    """One key attribute as bytes."""
    ((kind, content),) = attribute.items()
    if kind == "S":
        return content.encode()  # type: ignore[no-any-return]
    return order_number(content).encode() if kind == "N" else b64decode(content)


def table_key(schema: TableSchema, item: Item) -> tuple[bytes, bytes]:
    """The item's place in its table; the second part is empty if there is no sort key."""
    sort = schema.sort
    return (
        key_bytes(item[schema.partition.name]),
        b"" if sort is None else key_bytes(item[sort.name]),
    )


def index_key(index: IndexSchema, item: Item) -> tuple[bytes, bytes] | None:
    """The item's place in an index; None if it is not in the index, because a key attribute is missing or unsuitable.

    New items that do not fit are refused earlier; existing items that do not fit a new index are left out.
    """
    if not (index.more_partition or index.more_sort):
        first = _part(index.partition, item, MAX_PARTITION_KEY)
        second = b"" if index.sort is None else _part(index.sort, item, MAX_SORT_KEY)
        return None if first is None or second is None else (first, second)
    found = [_part(key, item, MAX_PARTITION_KEY) for key in index.partitions]
    found += [_part(key, item, MAX_SORT_KEY) for key in index.sorts]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    count = len(index.partitions)
    return join_parts(parts[:count]), join_parts(parts[count:])


def join_parts(parts: Sequence[bytes]) -> bytes:
    """The attributes of one key as bytes; the order is that of the first attribute, then of the second, and so on."""
    return parts[0] if len(parts) == 1 else b"".join(map(_end, parts))


def _end(part: bytes) -> bytes:
    return _escape(part) + b"\x00\x01"


def _escape(part: bytes) -> bytes:
    return part.replace(b"\x00", b"\x00\xff")


def _part(key: KeyAttribute, item: Item, most: int) -> bytes | None:
    attribute = item.get(key.name)
    if attribute is None or key.type not in attribute:
        return None
    part = key_bytes(attribute)
    return part if 0 < len(part) <= most else None


@dataclass(frozen=True, slots=True)
class Range:
    """Sort keys from ``low`` to ``high``; None is unbounded."""

    low: bytes | None = None
    high: bytes | None = None
    low_open: bool = False
    high_open: bool = False


def sort_range(condition: Compare | Between | BeginsWith | None) -> Range:
    """The sort keys that a (checked) key condition admits."""
    match condition:
        case None:
            return Range()
        case Between(_, Value(low), Value(high)):
            return Range(key_bytes(low), key_bytes(high))
        case BeginsWith(_, Value(prefix)):
            start = key_bytes(prefix)
            return Range(start, _after_prefix(start), high_open=True)
        case Compare(comparator, _, Value(bound)):
            edge = key_bytes(bound)
            if comparator == "=":
                return Range(edge, edge)
            if comparator[0] == "<":
                return Range(high=edge, high_open=comparator == "<")
            return Range(low=edge, low_open=comparator == ">")
    raise TypeError(f"not a sort condition: {condition!r}")


def join_range(fixed: Sequence[bytes], condition: Compare | Between | BeginsWith | None) -> Range:
    """The joined sort keys whose first attributes are fixed, and whose next one a (checked) condition admits."""
    head = b"".join(map(_end, fixed))
    within = Range(head, _after_prefix(head), high_open=True)
    if condition is None:
        return within
    if isinstance(condition, BeginsWith):
        assert isinstance(condition.prefix, Value)
        start = head + _escape(key_bytes(condition.prefix.attribute))
        return Range(start, _after_prefix(start), high_open=True)
    one = sort_range(condition)
    low, high = within.low, within.high
    if one.low is not None:
        low = head + _end(one.low)
        low = _after_prefix(low) if one.low_open else low
    if one.high is not None:
        high = head + _end(one.high)
        high = high if one.high_open else _after_prefix(high)
    return Range(low, high, high_open=True)


def _after_prefix(prefix: bytes) -> bytes | None:
    """The smallest bytes above everything that begins with the prefix; None if there are none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None

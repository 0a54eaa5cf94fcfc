"""Copies: items that are written exactly as their source has them, with its times and its version. Pure.

In the database's table, a copy is marked with a digest of its attributes. While the digest fits, no program has changed
the copy.
"""

from __future__ import annotations

from datetime import datetime
from math import ceil

from holdall.core.digests import digest_facts
from holdall.core.frozen import dataclass
from holdall.core.measure import canonical_item
from holdall.core.requests import PutItem
from holdall.core.rules.key import check_item
from holdall.core.schema import TableSchema
from holdall.core.stamp import STAMP
from holdall.core.values import Attribute, Item
from holdall.models.model import Model
from holdall.tables.commit.lock import all_of
from holdall.tables.commit.plan import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry
from holdall.transactions.entry.claim import Claims
from holdall.transactions.entry.field_change import build_item, is_same, unique_fields
from holdall.transactions.entry.loaded import whole_locks
from holdall.transactions.entry.write_time import find_times, name_times
from holdall.transactions.move.conversion import Converted
from holdall.transactions.read.expiry import absent

MOVED = "_moved"
"""The attribute with the digest of a copy."""


@dataclass(frozen=True, slots=True)
class Copy:
    """An item to be copied: as an instance, and as it will be stored. ``given`` are the fields that the source has."""

    item: Model
    given: frozenset[str]
    attributes: Item
    size: int

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for copies of the same key."""
        return self.item.key.identity

    def list_differences(self, stored: Item) -> list[str]:
        """The fields that the source has with another value than a stored item."""
        fields = (self.item._schema.fields[name] for name in sorted(self.given))
        return [
            field.name
            for field in fields
            if not field.is_key and not is_same(stored.get(field.stored), self.attributes.get(field.stored))
        ]


def make_copy(binding: Binding, converted: Converted, now: datetime) -> Copy:
    """An item as it will be stored; an error if it cannot be."""
    item, schema = converted.item, binding.schema
    values = item.__dict__
    times = {
        field: value
        for field, value in find_times(schema, now, new=values).items()
        if values.get(field.name) is None
    }
    values.update(name_times(times))
    version, kept = schema.version, dict(values)
    if version is not None:
        kept[version.name] = 0
    attributes = build_item(binding, binding.key(item.key), kept)
    if version is not None:
        attributes[version.stored] = {"N": str(max(1, values.get(version.name, 0)))}
    indexes = tuple(index.schema for index in schema.indexes.values())
    stored, size = check_item(
        TableSchema(binding.table, binding.partition, binding.sort, indexes), attributes
    )
    if not binding.own:
        stored[MOVED] = {"S": _digest(stored)}
        size += len(MOVED) + 16
    return Copy(item, converted.given, stored, size)


def is_untouched(stored: Item) -> bool:
    """Whether a stored item is a copy that no program has changed."""
    return MOVED in stored and stored[MOVED] == {"S": _digest(stored)}


def _digest(item: Item) -> str:
    kept, _ = canonical_item({name: value for name, value in item.items() if name not in (STAMP, MOVED)})
    return digest_facts(kept, 16)


def count_units(binding: Binding, copy: Copy, steps: int) -> int:
    """Roughly how many write units DynamoDB bills for a copy, with its indexes and ``steps - 1`` guards."""
    keys = ({key.name for key in index.schema.keys} for index in binding.schema.indexes.values())
    copies = sum(copy.attributes.keys() >= names for names in keys)
    units = ceil(copy.size / 1024)
    return units * copies + (units + steps - 1) * (2 if steps > 1 or binding.own else 1)


class CopyEntry(Entry):
    """The write of a copy. ``replaced`` is the stored item that it replaces; None if its key must be empty."""

    role = "created"

    def __init__(self, copy: Copy, replaced: Item | None) -> None:
        super().__init__(copy.item.key)
        self._attributes: dict[str, Attribute] = dict(copy.attributes)
        self._values = copy.item.__dict__
        self._replaced = replaced

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A put, which requires an empty key, or that the stored item is unchanged."""
        old = self._replaced
        self._claim(binding, claims)
        if old is None:
            put = PutItem(binding.table, self._attributes, absent(binding, now), item_on_failure=True)
            return [Step(put, self.key, None, stampable=not binding.own, marked=not binding.own)]
        locks = whole_locks(binding, binding.schema, old)
        condition = all_of([lock.condition() for lock in locks])
        put = PutItem(binding.table, self._attributes, condition, item_on_failure=True)
        return [Step(put, self.key, locks, marked=not binding.own)]

    def _claim(self, binding: Binding, claims: Claims) -> None:
        for field in unique_fields(binding):
            before = None if self._replaced is None else self._replaced.get(field.stored)
            if self._replaced is not None and is_same(before, self._attributes.get(field.stored)):
                continue
            if before is not None:
                claims.release(binding, field, field.decode(before), self.key)
            if (value := self._values.get(field.name)) is not None:
                claims.take(binding, field, value, self.key)

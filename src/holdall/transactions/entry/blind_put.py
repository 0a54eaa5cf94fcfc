"""Blind puts: writes of whole items that were not read. Pure.

A put replaces whatever is stored, but not the value of a read-only field.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdall.core.expressions import Compare, Condition, NotExists, Path, Value
from holdall.core.expressions.evaluation import holds
from holdall.core.requests import PutItem
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidModelUpdateError, InvalidRequestError
from holdall.models.fields.field import Field
from holdall.models.keys.key import ModelKey, check_unchanged
from holdall.tables.commit.explanation import show_attribute
from holdall.tables.commit.lock import Lock, all_of, any_of, differences
from holdall.tables.commit.plan import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.blind import Blind, Expected
from holdall.transactions.entry.claim import Claims
from holdall.transactions.entry.field_change import build_item, guard_unread, next_version
from holdall.transactions.entry.requirement import Requirement, explain_unmet
from holdall.transactions.entry.write_time import find_times, name_times
from holdall.transactions.read.expiry import absent, has_expired


class BlindPut(Blind):
    """A put of a whole item, which requires that the key is empty or its item has the expected values."""

    role = "put"

    def __init__(
        self,
        key: ModelKey[Any],
        expected: Expected,
        values: Mapping[str, Any],
        where: Requirement | None = None,
    ) -> None:
        super().__init__(key)
        self.expected = expected
        self.values = values
        self.where = where
        self._fixed: list[tuple[Field[Any], Attribute | None]] = []

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A put, with a condition if values are expected, or if it must not change a read-only field."""
        check_unchanged(self.key, self.values)
        self.times = find_times(binding.schema, now, new=self.values)
        item = self._item(binding, {**self.values, **name_times(self.times)})
        self._fixed = [(field, item.get(field.stored)) for field in binding.schema.list_read_only()]
        conditional = self.expected or self._fixed or self.where is not None
        fixed = [field for field, _ in self._fixed]
        locks = self._locks(self.expected, self.where, fixed) if conditional else ()
        if self.pointer is not None and (
            has_expired(binding, self.pointer, now) or self._fits(locks, self.whole)
        ):
            return [self._put_whole(binding, item)]
        where = None if self.where is None else self.where.condition
        kept = (_require_kept(field, new) for field, new in self._fixed)
        expected = all_of([*(lock.condition() for lock in locks), where, *kept])
        either = None if expected is None else any_of(absent(binding, now), expected)
        condition = all_of([either, guard_unread(binding, None)])
        put = PutItem(binding.table, item, condition, item_on_failure=condition is not None)
        return [Step(put, self.key, locks, self._refuse, marked=not binding.own, was_read=False)]

    def _item(self, binding: Binding, values: Mapping[str, Any]) -> Item:
        """The whole item; its version is known only if the caller expects one."""
        version, key = binding.schema.version, binding.key(self.key)
        if version is None:
            return build_item(binding, key, values)
        if version not in self.expected:
            raise InvalidRequestError(
                f"{self.key!r} has a version, and a put that does not know it could undo another program's write",
                hint="use db.put, which reads the version; or read the item and change it; or expect the version",
            )
        item = build_item(binding, key, {**values, version.name: 0})
        return {**item, version.stored: next_version(version, self.expected[version])}

    def _fits(self, locks: tuple[Lock, ...], stored: Item) -> bool:
        if (problem := self._refuse(stored)) is not None:
            raise problem
        return not differences(self.key, locks, stored)

    def _refuse(self, stored: Item | None) -> InvalidModelUpdateError | None:
        if stored is None:
            return None
        for field, new in self._fixed:
            if not holds(_require_kept(field, new), stored):
                found = "" if field.hidden else f" {show_attribute(stored.get(field.stored))}"
                return InvalidModelUpdateError(
                    f"{self.key!r}.{field.name} is read-only: the put has another value than the stored one{found}",
                    hint="put the stored value, or read the item and change its other fields",
                )
        return explain_unmet(self.key, (), self.where, stored)


def _require_kept(field: Field[Any], new: Attribute | None) -> Condition:
    """The condition that a put keeps the value of a read-only field; it can set one that was never stored."""
    unset = NotExists(Path((field.stored,)))
    return unset if new is None else any_of(unset, Compare("=", Path((field.stored,)), Value(new)))

"""Blind writes: writes of items that were not read, for which the caller names the expected values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from holdall.core.expressions import Update
from holdall.core.requests import ConditionCheck, DeleteItem, PutItem, UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidModelUpdateError, InvalidRequestError
from holdall.models.fields import Field
from holdall.models.keys import ModelKey, check_unchanged, make_key
from holdall.models.migrations import VERSION
from holdall.models.model import unknown_field
from holdall.models.schema import ModelSchema
from holdall.tables.commit.explanation import describe_difference
from holdall.tables.commit.lock import Lock, all_of, any_of, differences, present
from holdall.tables.commit.plan import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry
from holdall.transactions.entry.claim import Claims
from holdall.transactions.entry.field_change import (
    FieldChange,
    build_item,
    build_update,
    find_affected,
    former_locks,
    guard_condition,
    is_same,
)
from holdall.transactions.entry.loaded import whole_locks
from holdall.transactions.expiry import absent, alive, has_expired

Expected = Mapping[Field[Any], "Attribute | None"]
"""Fields and the attributes that must be stored for them; None if absent."""


class Blind(Entry):
    """A write of an item that was not read.

    If the item turns out to be a pointer, whose content is stored elsewhere, the commit hydrates it and plans the write
    again: ``pointer`` is then the stored item, ``whole`` the hydrated one.
    """

    pointer: Item | None = None
    whole: Item = MappingProxyType({})

    def thaw(self, pointer: Item, whole: Item) -> None:
        """Plan again for an item that was found to be a pointer."""
        self.pointer, self.whole = pointer, whole

    def _put_whole(self, binding: Binding, item: Item) -> Step:
        """Replace the pointer with the whole item, if the pointer is unchanged."""
        assert self.pointer is not None
        locks = whole_locks(binding, self.key.schema, self.pointer)
        condition = all_of([*present(binding.partition.name, locks), guard_condition(binding, self.pointer)])
        put = PutItem(binding.table, item, condition, item_on_failure=True)
        return Step(put, self.key, locks, marked=not binding.own)

    def _locks(self, expected: Expected) -> list[Lock]:
        """Locks on the expected values, and on the version of the item.

        An item that has not been converted yet must be read first, because its values may mean something else.
        """
        schema = self.key.schema
        locks = [Lock(field.name, field.stored, old) for field, old in expected.items()]
        locks += [lock for field in expected for lock in former_locks(schema, field)]
        mark = None if schema.migrations is None else schema.migrations.mark
        return locks if mark is None else [*locks, Lock(VERSION, VERSION, mark)]


class BlindUpdate(Blind):
    """An update that requires the expected old values; ``values`` are the expected values after the changes."""

    role = "updated"

    def __init__(
        self, key: ModelKey[Any], expected: Expected, changed: Expected, values: Mapping[str, Any]
    ) -> None:
        super().__init__(key)
        self.expected = expected
        self.changed = changed
        self.values = values
        self._check_derived()

    def _check_derived(self) -> None:
        """Refuse a change to one field of a derived attribute if the values of the others are unknown."""
        for each in find_affected(self.key.schema.derived, self._changes()):
            for field in each.components:
                if field.name not in self.values:
                    raise field.refusal(
                        "an index key is computed from it and from a changed field, so its value is needed too",
                        hint="add its current value to expected",
                    )

    def _changes(self) -> list[FieldChange]:
        return [
            (field, self.expected[field], new)
            for field, new in self.changed.items()
            if not is_same(self.expected[field], new)
        ]

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """An update that requires all expected values; an expired item counts as missing."""
        key = binding.key(self.key)
        locks = tuple(self._locks(self.expected))
        if self.pointer is not None:
            return [self._replacement(binding, now, locks, claims)]
        demanded = present(binding.partition.name, locks)
        condition = all_of([*demanded, alive(binding, now), guard_condition(binding, None)])
        assert condition is not None
        changes = self._changes()
        if not changes:
            check = ConditionCheck(binding.table, key, condition, item_on_failure=True)
            return [Step(check, self.key, locks, partial(self._refuse, locks))]
        self._claim(binding, changes, claims)
        derived = find_affected(binding.schema.derived, changes)
        update = Update(tuple(build_update(changes, derived, self.values)))
        action = UpdateItem(binding.table, key, update, condition, item_on_failure=True)
        return [Step(action, self.key, locks, partial(self._refuse, locks))]

    def _replacement(self, binding: Binding, now: datetime, locks: tuple[Lock, ...], claims: Claims) -> Step:
        assert self.pointer is not None
        stored = None if has_expired(binding, self.pointer, now) else self.whole
        if differences(repr(self.key), locks, stored):
            raise self._refuse(locks, stored)
        changes = self._changes()
        self._claim(binding, changes, claims)
        changed: dict[str, Attribute | None] = {field.stored: new for field, _, new in changes}
        for each in find_affected(binding.schema.derived, changes):
            components = {field.name: self.values.get(field.name) for field in each.components}
            changed |= each.attributes(components)
        item = {name: value for name, value in {**self.whole, **changed}.items() if value is not None}
        return self._put_whole(binding, item)

    def _refuse(self, locks: tuple[Lock, ...], stored: Item | None) -> InvalidModelUpdateError:
        found = differences(repr(self.key), locks, stored)
        return InvalidModelUpdateError(
            "; ".join(map(describe_difference, found)) or f"{self.key!r} is missing or not as expected",
            hint="read the item with get, then update it",
        )

    def _claim(self, binding: Binding, changes: list[FieldChange], claims: Claims) -> None:
        for field, old, new in changes:
            if field.unique:
                if old is not None:
                    claims.release(binding, field, field.decode(old), self.key)
                if new is not None:
                    claims.take(binding, field, field.decode(new), self.key)


class BlindPut(Blind):
    """A put of a whole item, which requires that the key is empty or its item has the expected values."""

    role = "put"

    def __init__(self, key: ModelKey[Any], expected: Expected, values: Mapping[str, Any]) -> None:
        super().__init__(key)
        self.expected = expected
        self.values = values

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A put, with a condition if values are expected."""
        check_unchanged(self.key, self.values)
        item = build_item(binding, binding.key(self.key), self.values)
        locks = tuple(self._locks(self.expected)) if self.expected else ()
        if self.pointer is not None and (
            has_expired(binding, self.pointer, now) or not differences(repr(self.key), locks, self.whole)
        ):
            return [self._put_whole(binding, item)]
        expected = all_of(lock.condition() for lock in locks)
        either = None if expected is None else any_of(absent(binding, now), expected)
        condition = all_of([either, guard_condition(binding, None)])
        put = PutItem(binding.table, item, condition, item_on_failure=condition is not None)
        return [Step(put, self.key, locks, marked=not binding.own, was_read=False)]


class BlindDelete(Blind):
    """A delete of the item under a key, whether or not it exists."""

    role = "deleted"

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A delete."""
        guard = guard_condition(binding, self.pointer)
        delete = DeleteItem(binding.table, binding.key(self.key), guard, item_on_failure=guard is not None)
        return [Step(delete, self.key, (), was_read=False)]


# --- the caller's values for an item that was not read -------------------------------------------------------


def split_key(
    schema: ModelSchema, expected: Mapping[str, Any]
) -> tuple[ModelKey[Any], dict[Field[Any], Any]]:
    """Split expected values into the key and the stored form of the others."""
    names = schema.key_fields
    old: dict[Field[Any], Any] = {}
    for name, value in expected.items():
        field = find_field(schema, name)
        if name not in names:
            old[field] = None if value is None else field.encode(field.validate(value))
    key = make_key(schema, (), {name: value for name, value in expected.items() if name in names})
    return key, old


def check_unhooked(schema: ModelSchema) -> None:
    """Refuse a blind write to a model with a ``before_commit`` hook, which it would skip."""
    if schema.hooked:
        raise InvalidRequestError(
            f"{schema.name} has a before_commit hook, which cannot be called for an item that was not read",
            hint="read the item with get, then change or delete it; use create for a new item",
        )


def keep_value(field: Field[Any], value: Any) -> Any:
    """A value as the field would store it, possibly normalised; None if absent."""
    return None if value is None else field.validate(value)


def find_field(schema: ModelSchema, name: str) -> Field[Any]:
    """The field of this name; otherwise an error that suggests the nearest name."""
    field = schema.fields.get(name)
    if field is None:
        raise unknown_field(schema, name)
    return field

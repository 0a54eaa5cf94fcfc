"""Blind writes: writes of items that were not read, for which the caller names the expected values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from holdall.core.expressions import Compare, Condition, In, Path, Update, UpdateAction, Value
from holdall.core.expressions.evaluation import holds
from holdall.core.requests import ConditionCheck, DeleteItem, PutItem, UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidModelUpdateError
from holdall.models.fields.field import Field
from holdall.models.fields.update import FieldUpdate, apply_all
from holdall.models.keys.key import ModelKey
from holdall.models.migrations import VERSION
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import Lock, all_of, present
from holdall.tables.commit.plan import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry
from holdall.transactions.entry.claim import Claims
from holdall.transactions.entry.field_change import (
    FieldChange,
    build_item,
    build_update,
    count_write,
    derive,
    find_affected,
    former_locks,
    guard_unread,
    is_same,
    is_usual,
    update_actions,
)
from holdall.transactions.entry.loaded import whole_locks
from holdall.transactions.entry.requirement import Requirement, explain_unmet
from holdall.transactions.entry.write_time import find_times, list_time_changes, name_times
from holdall.transactions.read.expiry import absent, alive, has_expired

Expected = Mapping[Field[Any], "Attribute | None"]
"""Fields and the attributes that must be stored for them; None if absent."""


class Blind(Entry):
    """A write of an item that was not read.

    If the item turns out to be a pointer, whose content is stored elsewhere, the commit hydrates it and plans the write
    again: ``pointer`` is then the stored item, ``whole`` the hydrated one.
    """

    where: Requirement | None = None
    pointer: Item | None = None
    whole: Item = MappingProxyType({})

    def thaw(self, pointer: Item, whole: Item) -> None:
        """Plan again for an item that was found to be a pointer."""
        self.pointer, self.whole = pointer, whole

    def _put_whole(self, binding: Binding, item: Item) -> Step:
        """Replace the pointer with the whole item, if the pointer is unchanged."""
        assert self.pointer is not None
        locks = whole_locks(binding, self.key.schema, self.pointer)
        condition = all_of([*present(binding.partition.name, locks), guard_unread(binding, self.pointer)])
        put = PutItem(binding.table, item, condition, item_on_failure=True)
        return Step(put, self.key, locks, marked=not binding.own)

    def _locks(
        self, expected: Expected, where: Requirement | None, updated: Iterable[Field[Any]] = ()
    ) -> tuple[Lock, ...]:
        """Locks on the expected values, and on the version of the item.

        An item that has not been converted yet must be read first, because its values may mean something else.
        """
        schema = self.key.schema
        locks = [Lock(field.name, field.stored, old) for field, old in expected.items()]
        if schema.migrations is None:
            return tuple(locks)
        fields = dict.fromkeys([*expected, *updated, *(() if where is None else where.fields)])
        locks += [lock for field in fields for lock in former_locks(schema, field)]
        mark = schema.migrations.mark
        return tuple(locks) if mark is None else (*locks, Lock(VERSION, VERSION, mark))


class BlindUpdate(Blind):
    """An update of an item that was not read.

    The caller names ``expected`` old values, which must be stored, and what else must be true (``where``). ``known``
    are the old values that follow from both. ``changed`` fields get a value or lose it whatever they were; ``updates``
    depend on what is stored. ``values`` are the values that are known after the changes. ``new`` are the values of the
    item that is created if there is none; without them, there must be one.
    """

    role = "updated"

    def __init__(
        self,
        key: ModelKey[Any],
        expected: Expected,
        changed: Expected,
        values: Mapping[str, Any],
        *,
        known: Expected | None = None,
        updates: Sequence[FieldUpdate] = (),
        where: Requirement | None = None,
        new: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(key)
        self.expected = expected
        self.changed = changed
        self.values = values
        self.known = expected if known is None else known
        self.updates: dict[Field[Any], list[FieldUpdate]] = {}
        for update in updates:
            self.updates.setdefault(update.field, []).append(update)
        self.where = where
        self.new = new
        self.found: dict[Field[Any], Attribute | None] = {}
        """Fields whose updates cannot be left to the store, with what was stored when that was found out."""
        self.creates = False
        self._check_derived()

    def _check_derived(self) -> None:
        """Refuse a change to one field of a derived attribute if the values of the others are unknown."""
        changes = self._changes()
        if changes or self.updates:
            changes += [(field, None, None) for field in self._list_times()]
        for each in find_affected(self.key.schema.derived, changes):
            for field in each.components:
                if field.name not in self.values and field.now != "update":
                    raise field.refusal(
                        "a stored attribute is computed from it and from a changed field, so its value is needed too",
                        hint="add its current value to expected, or to where=: col(field) == value",
                    )

    def _list_times(self) -> list[Field[Any]]:
        return [field for field in self.key.schema.timed if field.now == "update"]

    def _changes(self) -> list[FieldChange]:
        return [
            (field, self.known.get(field), new)
            for field, new in self.changed.items()
            if field not in self.known or not is_same(self.known[field], new)
        ]

    # --- steps ----------------------------------------------------------------------------------------------

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """An update that requires all expected values; an expired item counts as missing."""
        if self.creates:
            return [self._creation(binding, now, claims)]
        self.times = find_times(binding.schema, now)
        key, locks = binding.key(self.key), self._own_locks()
        if binding.schema.form.in_key_alone and not self._fits_key(binding, key):
            raise self._explain_model("another model")
        if self.pointer is not None:
            return [self._replacement(binding, now, locks, claims)]
        shapes, actions = self._plan_updates()
        where = None if self.where is None else self.where.condition
        demanded = [*present(binding.partition.name, locks), where, self._require_model(), *shapes]
        condition = all_of([*demanded, alive(binding, now), guard_unread(binding, None)])
        assert condition is not None
        changes = self._changes()
        refuse = partial(self._refuse, binding, now, locks)
        if not changes and not actions:
            self.times = {}
            check = ConditionCheck(binding.table, key, condition, item_on_failure=True)
            return [Step(check, self.key, locks, refuse)]
        self._claim(binding, changes, claims)
        changes += list_time_changes(self.times)
        derived = find_affected(binding.schema.derived, changes)
        values = {**self.values, **name_times(self.times)}
        counted = count_write(binding.schema)
        update = Update((*build_update(changes, derived, values), *actions, *counted))
        action = UpdateItem(binding.table, key, update, condition, item_on_failure=True)
        return [Step(action, self.key, locks, refuse)]

    def _require_model(self) -> Condition | None:
        """The condition that the stored item is of a model that this write fits.

        In the database's table, only related models have the same keys; in a single-table design of another program,
        any models can.
        """
        schema, form = self.key.schema, self.key.schema.form
        is_alone = schema.name == schema.root and not form.is_parsed
        if form.type_attribute is None or (is_alone and not schema.model.__subclasses__()):
            return None
        family = list(schema.family())
        alike = dict.fromkeys(each.name for each in family if self._suits(each))
        if is_alone and len(alike) == len({each.name for each in family}):
            return None
        of_model = In(Path((form.type_attribute,)), tuple(Value({"S": name}) for name in alike))
        others = (Compare("=", Path((name,)), Value(text)) for name, text in form.constants.items())
        return all_of([of_model, *others])

    def _suits(self, other: ModelSchema) -> bool:
        """Whether the write does everything that another model requires for its items: it updates the derived
        attributes, counts the version and skips no hook."""
        own, changes = self.key.schema, [*self._changes(), *list_time_changes(self.times)]
        if other is own:
            return True
        if other.hooked or count_write(other) != count_write(own):
            return False
        if {f.stored for f in other.timed if f.now == "update"} != {
            field.stored for field in self._list_times()
        }:
            return False
        if any(field.name in other.locked for field in self.updates):
            return False
        if any(field.unique != other.fields[field.name].unique for field, _, _ in changes):
            return False
        affected = find_affected(other.derived, changes)
        values = {**self.values, **name_times(self.times)}
        if any(field.name not in values for each in affected for field in each.components):
            return False
        return derive(affected, values) == derive(find_affected(own.derived, changes), values)

    def _own_locks(self) -> tuple[Lock, ...]:
        return self._locks(self.expected, self.where, [*self.changed, *self.updates, *self._list_times()])

    def _plan_updates(self) -> tuple[list[Condition], list[UpdateAction]]:
        """The actions of the updates, and what they require of the stored item."""
        shapes: list[Condition] = []
        actions: list[UpdateAction] = []
        for field, updates in self.updates.items():
            if field in self.found:
                stored = self.found[field]
                shapes.append(Lock(field.name, field.stored, stored).condition())
                new = apply_all(updates, stored)
                actions += [] if is_same(stored, new) else update_actions({field.stored: new})
            else:
                shapes += [demand for update in updates for demand in update.demands()]
                actions += [update.action() for update in updates]
        return shapes, actions

    def _creation(self, binding: Binding, now: datetime, claims: Claims) -> Step:
        """A put of a new item, which requires that there is still none."""
        assert self.new is not None
        self.times = find_times(binding.schema, now, new=self.new)
        item = build_item(binding, binding.key(self.key), {**self.new, **name_times(self.times)})
        claims.take_all(binding, self.new, self.key)
        put = PutItem(binding.table, item, absent(binding, now), item_on_failure=True)
        return Step(put, self.key, None, stampable=not binding.own, marked=not binding.own)

    def _replacement(self, binding: Binding, now: datetime, locks: tuple[Lock, ...], claims: Claims) -> Step:
        assert self.pointer is not None
        stored = None if has_expired(binding, self.pointer, now) else self.whole
        problem = explain_unmet(self.key, locks, self.where, stored)
        if problem is None and not self._fits_model(self.pointer):
            problem = self._refuse(binding, now, locks, self.pointer)
        if problem is not None:
            raise problem
        changes = self._changes()
        self._claim(binding, changes, claims)
        if not changes and not self.updates:
            self.times = {}
        changes += list_time_changes(self.times)
        changed: dict[str, Attribute | None] = {field.stored: new for field, _, new in changes}
        values = {**self.values, **name_times(self.times)}
        for each in find_affected(binding.schema.derived, changes):
            components = {field.name: values.get(field.name) for field in each.components}
            changed |= each.attributes(components)
        for field, updates in self.updates.items():
            changed[field.stored] = apply_all(updates, self.whole.get(field.stored))
        item = {name: value for name, value in {**self.whole, **changed}.items() if value is not None}
        return self._put_whole(binding, item)

    # --- refusals -------------------------------------------------------------------------------------------

    def _refuse(
        self, binding: Binding, now: datetime, locks: tuple[Lock, ...], stored: Item | None
    ) -> InvalidModelUpdateError | None:
        alive = None if stored is None or has_expired(binding, stored, now) else stored
        problem = explain_unmet(self.key, locks, self.where, alive)
        if problem is None and alive is not None and not self._fits_model(alive):
            attribute = self.key.schema.form.type_attribute
            return self._explain_model(f"the model {alive.get(attribute or '', {}).get('S')}")
        if problem is None and not self.updates:
            return InvalidModelUpdateError(
                f"{self.key!r} is missing or not as expected", hint="read the item with get, then update it"
            )
        return problem

    def _explain_model(self, found: str) -> InvalidModelUpdateError:
        return InvalidModelUpdateError(
            f"{self.key!r} is of {found}, which an update of {self.key.schema.name} does not fit",
            hint="update it by a key of its own model, or read it with get",
        )

    def _fits_key(self, binding: Binding, key: Item) -> bool:
        """Whether the write fits the model that a key alone identifies."""
        found = binding.model_of(key)
        return found is None or self._suits(found)

    def _fits_model(self, stored: Item) -> bool:
        required = self._require_model()
        return required is None or holds(required, stored)

    def adapt(self, binding: Binding, found: Item | None, now: datetime) -> bool:
        """Plan again for the item that a refused write found; False if the item was not the reason for the refusal.

        A missing item is created if the caller wants that. Updates that do not fit what is stored are computed here,
        and their fields are locked; an update that cannot be computed is an error.
        """
        gone = found is None or has_expired(binding, found, now)
        if gone or self.creates:
            creates, self.creates = self.creates, gone and self.new is not None
            return creates != self.creates
        assert found is not None
        if explain_unmet(self.key, self._own_locks(), self.where, found) is not None:
            return False
        if not self._fits_model(found):
            return False
        before = dict(self.found)
        for field, updates in self.updates.items():
            if is_usual(updates, found):
                self.found.pop(field, None)
            else:
                apply_all(updates, found.get(field.stored))
                self.found[field] = found.get(field.stored)
        return self.found != before

    def _claim(self, binding: Binding, changes: list[FieldChange], claims: Claims) -> None:
        for field, old, new in changes:
            if field.unique:
                if old is not None:
                    claims.release(binding, field, field.decode(old), self.key)
                if new is not None:
                    claims.take(binding, field, field.decode(new), self.key)


class BlindDelete(Blind):
    """A delete of the item under a key, whether or not it exists; with ``where``, it must exist and meet that."""

    role = "deleted"

    def __init__(self, key: ModelKey[Any], where: Requirement | None = None) -> None:
        super().__init__(key)
        self.where = where

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A delete."""
        guard = guard_unread(binding, self.pointer)
        if self.where is None:
            delete = DeleteItem(
                binding.table, binding.key(self.key), guard, item_on_failure=guard is not None
            )
            return [Step(delete, self.key, (), was_read=False)]
        locks = self._locks({}, self.where)
        refuse = partial(self._refuse, binding, now, locks)
        if self.pointer is None:
            demanded = [*present(binding.partition.name, locks), self.where.condition, alive(binding, now)]
        else:
            demanded = []
            if (problem := refuse(self.whole)) is not None:
                raise problem
        delete = DeleteItem(
            binding.table, binding.key(self.key), all_of([*demanded, guard]), item_on_failure=True
        )
        return [Step(delete, self.key, locks, refuse)]

    def _refuse(
        self, binding: Binding, now: datetime, locks: tuple[Lock, ...], stored: Item | None
    ) -> InvalidModelUpdateError | None:
        alive = None if stored is None or has_expired(binding, stored, now) else stored
        return explain_unmet(self.key, locks, self.where, alive)

"""Items that were read: what the commit requires of them, and what it writes.

Pure. Every field that was read or written must still have the value that was read. A field that was only incremented
need not, but the sum must be within the bounds of its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from holdall.core.expressions import Condition, Update, UpdateAction
from holdall.core.expressions.evaluation import holds
from holdall.core.requests import ConditionCheck, DeleteItem, PutItem, UpdateItem
from holdall.core.stamp import NO_STAMP, STAMP
from holdall.core.values import Attribute, Item
from holdall.errors import Difference, InvalidFieldError
from holdall.models.definition.derived import Derived
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT
from holdall.models.fields.update import FieldUpdate
from holdall.models.keys.key import check_unchanged, item_key
from holdall.models.marks import Marks
from holdall.models.migrations import VERSION
from holdall.models.model import Model
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import Demand, Lock, all_of, differences, present
from holdall.tables.commit.plan import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry
from holdall.transactions.entry.claim import Claims
from holdall.transactions.entry.field_change import (
    FieldChange,
    build_update,
    count_write,
    find_affected,
    former_locks,
    guard_condition,
    is_same,
    is_usual,
    next_version,
    unique_fields,
    update_actions,
)
from holdall.transactions.entry.increment import add_amounts, find_room
from holdall.transactions.entry.write_time import find_times, list_time_changes


class Loaded(Entry):
    """An item that was read.

    ``raw`` is the stored item, ``item._stored`` the item that the model sees. They differ if a hydrator or a migration
    was involved; a write then replaces the whole stored item. ``asked``: it was fetched by its key, so its existence
    itself is something that the caller knows.
    """

    role = "read"

    def __init__(self, item: Model, raw: Item, *, asked: bool) -> None:
        self.key = item._key or item_key(item)
        self.item: Model = item
        self.raw = raw
        self.asked = asked
        self._basis = raw  # what updates of sets and lists are planned for
        # the attributes by which a query found it, with their names in messages
        self._found_by: dict[str, str] = {}

    @property
    def thawed(self) -> bool:
        """Whether a hydrator or a migration made the item different from the stored one."""
        return self.item._stored is not self.raw

    def hold(self, locks: Sequence[Lock]) -> list[Difference]:
        """Require that it stays as a query found it, whether or not its fields are read. Returns where the query saw
        other values than this item has."""
        self.asked = True
        self._found_by |= {lock.attribute: lock.field for lock in locks}
        return differences(self.key, locks, self.raw)

    @property
    def takes_part(self) -> bool:  # type: ignore[override]
        """Whether the transaction depends on the item; a row of a query does not if none of its fields were read."""
        values = self.item.__dict__
        return self.asked or self.deleted or any(field.name in values for field in self.item._schema.plain)

    @property
    def is_dirty(self) -> bool:
        """Whether there is something to write."""
        marks = self._marks
        return self.deleted or any(marks.increments.values()) or bool(self._updates()) or bool(self.changes())

    @property
    def _marks(self) -> Marks:
        marks = self.item._marks
        assert isinstance(marks, Marks)
        return marks

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A delete, an update, or a check that the fields that were read are unchanged."""
        self.times = {}
        if self.deleted:
            return [self._deletion(binding, claims)]
        changes, schema = self.changes(), self.item._schema
        if schema.timed and self.is_dirty:
            self.times = find_times(schema, now)
        derived = self._find_affected(changes)
        locks: tuple[Demand, ...] = self.locks(binding, derived)
        if schema.timed and not self.thawed:
            locks += tuple(lock for field in self.times for lock in former_locks(schema, field))
        increments: list[UpdateAction] = []
        if self._marks.increments:
            increments = add_amounts(schema, self._marks.increments)
            locks = (*locks, *self._room())
        shapes: list[Condition] = []
        updates = self._updates() if self._marks.updates else {}
        if updates and not self.thawed:
            shapes, actions = self._plan_updates(updates)
            increments = [*increments, *actions]
        if not changes and not increments and not (updates and self.thawed):
            self.times = {}
            return [Step(self._check(binding, locks, shapes), self.key, locks, writes=False)]
        self._claim(binding, changes, claims)
        if self.thawed:
            return [self._replacement(binding, locks) or Step(self._check(binding, locks), self.key, locks)]
        fresh = {field.stored: new for field, _, new in changes}
        if derived:
            fresh = {**self._default_values(derived), **fresh}
            increments = [*build_update((), derived, self._component_values(derived)), *increments]
        if self.times:
            increments = [*build_update(list_time_changes(self.times), (), {}), *increments]
        return [self._update(binding, fresh, locks, increments, shapes)]

    def refresh(self, binding: Binding) -> Step | None:
        """The write that brings the stored item up to date without changing a field; None if it is up to date."""
        if self.thawed:
            return self._replacement(binding, self.locks(binding, ()))
        schema = self.item._schema
        fields = [field for each in schema.derived for field in each.components if not field.is_key]
        wanted = {**self._default_values(schema.derived), **self._derive_attributes()}
        stale = self._stale(wanted, wanted)
        if not stale:
            return None
        names = {field.stored: field.name for field in fields}
        locks = [
            Lock(names.get(stored, stored), stored, self.raw.get(stored)) for stored in {**names, **stale}
        ]
        locks += [lock for field in dict.fromkeys(fields) for lock in former_locks(schema, field)]
        return self._update(binding, stale, tuple(locks))

    def _replacement(self, binding: Binding, locks: tuple[Demand, ...]) -> Step | None:
        """The write that stores the whole item as its model defines it; None if it already is stored that way.

        For a model with a hydrator this is one put, which brings back content that was stored elsewhere. Otherwise it
        is an update, which keeps attributes that were added meanwhile and that this version of the model does not know.
        """
        whole, key = self._whole(), binding.key_of(self.raw)
        stale = self._stale(whole, {**self.raw, **whole})
        if not stale:
            return None
        if self.item._schema.hydrator is None:
            return self._update(binding, stale, locks)
        condition = self._condition(binding, locks)
        put = PutItem(binding.table, {**whole, **key}, condition, item_on_failure=True)
        return Step(put, self.key, locks, marked=not binding.own)

    def _check(
        self, binding: Binding, locks: tuple[Demand, ...], shapes: Sequence[Condition] = ()
    ) -> ConditionCheck:
        key, condition = binding.key_of(self.raw), self._condition(binding, locks, shapes)
        return ConditionCheck(binding.table, key, condition, item_on_failure=True)

    def _stale(
        self, wanted: Mapping[str, Attribute | None], names: Iterable[str]
    ) -> dict[str, Attribute | None]:
        """The attributes, of those with these names, that are not stored as they should be."""
        return {
            name: wanted.get(name)
            for name in names
            if name != STAMP and not is_same(self.raw.get(name), wanted.get(name))
        }

    def _update(
        self,
        binding: Binding,
        attributes: Mapping[str, Attribute | None],
        locks: tuple[Demand, ...],
        more: Sequence[UpdateAction] = (),
        shapes: Sequence[Condition] = (),
    ) -> Step:
        """An update of attributes that are all locked to the values that were read, so it cannot succeed twice.

        ``more`` actions follow, to which this does not apply, and which require ``shapes``. A write that changes what
        was read requires the version that was read; one that only adds does not, and is counted all the same.
        """
        version = self.item._schema.version
        if version is not None and attributes:
            attributes = {**attributes, version.stored: next_version(version, self.raw.get(version.stored))}
            locks = self._lock_version(locks)
        else:
            more = [*more, *count_write(self.item._schema)]
        action = UpdateItem(
            binding.table,
            binding.key_of(self.raw),
            Update((*update_actions(attributes), *more)),
            self._condition(binding, locks, shapes),
            item_on_failure=True,
            last_stamp=self.raw.get(STAMP, NO_STAMP),
        )
        return Step(action, self.key, locks, stampable=bool(attributes) and not binding.own)

    def _deletion(self, binding: Binding, claims: Claims) -> Step:
        stored = self.item._stored
        assert stored is not None
        for field in unique_fields(binding):
            if (old := stored.get(field.stored)) is not None:
                claims.release(binding, field, field.decode(old), self.key)
        locks = self._lock_version(self.locks(binding, ()))
        condition = self._condition(binding, locks)
        delete = DeleteItem(binding.table, binding.key_of(self.raw), condition, item_on_failure=True)
        return Step(delete, self.key, locks)

    def _lock_version(self, locks: tuple[Demand, ...]) -> tuple[Demand, ...]:
        version = self.item._schema.version
        if version is None or any(lock.attribute == version.stored for lock in locks):
            return locks
        return (*locks, Lock(version.name, version.stored, self.raw.get(version.stored)))

    # --- what is required -----------------------------------------------------------------------------------

    def locks(self, binding: Binding, derived: Sequence[Derived]) -> tuple[Lock, ...]:
        """Locks on every field that was read or written, or on which a derived attribute depends, to the value read."""
        if self.thawed:
            return whole_locks(binding, self.item._schema, self.raw)
        schema, raw, values = self.item._schema, self.raw, self.item.__dict__
        unlocked = {*self._marks.increments, *self._updates()} if self._marks.changes_unread else ()
        needed = {f.name for each in derived for f in each.components if f not in self.times}
        locked = {
            field.stored: field.name
            for field in schema.plain
            if (field.name in values and field.name not in unlocked)
            or field.name in needed
            or (self.deleted and field.unique)
        }
        if binding.ttl is not None and schema.ttl is not None:
            # an item that replaced an expired one is another item, even if its fields are the same
            locked[binding.ttl] = schema.ttl.name
        locks = [Lock(name, stored, raw.get(stored)) for stored, name in {**self._found_by, **locked}.items()]
        if schema.migrations is not None:
            locks += [
                lock
                for name in dict.fromkeys(locked.values())
                for lock in former_locks(schema, schema.fields[name])
            ]
        return tuple(locks)

    def _room(self) -> list[Demand]:
        """What increments require; nothing if the whole item is locked."""
        return [] if self.thawed else find_room(self.item._schema, self._marks.increments, self.raw)

    def _condition(
        self, binding: Binding, locks: Sequence[Demand], shapes: Sequence[Condition] = ()
    ) -> Condition:
        guard = guard_condition(binding, self.raw)
        condition = all_of([*present(binding.partition.name, locks), *shapes, guard])
        assert condition is not None
        return condition

    # --- what is written ----------------------------------------------------------------------------------

    def changes(self) -> list[FieldChange]:
        """The fields whose stored form differs from the one that was read."""
        values, stored, marks = self.item.__dict__, self.item._stored, self._marks
        assert stored is not None
        check_unchanged(self.key, values)
        found: list[FieldChange] = []
        updates = self._updates() if marks.updates else ()
        for field in self.item._schema.plain:
            name = field.name
            if name not in values or name in marks.increments or name in updates:
                continue
            value = values[name]
            assigned = name in marks.written
            if not assigned and not field.codec.mutable(value):
                continue
            old, new = stored.get(field.stored), field.form(value)
            if is_same(old, new) or (not assigned and is_same(self._as_shown(field, old), new)):
                continue
            if field.fixed and not assigned:
                raise field.refusal("it is read-only, but was changed in place")
            found.append((field, old, field.encode(value) if field.foreign else new))
        return found

    def _as_shown(self, field: Field[Any], old: Attribute | None) -> Attribute | None:
        """The form in which Holdall would store the value that was read; another program may use a different one."""
        return self._marks.shown.get(field.name) if old is None else field.form(field.decode(old))

    def _updates(self) -> dict[str, FieldUpdate]:
        """The updates of sets and lists, of those fields that were not changed in place as well."""
        stored, values = self.item._stored, self.item.__dict__
        assert stored is not None
        found = {}
        for name, update in self._marks.updates.items():
            field = update.field
            if is_same(field.form(values[name]), update.apply(stored.get(field.stored))):
                found[name] = update
        return found

    def _plan_updates(self, updates: Mapping[str, FieldUpdate]) -> tuple[list[Condition], list[UpdateAction]]:
        """The actions of the updates, and what they require of the stored item."""
        shapes: list[Condition] = []
        actions: list[UpdateAction] = []
        for name, update in updates.items():
            stored = update.field.stored
            if is_usual([update], self._basis):
                shapes += update.demands()
                actions.append(update.action())
            else:
                present = self._basis.get(stored)
                shapes.append(Lock(name, stored, present).condition())
                new = update.apply(present)
                actions += [] if is_same(present, new) else update_actions({stored: new})
            shapes += [lock.condition() for lock in former_locks(self.item._schema, update.field)]
        return shapes, actions

    def adapt(self, binding: Binding, found: Item | None, now: datetime) -> bool:
        """Plan again for what a refused write found, if it was refused only because updates of sets or lists do not fit
        it; False if it was refused for another reason."""
        updates = self._updates() if self._marks.updates else {}
        if found is None or self.thawed or self.deleted or not updates:
            return False
        demands = [*self.locks(binding, self._find_affected(self.changes())), *self._room()]
        guard = guard_condition(binding, self.raw)
        if differences(self.key, demands, found) or not (guard is None or holds(guard, found)):
            return False
        basis, fits = self._basis, True
        for update in updates.values():
            stored = update.field.stored
            if is_usual([update], basis) and is_usual([update], found):
                continue
            fits = fits and is_same(basis.get(stored), found.get(stored))
            try:
                update.apply(found.get(stored))
            except InvalidFieldError:
                return False  # the body reads it again, and learns why
        self._basis = found
        return not fits

    def _whole(self) -> dict[str, Attribute]:
        """The whole item, including attributes that the model does not know; unchanged attributes stay as stored."""
        stored, schema = self.item._stored, self.item._schema
        assert stored is not None
        if stored.get(VERSION) != self.raw.get(VERSION):
            self._check_converted(stored)
        changed: dict[str, Attribute | None] = {field.stored: new for field, _, new in self.changes()}
        for name, amount in self._marks.increments.items():
            if amount:
                field = schema.fields[name]
                changed[field.stored] = field.encode(self.item.__dict__[name])
        for name, update in self._updates().items():
            changed[update.field.stored] = update.field.encode(self.item.__dict__[name])
        changed |= {field.stored: new for field, _, new in list_time_changes(self.times)}
        found = {**stored, **self._default_values(schema.derived), **changed, **self._derive_attributes()}
        return {name: attribute for name, attribute in found.items() if attribute is not None}

    def _check_converted(self, stored: Item) -> None:
        """Refuse invalid results of conversions: once they are stored, the conversions would not run again."""
        for field in self.item._schema.plain:
            if field.name not in self.item.__dict__ and not field.is_computed:
                attribute = stored.get(field.stored)
                if attribute is not None:
                    field.decode(attribute)
                elif field.absent_value() is ABSENT and field.now is None:
                    raise field.refusal("it is required, but has no value after the conversions")

    def _default_values(self, derived: Iterable[Derived]) -> dict[str, Attribute | None]:
        """The values of components that are not stored but made by a default factory, which would differ next time.

        Attributes derived from such a value are stored together with it.
        """
        stored = self.item._stored
        assert stored is not None
        components = dict.fromkeys(field for each in derived for field in each.components)
        missing = [
            field
            for field in components
            if field.options.default_factory is not None
            and not field.is_key
            and field.stored not in stored
            and field.name not in self._marks.written
        ]
        values = self.item.__dict__
        for field in missing:
            values.setdefault(field.name, field.peek(self.item))
        return {field.stored: field.encode(values[field.name]) for field in missing}

    def _derive_attributes(self) -> dict[str, Attribute | None]:
        """The derived attributes for the current values of the fields."""
        derived = self.item._schema.derived
        values = self._component_values(derived)
        return {stored: found for each in derived for stored, found in each.attributes(values).items()}

    def _component_values(self, derived: Iterable[Derived]) -> dict[str, Any]:
        """The values of components after the write; a time is None if it was never stored."""
        stored, found = self.item._stored, {}
        assert stored is not None
        for field in (field for each in derived for field in each.components):
            if field in self.times:
                found[field.name] = self.times[field]
            elif field.now is not None and field.stored not in stored:
                found[field.name] = None
            else:
                found[field.name] = field.peek(self.item)
        return found

    def _find_affected(self, changes: Sequence[FieldChange]) -> list[Derived]:
        """The derived attributes that the write changes."""
        derived = self.item._schema.derived
        return find_affected(derived, [*changes, *list_time_changes(self.times)]) if derived else []

    def _claim(self, binding: Binding, changes: Sequence[FieldChange], claims: Claims) -> None:
        for field, old, _ in changes:
            if field.unique:
                if old is not None:
                    claims.release(binding, field, field.decode(old), self.key)
                if (value := self.item.__dict__[field.name]) is not None:
                    claims.take(binding, field, value, self.key)


def whole_locks(binding: Binding, schema: ModelSchema, raw: Item) -> tuple[Lock, ...]:
    """Locks on a whole stored item, and on the absence of fields that are not stored, under all their names."""
    keys = binding.key_of(raw)
    found = [Lock(name, name, raw[name]) for name in raw if name not in keys]
    for field in schema.plain:
        others = [Lock(field.name, field.stored, None), *former_locks(schema, field)]
        found += [lock for lock in others if lock.attribute not in raw]
    if schema.conversions and VERSION not in raw:
        found.append(Lock(VERSION, VERSION, None))
    return tuple(found)

"""The unit of work: one attempt at a transaction, the same for sync and async.

Pure. It knows every item that the attempt read, did not find, created, changed or deleted, with one instance for each.
Nothing is sent from here: reading and committing are flows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdall.errors import InvalidRequestError, ModelTrackedTwiceError
from holdall.models.fields.conditions import Clause
from holdall.models.fields.field import Field
from holdall.models.fields.update import FieldUpdate
from holdall.models.item_values import fill, readable_values
from holdall.models.keys.key import ModelKey
from holdall.models.marks import Marks
from holdall.models.model import Model, adopt, build_instance, list_pending
from holdall.models.schema import ModelSchema
from holdall.transactions.entry.base import Entry, Missing, New
from holdall.transactions.entry.blind import BlindDelete, BlindUpdate
from holdall.transactions.entry.blind_put import BlindPut
from holdall.transactions.entry.blind_update import plan_blind_update
from holdall.transactions.entry.expectation import check_unhooked, find_field, split_key
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.entry.requirement import Requirement
from holdall.transactions.tracker import Tracker


class ItemChange(NamedTuple):
    """One item in ``tx.changes()``: its values before and after; None if there is no item, or it was not read."""

    key: ModelKey[Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Unit(Tracker):
    """One attempt: what it has read, as its `Tracker` knows, and what it will write."""

    def create(self, item: Model, *, borrowed: bool = False) -> None:
        """Track a new item, to be written if its key is free; on failure, the caller's own instance is restored."""
        self.check_writable("an item was created")
        if item._marks is not None or item._stored is not None:
            raise InvalidRequestError(
                f"{item.key!r} is not a new item", hint="make a new one with the same values: Model(**values)"
            )
        key = item.key
        known = self.entries.get(key.identity)
        if known is not None and not isinstance(known, Missing):
            raise self._refuse_second(key, known)
        if borrowed:
            from copy import deepcopy

            self._borrowed.append((item, deepcopy(item.__dict__), list_pending(item)))
        self._keep(item, was_missed=known is not None)

    def create_missing(self, key: ModelKey[Any], values: Mapping[str, Any]) -> Any:
        """A new item under a key that was found empty; missing fields can still be assigned."""
        self.check_writable("an item was created")
        known = self.entries.get(key.identity)
        if known is not None and not isinstance(known, Missing):
            raise self._refuse_second(key, known)
        schema = key.schema
        item = build_instance(schema.model, None, None, None)
        fill(item, {**values, **key.components}, complete=False)
        self._keep(item, was_missed=True)
        return item

    def _refuse_second(self, key: ModelKey[Any], known: Entry) -> ModelTrackedTwiceError:
        return ModelTrackedTwiceError(
            f"{key!r} was already {self._role(known)} in this transaction, so it cannot be created",
            hint="change the item that you have, or use another key",
        )

    def _keep(self, item: Model, *, was_missed: bool) -> None:
        adopt(item, Marks(self, held=True))
        self.entries[item.key.identity] = New(item, was_missed=was_missed)

    def update(
        self,
        schema: ModelSchema,
        expected: Mapping[str, Any],
        changes: Mapping[str, Any],
        where: Clause | None = None,
    ) -> None:
        """Record a blind update."""
        self.check_writable("an item was updated")
        check_unhooked(schema, derived=False)
        key, old = split_key(schema, expected)
        if not changes:
            raise InvalidRequestError(
                f"the update of {key!r} changes nothing", hint="name at least one field"
            )
        new: dict[Field[Any], Any] = {}
        values = {
            name: None if value is None else schema.fields[name].validate(value)
            for name, value in expected.items()
        }
        for name, value in changes.items():
            field = find_field(schema, name)
            if field.fixed:
                raise field.refuse_change()
            if field not in old:
                raise field.refusal(
                    "it is changed, but its old value is missing from expected",
                    hint="add the value that it has now, or None if it is absent",
                )
            values[name] = field.validate(value)
            new[field] = field.encode(values[name])
        requirement = None if where is None else Requirement(schema, where)
        self._once(BlindUpdate(key, old, new, {**values, **key.components}, where=requirement))

    def update_fields(
        self,
        key: ModelKey[Any],
        updates: Sequence[FieldUpdate],
        where: Clause | None,
        create_if_missing: bool | Mapping[str, Any],
    ) -> None:
        """Record updates of fields of an item that was not read."""
        self.check_writable("an item was updated")
        check_unhooked(key.schema, derived=False)
        self._once(plan_blind_update(key, updates, where, create_if_missing))

    def create_or_put(
        self,
        schema: ModelSchema,
        expected: Mapping[str, Any],
        new: Mapping[str, Any],
        where: Clause | None = None,
        spelt: ModelKey[Any] | None = None,
    ) -> None:
        """Record a blind put; ``spelt`` is the key, if it is known as it is stored."""
        self.check_writable("an item was put")
        check_unhooked(schema)
        for name in expected.keys() & new.keys():
            field = find_field(schema, name)
            if field.is_key and expected[name] != new[name]:
                raise field.refusal("it is part of the key, so it must be the same in expected and new")
        if schema.is_guarded:
            raise InvalidRequestError(
                f"{schema.name} or a derived model has a unique field, and a put cannot release an old value "
                "that was not read",
                hint="read the item with get, then change or create it",
            )
        kept = {name: value for name, value in expected.items() if not find_field(schema, name).is_computed}
        item = schema.model(**{**kept, **new})
        given = {name: value for name, value in expected.items() if name not in schema.key_fields}
        key, old = split_key(schema, {**item.key.components, **given})
        requirement = None if where is None else Requirement(schema, where)
        self._once(BlindPut(spelt or key, old, dict(item.__dict__), requirement))

    def put(self, item: Model, where: Clause | None = None) -> None:
        """Record a blind put of an instance; after the commit, it has the times that were stored."""
        key, values = item.key, item.to_dict(hidden=True)
        expected = {name: values.pop(name, value) for name, value in key.components.items()}
        self.create_or_put(item._schema, expected, values, where, key)
        self.entries[key.identity].item = item

    def delete(self, target: Model | ModelKey[Any], where: Clause | None = None) -> None:
        """Record a deletion of an item of this transaction, or of any item under a key."""
        self.check_writable("an item was deleted")
        key = target.key if isinstance(target, Model) else target
        if not isinstance(key, ModelKey):
            raise InvalidRequestError(
                f"{target!r:.80} cannot be deleted", hint="pass an item, or a key such as Model.key(...)"
            )
        if isinstance(target, Model):
            self._check_ours(target, hint="delete it by its key: tx.delete(item.key)")
        entry = self.entries.get(key.identity)
        requirement = None if where is None else Requirement(key.schema, where)
        if requirement is not None and (entry is not None or isinstance(target, Model)):
            raise InvalidRequestError(
                f"{key!r} was read or created in this transaction, so where= cannot be used to delete it",
                hint="check its fields in your code: they are locked",
            )
        if isinstance(entry, New | Loaded) and not entry.deleted:
            entry.deleted = True
            self._deleted.add(id(entry.item))
        elif entry is None:
            check_unhooked(key.schema)
            if key.schema.is_guarded:
                raise InvalidRequestError(
                    f"{key.schema.name} or a derived model has a unique field, and a delete by key cannot release a "
                    "value that was not read",
                    hint="read the item with get, then delete it",
                )
            self.entries[key.identity] = BlindDelete(key, requirement)
        elif not isinstance(entry, Missing):
            raise ModelTrackedTwiceError(
                f"{key!r} was already {self._role(entry)} in this transaction, so it cannot be deleted"
            )

    def increment(self, item: Model, amounts: Mapping[str, Any]) -> None:
        """Add to numeric fields of an item of this transaction; to none of them if one name is not a field."""
        self.check_writable("an item was incremented")
        if not isinstance(item, Model):
            raise InvalidRequestError(
                f"{item!r:.80} cannot be incremented", hint="pass an item of this transaction"
            )
        if not amounts:
            raise InvalidRequestError(
                f"an increment of {item.key!r} names no fields",
                hint="name fields and amounts: tx.increment(order, quantity=-1)",
            )
        self._check_ours(item, hint="read the item in this transaction, then increment it")
        for handle, amount in [(item.field(name), amount) for name, amount in amounts.items()]:
            handle.increment_by(amount)

    def _check_ours(self, item: Model, hint: str) -> None:
        marks = item._marks
        if not isinstance(marks, Marks) or marks.keeper is not self:
            raise InvalidRequestError(
                f"{item.key!r} does not belong to this transaction",
                hint=hint,
            )
        marks.held = True
        self.touch(item)

    def _once(self, entry: Entry) -> None:
        known = self.entries.get(entry.key.identity)
        if known is not None:
            raise ModelTrackedTwiceError(
                f"{entry.key!r} was already {self._role(known)} in this transaction",
                hint=f"an item that is {entry.role} without being read can appear only once in a transaction",
            )
        self.entries[entry.key.identity] = entry

    def _role(self, entry: Entry) -> str:
        return "deleted" if entry.deleted else entry.role

    # --- looking ------------------------------------------------------------------------------------------

    def changes(self) -> list[ItemChange]:
        """The changes to items so far; no field counts as read because of this."""
        if self.forgotten:
            self.check_open()
        found = []
        for entry in self.entries.values():
            if isinstance(entry, New):
                if not entry.deleted:
                    found.append(ItemChange(entry.key, None, readable_values(entry.item)))
            elif isinstance(entry, Loaded):
                before = readable_values(entry.item, initial=True)
                if entry.deleted:
                    found.append(ItemChange(entry.key, before, None))
                elif entry.is_dirty:
                    found.append(ItemChange(entry.key, before, readable_values(entry.item)))
            elif isinstance(entry, BlindUpdate):
                old = {f.name: None if a is None else f.decode(a) for f, a in entry.expected.items()}
                before = {**entry.key.components, **old}
                found.append(ItemChange(entry.key, before, {**before, **entry.values}))
            elif isinstance(entry, BlindPut):
                found.append(ItemChange(entry.key, None, dict(entry.values)))
            elif isinstance(entry, BlindDelete):
                found.append(ItemChange(entry.key, None, None))
        return found

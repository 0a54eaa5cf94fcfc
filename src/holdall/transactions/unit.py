"""The unit of work: one attempt at a transaction, the same for sync and async.

Pure. It knows every item that the attempt read, did not find, created, changed or deleted, with one instance for each.
Nothing is sent from here: reading and committing are flows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from holdall.core.values import Item
from holdall.errors import (
    ContentionError,
    Difference,
    FrozenItemError,
    InvalidRequestError,
    ModelTrackedTwiceError,
    TransactionClosedError,
    WriteAttemptedInReadOnlyTxError,
)
from holdall.models.conditions import Clause
from holdall.models.field_update import FieldUpdate
from holdall.models.fields import Field
from holdall.models.keys import ModelKey, item_key
from holdall.models.marks import Marks
from holdall.models.model import Model, adopt, build_instance, fill, list_pending, readable_values, release
from holdall.models.schema import ModelSchema
from holdall.tables.commit.change import Participant
from holdall.tables.commit.lock import Lock
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry, Fragment, Missing, New
from holdall.transactions.entry.blind import (
    Blind,
    BlindDelete,
    BlindUpdate,
    check_unhooked,
    find_field,
    keep_value,
    split_key,
)
from holdall.transactions.entry.blind_put import BlindPut
from holdall.transactions.entry.blind_update import plan_blind_update
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.entry.requirement import Requirement
from holdall.transactions.instance import make_instance, mismatch, model_of
from holdall.transactions.part import Part, make_part
from holdall.transactions.plan import MAX_READS, check_verifiable

_FEW_ROWS = 1000


class ItemChange(NamedTuple):
    """One item in ``tx.changes()``: its values before and after; None if there is no item, or it was not read."""

    key: ModelKey[Any]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Unit:
    """One attempt. ``insist``: all reads are strongly consistent, even if the caller passed ``consistent=False``.

    ``strict``: reading an item twice is refused. ``carry`` outlives the attempt.
    """

    def __init__(
        self,
        *,
        read_only: bool = False,
        strict: bool = False,
        insist: bool = False,
        carry: dict[Any, Any] | None = None,
    ) -> None:
        self.read_only = read_only
        self.strict = strict
        self.insist = insist
        self.carry = {} if carry is None else carry
        self.open = True
        self.requests = 0
        self.entries: dict[tuple[object, ...], Entry] = {}
        self.participants: list[Participant] = []
        self.prepared: list[Participant] = []
        self.may_be_committed = False  # it is committed, or was sent and the outcome is unknown
        self.on_commit: list[Callable[[], Any]] = []
        self.on_failure: list[Callable[[Exception], Any]] = []
        # rows of queries whose fields have not been read: they are freed with the caller's last reference
        self._rows: dict[tuple[object, ...], weakref.ref[Model]] = {}
        self._many_rows = _FEW_ROWS
        self._deleted: set[int] = set()
        self.hooking = False
        self.forgotten = False
        self._borrowed: list[tuple[Model, dict[str, Any], dict[str, Any]]] = []

    # --- called by items ------------------------------------------------------------------------------------

    def touch(self, item: Model) -> None:
        """Let a row of a query take part in the commit, because one of its fields was read."""
        identity = item.key.identity
        if identity not in self.entries:
            assert item._stored is not None
            self.entries[identity] = Loaded(item, item._stored, asked=False)

    def allow_change(self, item: Model) -> None:
        """Raise if the item cannot be changed now."""
        if not self.open:
            raise FrozenItemError(
                f"the transaction of {item.key!r} has ended, so a change would never be written",
                hint="make the change inside the transaction, or change a copy: copy.copy(item)",
            )
        if self.read_only:
            self.check_writable(f"{item.key!r} was changed")
        if id(item) in self._deleted and not self.hooking:
            raise FrozenItemError(f"{item.key!r} was deleted in this transaction, so it cannot be changed")

    # --- state --------------------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise if the transaction has ended."""
        if not self.open:
            raise TransactionClosedError(
                "the transaction has ended", hint="use it only inside its function or with block"
            )

    def check_writable(self, what: str) -> None:
        """Raise if nothing may be written; ``what`` describes the attempted change."""
        self.check_open()
        if self.read_only:
            raise WriteAttemptedInReadOnlyTxError(
                f"{what} in a read-only transaction", hint="leave out read_only=True"
            )

    def close(self) -> None:
        """End the attempt: its items can no longer be changed."""
        self.open = False

    def forget(self) -> None:
        """Drop all items. They refer to their unit, so the cycle would keep them until garbage collection."""
        self.forgotten = True
        self.entries.clear()
        self._borrowed.clear()

    def give_back(self) -> None:
        """After a failed attempt, detach instances that the caller created, and restore their values."""
        for borrowed in self._borrowed:
            release(*borrowed)

    # --- reading ------------------------------------------------------------------------------------------

    def find(self, key: ModelKey[Any]) -> Entry | None:
        """The entry that the transaction already has under the key."""
        if not self.open:
            self.check_open()
        identity = key.identity
        entry = self.entries.get(identity)
        if isinstance(entry, Fragment):
            return None  # the whole item is still to be read
        if entry is None:
            row = self._row(identity) if self._rows else None
            if row is None:
                return None
            row_marks = row._marks
            assert isinstance(row_marks, Marks)
            row_marks.held = True
            self.touch(row)
            entry = self.entries[identity]
        if isinstance(entry, Blind):
            raise ModelTrackedTwiceError(
                f"{key!r} was {entry.role} without being read in this transaction, so it can no longer be read",
                hint="read the item before you write it",
            )
        if self.strict and not isinstance(entry, Missing):
            raise ModelTrackedTwiceError(
                f"{key!r} was already {entry.role} in this transaction",
                hint="keep the item from the first read, or leave out strict=True",
            )
        if isinstance(entry, Loaded):
            entry.asked = True
        return entry

    def give(self, entry: Entry, schema: ModelSchema) -> Any:
        """The instance that an entry holds, None if there is no item; refused if it is of another model."""
        if not isinstance(entry, New | Loaded) or entry.deleted:
            return None
        if not isinstance(entry.item, schema.model):
            raise mismatch(entry.key, entry.item._schema.name, schema)
        return entry.item

    def miss(self, key: ModelKey[Any]) -> Any:
        """Note that nothing was found under the key; return the item that was created under it meanwhile, if any."""
        known = self.entries.setdefault(key.identity, Missing(key))
        if isinstance(known, Loaded | Fragment):
            raise _explain_both(key)
        return self.give(known, key.schema)

    def receive(
        self,
        binding: Binding,
        raw: Item,
        stored: Item,
        key: ModelKey[Any] | None,
        found: ModelSchema | None = None,
    ) -> Any:
        """The instance for an item that was read: the existing one, or a new one.

        ``key`` is set if the item was requested by its key; ``found`` is its model, if that is known.
        """
        schema = binding.schema
        if found is None:
            found = model_of(binding, stored, key)
        if found is None:
            raise mismatch(key or binding.key_of(raw), stored.get("_type", {}).get("S"), schema)
        identity = binding.identity(raw) if key is None else key.identity
        known = self.entries.get(identity)
        if isinstance(known, Missing):
            raise _explain_both(known.key)
        if known is not None and not isinstance(known, Fragment):
            if isinstance(known, Blind):
                raise _explain_blind(known)
            return self.give(known, schema)
        if self._rows and (row := self._row(identity)) is not None:
            return row
        item = make_instance(binding, found, stored, Marks(self), key)
        if found.mutable_keys:
            item_key(item)  # computed now, because a list in it may be changed in place later
        if key is not None or stored is not raw or known is not None:
            item._marks.held = True
            self.entries[identity] = entry = Loaded(item, raw, asked=key is not None)
            if known is not None:
                _check_same(entry, known.all_locks())
        else:
            self._keep_row(identity, item)
        if found.prepares:
            item.after_load()
        return item

    def receive_row(self, binding: Binding, raw: Item, found: ModelSchema) -> Any:
        """`receive` for a row of a query that is used as it is stored; flat, because a query has many."""
        identity = binding.identity(raw)
        if identity in self.entries or identity in self._rows or found.mutable_keys or found.prepares:
            return self.receive(binding, raw, raw, None, found)
        item = build_instance(found.model, raw, Marks(self), None)
        self._keep_row(identity, item)
        return item

    def receive_part(
        self, binding: Binding, raw: Item, stored: Item, key: ModelKey[Any], fields: Sequence[Field[Any]]
    ) -> Any:
        """The instance for an item of which some fields were fetched; the whole item, if that is here already."""
        item = make_part(binding, stored, key, fields)
        known = self.entries.get(key.identity)
        if isinstance(known, Missing):
            raise _explain_both(key)
        if isinstance(known, Blind):
            raise _explain_blind(known)
        if isinstance(known, New | Loaded):
            return self.give(known, key.schema)
        if known is None:
            known = Part(key, raw)
        elif not isinstance(known, Part):
            known, part = Part(key, raw), known
            known.locks = part.locks
        known.add(binding, item, raw, whole=stored is not raw)
        self.entries[key.identity] = known
        return item

    def hold(self, item: Model, raw: Item, locks: Sequence[Lock]) -> None:
        """Make a row take part, whether or not its fields are read: it must still exist, with ``locks`` unchanged."""
        marks = item._marks
        if isinstance(marks, Marks) and not marks.held:
            marks.held = True
            self.touch(item)
        identity = item.key.identity
        known = self.entries.get(identity)
        if known is None:
            self.entries[identity] = Fragment(item.key, raw, locks)
        elif isinstance(known, Loaded | Fragment):
            _check_same(known, locks)
        elif isinstance(known, Missing):
            raise _explain_both(known.key)
        elif isinstance(known, Blind):
            raise _explain_blind(known)
        if self.read_only and len(self.entries) > MAX_READS:
            check_verifiable(self.entries.values())  # fail now, not after the last of a million rows

    def _row(self, identity: tuple[object, ...]) -> Model | None:
        """The row that a query returned, if the caller still holds it."""
        reference = self._rows.get(identity)
        return None if reference is None else reference()

    def _keep_row(self, identity: tuple[object, ...], item: Model) -> None:
        """Remember a row; forget freed ones now and then, which is cheaper than a callback for each."""
        self._rows[identity] = weakref.ref(item)
        if len(self._rows) <= self._many_rows:
            return
        self._rows = {identity: row for identity, row in self._rows.items() if row() is not None}
        self._many_rows = max(2 * len(self._rows), _FEW_ROWS)

    # --- writing ------------------------------------------------------------------------------------------

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
            raise ModelTrackedTwiceError(
                f"{key!r} was already {self._role(known)} in this transaction, so it cannot be created",
                hint="change the item that you have, or use another key",
            )
        if borrowed:
            from copy import deepcopy

            self._borrowed.append((item, deepcopy(item.__dict__), list_pending(item)))
        self._keep(item, was_missed=known is not None)

    def create_missing(self, key: ModelKey[Any], values: Mapping[str, Any]) -> Any:
        """A new item under a key that was found empty; missing fields can still be assigned."""
        self.check_writable("an item was created")
        known = self.entries.get(key.identity)
        if known is not None and not isinstance(known, Missing):
            raise ModelTrackedTwiceError(
                f"{key!r} was already {self._role(known)} in this transaction, so it cannot be created",
                hint="change the item that you have, or use another key",
            )
        schema = key.schema
        item = build_instance(schema.model, None, None, None)
        fill(item, {**values, **key.components}, complete=False)
        self._keep(item, was_missed=True)
        return item

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
        check_unhooked(schema)
        key, old = split_key(schema, expected)
        if not changes:
            raise InvalidRequestError(
                f"the update of {key!r} changes nothing", hint="name at least one field"
            )
        new: dict[Field[Any], Any] = {}
        values = {name: keep_value(schema.fields[name], value) for name, value in expected.items()}
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
        check_unhooked(key.schema)
        self._once(plan_blind_update(key, updates, where, create_if_missing))

    def create_or_put(
        self,
        schema: ModelSchema,
        expected: Mapping[str, Any],
        new: Mapping[str, Any],
        where: Clause | None = None,
    ) -> None:
        """Record a blind put."""
        self.check_writable("an item was put")
        check_unhooked(schema)
        for name in expected.keys() & new.keys():
            field = find_field(schema, name)
            if field.is_key and expected[name] != new[name]:
                raise field.refusal("it is part of the key, so it must be the same in expected and new")
        if schema.is_guarded:
            raise InvalidRequestError(
                f"{schema.name} or a derived model has a unique field, and create_or_put cannot release an old value "
                "that was not read",
                hint="read the item with get, then change or create it",
            )
        kept = {name: value for name, value in expected.items() if not find_field(schema, name).is_computed}
        item = schema.model(**{**kept, **new})
        given = {name: value for name, value in expected.items() if name not in schema.key_fields}
        key, old = split_key(schema, {**item.key.components, **given})
        requirement = None if where is None else Requirement(schema, where)
        self._once(BlindPut(key, old, dict(item.__dict__), requirement))

    def put(self, item: Model, where: Clause | None = None) -> None:
        """Record a blind put of an instance; after the commit, it has the times that were stored."""
        key = item.key.components
        values = {name: value for name, value in item.to_dict(hidden=True).items() if name not in key}
        self.create_or_put(item._schema, key, values, where)
        self.entries[item.key.identity].item = item

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
                components = dict(entry.key.components)
                found.append(
                    ItemChange(entry.key, {**components, **old}, {**components, **old, **entry.values})
                )
            elif isinstance(entry, BlindPut):
                found.append(ItemChange(entry.key, None, dict(entry.values)))
            elif isinstance(entry, BlindDelete):
                found.append(ItemChange(entry.key, None, None))
        return found


def _explain_both(key: ModelKey[Any]) -> ContentionError:
    """The error for two reads of one transaction, such as a get and a query, that cannot both be true."""
    difference = Difference(repr(key), None, None, None)
    return ContentionError(
        f"{key!r} was created or deleted between two reads of it", differences=[difference]
    )


def _check_same(known: Loaded | Fragment, locks: Sequence[Lock]) -> None:
    """Require that an entry stays as a query found it; `ContentionError` if an earlier read saw other values."""
    if stale := known.hold(locks):
        raise ContentionError(f"{known.key!r} was changed between two reads of it", differences=stale)


def _explain_blind(entry: Blind) -> ModelTrackedTwiceError:
    return ModelTrackedTwiceError(
        f"{entry.key!r} was {entry.role} without being read in this transaction, so it can no longer be read",
        hint="read the item before you write it",
    )

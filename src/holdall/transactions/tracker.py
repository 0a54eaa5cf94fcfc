"""What one attempt at a transaction has read: one instance for each item, and each item in its role.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

from holdall.core.context import Carry
from holdall.core.values import Item
from holdall.errors import (
    ContentionError,
    Difference,
    FrozenItemError,
    ModelTrackedTwiceError,
    TransactionClosedError,
    WriteAttemptedInReadOnlyTxError,
)
from holdall.models.fields.field import Field
from holdall.models.keys.key import ModelKey, item_key
from holdall.models.marks import Marks
from holdall.models.model import Model, build_instance, release
from holdall.models.schema import ModelSchema
from holdall.tables.commit.change import Participant
from holdall.tables.commit.lock import Lock
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry, Fragment, Missing, New
from holdall.transactions.entry.blind import Blind
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.plan import MAX_READS, check_verifiable
from holdall.transactions.read.instance import make_instance, mismatch, model_of
from holdall.transactions.read.part import Part, make_part

_FEW_ROWS = 1000


class Tracker:
    """The items of an attempt, and its state. ``insist``: all reads are strongly consistent, even if the caller passed
    ``consistent=False``. ``strict``: reading an item twice is refused. ``carry`` outlives the attempt.
    """

    def __init__(
        self,
        *,
        read_only: bool = False,
        strict: bool = False,
        insist: bool = False,
        carry: Carry | None = None,
    ) -> None:
        self.read_only = read_only
        self.strict = strict
        self.insist = insist
        self.carry = carry or Carry()
        self.open = True
        self.requests = 0
        self.entries: dict[tuple[object, ...], Entry] = {}
        self.participants: list[Participant] = []
        self.prepared: list[Participant] = []
        self.may_be_committed = False  # it is committed, or was sent and the outcome is unknown
        self.on_commit: list[Callable[[], Any]] = []
        self.on_failure: list[Callable[[Exception], Any]] = []
        # rows of queries whose fields have not been read: they are freed with the caller's last reference
        self._rows: dict[tuple[object, ...], ref[Model]] = {}
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
            raise mismatch(key or binding.key_of(raw), binding.name_of(stored), schema)
        identity = binding.identity(raw) if key is None else key.identity
        known = self.entries.get(identity)
        if known is not None and not isinstance(known, Fragment):
            if isinstance(known, Missing):
                raise _explain_both(known.key)
            if isinstance(known, Blind):
                raise _explain_blind(known)
            return self.give(known, schema)
        if self._rows and (row := self._row(identity)) is not None:
            return row
        held = key is not None or stored is not raw or known is not None
        item = make_instance(binding, found, stored, Marks(self, held), key)
        if found.mutable_keys:
            item_key(item)  # computed now, because a list in it may be changed in place later
        if held:
            self.entries[identity] = entry = Loaded(item, raw, asked=key is not None)
            if known is not None:
                _check_same(entry, known.all_locks())
        else:
            self._rows[identity] = ref(item)
            if len(self._rows) > self._many_rows:
                self._forget_freed()
        if found.prepares:
            item.after_load()
        return item

    def receive_row(self, binding: Binding, raw: Item, found: ModelSchema) -> Any:
        """`receive` for a row of a query that is used as it is stored; flat, because a query has many."""
        identity, rows = binding.identity(raw), self._rows
        if identity in self.entries or identity in rows or found.mutable_keys or found.prepares:
            return self.receive(binding, raw, raw, None, found)
        item = build_instance(found.model, raw, Marks(self), None)
        rows[identity] = ref(item)
        if len(rows) > self._many_rows:
            self._forget_freed()
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

    def _forget_freed(self) -> None:
        """Forget rows that the caller has dropped: now and then, which is cheaper than a callback for each."""
        self._rows = {identity: row for identity, row in self._rows.items() if row() is not None}
        self._many_rows = max(2 * len(self._rows), _FEW_ROWS)


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

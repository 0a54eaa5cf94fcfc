"""Entries: the items of a transaction, each in its role, and the steps that each adds to the commit.

Pure. This module has the entries without a whole stored item: a key that was found empty, a new item, a row that was
fetched in part. `loaded` has items that were read, `blind` items that are written without being read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from holdall.core.requests import ConditionCheck, PutItem
from holdall.core.values import Item
from holdall.errors import Difference, ModelAlreadyExistsError
from holdall.models.keys.key import ModelKey, check_unchanged
from holdall.models.model import Model
from holdall.tables.commit.lock import Lock, all_of, differences, present
from holdall.tables.commit.plan import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.claim import Claims
from holdall.transactions.entry.field_change import build_item
from holdall.transactions.entry.write_time import Times, find_times, name_times
from holdall.transactions.read.expiry import absent


class Entry:
    """An item of a transaction: ``key`` identifies it, ``takes_part`` is whether the commit depends on it.

    ``rounds`` counts how often its write was planned again for what it met. ``item`` is the caller's instance, if there
    is one, and ``times`` are the fields that the planned write sets to its own time.
    """

    item: Model | None = None
    times: Times = MappingProxyType({})

    role = "used"
    deleted = False
    takes_part = True
    rounds = 0

    def __init__(self, key: ModelKey[Any]) -> None:
        self.key = key

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """The steps that it adds to the commit."""
        raise NotImplementedError

    def settle(self) -> None:
        """After the commit, give the instance the times that were stored, if there is an instance."""
        if self.item is not None:
            self.item.__dict__.update(name_times(self.times))


class Missing(Entry):
    """A key under which nothing was found; the commit requires that it is still empty."""

    role = "read"

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A check that there is still nothing."""
        key, condition = binding.key(self.key), absent(binding, now)
        action = ConditionCheck(binding.table, key, condition, item_on_failure=True)
        return [Step(action, self.key, None, writes=False)]


class New(Entry):
    """An item that was created in the transaction.

    ``was_missed``: its key had been read and found empty, so if another writer creates it first, that is contention.
    """

    role = "created"

    def __init__(self, item: Model, *, was_missed: bool) -> None:
        super().__init__(item.key)
        self.item: Model = item
        self.was_missed = was_missed

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A put that requires an empty key; if the item was deleted again, only a check that the key is empty."""
        key = binding.key(self.key)
        refuse = None if self.was_missed else self._refuse
        condition = absent(binding, now)  # a pointer, too, may be replaced only if it has expired
        if self.deleted:
            check = ConditionCheck(binding.table, key, condition, item_on_failure=True)
            return [Step(check, self.key, None, refuse)]
        check_unchanged(self.key, self.item.__dict__)
        self.times = find_times(binding.schema, now, new=self.item.__dict__)
        attributes = build_item(binding, key, {**self.item.__dict__, **name_times(self.times)})
        claims.take_all(binding, self.item.__dict__, self.key)
        put = PutItem(binding.table, attributes, condition, item_on_failure=True)
        return [Step(put, self.key, None, refuse, stampable=not binding.own, marked=not binding.own)]

    def _refuse(self, stored: Item | None) -> ModelAlreadyExistsError:
        return ModelAlreadyExistsError(
            f"{self.key!r} already exists",
            hint="read it with get, or overwrite it with create_or_put",
        )


class Fragment(Entry):
    """A row that was fetched in part: ``raw`` is that part, ``locks`` are the attributes that must not change.

    It cannot be written; a later read of the whole item replaces it.
    """

    role = "read"

    def __init__(self, key: ModelKey[Any], raw: Item, locks: Sequence[Lock]) -> None:
        super().__init__(key)
        self.raw = raw
        self.locks = tuple(locks)

    def all_locks(self) -> tuple[Lock, ...]:
        """The locks that the whole item takes over when it replaces this part."""
        return self.locks

    def hold(self, locks: Sequence[Lock]) -> list[Difference]:
        """Add the locks of another query that found it. Returns where the two queries saw different values."""
        known = {lock.attribute: lock for lock in self.locks}
        before = {name: lock.expected for name, lock in known.items() if lock.expected is not None}
        stale = differences(self.key, [lock for lock in locks if lock.attribute in known], before)
        self.locks = (*self.locks, *(lock for lock in locks if lock.attribute not in known))
        return stale

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A check that it still exists, unchanged."""
        condition = all_of(present(binding.partition.name, self.locks))
        assert condition is not None
        check = ConditionCheck(binding.table, binding.key_of(self.raw), condition, item_on_failure=True)
        return [Step(check, self.key, self.locks, writes=False)]

"""Fragments: rows that were fetched only in part, and that must stay as they were found.

Pure. They cannot be written; a later read of the whole item replaces a fragment.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdall.core.requests import ConditionCheck
from holdall.core.values import Item
from holdall.errors import Difference
from holdall.models.keys import ModelKey
from holdall.tables.commit.lock import Lock, all_of, differences, present
from holdall.tables.commit.step import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.base import Entry
from holdall.transactions.entry.claim import Claims


class Fragment(Entry):
    """A row that was fetched in part: ``raw`` is that part, ``locks`` is what must stay."""

    role = "read"

    def __init__(self, key: ModelKey[Any], raw: Item, locks: Sequence[Lock]) -> None:
        super().__init__(key)
        self.raw = raw
        self.locks = tuple(locks)

    def hold(self, locks: Sequence[Lock]) -> list[Difference]:
        """Add the locks of another query that found it too. Returns where the two queries saw different values."""
        known = {lock.attribute: lock for lock in self.locks}
        before = {name: lock.expected for name, lock in known.items() if lock.expected is not None}
        stale = differences(repr(self.key), [lock for lock in locks if lock.attribute in known], before)
        self.locks = (*self.locks, *(lock for lock in locks if lock.attribute not in known))
        return stale

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A check that it still exists, unchanged."""
        condition = all_of(present(binding.partition.name, self.locks))
        assert condition is not None
        check = ConditionCheck(binding.table, binding.key_of(self.raw), condition, item_on_failure=True)
        return [Step(check, self.key, self.locks, writes=False)]

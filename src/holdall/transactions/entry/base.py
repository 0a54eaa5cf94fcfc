"""Entries: the items of a transaction, each in the role it has there, and the steps that each adds to the commit.

Pure. Here are those without a stored item behind them: a key that was found empty, an item that is made. `loaded` has
those that were read, `blind` those that are written unread.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdall.core.requests import ConditionCheck, PutItem
from holdall.core.values import Item
from holdall.errors import ModelAlreadyExistsError
from holdall.models.keys import ModelKey, check_unchanged
from holdall.models.model import Model
from holdall.tables.commit.lock import all_of
from holdall.tables.commit.step import Step
from holdall.transactions.binding import Binding
from holdall.transactions.entry.claim import Claims
from holdall.transactions.entry.field_change import build_item, guard_condition, unique_fields
from holdall.transactions.expiry import absent


class Entry:
    """An item of a transaction; ``key`` says which, ``takes_part`` whether the commit depends on it."""

    role = "used"
    deleted = False
    takes_part = True

    def __init__(self, key: ModelKey[Any]) -> None:
        self.key = key

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """What the commit does with it."""
        raise NotImplementedError


class Missing(Entry):
    """A key under which nothing was found; it has to stay that way."""

    role = "read"

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A check that there is still nothing."""
        key, condition = binding.key(self.key), absent(binding, now)
        action = ConditionCheck(binding.table, key, condition, item_on_failure=True)
        return [Step(action, self.key, None, writes=False)]


class New(Entry):
    """An item that was made in the transaction.

    ``was_missed``: its key had been read and found empty, so somebody who was faster is contention.
    """

    role = "created"

    def __init__(self, item: Model, *, was_missed: bool) -> None:
        super().__init__(item.key)
        self.item = item
        self.was_missed = was_missed

    def steps(self, binding: Binding, now: datetime, claims: Claims) -> list[Step]:
        """A put where nothing was; when it was deleted again, just the demand that nothing was."""
        key = binding.key(self.key)
        refuse = None if self.was_missed else self._refuse
        condition = all_of([absent(binding, now), guard_condition(binding, None)])
        assert condition is not None
        if self.deleted:
            check = ConditionCheck(binding.table, key, condition, item_on_failure=True)
            return [Step(check, self.key, None, refuse)]
        check_unchanged(self.key, self.item.__dict__)
        attributes = build_item(binding, key, self.item.__dict__)
        for field in unique_fields(binding):
            if (value := self.item.__dict__.get(field.name)) is not None:
                claims.take(binding, field, value, self.key)
        put = PutItem(binding.table, attributes, condition, item_on_failure=True)
        return [Step(put, self.key, None, refuse, stampable=not binding.own, marked=not binding.own)]

    def _refuse(self, stored: Item | None) -> ModelAlreadyExistsError:
        return ModelAlreadyExistsError(
            f"{self.key!r} already exists",
            hint="read it with get, or use create_or_put to write it in any case",
        )

"""The commit plan: steps in a fixed order, and the one request that carries them. Pure.

The order is kept: reason *i* of a cancelled transaction explains step *i*.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeAlias

from holdall.core.frozen import dataclass
from holdall.core.requests import (
    DeleteItem,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
)
from holdall.core.stamp import leave_stamp, stamped
from holdall.core.values import Item
from holdall.errors import Difference, TransactionTooLarge
from holdall.tables.commit.lock import Demand, differences

MAX_ACTIONS = TransactWrite.most
_WRITES = attrgetter("writes")


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The steps in the order of their actions."""

    steps: tuple[Step, ...]

    @property
    def writes(self) -> bool:
        """Whether there is anything to send; checks without a write guard nothing."""
        return any(map(_WRITES, self.steps))

    def request(self, new_id: Callable[[], str]) -> TransactWrite | PutItem | UpdateItem | DeleteItem:
        """Return the one request: a single write that is safe to repeat, or a transaction with a token."""
        steps = self.steps
        if len(steps) == 1:
            step, action = steps[0], steps[0].action
            if step.stampable:
                assert isinstance(action, (PutItem, UpdateItem))
                return stamped(action, new_id())
            if step.vanishes:
                assert isinstance(action, DeleteItem)
                return action
        check_size(len(steps))
        id = new_id()
        actions: list[TransactAction] = []
        for step in steps:
            action = step.action
            if step.marked and isinstance(action, PutItem):
                action = leave_stamp(action, id)
            actions.append(action)
        return TransactWrite(tuple(actions), id)


def check_size(steps: int) -> None:
    """Raise `TransactionTooLarge` for too many steps, before participants prepare anything."""
    if steps > MAX_ACTIONS:
        raise TransactionTooLarge(
            f"the transaction has {steps} actions; DynamoDB allows {MAX_ACTIONS}",
            hint="every item that was written, read or found missing counts, and so does every row of a query with "
            'lock="rows": split the work, or read with lock=False',
        )


Refuse: TypeAlias = Callable[["Item | None"], "Exception | None"]
"""Turns the item that was found into the error to raise; None, or a `ContentionError`, if it is contention."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action, and how to explain its refusal.

    ``item`` names the item in messages. ``locks`` are the requirements of a stored item; None if it had to be absent.
    ``refuse`` returns the permanent error behind a failed condition; without it, a failed condition is contention.
    ``label`` names the step in a `Refused`. ``writes`` is False for a check that only guards the other steps, and is
    not sent alone. ``marked``: the put stores its id in the item, so that an item that is deleted and created again
    differs from the one before. ``was_read``: the condition repeats what the transaction read, so another attempt will
    read something else; a blind write repeats only what the caller passed.

    If a step is alone in its commit, it can be sent without a transaction's token, at half the price.
    ``stampable``: it makes its own condition false. ``vanishes``: it deletes an item that no other client can delete
    while the condition is true, so absence means success.
    """

    action: TransactAction
    item: object
    locks: tuple[Demand, ...] | None = ()
    refuse: Refuse | None = None
    label: str | None = None
    stampable: bool = False
    vanishes: bool = False
    writes: bool = True
    marked: bool = False
    was_read: bool = True

    def differences(self, stored: Item | None) -> list[Difference]:
        """Return how the stored item differs from what the step requires."""
        if self.locks is None:
            return [Difference(repr(self.item), None, None, stored)]
        return differences(self.item, self.locks, stored)

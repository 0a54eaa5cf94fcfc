"""Steps: the actions of a commit, each with what its refusal means. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from holdall.core.frozen import dataclass
from holdall.core.requests import TransactAction
from holdall.core.values import Item
from holdall.errors import Difference
from holdall.tables.commit.lock import Demand, differences

Refuse: TypeAlias = Callable[["Item | None"], "Exception | None"]
"""From the item that was found instead to the error to raise; None, or a `ContentionError`, if it is contention."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action, and how to explain its refusal.

    ``item`` names the item in messages. ``locks`` are the demands on a stored item; None if the item had to be absent.
    ``refuse`` returns the permanent error behind a failed condition; without it, a failed condition is contention.
    ``label`` names the step in a `Refused`. ``writes``: False for a check that only guards the other steps, and is not
    worth a request of its own. ``marked``: the put leaves its id in the item, so that an item created anew is not taken
    for the one before it. ``was_read``: the condition repeats what the transaction saw, so another attempt will see
    something else; a blind write only repeats what the caller passed.

    A step that is alone in its commit can do without a transaction's token, at half the price. ``stampable``: it makes
    its own condition false. ``vanishes``: it deletes an item that no other client can delete while the condition
    holds, so that absence means success.
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
        """How the stored item differs from what the step demands."""
        if self.locks is None:
            return [Difference(repr(self.item), None, None, stored)]
        return differences(repr(self.item), self.locks, stored)

"""The commit plan: steps in a fixed order, and the one request that carries them. Pure.

The order is kept: reason *i* of a cancelled transaction explains step *i*.
"""

from __future__ import annotations

from collections.abc import Callable

from holdall.core.frozen import dataclass
from holdall.core.requests import (
    DeleteItem,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
    leave_stamp,
    stamped,
)
from holdall.errors import TransactionTooLarge
from holdall.tables.commit.step import Step

MAX_ACTIONS = TransactWrite.most


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The steps in the order of their actions."""

    steps: tuple[Step, ...]

    @property
    def writes(self) -> bool:
        """Whether there is anything to send; checks alone guard nothing."""
        steps = self.steps
        return steps[0].writes if len(steps) == 1 else any(step.writes for step in steps)

    def request(self, new_id: Callable[[], str]) -> TransactWrite | PutItem | UpdateItem | DeleteItem:
        """The one request: a single write that can be repeated safely as it is, or a transaction with a token."""
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
        return TransactWrite(tuple([_mark(step, id) for step in steps]), id)


def _mark(step: Step, new_id: str) -> TransactAction:
    action = step.action
    return leave_stamp(action, new_id) if step.marked and isinstance(action, PutItem) else action


def check_size(steps: int) -> None:
    """Refuse what cannot be one transaction, before participants prepare anything."""
    if steps > MAX_ACTIONS:
        raise TransactionTooLarge(
            f"a transaction of {steps} actions; DynamoDB takes {MAX_ACTIONS}",
            hint='every item written, read or found missing counts, as does every row of a query with lock="rows": '
            "split the work, or read with lock=False",
        )

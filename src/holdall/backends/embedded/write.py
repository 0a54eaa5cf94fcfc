"""Plans for writes: each is one SQLite transaction, so it happens completely or not at all.

What can be checked without the stored item has been checked before (`holdall.core.rules.validation`), without a lock. A
process that dies at any moment loses nothing that was acknowledged (the reply follows the commit) and leaves nothing
half-written (SQLite rolls back an uncommitted transaction when the file is next opened).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdall.backends.embedded.catalog import Catalog, Table
from holdall.backends.embedded.order import table_key
from holdall.backends.embedded.row import Row, Work, check_version, read_row, replace_row
from holdall.backends.embedded.token import digest_actions, is_done, keep_token
from holdall.core.expressions import Condition
from holdall.core.expressions.application import apply_update
from holdall.core.expressions.evaluation import holds
from holdall.core.measure import write_units
from holdall.core.requests import (
    BatchWrite,
    ConditionCheck,
    DeleteItem,
    Done,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
    WriteReply,
)
from holdall.core.rules.key import check_item
from holdall.core.rules.validation import Checked
from holdall.core.stamp import has_stamped
from holdall.core.values import Item
from holdall.errors import (
    CancellationReason,
    ConditionFailedError,
    InvalidRequestError,
    TransactionCanceledError,
)

New = tuple[Item, int] | None  # an item and its size; None: no item
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Action:
    """One checked action: its place, its condition, and what the stored item becomes."""

    table: Table
    key: tuple[bytes, bytes]
    condition: Condition | None
    item_on_failure: bool
    become: Callable[[Row | None], New]
    writes: bool

    def refusal(self, row: Row | None) -> ConditionFailedError | None:
        """The error if the stored item does not satisfy the condition; otherwise None."""
        if self.condition is None or holds(self.condition, None if row is None else row.item):
            return None
        item = row.item if self.item_on_failure and row is not None else None
        return ConditionFailedError(
            f"the condition on an item of table {self.table.schema.name} does not hold", item=item
        )


def _action(catalog: Catalog, action: TransactAction, found: Checked) -> Action:
    table = catalog.tables[action.table]
    schema, key = table.schema, found.kept
    become: Callable[[Row | None], New]
    if isinstance(action, PutItem):
        new = found.kept, found.size

        def become(row: Row | None) -> New:
            return new

    elif isinstance(action, UpdateItem):
        update = action.update

        def become(row: Row | None) -> New:
            return check_item(schema, apply_update(update, key if row is None else row.item))

    else:

        def become(row: Row | None) -> New:
            return None

    writes = not isinstance(action, ConditionCheck)
    return Action(table, table_key(schema, key), action.condition, action.item_on_failure, become, writes)


def plan_write(
    catalog: Catalog, request: PutItem | UpdateItem | DeleteItem, found: Sequence[Checked]
) -> Work[WriteReply]:
    """A single put, update or delete."""
    action = _action(catalog, request, found[0])
    returns = request.returns

    def work(connection: sqlite3.Connection) -> WriteReply:
        row = read_row(connection, catalog, action.table, *action.key)
        refusal = action.refusal(row)
        if refusal is not None:
            if has_stamped(request, refusal.item):  # an earlier send has done it
                return WriteReply(refusal.item if returns == "new" else None)
            raise refusal
        new = action.become(row)
        units = replace_row(connection, action.table, action.key, row, new)
        if returns == "old":
            return WriteReply(None if row is None else row.item, units)
        return WriteReply(new[0] if returns == "new" and new is not None else None, units)

    return work


def plan_batch_write(catalog: Catalog, request: BatchWrite, found: Sequence[Checked]) -> Work[Done]:
    """Puts and deletes; here they happen in one transaction."""
    actions = [_action(catalog, action, each) for action, each in zip(request.actions, found, strict=True)]

    def work(connection: sqlite3.Connection) -> Done:
        units = 0.0
        for action in actions:
            row = read_row(connection, catalog, action.table, *action.key)
            units += replace_row(connection, action.table, action.key, row, action.become(row))
        return Done(units)

    return work


def plan_transact_write(
    catalog: Catalog, request: TransactWrite, found: Sequence[Checked], clock: Clock
) -> Work[Done]:
    """All actions or none: first evaluate every condition and outcome, then write."""
    actions = [_action(catalog, action, each) for action, each in zip(request.actions, found, strict=True)]
    digest = digest_actions(request, found)

    def work(connection: sqlite3.Connection) -> Done:
        check_version(connection, catalog)
        if is_done(connection, request, digest, clock()):
            return Done()
        steps: list[tuple[Action, Row | None, New]] = []
        reasons: list[CancellationReason] = []
        for action in actions:
            row = read_row(connection, catalog, action.table, *action.key)
            new, reason = _settle(action, row)
            steps.append((action, row, new))
            reasons.append(reason)
        if any(reason.code != "None" for reason in reasons):
            raise TransactionCanceledError(_cancellation(request, reasons), reasons=reasons)
        keep_token(connection, request.token, digest, clock())
        units = 0.0
        for action, row, new in steps:
            if action.writes:
                units += 2 * replace_row(connection, action.table, action.key, row, new)
            else:
                units += write_units(0 if row is None else row.size, 0, transactional=True)
        return Done(units)

    return work


def _settle(action: Action, row: Row | None) -> tuple[New, CancellationReason]:
    refusal = action.refusal(row)
    if refusal is not None:
        return None, CancellationReason("ConditionalCheckFailed", refusal.message, refusal.item)
    try:
        return action.become(row), CancellationReason("None")
    except InvalidRequestError as error:
        return None, CancellationReason("ValidationError", error.message)


def _cancellation(request: TransactWrite, reasons: list[CancellationReason]) -> str:
    failed = [
        f"{position} ({type(action).__name__} on {action.table}): {reason.code}"
        for position, (action, reason) in enumerate(zip(request.actions, reasons, strict=True))
        if reason.code != "None"
    ]
    return "the transaction was cancelled, and nothing was written; action " + ", action ".join(failed)

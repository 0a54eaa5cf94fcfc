"""Plans of writes: each is one SQLite transaction, so it happens as a whole or not at all.

Everything that can be checked without the stored item is checked while planning, before any lock is taken.
A process that dies at any moment loses nothing that was acknowledged (the reply follows the commit) and leaves
nothing half-written (SQLite rolls an uncommitted transaction back when the file is next opened). A client
token is recorded in the same transaction as its effects: both exist or neither.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from holdall.backends.embedded.catalog import Catalog, Table
from holdall.backends.embedded.ordering import table_key
from holdall.backends.embedded.rows import Row, check_version, read_row, replace_row
from holdall.core.billing import write_units
from holdall.core.change import changed
from holdall.core.evaluation import holds
from holdall.core.expressions import Condition
from holdall.core.group_rules import check_batch_write, check_transact_write
from holdall.core.key_rules import MAX_KEY, checked_item, checked_key
from holdall.core.payload import check_payload
from holdall.core.requests import (
    BatchWrite,
    DeleteItem,
    Done,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
    WriteReply,
    has_stamped,
)
from holdall.core.validation import check_write
from holdall.core.values import Item
from holdall.errors import (
    CancellationReason,
    ConditionFailedError,
    InvalidRequestError,
    TokenReusedError,
    TransactionCanceledError,
)

__all__ = ["TOKEN_SECONDS", "plan_batch_write", "plan_transact_write", "plan_write"]

TOKEN_SECONDS = 600

New = tuple[Item, int] | None  # an item and its size; None: no item
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Action:
    """One checked action: where, under which condition, and what the stored item becomes.

    ``bound`` is the most bytes that it counts in a transaction.
    """

    table: Table
    key: tuple[bytes, bytes]
    condition: Condition | None
    item_on_failure: bool
    become: Callable[[Row | None], New]
    bound: int
    writes: bool = True

    def refusal(self, row: Row | None) -> ConditionFailedError | None:
        """Why the stored item does not let the action through, if so."""
        if self.condition is None or holds(self.condition, None if row is None else row.item):
            return None
        item = row.item if self.item_on_failure and row is not None else None
        return ConditionFailedError(
            f"the condition on an item of table {self.table.schema.name} does not hold", item=item
        )


def _planned(catalog: Catalog, action: TransactAction) -> Action:
    table = catalog.table(action.table)
    schema = table.schema
    bound = check_write(schema, action)
    if isinstance(action, PutItem):
        new = checked_item(schema, action.item)
        where = table_key(schema, new[0])
        return Action(table, where, action.condition, action.item_on_failure, lambda row: new, bound + new[1])
    key = checked_key(schema, action.key)
    where = table_key(schema, key)
    if isinstance(action, UpdateItem):
        update = action.update

        def become(row: Row | None) -> New:
            return checked_item(schema, changed(update, key if row is None else row.item))

        return Action(table, where, action.condition, action.item_on_failure, become, bound + MAX_KEY)
    writes = isinstance(action, DeleteItem)
    return Action(
        table, where, action.condition, action.item_on_failure, lambda row: None, bound + MAX_KEY, writes
    )


def plan_write(
    catalog: Catalog, request: PutItem | UpdateItem | DeleteItem
) -> Callable[[sqlite3.Connection], WriteReply]:
    """A single put, update or delete."""
    action = _planned(catalog, request)
    returns = request.returns

    def work(connection: sqlite3.Connection) -> WriteReply:
        row = read_row(connection, catalog, action.table, *action.key)
        refusal = action.refusal(row)
        if refusal is not None:
            if has_stamped(request, refusal.item):  # sent before, and done then
                return WriteReply(refusal.item if returns == "new" else None)
            raise refusal
        new = action.become(row)
        units = replace_row(connection, action.table, action.key, row, new)
        if returns == "old":
            return WriteReply(None if row is None else row.item, units)
        return WriteReply(new[0] if returns == "new" and new is not None else None, units)

    return work


def plan_batch_write(catalog: Catalog, request: BatchWrite) -> Callable[[sqlite3.Connection], Done]:
    """Puts and deletes; here they even happen together."""
    check_batch_write(request, catalog.schema)
    actions = [_planned(catalog, action) for action in request.actions]

    def work(connection: sqlite3.Connection) -> Done:
        units = 0.0
        for action in actions:
            row = read_row(connection, catalog, action.table, *action.key)
            units += replace_row(connection, action.table, action.key, row, action.become(row))
        return Done(units)

    return work


def plan_transact_write(
    catalog: Catalog, request: TransactWrite, clock: Clock
) -> Callable[[sqlite3.Connection], Done]:
    """All actions or none: first every condition and outcome, then every write."""
    check_transact_write(request, catalog.schema)
    actions = [_planned(catalog, action) for action in request.actions]
    check_payload(request, sum([action.bound for action in actions]))
    digest = blake2b(repr(request.actions).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def work(connection: sqlite3.Connection) -> Done:
        check_version(connection, catalog)
        if _already_done(connection, request.token, digest, clock()):
            return Done()
        steps: list[tuple[Action, Row | None, New]] = []
        reasons: list[CancellationReason] = []
        for action in actions:
            row = read_row(connection, catalog, action.table, *action.key)
            new, reason = _settled(action, row)
            steps.append((action, row, new))
            reasons.append(reason)
        if any(reason.code != "None" for reason in reasons):
            raise TransactionCanceledError(_cancellation(request, reasons), reasons=reasons)
        connection.execute(
            "INSERT OR REPLACE INTO tokens (token, digest, created) VALUES (?, ?, ?)",
            (request.token, digest, clock()),
        )
        units = 0.0
        for action, row, new in steps:
            if action.writes:
                units += 2 * replace_row(connection, action.table, action.key, row, new)
            else:
                units += write_units(0 if row is None else row.size, 0, transactional=True)
        return Done(units)

    return work


def _settled(action: Action, row: Row | None) -> tuple[New, CancellationReason]:
    refusal = action.refusal(row)
    if refusal is not None:
        return None, CancellationReason("ConditionalCheckFailed", refusal.message, refusal.item)
    try:
        return action.become(row), CancellationReason("None")
    except InvalidRequestError as error:
        return None, CancellationReason("ValidationError", error.message)


def _cancellation(request: TransactWrite, reasons: list[CancellationReason]) -> str:
    failed = [
        f"{place} ({type(action).__name__} on {action.table}): {reason.code}"
        for place, (action, reason) in enumerate(zip(request.actions, reasons, strict=True))
        if reason.code != "None"
    ]
    return "the transaction was cancelled, nothing was written; action " + ", action ".join(failed)


def _already_done(connection: sqlite3.Connection, token: str, digest: bytes, now: float) -> bool:
    found = connection.execute("SELECT digest, created FROM tokens WHERE token = ?", (token,)).fetchone()
    if found is None or now - found[1] >= TOKEN_SECONDS:
        return False
    if found[0] != digest:
        raise TokenReusedError(
            "the client token belongs to another transaction of the last ten minutes",
            hint="take a fresh token (port.new_id()) for each new transaction",
        )
    return True

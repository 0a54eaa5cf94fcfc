"""What transactions and batches may hold: how many, how much, and every item once.

Pure. Raises the `InvalidRequestError` family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from holdall.core.key_rules import (
    checked_key,
)
from holdall.core.page_rules import check_read
from holdall.core.payload import MAX_TRANSACTION
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    ConditionCheck,
    DeleteItem,
    GetItem,
    PutItem,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.schema import TableSchema
from holdall.core.values import Item
from holdall.errors import (
    BatchTooLargeError,
    DuplicateItemError,
    InvalidRequestError,
    TransactionTooLarge,
)

__all__ = [
    "SchemaOf",
    "check_batch_get",
    "check_batch_write",
    "check_size_read",
    "check_transact_get",
    "check_transact_write",
]

MAX_ACTIONS = 100
MAX_BATCH_READS = 100
MAX_BATCH_WRITES = 25

_TRANSACTED = (PutItem, UpdateItem, DeleteItem, ConditionCheck)
_BATCHED = (PutItem, DeleteItem)

SchemaOf = Callable[[str], TableSchema]
"""Gives a table's schema by name, or raises `TableNotFoundError`."""


def check_transact_write(request: TransactWrite, schema_of: SchemaOf) -> None:
    """Count, token and distinct items; each action's own content is checked where it is planned."""
    if not request.actions:
        raise InvalidRequestError("a transaction without actions")
    if len(request.actions) > MAX_ACTIONS:
        raise TransactionTooLarge(
            f"a transaction of {len(request.actions)} actions; DynamoDB takes {MAX_ACTIONS}",
            hint="split the work, or keep what must change together in fewer items",
        )
    if not isinstance(request.token, str) or not 1 <= len(request.token) <= 36 or not _is_utf8(request.token):
        raise InvalidRequestError("a client token is text of 1 to 36 characters", hint="use port.new_id()")
    for action in request.actions:
        _check_type(action, _TRANSACTED, "transaction")
        if isinstance(action, ConditionCheck) and action.condition is None:
            raise InvalidRequestError("a condition check without a condition")
        if not isinstance(action, ConditionCheck) and action.returns != "none":
            raise InvalidRequestError("an action of a transaction gives nothing back", hint="read it after")
    keys = ((a.table, a.item if isinstance(a, PutItem) else a.key) for a in request.actions)
    _check_distinct(keys, schema_of, "transaction")


def check_size_read(size: int) -> None:
    """Raise `TransactionTooLarge` if a transaction reads over 4 MB of items."""
    if size > MAX_TRANSACTION:
        raise TransactionTooLarge(
            f"the transaction reads {size:,} bytes of items; DynamoDB takes {MAX_TRANSACTION:,}",
            hint="read in several transactions, or in batches if the items need not be from one moment",
        )


def check_transact_get(request: TransactGet, schema_of: SchemaOf) -> None:
    """Count and distinct items of a transactional read."""
    if len(request.reads) > MAX_ACTIONS:
        raise TransactionTooLarge(
            f"a transaction of {len(request.reads)} reads; DynamoDB takes {MAX_ACTIONS}",
            hint="read in several transactions, or in batches if the items need not be from one moment",
        )
    _check_reads(request.reads, schema_of, "transaction")


def check_batch_get(request: BatchGet, schema_of: SchemaOf) -> None:
    """Count, distinct items, and one consistency and projection per table."""
    if len(request.reads) > MAX_BATCH_READS:
        raise BatchTooLargeError(
            f"a batch of {len(request.reads)} reads; DynamoDB takes {MAX_BATCH_READS}",
            hint="send several batches",
        )
    _check_reads(request.reads, schema_of, "batch")
    manner: dict[str, GetItem] = {}
    for read in request.reads:
        first = manner.setdefault(read.table, read)
        if (first.consistent, first.projection) != (read.consistent, read.projection):
            raise InvalidRequestError(
                f"reads of table {read.table} in one batch differ in consistency or projection",
                hint="send them as two batches",
            )


def check_batch_write(request: BatchWrite, schema_of: SchemaOf) -> None:
    """Count, distinct items, and nothing that a batch cannot do."""
    if not request.actions:
        raise InvalidRequestError("a batch without writes")
    if len(request.actions) > MAX_BATCH_WRITES:
        raise BatchTooLargeError(
            f"a batch of {len(request.actions)} writes; DynamoDB takes {MAX_BATCH_WRITES}",
            hint="send several batches",
        )
    for action in request.actions:
        _check_type(action, _BATCHED, "batch")
        if action.condition is not None or action.returns != "none":
            raise InvalidRequestError(
                "a write in a batch has no condition and gives nothing back", hint="use TransactWrite"
            )
    keys = ((a.table, a.item if isinstance(a, PutItem) else a.key) for a in request.actions)
    _check_distinct(keys, schema_of, "batch")


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _check_type(part: object, kinds: type | tuple[type, ...], what: str) -> None:
    if not isinstance(part, kinds):
        raise InvalidRequestError(f"a {type(part).__name__} cannot be part of this {what}")


def _check_reads(reads: Sequence[GetItem], schema_of: SchemaOf, what: str) -> None:
    if not reads:
        raise InvalidRequestError(f"a {what} without reads")
    for read in reads:
        _check_type(read, GetItem, what)
        schema = schema_of(read.table)
        check_read(schema, read)
        checked_key(schema, read.key)
    _check_distinct(((read.table, read.key) for read in reads), schema_of, what)


def _identity(schema: TableSchema, item: Item) -> tuple[str, ...]:
    """What tells an item from all others. Text is its own canonical form; numbers and binaries have several."""
    keyed = schema.keys
    try:
        texts = [item[part.name]["S"] for part in keyed if part.type == "S"]
        if len(texts) == len(keyed) and all(type(text) is str for text in texts):
            return (schema.name, *texts)
    except (KeyError, TypeError):
        pass  # something is wrong with the key: `checked_key` says what
    kept = checked_key(schema, {part.name: item[part.name] for part in keyed if part.name in item})
    return (schema.name, *[kept[part.name][part.type] for part in keyed])


def _check_distinct(keys: Iterable[tuple[str, Item]], schema_of: SchemaOf, what: str) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for place, (table, item) in enumerate(keys):
        identity = _identity(schema_of(table), item)
        if identity in seen:
            raise DuplicateItemError(
                f"places {seen[identity]} and {place} of the {what} are the same item of table {table}",
                hint="an item can take part once: merge the two",
            )
        seen[identity] = place

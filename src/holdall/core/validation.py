"""DynamoDB's limits and rules, checked by us first and in our words.

Pure. Every backend calls these before it sends or writes anything, so that what works on one works on all.
They know the table's schema but no item in store. Raise the `InvalidRequestError` family.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from types import UnionType
from typing import Any, get_args

from holdall.core.evaluation import equal, holds
from holdall.core.expression_limits import check_condition, check_paths, check_update, paths_of
from holdall.core.expressions import (
    BeginsWith,
    Between,
    Compare,
    Condition,
    KeyCondition,
    Path,
    Set,
    Update,
    Value,
)
from holdall.core.requests import (
    AddIndex,
    BatchGet,
    BatchWrite,
    ConditionCheck,
    CreateTable,
    DeleteItem,
    GetItem,
    PutItem,
    Query,
    Request,
    Returns,
    Scan,
    SetTtl,
    TransactAction,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Attribute, Item, canonical_item
from holdall.errors import (
    BatchTooLargeError,
    ConfigurationError,
    DuplicateItemError,
    IndexExistsError,
    InvalidExpressionError,
    InvalidKeyError,
    InvalidRequestError,
    ItemTooLargeError,
    TransactionTooLarge,
)

__all__ = [
    "check",
    "check_added_index",
    "check_batch_get",
    "check_batch_write",
    "check_item_size",
    "check_page",
    "check_read",
    "check_schema",
    "check_table_name",
    "check_transact_get",
    "check_transact_write",
    "check_transaction_size",
    "check_ttl_attribute",
    "check_write",
    "checked_item",
    "checked_key",
]

MAX_ITEM = 400 * 1024
MAX_ACTIONS = 100
MAX_TRANSACTION = 4 * 1024 * 1024
MAX_BATCH_READS = 100
MAX_BATCH_WRITES = 25
MAX_PARTITION_KEY = 2048
MAX_SORT_KEY = 1024
MAX_INDEXES = 20
MAX_PROJECTED = 100
MAX_SEGMENTS = 1_000_000

SchemaOf = Callable[[str], TableSchema]
"""Gives a table's schema by name, or raises `TableNotFoundError`."""

_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_TYPES = {"S": "string", "N": "number", "B": "binary"}


def check(request: Request[Any], schema_of: SchemaOf) -> None:
    """Everything that can be known about a request before it is sent; `InvalidRequestError` and its kind."""
    match request:
        case GetItem():
            check_read(request)
            checked_key(schema_of(request.table), request.key)
        case Query() | Scan():
            check_page(schema_of(request.table), request)
        case PutItem() | UpdateItem() | DeleteItem():
            _check_action(schema_of(request.table), request)
        case TransactWrite():
            check_transact_write(request, schema_of)
            check_transaction_size(sum(_check_action(schema_of(a.table), a) for a in request.actions))
        case TransactGet():
            check_transact_get(request, schema_of)
        case BatchGet():
            check_batch_get(request, schema_of)
        case BatchWrite():
            check_batch_write(request, schema_of)
            for action in request.actions:
                _check_action(schema_of(action.table), action)
        case CreateTable():
            check_schema(request.schema)
        case AddIndex():
            check_added_index(schema_of(request.table), request.index)
        case SetTtl():
            check_ttl_attribute(request)


def _check_action(schema: TableSchema, action: TransactAction) -> int:
    """One write's own rules; the size of what it puts, as far as that is known."""
    check_write(schema, action)
    if isinstance(action, PutItem):
        return checked_item(schema, action.item)[1]
    checked_key(schema, action.key)
    return 0


# --- items and keys -------------------------------------------------------------------------------------


def checked_item(schema: TableSchema, item: Item) -> tuple[dict[str, Attribute], int]:
    """The item as stored, and its size: values, key attributes, index keys and the 400 KB limit checked."""
    kept, size = canonical_item(item)
    check_item_size(size, schema.name)
    _check_keys(schema, schema, kept)
    for index in schema.indexes:
        check_index_key(schema, index, kept)
    return kept, size


def checked_key(schema: TableSchema, key: Item) -> dict[str, Attribute]:
    """The key as stored: just the key attributes, of the right types, neither empty nor too long."""
    if len(key) != (1 if schema.sort is None else 2):
        extra = sorted(key.keys() - {part.name for part in schema.keys})
        if extra:
            raise InvalidKeyError(
                f"{', '.join(extra)} is not part of the key of table {schema.name}", hint=_key_hint(schema)
            )
    kept, _ = canonical_item(key)
    _check_keys(schema, schema, kept)
    return kept


def check_item_size(size: int, table: str) -> None:
    """`ItemTooLargeError` for an item over 400 KB."""
    if size > MAX_ITEM:
        raise ItemTooLargeError(
            f"an item of {size:,} bytes for table {table}; DynamoDB takes {MAX_ITEM:,}",
            hint="keep large content in files or attachments and only its key in the item",
        )


def check_index_key(schema: TableSchema, index: IndexSchema, item: Item) -> None:
    """An index's key attributes may be absent, but not of another type, empty or too long."""
    for place, part in enumerate(index.keys):
        attribute = item.get(part.name)
        if attribute is not None:
            _check_key(schema, index, part, attribute, MAX_SORT_KEY if place else MAX_PARTITION_KEY)


def _check_keys(schema: TableSchema, keyed: TableSchema | IndexSchema, item: Item) -> None:
    for place, part in enumerate(keyed.keys):
        attribute = item.get(part.name)
        if attribute is None:
            raise InvalidKeyError(
                f"key attribute {part.name} of table {schema.name} is missing", hint=_key_hint(schema)
            )
        _check_key(schema, keyed, part, attribute, MAX_SORT_KEY if place else MAX_PARTITION_KEY)


def _check_key(
    schema: TableSchema,
    keyed: TableSchema | IndexSchema,
    part: KeyAttribute,
    attribute: Attribute,
    limit: int,
) -> None:
    content = attribute.get(part.type)
    if content is None:
        raise InvalidKeyError(
            f"key attribute {part.name} of {_owner(schema, keyed)} is {_TYPES[part.type]} ({part.type}), "
            f"not {next(iter(attribute), 'nothing')}",
            hint=_key_hint(keyed),
        )
    if part.type == "N":
        return
    if part.type == "B":
        size = len(b64decode(content))
    else:
        size = len(content) if content.isascii() else len(content.encode())
    if not size:
        raise InvalidKeyError(f"key attribute {part.name} of {_owner(schema, keyed)} is empty")
    if size > limit:
        raise InvalidKeyError(
            f"key attribute {part.name} of {_owner(schema, keyed)} has {size:,} bytes; DynamoDB takes {limit:,}",
            hint="use a digest of the long value as the key",
        )


def _owner(schema: TableSchema, keyed: TableSchema | IndexSchema) -> str:
    return f"table {schema.name}" if keyed is schema else f"index {keyed.name} of table {schema.name}"


def _key_hint(keyed: TableSchema | IndexSchema) -> str:
    parts = ", ".join(f"{part.name} ({part.type})" for part in keyed.keys)
    return f"the key of {keyed.name} is {parts}"


# --- reads ----------------------------------------------------------------------------------------------


def check_read(read: GetItem) -> None:
    """The projection of a get; its key is `checked_key`'s."""
    if read.projection:
        check_paths(read.projection, "projection")


def check_page(schema: TableSchema, request: Query | Scan) -> None:
    """Everything about a query or scan but the items it will meet."""
    index = None if request.index is None else schema.index(request.index)
    if index is not None and request.consistent:
        raise InvalidRequestError(
            f"index {index.name} has no strongly consistent reads",
            hint="leave consistent=False, or read the table",
        )
    if request.limit is not None and (type(request.limit) is not int or request.limit < 1):
        raise InvalidRequestError(f"a page limit of {request.limit!r}; it is a whole number from 1 on")
    keyed = schema if index is None else index
    if isinstance(request, Query):
        check_key_condition(schema, keyed, request.key)
    elif not 1 <= request.segments <= MAX_SEGMENTS or not 0 <= request.segment < request.segments:
        raise InvalidRequestError(f"segment {request.segment} of {request.segments} segments")
    if request.projection:
        check_paths(request.projection, "projection")
        _check_projected(schema, index, request.projection, "projection")
    if request.filter is not None:
        check_condition(request.filter)
        used = tuple(paths_of(request.filter))
        _check_projected(schema, index, used, "filter")
        if isinstance(request, Query):
            _check_no_keys(keyed, used)
    if request.start_after is not None:
        _check_start(schema, index, request.start_after)
        if isinstance(request, Query):
            _check_start_inside(request.key, request.start_after)


def check_key_condition(schema: TableSchema, keyed: TableSchema | IndexSchema, key: KeyCondition) -> None:
    """The key condition of a query: on the right attributes, with values of their types."""
    if key.partition != keyed.partition.name:
        raise InvalidKeyError(
            f"{key.partition} is not the partition key of {keyed.name}",
            hint=f"it is {keyed.partition.name}",
        )
    _check_key(schema, keyed, keyed.partition, _canonical(key.equals), MAX_PARTITION_KEY)
    if key.sort is None:
        return
    subject = _subject(key.sort)
    if keyed.sort is None or subject != Path((keyed.sort.name,)):
        raise InvalidKeyError(
            f"{subject} is not the sort key of {keyed.name}",
            hint="put conditions on other attributes into filter=",
        )
    check_condition(key.sort)
    if isinstance(key.sort, Compare) and key.sort.comparator == "<>":
        raise InvalidExpressionError("a sort key cannot be queried with <>", hint="put it into filter=")
    if isinstance(key.sort, BeginsWith) and keyed.sort.type == "N":
        raise InvalidExpressionError(f"{keyed.sort.name} is a number; begins_with needs text or bytes")
    for operand in _operands(key.sort):
        if not isinstance(operand, Value):
            raise InvalidExpressionError("a key condition compares with values only")
        _check_key(schema, keyed, keyed.sort, _canonical(operand.attribute), MAX_SORT_KEY)


def _canonical(attribute: Attribute) -> Attribute:
    return canonical_item({"key": attribute})[0]["key"]


def _subject(sort: Compare | Between | BeginsWith) -> object:
    match sort:
        case Compare():
            return sort.left
        case Between():
            return sort.operand
        case BeginsWith():
            return sort.path


def _operands(sort: Compare | Between | BeginsWith) -> tuple[object, ...]:
    match sort:
        case Compare():
            return (sort.right,)
        case Between():
            return (sort.low, sort.high)
        case BeginsWith():
            return (sort.prefix,)


def _check_projected(schema: TableSchema, index: IndexSchema | None, used: Iterable[Path], what: str) -> None:
    held = None if index is None else schema.projected(index)
    if held is None or index is None:
        return
    missing = sorted({str(path.parts[0]) for path in used} - held)
    if missing:
        raise InvalidExpressionError(
            f"the {what} names {', '.join(missing)}, which index {index.name} does not hold",
            hint="project the attribute into the index, or read the items from the table",
        )


def _check_no_keys(keyed: TableSchema | IndexSchema, used: Iterable[Path]) -> None:
    keys = {part.name for part in keyed.keys}
    for path in used:
        if path.parts[0] in keys:
            raise InvalidExpressionError(
                f"{path.parts[0]} is a key of {keyed.name} and cannot be filtered on",
                hint="put it into the key condition",
            )


def _check_start(schema: TableSchema, index: IndexSchema | None, start: Item) -> None:
    parts = {part.name: part for part in chain(schema.keys, () if index is None else index.keys)}
    if start.keys() != parts.keys():
        raise InvalidKeyError(
            f"start_after has {', '.join(sorted(start)) or 'no attributes'}",
            hint=f"hand over a page's last_key: it has {', '.join(sorted(parts))}",
        )
    kept, _ = canonical_item(start)
    _check_keys(schema, schema, kept)
    if index is not None:
        _check_keys(schema, index, kept)


def _check_start_inside(key: KeyCondition, start: Item) -> None:
    inside = equal(start[key.partition], key.equals)
    if not inside or (key.sort is not None and not holds(key.sort, start)):
        raise InvalidKeyError(
            "start_after lies outside the rows of the key condition",
            hint="hand over the last_key of a page of the same query",
        )


# --- writes ---------------------------------------------------------------------------------------------


def check_write(schema: TableSchema, write: object) -> None:
    """The condition, update and stamp of a write; its item or key is `checked_item`'s or `checked_key`'s."""
    condition: Condition | None = getattr(write, "condition", None)
    if condition is not None:
        check_condition(condition)
    if isinstance(write, UpdateItem):
        check_update(write.update)
        _check_key_changes(schema, write.update)
    returns = getattr(write, "returns", "none")
    if returns not in get_args(Returns):
        raise InvalidRequestError(f"returns={returns!r}", hint=f"it is one of {', '.join(get_args(Returns))}")
    if returns == "new" and not isinstance(write, UpdateItem):
        raise InvalidRequestError("only an update can give back the new item", hint='use returns="old"')


def _check_key_changes(schema: TableSchema, update: Update) -> None:
    """No change of the key, and no literal in an index's key that the index cannot take."""
    keys = {part.name for part in schema.keys}
    for action in update.actions:
        if isinstance(action, Set) and isinstance(action.value, Value) and len(action.path.parts) == 1:
            for index in schema.indexes:
                check_index_key(
                    schema, index, {str(action.path.parts[0]): _canonical(action.value.attribute)}
                )
        if action.path.parts[0] in keys:
            raise InvalidKeyError(
                f"{action.path} is part of the key of table {schema.name} and cannot change",
                hint="delete the item and put it under its new key, in one transaction",
            )


def check_transact_write(request: TransactWrite, schema_of: SchemaOf) -> None:
    """Count, token and distinct items; each action's own content is checked where it is planned."""
    if not request.actions:
        raise InvalidRequestError("a transaction without actions")
    if len(request.actions) > MAX_ACTIONS:
        raise TransactionTooLarge(
            f"a transaction of {len(request.actions)} actions; DynamoDB takes {MAX_ACTIONS}",
            hint="split the work, or keep what must change together in fewer items",
        )
    if not isinstance(request.token, str) or not 1 <= len(request.token) <= 36:
        raise InvalidRequestError("a client token is text of 1 to 36 characters", hint="use port.new_id()")
    for action in request.actions:
        _check_type(action, PutItem | UpdateItem | DeleteItem | ConditionCheck, "transaction")
        if not isinstance(action, ConditionCheck) and action.returns != "none":
            raise InvalidRequestError("an action of a transaction gives nothing back", hint="read it after")
    keys = ((a.table, a.item if isinstance(a, PutItem) else a.key) for a in request.actions)
    _check_distinct(keys, schema_of, "transaction")


def check_transaction_size(size: int) -> None:
    """`TransactionTooLarge` for over 4 MB of items."""
    if size > MAX_TRANSACTION:
        raise TransactionTooLarge(
            f"a transaction over {size:,} bytes of items; DynamoDB takes {MAX_TRANSACTION:,}",
            hint="split the work into several transactions",
        )


def check_transact_get(request: TransactGet, schema_of: SchemaOf) -> None:
    """Count and distinct items of a transactional read."""
    if len(request.reads) > MAX_ACTIONS:
        raise TransactionTooLarge(
            f"a transaction of {len(request.reads)} reads; DynamoDB takes {MAX_ACTIONS}",
            hint="read in several transactions, or in batches if one instant is not needed",
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
        _check_type(action, PutItem | DeleteItem, "batch")
        if action.condition is not None or action.returns != "none":
            raise InvalidRequestError(
                "a write in a batch has no condition and gives nothing back", hint="use TransactWrite"
            )
    keys = ((a.table, a.item if isinstance(a, PutItem) else a.key) for a in request.actions)
    _check_distinct(keys, schema_of, "batch")


def _check_type(part: object, kinds: type | UnionType, what: str) -> None:
    if not isinstance(part, kinds):
        raise InvalidRequestError(f"a {type(part).__name__} cannot be part of this {what}")


def _check_reads(reads: Sequence[GetItem], schema_of: SchemaOf, what: str) -> None:
    if not reads:
        raise InvalidRequestError(f"a {what} without reads")
    for read in reads:
        _check_type(read, GetItem, what)
        check_read(read)
    _check_distinct(((read.table, read.key) for read in reads), schema_of, what)


def _check_distinct(keys: Iterable[tuple[str, Item]], schema_of: SchemaOf, what: str) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for place, (table, item) in enumerate(keys):
        schema = schema_of(table)
        parts = {part.name: item[part.name] for part in schema.keys if part.name in item}
        kept = checked_key(schema, parts)
        identity = (table, *(kept[part.name][part.type] for part in schema.keys))
        if identity in seen:
            raise DuplicateItemError(
                f"places {seen[identity]} and {place} of the {what} are the same item of table {table}",
                hint="an item can take part once: merge the two",
            )
        seen[identity] = place


# --- tables ---------------------------------------------------------------------------------------------


def check_table_name(name: str) -> None:
    """DynamoDB's rule for the names of tables and indexes."""
    if not _TABLE_NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} cannot name a table or index",
            hint="3 to 255 of the characters A-Z a-z 0-9 _ - .",
        )


def check_schema(schema: TableSchema) -> None:
    """A table definition DynamoDB would take."""
    check_table_name(schema.name)
    types: dict[str, str] = {}
    names: dict[str, IndexSchema] = {}
    _check_key_pair(schema.name, schema.keys, types)
    if len(schema.indexes) > MAX_INDEXES:
        raise ConfigurationError(f"table {schema.name} has {len(schema.indexes)} indexes; the most is 20")
    if sum(len(index.projection.names) for index in schema.indexes) > MAX_PROJECTED:
        raise ConfigurationError(
            f"the indexes of table {schema.name} project over {MAX_PROJECTED} attributes"
        )
    for index in schema.indexes:
        check_table_name(index.name)
        if index.name in names:
            raise ConfigurationError(f"table {schema.name} defines index {index.name} twice")
        names[index.name] = index
        _check_key_pair(index.name, index.keys, types)
        if (index.projection.kind == "INCLUDE") != bool(index.projection.names):
            raise ConfigurationError(
                f"index {index.name}: a projection names attributes if and only if it is INCLUDE"
            )


def check_added_index(schema: TableSchema, index: IndexSchema) -> None:
    """An index that the table could have besides those it has."""
    if any(index.name == other.name for other in schema.indexes):
        raise IndexExistsError(f"table {schema.name} already has an index {index.name}")
    check_schema(replace(schema, indexes=(*schema.indexes, index)))


def check_ttl_attribute(request: SetTtl) -> None:
    """A name that can be an attribute's."""
    if request.attribute is not None and not 1 <= len(request.attribute.encode()) <= 255:
        raise ConfigurationError("a TTL attribute's name has 1 to 255 bytes")


def _check_key_pair(owner: str, keys: Sequence[KeyAttribute], types: dict[str, str]) -> None:
    if len({part.name for part in keys}) != len(keys):
        raise ConfigurationError(f"{owner}: partition and sort key are the same attribute")
    for part in keys:
        if part.type not in _TYPES:
            raise ConfigurationError(f"{owner}: a key is of type S, N or B, not {part.type}")
        if not 1 <= len(part.name.encode()) <= 255:
            raise ConfigurationError(f"{owner}: a key attribute's name has 1 to 255 bytes")
        if types.setdefault(part.name, part.type) != part.type:
            raise ConfigurationError(f"{owner}: attribute {part.name} is given two types")

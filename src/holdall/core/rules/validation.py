"""DynamoDB's limits and rules, checked before a request is sent, with helpful messages.

Pure. Every backend checks each request once, with `check`, before it sends or writes anything, so a request that works
on one backend works on all. The rules know the table's schema, but no stored items. `check` returns what it computes on
the way, such as an item in its stored form, so that backends need not compute it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, get_args

from holdall.core.expressions import Condition, Set, Update, Value
from holdall.core.requests import (
    AddIndex,
    BatchGet,
    BatchWrite,
    ConditionCheck,
    CreateTable,
    DeleteItem,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    PutItem,
    Query,
    RemoveIndex,
    Request,
    Returns,
    Scan,
    SetTtl,
    TransactAction,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.expression import check_expression
from holdall.core.rules.key import (
    MAX_KEY,
    canonical_attribute,
    check_index_key,
    check_item,
    check_key,
    check_scalar_keys,
)
from holdall.core.rules.page import check_page, check_projection
from holdall.core.rules.payload import MAX_SUBSTITUTIONS, MAX_TRANSACTION, check_payload, check_substitutions
from holdall.core.rules.schema import (
    check_added_index,
    check_removed_index,
    check_schema,
    check_table_name,
)
from holdall.core.schema import TableSchema
from holdall.core.values import Attribute
from holdall.errors import (
    BatchTooLargeError,
    ConfigurationError,
    DuplicateItemError,
    InvalidKeyError,
    InvalidRequestError,
    TransactionTooLarge,
)

_RETURNS = get_args(Returns)

SchemaOf: TypeAlias = Callable[[str], TableSchema]
"""Returns a table's schema by name, or raises `TableNotFoundError`."""


class Checked(NamedTuple):
    """What `check` computed for a read or a write.

    ``kept`` is the item of a put in its stored form, and the key of any other request. ``size`` is the size of a put's
    item. ``bound`` is the largest number of bytes for which the write can count in a transaction.
    """

    kept: dict[str, Attribute]
    size: int
    bound: int


_BOUND = attrgetter("bound")


def check(request: Request[Any], schema_of: SchemaOf) -> Sequence[Checked]:
    """Check everything that can be known before a request is sent; raise `InvalidRequestError` or a subclass.

    Returns what it computed for each part of the request, in order; nothing for a page or a table.
    """
    rule = _RULES.get(type(request))
    if rule is None:
        raise InvalidRequestError(f"a table store cannot answer {type(request).__name__}")
    return rule(request, schema_of)


# --- reads ----------------------------------------------------------------------------------------------


def _check_get(read: GetItem, schema_of: SchemaOf) -> Sequence[Checked]:
    schema = schema_of(read.table)
    if read.projection:
        check_projection(schema, read.projection)
    return (Checked(check_key(schema, read.key), 0, 0),)


def _check_page(request: Query | Scan, schema_of: SchemaOf) -> Sequence[Checked]:
    check_page(schema_of(request.table), request)
    return ()


def _check_transact_get(request: TransactGet, schema_of: SchemaOf) -> Sequence[Checked]:
    if len(request.reads) > request.most:
        raise TransactionTooLarge(
            f"the transaction has {len(request.reads)} reads; DynamoDB allows {request.most}",
            hint="read in several transactions, or in batches if the items need not be from the same moment",
        )
    return _check_reads(request, schema_of, "transaction")


def _check_batch_get(request: BatchGet, schema_of: SchemaOf) -> Sequence[Checked]:
    if len(request.reads) > request.most:
        raise BatchTooLargeError(
            f"the batch has {len(request.reads)} reads; DynamoDB allows {request.most}",
            hint="send several batches",
        )
    found = _check_reads(request, schema_of, "batch")
    manner: dict[str, GetItem] = {}
    for read in request.reads:
        first = manner.setdefault(read.table, read)
        if (first.consistent, first.projection) != (read.consistent, read.projection):
            raise InvalidRequestError(
                f"the reads of table {read.table} in one batch differ in consistency or projection",
                hint="send them as two batches",
            )
    return found


def _check_reads(request: TransactGet | BatchGet, schema_of: SchemaOf, what: str) -> Sequence[Checked]:
    if not request.reads:
        raise InvalidRequestError(f"the {what} has no reads")
    for read in request.reads:
        if not isinstance(read, GetItem):
            raise _refuse_type(read, what)
    found = [_check_get(read, schema_of)[0] for read in request.reads]
    _check_distinct(request.reads, found, schema_of, what)
    return found


def check_size_read(size: int) -> None:
    """Raise `TransactionTooLarge` if a transaction reads more than 4 MB of items."""
    if size > MAX_TRANSACTION:
        raise TransactionTooLarge(
            f"the transaction reads {size:,} bytes of items; DynamoDB allows {MAX_TRANSACTION:,}",
            hint="read in several transactions, or in batches if the items need not be from the same moment",
        )


# --- writes ---------------------------------------------------------------------------------------------


def _check_write(write: TransactAction, schema_of: SchemaOf) -> Sequence[Checked]:
    schema = schema_of(write.table)
    bound = 0
    if write.condition is not None:
        nested, bound = check_expression(write.condition, Condition)
        if nested:
            check_scalar_keys(schema, nested)
    if isinstance(write, UpdateItem):
        nested, more = check_expression(write.update, Update)
        bound += more
        _check_key_changes(schema, write.update)
        if nested:
            check_scalar_keys(schema, nested)
    if bound > MAX_SUBSTITUTIONS:
        check_substitutions(write)
    if not isinstance(write, ConditionCheck) and write.returns != "none":
        _check_returns(write)
    if isinstance(write, PutItem):
        kept, size = check_item(schema, write.item)
        return (Checked(kept, size, bound + size),)
    return (Checked(check_key(schema, write.key), 0, bound + MAX_KEY),)


def _check_returns(write: PutItem | UpdateItem | DeleteItem) -> None:
    if write.returns not in _RETURNS:
        raise InvalidRequestError(f"returns must be one of {', '.join(_RETURNS)}, not {write.returns!r}")
    if write.returns == "new" and not isinstance(write, UpdateItem):
        raise InvalidRequestError("only an update can return the new item", hint='use returns="old"')


def _check_key_changes(schema: TableSchema, update: Update) -> None:
    """Check that an update does not change the key, and sets no index key to a literal that the index cannot hold."""
    sort = schema.sort
    keys = (schema.partition.name, None if sort is None else sort.name)
    for action in update.actions:
        parts = action.path.parts
        if schema.indexes and len(parts) == 1 and isinstance(action, Set) and isinstance(action.value, Value):
            changed = {str(parts[0]): canonical_attribute(action.value.attribute)}
            for index in schema.indexes:
                check_index_key(schema, index, changed)
        if parts[0] in keys:
            raise InvalidKeyError(
                f"{action.path} is part of the key of table {schema.name} and cannot be changed",
                hint="delete the item and put it under its new key, in one transaction",
            )


def _check_transact_write(request: TransactWrite, schema_of: SchemaOf) -> Sequence[Checked]:
    actions = request.actions
    if not actions:
        raise InvalidRequestError("the transaction has no actions")
    if len(actions) > request.most:
        raise TransactionTooLarge(
            f"the transaction has {len(actions)} actions; DynamoDB allows {request.most}",
            hint="split the work, or keep data that must change together in fewer items",
        )
    token = request.token
    if not isinstance(token, str) or not 1 <= len(token) <= 36 or not (token.isascii() or _is_utf8(token)):
        raise InvalidRequestError(
            "a client token must be a text of 1 to 36 characters", hint="use port.new_id()"
        )
    found = []
    for action in actions:
        if isinstance(action, ConditionCheck):
            if action.condition is None:
                raise InvalidRequestError("a condition check needs a condition")
        elif not isinstance(action, (PutItem, UpdateItem, DeleteItem)):
            raise _refuse_type(action, "transaction")
        elif action.returns != "none":
            raise InvalidRequestError(
                "an action in a transaction cannot return an item", hint="read the item after the transaction"
            )
        found.append(_check_write(action, schema_of)[0])
    if len(actions) > 1:
        _check_distinct(actions, found, schema_of, "transaction")
    if sum(map(_BOUND, found)) > MAX_TRANSACTION:
        check_payload(request)
    return found


def _check_batch_write(request: BatchWrite, schema_of: SchemaOf) -> Sequence[Checked]:
    if not request.actions:
        raise InvalidRequestError("the batch has no writes")
    if len(request.actions) > request.most:
        raise BatchTooLargeError(
            f"the batch has {len(request.actions)} writes; DynamoDB allows {request.most}",
            hint="send several batches",
        )
    found: list[Checked] = []
    for action in request.actions:
        if not isinstance(action, (PutItem, DeleteItem)):
            raise _refuse_type(action, "batch")
        if action.condition is not None or action.returns != "none":
            raise InvalidRequestError(
                "a write in a batch cannot have a condition or return an item",
                hint="use TransactWrite for conditions",
            )
        schema = schema_of(action.table)
        if isinstance(action, PutItem):
            kept, size = check_item(schema, action.item)
            found.append(Checked(kept, size, size))
        else:
            found.append(Checked(check_key(schema, action.key), 0, MAX_KEY))
    _check_distinct(request.actions, found, schema_of, "batch")
    return found


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


# --- groups ---------------------------------------------------------------------------------------------


def _refuse_type(part: object, what: str) -> InvalidRequestError:
    return InvalidRequestError(f"{type(part).__name__} cannot be part of this {what}")


def _check_distinct(parts: Sequence[Any], found: Sequence[Checked], schema_of: SchemaOf, what: str) -> None:
    identities = []
    for part, (kept, _, _) in zip(parts, found, strict=True):
        schema = schema_of(part.table)
        partition, sort = schema.partition, schema.sort
        sorted_by = None if sort is None else kept[sort.name][sort.type]
        identities.append((part.table, kept[partition.name][partition.type], sorted_by))
    if len({*identities}) < len(identities):
        position = next(position for position, each in enumerate(identities) if each in identities[:position])
        first = identities.index(identities[position])
        raise DuplicateItemError(
            f"positions {first} and {position} of the {what} name the same item of table {parts[position].table}",
            hint=f"an item can appear only once in a {what}: merge the two",
        )


# --- tables ---------------------------------------------------------------------------------------------


def _check_create(request: CreateTable, schema_of: SchemaOf) -> Sequence[Checked]:
    check_schema(request.schema)
    return ()


def _check_add_index(request: AddIndex, schema_of: SchemaOf) -> Sequence[Checked]:
    check_added_index(schema_of(request.table), request.index)
    return ()


def _check_remove_index(request: RemoveIndex, schema_of: SchemaOf) -> Sequence[Checked]:
    schema = schema_of(request.table)
    known = any(index.name == request.index for index in schema.indexes)
    if known or not request.unverified:
        check_removed_index(schema, request.index)
    return ()


def _check_ttl(request: SetTtl, schema_of: SchemaOf) -> Sequence[Checked]:
    if request.attribute is not None and not 1 <= len(request.attribute.encode()) <= 255:
        raise ConfigurationError("the name of the TTL attribute must have 1 to 255 bytes")
    return _check_name(request, schema_of)


def _check_name(
    request: DescribeTable | DeleteTable | DescribeTtl | SetTtl, schema_of: SchemaOf
) -> Sequence[Checked]:
    check_table_name(request.table)
    return ()


_RULES: dict[type[Any], Callable[[Any, SchemaOf], Sequence[Checked]]] = {
    GetItem: _check_get,
    BatchGet: _check_batch_get,
    TransactGet: _check_transact_get,
    Query: _check_page,
    Scan: _check_page,
    PutItem: _check_write,
    UpdateItem: _check_write,
    DeleteItem: _check_write,
    TransactWrite: _check_transact_write,
    BatchWrite: _check_batch_write,
    DescribeTable: _check_name,
    CreateTable: _check_create,
    DeleteTable: _check_name,
    AddIndex: _check_add_index,
    RemoveIndex: _check_remove_index,
    DescribeTtl: _check_name,
    SetTtl: _check_ttl,
}

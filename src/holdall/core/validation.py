"""DynamoDB's limits and rules, checked by us first and in our words.

Pure. Every backend checks a request before it sends or writes anything, so that what works on one works on all. The
rules know the table's schema but no item in store.
"""

from __future__ import annotations

from typing import Any, get_args

from holdall.core.expression_limits import check_condition, check_update
from holdall.core.expressions import (
    Set,
    Update,
    Value,
)
from holdall.core.group_rules import (
    SchemaOf,
    check_batch_get,
    check_batch_write,
    check_transact_get,
    check_transact_write,
)
from holdall.core.key_rules import (
    MAX_KEY,
    canonical_attribute,
    check_index_key,
    check_scalar_keys,
    checked_item,
    checked_key,
)
from holdall.core.page_rules import check_page, check_read
from holdall.core.payload import check_payload, check_substitutions
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
from holdall.core.schema import TableSchema
from holdall.core.schema_rules import check_added_index, check_schema, check_ttl_attribute
from holdall.errors import (
    InvalidKeyError,
    InvalidRequestError,
)

__all__ = ["check", "check_write"]

_RETURNS = get_args(Returns)


def check(request: Request[Any], schema_of: SchemaOf) -> None:
    """Everything that can be known about a request before it is sent; `InvalidRequestError` and its kind."""
    match request:
        case GetItem():
            check_read(schema_of(request.table), request)
            checked_key(schema_of(request.table), request.key)
        case Query() | Scan():
            check_page(schema_of(request.table), request)
        case PutItem() | UpdateItem() | DeleteItem():
            _check_action(schema_of(request.table), request)
        case TransactWrite():
            check_transact_write(request, schema_of)
            check_payload(request, sum([_check_action(schema_of(a.table), a) for a in request.actions]))
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
    """Check one write; return an upper bound of the bytes that it counts in a transaction."""
    bound = check_write(schema, action)
    if isinstance(action, PutItem):
        return bound + checked_item(schema, action.item)[1]
    checked_key(schema, action.key)
    return bound + MAX_KEY


def check_write(schema: TableSchema, write: TransactAction) -> int:
    """Check the condition and update of a write; `checked_item` or `checked_key` checks its item or key.

    Returns an upper bound of the expressions' bytes.
    """
    bound = 0
    if write.condition is not None:
        nested, bound = check_condition(write.condition)
        check_scalar_keys(schema, nested)
    if isinstance(write, UpdateItem):
        nested, more = check_update(write.update)
        bound += more
        _check_key_changes(schema, write.update)
        check_scalar_keys(schema, nested)
    check_substitutions(write, bound)
    returns = "none" if isinstance(write, ConditionCheck) else write.returns
    if returns not in _RETURNS:
        raise InvalidRequestError(f"returns={returns!r}", hint=f"it is one of {', '.join(_RETURNS)}")
    if returns == "new" and not isinstance(write, UpdateItem):
        raise InvalidRequestError("only an update can give back the new item", hint='use returns="old"')
    return bound


def _check_key_changes(schema: TableSchema, update: Update) -> None:
    """No change of the key, and no literal in an index's key that the index cannot take."""
    keys = {part.name for part in schema.keys}
    for action in update.actions:
        if isinstance(action, Set) and isinstance(action.value, Value) and len(action.path.parts) == 1:
            for index in schema.indexes:
                check_index_key(
                    schema, index, {str(action.path.parts[0]): canonical_attribute(action.value.attribute)}
                )
        if action.path.parts[0] in keys:
            raise InvalidKeyError(
                f"{action.path} is part of the key of table {schema.name} and cannot change",
                hint="delete the item and put it under its new key, in one transaction",
            )

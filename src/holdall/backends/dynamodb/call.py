"""Requests as DynamoDB calls: an operation's name and its JSON.

Pure. Every name and value in an expression is aliased. A `BatchGet` or `BatchWrite` becomes one call; the sender
repeats what the service leaves unprocessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from holdall.core.expressions import Path
from holdall.core.expressions.renderer import render
from holdall.core.expressions.shape import Expression
from holdall.core.frozen import dataclass
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
    Scan,
    SetTtl,
    TransactAction,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.payload import expressions_of
from holdall.core.schema import define_addition, define_removal, define_table

Payload: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the service's API."""

    operation: str
    payload: Payload


def render_call(request: Request[Any]) -> Call:
    """The call that a request makes."""
    return Call(request.operation, PAYLOADS[type(request)](request))


_TOTAL = {"ReturnConsumedCapacity": "TOTAL"}
_RETURNS = {"none": "NONE", "old": "ALL_OLD", "new": "ALL_NEW"}


def _get(read: GetItem) -> Payload:
    payload: Payload = {"TableName": read.table, "Key": read.key, **_TOTAL}
    if read.consistent:
        payload["ConsistentRead"] = True
    if read.projection:
        payload |= _project(read.projection)
    return payload


def _batch_get(request: BatchGet) -> Payload:
    tables: dict[str, dict[str, Any]] = {}
    for read in request.reads:
        if read.table not in tables:
            manner = {"ConsistentRead": read.consistent, **_project(_with_key(read))}
            tables[read.table] = {"Keys": [], **manner}
        tables[read.table]["Keys"].append(read.key)
    return {"RequestItems": tables, **_TOTAL}


def _with_key(read: GetItem) -> tuple[Path, ...]:
    """The projection, with the key attributes by which an item is matched to its read."""
    if not read.projection:
        return ()
    tops = {path.parts[0] for path in read.projection}
    return (*read.projection, *(Path((name,)) for name in read.key if name not in tops))


def _transact_get(request: TransactGet) -> Payload:
    gets = [
        {"Get": {"TableName": read.table, "Key": read.key, **_project(read.projection)}}
        for read in request.reads
    ]
    return {"TransactItems": gets, **_TOTAL}


def _query(request: Query) -> Payload:
    payload = _page(request, {"KeyConditionExpression": request.key})
    payload["ScanIndexForward"] = not request.reverse
    return payload


def _scan(request: Scan) -> Payload:
    payload = _page(request, {})
    if request.segments > 1:
        payload |= {"Segment": request.segment, "TotalSegments": request.segments}
    return payload


def _page(request: Query | Scan, expressions: dict[str, Expression]) -> dict[str, Any]:
    payload: Payload = {"TableName": request.table, **_TOTAL}
    if request.index is not None:
        payload["IndexName"] = request.index
    if request.filter is not None:
        expressions["FilterExpression"] = request.filter
    if request.count_only:
        payload["Select"] = "COUNT"
    elif request.projection:
        expressions["ProjectionExpression"] = request.projection
    if request.limit is not None:
        payload["Limit"] = request.limit
    if request.start_after is not None:
        payload["ExclusiveStartKey"] = request.start_after
    if request.consistent:
        payload["ConsistentRead"] = True
    return payload | render(expressions)


def _single(write: PutItem | UpdateItem | DeleteItem) -> Payload:
    payload = _write(write) | _TOTAL
    if write.returns != "none":
        payload["ReturnValues"] = _RETURNS[write.returns]
    return payload


def _write(action: TransactAction) -> dict[str, Any]:
    """What single writes and the actions of a transaction have in common."""
    payload: Payload = {"TableName": action.table}
    if isinstance(action, PutItem):
        payload["Item"] = action.item
    else:
        payload["Key"] = action.key
    payload |= render(expressions_of(action))
    if action.item_on_failure:
        payload["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return payload


def _transact_write(request: TransactWrite) -> Payload:
    actions = [{_VERBS[type(action)]: _write(action)} for action in request.actions]
    return {"TransactItems": actions, "ClientRequestToken": request.token, **_TOTAL}


_VERBS: dict[type[Any], str] = {
    PutItem: "Put",
    UpdateItem: "Update",
    DeleteItem: "Delete",
    ConditionCheck: "ConditionCheck",
}


def _batch_write(request: BatchWrite) -> Payload:
    tables: dict[str, list[Any]] = {}
    for action in request.actions:
        if isinstance(action, PutItem):
            step: dict[str, Any] = {"PutRequest": {"Item": action.item}}
        else:
            step = {"DeleteRequest": {"Key": action.key}}
        tables.setdefault(action.table, []).append(step)
    return {"RequestItems": tables, **_TOTAL}


def _project(projection: tuple[Path, ...]) -> dict[str, Any]:
    return render({"ProjectionExpression": projection}) if projection else {}


def _create(request: CreateTable) -> Payload:
    return define_table(request.schema)


def _add_index(request: AddIndex) -> Payload:
    return define_addition(request.table, request.index)


def _remove_index(request: RemoveIndex) -> Payload:
    return define_removal(request.table, request.index)


def _table(request: DescribeTable | DeleteTable | DescribeTtl) -> Payload:
    return {"TableName": request.table}


def set_ttl(request: SetTtl, current: str | None = None) -> Payload:
    """The payload that sets the attribute by which items expire, or turns off expiry by the ``current`` one."""
    name = request.attribute if request.attribute is not None else current
    enabled = request.attribute is not None
    specification = {"AttributeName": name, "Enabled": enabled}
    return {"TableName": request.table, "TimeToLiveSpecification": specification}


PAYLOADS: dict[type[Any], Callable[[Any], Payload]] = {
    GetItem: _get,
    BatchGet: _batch_get,
    TransactGet: _transact_get,
    Query: _query,
    Scan: _scan,
    PutItem: _single,
    UpdateItem: _single,
    DeleteItem: _single,
    TransactWrite: _transact_write,
    BatchWrite: _batch_write,
    DescribeTable: _table,
    CreateTable: _create,
    DeleteTable: _table,
    AddIndex: _add_index,
    RemoveIndex: _remove_index,
    DescribeTtl: _table,
    SetTtl: set_ttl,
}

"""DynamoDB's replies as ours.

Pure. The sender handles what needs more than one call: unprocessed batch items, waiting for a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdall.core.expressions.evaluation import project
from holdall.core.measure import canonical_item
from holdall.core.requests import (
    BatchGet,
    BatchGetReply,
    DeleteItem,
    DescribeTable,
    DescribeTtl,
    Done,
    GetItem,
    GetReply,
    Page,
    PutItem,
    Query,
    Request,
    Scan,
    TableDescription,
    TransactGet,
    TransactWrite,
    TtlDescription,
    UpdateItem,
    WriteReply,
)
from holdall.core.schema import KeyAttribute, Projection, TableSchema, make_index
from holdall.core.values import Item
from holdall.errors import MalformedReplyError

Payload = Mapping[str, Any]

MALFORMED = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""What parsing a reply raises if it is malformed."""

_LEAVES: dict[str, type[Any]] = {"S": str, "N": str, "B": str, "BOOL": bool, "NULL": bool}
_SETS = ("SS", "NS", "BS")

STAMPED = "StampedItem"
"""Where `holdall.backends.dynamodb.delivery` puts the item whose stamp shows that a write has succeeded."""

UNVOUCHED = "Unvouched"
"""Marks a reply without DynamoDB's checksum: then every item of a page is checked."""


def decode_reply(request: Request[Any], payload: Payload) -> Any:
    """The reply to a request that one call answers; `MalformedReplyError` if it is malformed."""
    try:
        return REPLIES[type(request)](request, payload)
    except MALFORMED as error:
        raise explain_malformed(type(request).__name__, error) from error


def explain_malformed(operation: str, error: Exception) -> MalformedReplyError:
    """The error for a reply that could not be parsed."""
    return MalformedReplyError(
        f"{operation}: the reply does not look like DynamoDB's ({type(error).__name__}: {error!s:.200})",
        hint="check that the endpoint is a DynamoDB endpoint",
    )


def capacity(payload: Payload) -> float:
    """The cost of a call, as the service reports it."""
    consumed = payload.get("ConsumedCapacity")
    if type(consumed) is dict:
        return float(consumed.get("CapacityUnits", 0.0))
    if consumed is None:
        return 0.0
    total = 0.0
    for part in consumed:
        total += float(part.get("CapacityUnits", 0.0))
    return total


def _get(request: GetItem, payload: Payload) -> GetReply:
    item = payload.get("Item")
    if item is not None:
        check_items((item,))
    return GetReply(item, capacity(payload))


def _transact_get(request: TransactGet, payload: Payload) -> BatchGetReply:
    responses = payload["Responses"]
    if len(responses) != len(request.reads):
        raise ValueError(f"{len(responses)} responses to {len(request.reads)} reads")
    return BatchGetReply(tuple(_item((part or {}).get("Item")) for part in responses), capacity(payload))


def _page(request: Query | Scan, payload: Payload) -> Page:
    items = () if request.count_only else _page_items(payload)
    count, scanned = payload["Count"], payload["ScannedCount"]
    if type(count) is not int or type(scanned) is not int:
        raise TypeError("the number of items is not a number")
    return Page(items, count, scanned, _item(payload.get("LastEvaluatedKey")) or None, capacity(payload))


def _page_items(payload: Payload) -> tuple[Item, ...]:
    """The items of a page. Checking all of them takes a third of the time that reading them does, so if the reply has
    DynamoDB's checksum, only one is checked."""
    items = tuple(payload.get("Items", ()))
    if UNVOUCHED in payload:
        check_items(items)
    elif {*map(type, items)} <= {dict}:
        check_items(items[:1])
    else:
        raise TypeError("an item is not an object")
    return items


def check_items(items: Sequence[Any]) -> Sequence[Item]:
    """Return the items; one of `MALFORMED` if one of them does not have the shape of an item.

    Every item that is read passes through here, so it is one plain loop. The decoder checks the content of numbers and
    binaries.
    """
    leaves = _LEAVES.get
    for item in items:
        for value in item.values():
            (kind,) = value
            if leaves(kind) is not type(value[kind]):
                _check_nested(kind, value[kind])
    return items


def is_item(item: Any) -> bool:
    """Whether it has the shape of an item."""
    try:
        check_items((item,))
    except MALFORMED:
        return False
    return True


def _check_nested(kind: str, content: Any) -> None:
    if kind == "M" and type(content) is dict:
        check_items((content,))
    elif kind == "L" and type(content) is list:
        leaves = _LEAVES.get
        for value in content:
            (kind,) = value
            if leaves(kind) is not type(value[kind]):
                _check_nested(kind, value[kind])
    elif kind not in _SETS or type(content) is not list or not {*map(type, content)} <= {str}:
        raise TypeError(f"{kind!r:.20} with a {type(content).__name__}")


def _item(given: Any) -> Item | None:
    return None if given is None else check_items((given,))[0]


def _write(request: PutItem | UpdateItem | DeleteItem, payload: Payload) -> WriteReply:
    item = _item(payload.get("Attributes"))
    if request.returns == "new":
        item = item or payload.get(STAMPED)
    return WriteReply(item or None, capacity(payload))


def _describe(request: DescribeTable, payload: Payload) -> TableDescription:
    return decode_table(payload["Table"])


def _ttl(request: DescribeTtl, payload: Payload) -> TtlDescription:
    description = payload.get("TimeToLiveDescription", {})
    on = description.get("TimeToLiveStatus") in ("ENABLED", "ENABLING")
    return TtlDescription(description.get("AttributeName") if on else None)


REPLIES: dict[type[Any], Callable[[Any, Payload], Any]] = {
    GetItem: _get,
    TransactGet: _transact_get,
    Query: _page,
    Scan: _page,
    PutItem: _write,
    UpdateItem: _write,
    DeleteItem: _write,
    TransactWrite: lambda request, payload: Done(capacity(payload)),
    DescribeTable: _describe,
    DescribeTtl: _ttl,
}


def decode_batch_get(request: BatchGet, payloads: list[Payload]) -> BatchGetReply:
    """The items of one or more calls, in the order of the reads and with the requested projection."""
    try:
        return _batch_get(request, payloads)
    except MALFORMED as error:
        raise explain_malformed("BatchGet", error) from error


def _batch_get(request: BatchGet, payloads: list[Payload]) -> BatchGetReply:
    found: dict[tuple[str, str], Item] = {}
    names = {read.table: tuple(sorted(read.key)) for read in request.reads}
    for payload in payloads:
        for table, items in payload.get("Responses", {}).items():
            for item in check_items(items):
                found[table, _identity({name: item[name] for name in names[table]})] = item
    replies: list[Item | None] = []
    for read in request.reads:
        reply = found.get((read.table, _identity(read.key)))
        if reply is not None and read.projection:
            reply = project(read.projection, reply)
        replies.append(reply)
    return BatchGetReply(tuple(replies), sum(map(capacity, payloads)))


def _identity(key: Item) -> str:
    return repr(sorted(canonical_item(key)[0].items()))


def decode_table(table: Payload) -> TableDescription:
    """A table from its description."""
    types = {part["AttributeName"]: part["AttributeType"] for part in table["AttributeDefinitions"]}
    indexes = [
        (index, kind == "LocalSecondaryIndexes")
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        for index in table.get(kind) or ()
    ]
    (partition,), sort = _keys(table["KeySchema"], types)
    schema = TableSchema(
        table["TableName"],
        partition,
        sort[0] if sort else None,
        indexes=tuple(
            make_index(index["IndexName"], *_keys(index["KeySchema"], types), _projection(index), local)
            for index, local in indexes
            if not _is_vanishing(index, types)
        ),
    )
    states = {index["IndexName"]: index.get("IndexStatus", "ACTIVE") for index, _ in indexes}
    return TableDescription(
        schema,
        table["TableStatus"],
        states,
        table.get("ItemCount", 0),
        table.get("TableSizeBytes", 0),
        table.get("TableId"),
    )


def _is_vanishing(index: Payload, types: Mapping[str, Any]) -> bool:
    """Whether an index is being removed, and the attributes of its key are no longer described."""
    undefined = any(part["AttributeName"] not in types for part in index["KeySchema"])
    return undefined and index.get("IndexStatus") == "DELETING"


def _keys(schema: list[Payload], types: Mapping[str, Any]) -> tuple[list[KeyAttribute], list[KeyAttribute]]:
    """The attributes of the partition key and of the sort key."""
    found: dict[str, list[KeyAttribute]] = {"HASH": [], "RANGE": []}
    for part in schema:
        name = part["AttributeName"]
        found[part["KeyType"]].append(KeyAttribute(name, types[name]))
    return found["HASH"], found["RANGE"]


def _projection(index: Payload) -> Projection:
    projection = index.get("Projection", {})
    names = tuple(projection.get("NonKeyAttributes") or ())
    return Projection(projection.get("ProjectionType", "ALL"), names)

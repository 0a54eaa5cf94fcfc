"""The pure core: values, expressions, requests, schemas and the port. Does no I/O, and imports nothing but errors.

Use these names to work below the models: to send typed requests with ``db.send``, or to write procedures that run both
sync and async.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdall.core.cursor import AwaitingPages, BlockingPages, Cursor, PageCursor
from holdall.core.expressions import (
    Add,
    And,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Delete,
    Exists,
    IfNotExists,
    In,
    KeyCondition,
    ListAppend,
    Minus,
    Node,
    Not,
    NotExists,
    Or,
    Path,
    Plus,
    Remove,
    Set,
    Size,
    TypeIs,
    Update,
    Value,
    path,
    value,
)
from holdall.core.keys import sort_parts, sort_text
from holdall.core.measure import item_size
from holdall.core.port import Backend, Outcome, Port, run
from holdall.core.requests import (
    AddIndex,
    BatchGet,
    BatchGetReply,
    BatchWrite,
    ConditionCheck,
    CreateTable,
    DeleteItem,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    Done,
    GetItem,
    GetReply,
    Page,
    PutItem,
    Query,
    RemoveIndex,
    Request,
    Scan,
    SetTtl,
    TableDescription,
    TransactGet,
    TransactWrite,
    TtlDescription,
    UpdateItem,
    WriteReply,
)
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema
from holdall.core.shell import awaiting, blocking
from holdall.core.stamp import stamped
from holdall.core.values import Attribute, Item, decode, decode_item, encode, encode_item
from holdall.lazy import fetch_names

if TYPE_CHECKING:
    from holdall.core.rules.object import check_object_request

__all__ = [
    "Add",
    "AddIndex",
    "And",
    "Attribute",
    "AwaitingPages",
    "Backend",
    "BatchGet",
    "BatchGetReply",
    "BatchWrite",
    "BeginsWith",
    "Between",
    "BlockingPages",
    "Compare",
    "Condition",
    "ConditionCheck",
    "Contains",
    "CreateTable",
    "Cursor",
    "Delete",
    "DeleteItem",
    "DeleteTable",
    "DescribeTable",
    "DescribeTtl",
    "Done",
    "Exists",
    "GetItem",
    "GetReply",
    "IfNotExists",
    "In",
    "IndexSchema",
    "Item",
    "KeyAttribute",
    "KeyCondition",
    "ListAppend",
    "Minus",
    "Node",
    "Not",
    "NotExists",
    "Or",
    "Outcome",
    "Page",
    "PageCursor",
    "Path",
    "Plus",
    "Port",
    "Projection",
    "PutItem",
    "Query",
    "RemoveIndex",
    "Remove",
    "Request",
    "Scan",
    "Set",
    "SetTtl",
    "Size",
    "TableDescription",
    "TableSchema",
    "TransactGet",
    "TransactWrite",
    "TtlDescription",
    "TypeIs",
    "Update",
    "UpdateItem",
    "Value",
    "WriteReply",
    "awaiting",
    "blocking",
    "check_object_request",
    "decode",
    "decode_item",
    "encode",
    "encode_item",
    "item_size",
    "path",
    "run",
    "sort_parts",
    "sort_text",
    "stamped",
    "value",
]

_HOMES = {"check_object_request": ".rules.object"}

__getattr__ = fetch_names(__name__, _HOMES)

"""Requests that show whether actions are permitted, and cannot change anything. Pure.

AWS decides whether a request is permitted before it looks at conditions, and at whether an item, an object or an upload
exists. So any other refusal shows that the action is permitted. Every write below has one of these reasons to fail, or
to do nothing; ``id`` is a new random id, so that nothing exists under the keys that are made from it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from holdall.core.expressions import Condition, Exists, KeyCondition, NotExists, Path, Set, Update, Value
from holdall.core.frozen import dataclass
from holdall.core.objects import (
    AbortUpload,
    DeleteObject,
    GetObject,
    GetTags,
    HeadObject,
    ListObjects,
    ListParts,
    ListUploads,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    ConditionCheck,
    DeleteItem,
    DescribeTtl,
    GetItem,
    PutItem,
    Query,
    RemoveIndex,
    Request,
    Scan,
    TransactWrite,
    UpdateItem,
)
from holdall.core.schema import IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Attribute
from holdall.errors import (
    ConditionFailedError,
    HoldallError,
    IndexNotFoundError,
    ObjectNotFoundError,
    PreconditionFailedError,
    TableNotFoundError,
    TransactionCanceledError,
)

_ETAG = "holdall-doctor"
_NO_INDEX = (IndexNotFoundError, TableNotFoundError)  # DynamoDB does not distinguish them

UNTRIED: Mapping[str, str] = {
    "dynamodb:CreateTable": "if another process had just deleted the table, the request would create it",
    "s3:CreateBucket": "if the bucket had just been deleted, the request would create it",
    "dynamodb:UpdateTimeToLive": "DynamoDB does not document a request that is certain to change nothing",
    "kms:GenerateDataKey": "S3 uses the key only to store an object",
}
"""The actions that are not tried, and why."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A request that tries an action; ``also`` are other actions that it needs on the same table or bucket.

    If it fails with one of the ``refusals``, the action is permitted.
    """

    action: str
    request: Request[Any]
    also: tuple[str, ...] = ()
    refusals: tuple[type[HoldallError], ...] = (
        ConditionFailedError,
        TransactionCanceledError,
        PreconditionFailedError,
        ObjectNotFoundError,
    )


def plan_table_trials(schema: TableSchema, id: str, token: str) -> tuple[Trial, ...]:
    """The trials for a table, except of its indexes."""
    table, key = schema.name, {part.name: _invent(part, id) for part in schema.keys}
    path = Path((schema.partition.name,))
    never: Condition = Exists(path) & NotExists(path)  # an item cannot have an attribute and lack it
    read = GetItem(table, key, consistent=True)
    update = Update((Set(Path(("doctor",)), Value({"BOOL": True})),))
    return (
        Trial("dynamodb:DescribeTimeToLive", DescribeTtl(table)),
        Trial("dynamodb:GetItem", read),
        Trial("dynamodb:BatchGetItem", BatchGet((read,))),
        Trial("dynamodb:Query", _query(schema, None, id)),
        Trial("dynamodb:Scan", Scan(table, limit=1, fresh=True)),
        Trial("dynamodb:PutItem", PutItem(table, key, never)),
        Trial("dynamodb:UpdateItem", UpdateItem(table, key, update, never)),
        Trial("dynamodb:DeleteItem", DeleteItem(table, key, never)),
        Trial("dynamodb:ConditionCheckItem", TransactWrite((ConditionCheck(table, key, never),), token)),
        # a batch has no conditions; it deletes an item that does not exist, because its key is new
        Trial("dynamodb:BatchWriteItem", BatchWrite((DeleteItem(table, key),))),
        # no index has this name
        Trial(
            "dynamodb:UpdateTable", RemoveIndex(table, f"holdall-doctor-{id}", unverified=True), (), _NO_INDEX
        ),
    )


def plan_index_trial(schema: TableSchema, index: IndexSchema, id: str) -> Trial:
    """The trial for an index of a table."""
    return Trial("dynamodb:Query", _query(schema, index, id))


def plan_listing_trial(service: str) -> Trial:
    """The trial that comes first: its reply has an object of the service, if there is one."""
    return Trial("s3:ListBucket", ListObjects(service, limit=1))


def plan_service_trials(service: str, known: str | None, id: str) -> tuple[Trial, ...]:
    """The other trials for a file service; ``known`` is the key of an object there, None if that is not known.

    An object is replaced or deleted only if it has an etag that no object has, and S3 needs permission to read it for
    that. An upload that does not exist can be neither continued nor aborted. A server other than AWS is first tested
    for conditions (`holdall.backends.s3.condition`), which needs permission to put and delete.
    """
    key = f"holdall-doctor/{id}"
    upload, listing = Upload(key, id), ("s3:ListBucket",)
    matching = (*listing, "s3:GetObject", "s3:PutObject")
    changing = (*matching, "s3:DeleteObject", "s3:PutObjectAcl")
    tags = {"holdall": "doctor"}
    reading = (
        # without permission to list, S3 reports a missing object as forbidden
        Trial("s3:GetObject", HeadObject(service, key), listing),
        Trial("s3:GetObjectTagging", GetTags(service, key), listing),
    )
    if known is not None:
        reading = (
            Trial("s3:GetObject", GetObject(service, known, 0, 1)),
            Trial("s3:GetObjectTagging", GetTags(service, known)),
        )
    return (
        *reading,
        Trial("s3:ListBucketMultipartUploads", ListUploads(service, key)),
        Trial("s3:ListMultipartUploadParts", ListParts(service, upload)),
        Trial("s3:AbortMultipartUpload", AbortUpload(service, upload)),
        Trial("s3:PutObject", UploadPart(service, upload, 1, b"doctor")),
        Trial("s3:DeleteObject", DeleteObject(service, key, _ETAG), matching),
        Trial("s3:PutObjectAcl", PutObject(service, key, b"", if_match=_ETAG), changing),
        Trial("s3:PutObjectTagging", PutObject(service, key, b"", if_match=_ETAG, tags=tags), changing),
    )


def _query(schema: TableSchema, index: IndexSchema | None, id: str) -> Query:
    first, *more = (schema if index is None else index).partitions
    also = tuple((part.name, _invent(part, id)) for part in more)
    key = KeyCondition(first.name, _invent(first, id), also=also)
    return Query(schema.name, key, None if index is None else index.name, limit=1, fresh=True)


def _invent(part: KeyAttribute, id: str) -> Attribute:
    """The value of a key attribute of an item that does not exist."""
    text = f"holdall#Doctor#{id}"
    if part.type == "S":
        return {"S": text}
    if part.type == "B":
        return {"B": b64encode(text.encode()).decode("ascii")}
    return {"N": str(int(sha256(text.encode()).hexdigest(), 16) % 10**38)}

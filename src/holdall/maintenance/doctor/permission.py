"""The check of permissions: each action is tried by a request whose condition is never true, so it changes nothing.

AWS decides whether a request is permitted before it looks at the condition, so a condition that fails shows that the
action is permitted. ``BatchWriteItem`` has no conditions, so it is not tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from holdall.core.expressions import Condition, Exists, NotExists, Path, Set, Update, Value
from holdall.core.frozen import replace
from holdall.core.objects import DeleteObject, HeadObject, ListObjects, PutObject
from holdall.core.requests import (
    BatchGet,
    ConditionCheck,
    DeleteItem,
    GetItem,
    PutItem,
    Request,
    Scan,
    TransactWrite,
    UpdateItem,
)
from holdall.errors import AccessDeniedError, HoldallError
from holdall.maintenance.doctor.work import Work
from holdall.tables.layout import Layout

_ALL = "models, jobs, attachments, artifacts and the archive"
_FILES = "files, attachments, artifacts and the archive"
_NEEDED_BY = {
    "dynamodb:GetItem": _ALL,
    "dynamodb:Query": _ALL,
    "dynamodb:PutItem": _ALL,
    "dynamodb:UpdateItem": _ALL,
    "dynamodb:DeleteItem": _ALL,
    "dynamodb:ConditionCheckItem": _ALL,
    "dynamodb:BatchGetItem": "attachments and artifacts",
    "dynamodb:Scan": "scans, migrations, archive runs and this check",
    "s3:GetObject": _FILES,
    "s3:PutObject": _FILES,
    "s3:DeleteObject": _FILES,
    "s3:ListBucket": "listings and sweeps",
}
_ETAG = '"holdall-doctor"'


async def check_permissions(work: Work, layout: Layout | None) -> frozenset[str]:
    """Report the actions that are denied, and return those on the table."""
    denied = set()
    if layout is not None:
        for action, request in _plan_table_requests(work, layout).items():
            if await _try(work, request) == "denied":
                denied.add(action)
                await _report(work, f"table {layout.table}", action)
    for service in work.services:
        await _check_service(work, service)
    return frozenset(denied)


async def _check_service(work: Work, service: str) -> None:
    subject, key = f"file service {service}", f"holdall-doctor/{work.context.port.new_id()}"
    listed = await _try(work, ListObjects(service, key))
    if listed == "denied":
        await _report(work, subject, "s3:ListBucket")
    elif await _try(work, HeadObject(service, key)) == "denied":
        # without s3:ListBucket, S3 answers a request for a missing object as if reading was denied
        await _report(work, subject, "s3:GetObject")
    put = await _try(work, PutObject(service, key, b"", if_match=_ETAG))
    if put == "denied":
        await _report(work, subject, "s3:PutObject")
    if await _try(work, DeleteObject(service, key, if_match=_ETAG)) == "denied":
        await _report(work, subject, "s3:DeleteObject")
    elif put == "done":  # the server ignores conditions
        await _try(work, DeleteObject(service, key))


def _plan_table_requests(work: Work, layout: Layout) -> Mapping[str, Request[Any]]:
    """A request for each action on the table, none of which can change anything."""
    table, place = layout.table, f"holdall#Doctor#{work.context.port.new_id()}"
    address = layout.address(place, "#", place)
    path = Path((layout.partition.name,))
    never: Condition = Exists(path) & NotExists(path)
    read = GetItem(table, address.key, True)
    update = Update((Set(Path(("doctor",)), Value({"BOOL": True})),))
    check = ConditionCheck(table, address.key, never)
    return {
        "dynamodb:GetItem": read,
        "dynamodb:Query": replace(layout.listing(place), limit=1),
        "dynamodb:PutItem": PutItem(table, address.attributes, never),
        "dynamodb:UpdateItem": UpdateItem(table, address.key, update, never),
        "dynamodb:DeleteItem": DeleteItem(table, address.key, never),
        "dynamodb:ConditionCheckItem": TransactWrite((check,), work.context.port.new_id()),
        "dynamodb:BatchGetItem": BatchGet((read,)),
        "dynamodb:Scan": Scan(table, limit=1),
    }


async def _try(work: Work, request: Request[Any]) -> Literal["denied", "refused", "done"]:
    try:
        await work.context.port.send(request)
    except AccessDeniedError:
        return "denied"
    except HoldallError:
        return "refused"  # the condition failed, as it should; or another check reports the problem
    return "done"


async def _report(work: Work, subject: str, action: str) -> None:
    await work.find("permissions", "error", subject, f"{action} is denied; {_NEEDED_BY[action]} need it")

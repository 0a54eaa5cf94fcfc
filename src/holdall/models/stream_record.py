"""Checks records of DynamoDB Streams, as a Lambda function or GetRecords returns them. Pure."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from holdall.core.measure import canonical_item
from holdall.core.values import Item
from holdall.errors import InvalidRequestError, InvalidValueError

_KINDS: dict[str, Literal["insert", "modify", "remove"]] = {
    "INSERT": "insert",
    "MODIFY": "modify",
    "REMOVE": "remove",
}
_EXPIRER = "dynamodb.amazonaws.com"


def list_records(event: Any) -> Iterable[Any]:
    """Return the records of an event, which may be the records themselves; none of them is checked yet."""
    records = event.get("Records") if isinstance(event, Mapping) else event
    if records is None:
        raise refuse_record("it has no Records", hint="for a single record, use stream_change")
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise refuse_record(f"its records must be a list, not {type(records).__name__}")
    return records


def refuse_record(problem: str, *, hint: str | None = None) -> InvalidRequestError:
    """Return an error that says what is wrong, without the content of the record."""
    usual = "pass the event of your Lambda function, or the reply of GetRecords"
    return InvalidRequestError(f"this is not from a DynamoDB stream: {problem}", hint=hint or usual)


class StreamRecord:
    """A record, checked: its keys, and its images in DynamoDB's JSON form."""

    def __init__(self, record: Any) -> None:
        if not isinstance(record, Mapping):
            raise refuse_record(f"a record must be a mapping, not {type(record).__name__}")
        source = record.get("eventSource", "aws:dynamodb")
        if source != "aws:dynamodb":
            raise refuse_record(f"its eventSource is {source!r:.40}")
        event, change = record.get("eventName"), record.get("dynamodb")
        kind = _KINDS.get(event) if isinstance(event, str) else None
        if kind is None:
            raise refuse_record(f"its eventName is {event!r:.40}")
        if not isinstance(change, Mapping):
            raise refuse_record("a record has no 'dynamodb'")
        self.kind = kind
        self.keys = _item("Keys", change.get("Keys"))
        self.old, self.new = (
            None if change.get(name) is None else _item(name, change[name])
            for name in ("OldImage", "NewImage")
        )
        self.table = _table_name(record.get("eventSourceARN"))
        self.expired = kind == "remove" and _was_expirer(record.get("userIdentity"))
        self.sequence_number: str | None = change.get("SequenceNumber")
        self.at = _moment(change.get("ApproximateCreationDateTime"))
        self.event_id: str | None = record.get("eventID")


def _table_name(arn: object) -> str | None:
    """Find the table in ``arn:aws:dynamodb:eu-central-1:1234:table/Orders/stream/2026-01-31T09:30:00.000``."""
    if arn is None:
        return None
    _, mark, rest = arn.partition(":table/") if isinstance(arn, str) else ("", "", "")
    if not mark or not rest:
        raise refuse_record("its eventSourceARN is not the ARN of a table's stream")
    return rest.partition("/")[0]


def _was_expirer(identity: object) -> bool:
    """Whether the identity is DynamoDB's TTL. Lambda and GetRecords spell the name differently."""
    if not isinstance(identity, Mapping):
        return False
    return _EXPIRER in (identity.get("principalId"), identity.get("PrincipalId"))


def _moment(given: object) -> datetime | None:
    """Return a time that Lambda gives as seconds since 1970 and boto3 as a datetime."""
    if isinstance(given, datetime):
        return given.astimezone(UTC)
    return datetime.fromtimestamp(float(given), UTC) if isinstance(given, int | float | Decimal) else None


def _item(name: str, given: object) -> Item:
    """Check attributes; errors do not contain their content."""
    if given is None:
        raise refuse_record(f"a record has no {name}")
    if not isinstance(given, Mapping) or not given:
        raise refuse_record(f"its {name} are not attributes")
    try:
        return canonical_item({each: _attribute(value) for each, value in given.items()})[0]
    except InvalidValueError:
        hint = 'DynamoDB\'s JSON form is {"name": {"S": "text"}}'
        raise refuse_record(f"its {name} are not in DynamoDB's JSON form", hint=hint) from None


def _attribute(given: Any) -> Any:
    """Return an attribute with bytes, as boto3 returns them, converted to base64; everything else unchanged."""
    if not isinstance(given, Mapping) or len(given) != 1:
        return given
    ((kind, content),) = given.items()
    if kind == "B":
        return {kind: _base64(content)}
    if kind == "M" and isinstance(content, Mapping):
        return {kind: {name: _attribute(each) for name, each in content.items()}}
    if kind in ("L", "BS") and isinstance(content, list):
        return {kind: [_attribute(each) if kind == "L" else _base64(each) for each in content]}
    return given


def _base64(content: Any) -> Any:
    return b64encode(content).decode("ascii") if isinstance(content, bytes | bytearray) else content

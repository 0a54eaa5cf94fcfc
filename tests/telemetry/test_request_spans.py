"""One span per request: its names, costs, errors and parents."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode
from telemetry_rig import COLOURS, Account, Entry, open_faulty, set_up_telemetry

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    BatchGet,
    BatchWrite,
    CreateTable,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    KeyCondition,
    PutItem,
    Query,
    Scan,
    SetTtl,
    TransactGet,
    TransactWrite,
    path,
)
from holdall.core.expressions import NotExists
from holdall.core.requests import Request
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.errors import ConditionFailedError, ThrottledError
from holdall.testing import Fault

TABLE = "holdall"
KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}
PUT, GET = PutItem(TABLE, KEY), GetItem(TABLE, KEY)
OTHER = TableSchema("other", KeyAttribute("pk", "S"))


def send(colour: str, db: Database, request: Request[Any]) -> Any:
    return db.send(request) if colour == "blocking" else asyncio.run(db.aio.send(request))


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(
    ("request_", "name", "more"),
    [
        (GET, "GetItem holdall", {"aws.dynamodb.consistent_read": False}),
        (GetItem(TABLE, KEY, True), "GetItem holdall", {"aws.dynamodb.consistent_read": True}),
        (BatchGet((GET,)), "BatchGetItem holdall", {"db.operation.batch.size": 1}),
        (TransactGet((GET,)), "TransactGetItems holdall", {"db.operation.batch.size": 1}),
        (
            Query(TABLE, KeyCondition("pk", {"S": "p"}), limit=3, reverse=True),
            "Query holdall",
            {
                "aws.dynamodb.consistent_read": False,
                "aws.dynamodb.limit": 3,
                "aws.dynamodb.scan_forward": False,
                "aws.dynamodb.count": 0,
                "aws.dynamodb.scanned_count": 0,
            },
        ),
        (
            Scan(TABLE, segments=4, segment=3),
            "Scan holdall",
            {
                "aws.dynamodb.consistent_read": False,
                "aws.dynamodb.segment": 3,
                "aws.dynamodb.total_segments": 4,
                "aws.dynamodb.count": 0,
                "aws.dynamodb.scanned_count": 0,
            },
        ),
        (PUT, "PutItem holdall", {}),
        (TransactWrite((PUT,), "token"), "TransactWriteItems holdall", {"db.operation.batch.size": 1}),
        (BatchWrite((PUT,)), "BatchWriteItem holdall", {"db.operation.batch.size": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_span_has_the_operation_the_table_and_the_cost(
    request_: Request[Any], name: str, more: dict[str, Any], colour: str
) -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        capacity = send(colour, db, request_).capacity
    (span,) = recording.spans
    assert span.name == name
    assert span.kind is SpanKind.INTERNAL  # the store is in this process
    assert span.status.status_code is StatusCode.UNSET
    assert span.events == ()
    attributes: dict[str, Any] = dict(span.attributes or {})
    (cost,) = attributes.pop("aws.dynamodb.consumed_capacity")
    assert json.loads(cost) == {"TableName": TABLE, "CapacityUnits": capacity}
    assert attributes == {
        "db.system.name": "holdall",
        "db.operation.name": name.partition(" ")[0],
        "db.collection.name": TABLE,
        "aws.dynamodb.table_names": (TABLE,),
        "holdall.consumed_capacity": capacity,
        **more,
    }
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "holdall"


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (DescribeTable(TABLE), "DescribeTable holdall"),
        (CreateTable(OTHER), "CreateTable other"),
        (DeleteTable(TABLE), "DeleteTable holdall"),
        (DescribeTtl(TABLE), "DescribeTimeToLive holdall"),
        (SetTtl(TABLE, "gone"), "UpdateTimeToLive holdall"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_requests_about_tables_have_dynamodbs_names(request_: Request[Any], name: str) -> None:
    with Database("memory:") as db:
        db.table.create()
        db.send(SetTtl(TABLE, None))
        with set_up_telemetry() as recording:
            db.send(request_)
    (span,) = recording.spans
    assert span.name == name
    assert span.attributes is not None
    assert span.attributes["db.operation.name"] == name.partition(" ")[0]


def test_the_span_of_a_request_to_several_tables_names_none_of_them() -> None:
    with Database("memory:") as db:
        db.table.create()
        db.send(CreateTable(OTHER))
        with set_up_telemetry() as recording:
            db.send(TransactGet((GET, GetItem("other", {"pk": {"S": "p"}}))))
    span = recording.find_span("TransactGetItems")
    assert span.name == "TransactGetItems"
    assert span.attributes is not None
    assert span.attributes["aws.dynamodb.table_names"] == (TABLE, "other")
    assert span.attributes["db.operation.batch.size"] == 2
    assert "db.collection.name" not in span.attributes


@pytest.mark.parametrize("colour", COLOURS)
def test_an_error_is_recorded_only_as_its_code(colour: str) -> None:
    with open_faulty() as (db, _):
        db.send(PUT)
        with set_up_telemetry() as recording, pytest.raises(ConditionFailedError):
            send(colour, db, PutItem(TABLE, KEY, NotExists(path("pk"))))
    (span,) = recording.spans
    assert span.attributes is not None
    assert span.attributes["error.type"] == "condition-failed"
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "condition-failed")
    assert span.events == ()


def test_a_request_to_a_service_is_a_client_span_with_the_services_error_code() -> None:
    class Refusing:
        def send_blocking(self, request: Request[Any]) -> Any:
            error = ThrottledError("too fast")
            error.service_code = "ThrottlingException"
            raise error

        async def send_awaiting(self, request: Request[Any]) -> Any:
            return self.send_blocking(request)

        def close(self) -> None:
            pass

    with (
        set_up_telemetry() as recording,
        Database("dynamodb://my-app", backend=Refusing()) as db,
        pytest.raises(ThrottledError),
    ):
        db.send(GetItem("my-app", KEY))
    (span,) = recording.spans
    assert span.kind is SpanKind.CLIENT
    assert span.attributes is not None
    assert span.attributes["db.system.name"] == "aws.dynamodb"
    assert span.attributes["db.response.status_code"] == "ThrottlingException"
    assert span.attributes["error.type"] == "throttled"


def test_a_read_from_the_separate_backend_for_reads_is_marked() -> None:
    cache = EmbeddedBackend(None)
    Database(backend=cache).table.create()
    with Database("memory:", reads=cache) as db:
        db.table.create()
        with set_up_telemetry() as recording:
            db.send(GET)
            db.send(GetItem(TABLE, KEY, True))
            asyncio.run(db.aio.send(GET))
    assert [(span.attributes or {}).get("holdall.reads") for span in recording.spans] == [True, None, True]


@pytest.mark.parametrize("colour", COLOURS)
def test_requests_are_children_of_the_programs_current_span(colour: str) -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        with recording.tracer.start_as_current_span("handle a request"):
            send(colour, db, GET)
        send(colour, db, GET)
    outer = recording.find_span("handle a request")
    assert recording.list_children(outer) == ["GetItem holdall"]
    assert recording.spans[-1].parent is None


@pytest.mark.parametrize("colour", COLOURS)
def test_concurrent_requests_of_one_scan_are_children_of_the_current_span(colour: str) -> None:
    with open_faulty() as (db, _), set_up_telemetry() as recording:
        with recording.tracer.start_as_current_span("count"):
            if colour == "blocking":
                db.scan(Entry, segments=8).count()
            else:
                asyncio.run(db.aio.scan(Entry, segments=8).count())
        assert recording.list_children(recording.find_span("count")) == ["Scan holdall"] * 8


def test_concurrent_tasks_have_their_own_children() -> None:
    async def read(db: Database, recording: Any, name: str) -> None:
        with recording.tracer.start_as_current_span(name):
            for _ in range(5):
                await db.aio.get(Account, name)
                await asyncio.sleep(0)

    async def both(db: Database, recording: Any) -> None:
        await asyncio.gather(*(read(db, recording, name) for name in ("ada", "bo")))

    with open_faulty() as (db, _), set_up_telemetry() as recording:
        asyncio.run(both(db, recording))
    for name in ("ada", "bo"):
        assert recording.list_children(recording.find_span(name)) == ["GetItem holdall"] * 5


def test_a_cancelled_read_ends_its_span_without_an_error_status() -> None:
    class HangingBackend(EmbeddedBackend):
        async def send_awaiting(self, request: Request[Any]) -> Any:
            await asyncio.Event().wait()

    async def cancel(db: Database) -> None:
        task = asyncio.ensure_future(db.aio.send(GET))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with set_up_telemetry() as recording, Database(backend=HangingBackend(None)) as db:
        asyncio.run(cancel(db))
    (span,) = recording.spans
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes is not None
    assert span.attributes["error.type"] == "asyncio.exceptions.CancelledError"


def test_a_failed_request_does_not_affect_the_span_of_the_next() -> None:
    with open_faulty() as (db, backend), set_up_telemetry() as recording:
        backend.inject(Fault.UNAVAILABLE)
        with recording.tracer.start_as_current_span("work"):
            with pytest.raises(Exception, match="on purpose"):
                db.send(GET)
            db.send(GET)
    assert recording.list_children(recording.find_span("work")) == ["GetItem holdall", "GetItem holdall"]

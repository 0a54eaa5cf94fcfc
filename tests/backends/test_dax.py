"""The DAX adapter, with stand-ins for the client of amazon-dax-client 2.1.

DAX has no local server. The stand-ins differ from boto3's client as the DAX client does: no table operations, numbers
as Python formats them, binaries as bytearrays, and error codes of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import types
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ParamValidationError
from botocore.session import get_session
from rig.machine import strip_machine
from rig.servers import ENVIRONMENT, start_server

from holdall import Database, Index, Key, Model, SortKey, col
from holdall.backends.dax import DaxBackend, dax
from holdall.backends.layer.split import SplitBackend
from holdall.core import BatchGet, Compare, GetItem, KeyCondition, PutItem, Query, Scan, Value, path
from holdall.core.requests import Request
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    CredentialsError,
    EndpointError,
    InvalidExpressionError,
    InvalidKeyError,
    InvalidRequestError,
    MalformedReplyError,
    ServiceError,
    ServiceUnavailableError,
    StoreClosedError,
    TableNotFoundError,
    ThrottledError,
)

URL = "dynamodb://my-app?region=eu-central-1&endpoint=http://127.0.0.1:1"
CLUSTER = "daxs://my-cluster.abc123.dax-clusters.eu-west-1.amazonaws.com"
KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}
GET = GetItem("holdall", KEY)


class StandIn:
    """A client that returns prepared answers and records its calls."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.closed = 0

    def _answer(self, name: str, parameters: dict[str, Any]) -> Any:
        self.calls.append((name, parameters))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def get_item(self, **parameters: Any) -> Any:
        return self._answer("get_item", parameters)

    def batch_get_item(self, **parameters: Any) -> Any:
        return self._answer("batch_get_item", parameters)

    def query(self, **parameters: Any) -> Any:
        return self._answer("query", parameters)

    def scan(self, **parameters: Any) -> Any:
        return self._answer("scan", parameters)

    def describe_table(self, **parameters: Any) -> Any:
        raise NotImplementedError("Table operations are not supported on DAX.")

    def close(self) -> None:
        self.closed += 1


def dax_error(message: str | None, code: Any = None, status: int | None = None) -> ClientError:
    """An error as the DAX client raises it: the code is also an attribute, and any part may be missing."""
    response: Any = {}
    if isinstance(code, str) or message:
        response["Error"] = (
            {"Code": code, "Message": message} if isinstance(code, str) else {"Message": message}
        )
    if status is not None:
        response["ResponseMetadata"] = {"HTTPStatusCode": status}
    error = ClientError(response, "GetItem")
    error.code = code
    return error


@contextmanager
def answer_with(*answers: Any) -> Iterator[tuple[Database, StandIn]]:
    """A database in memory with an existing table and a stand-in for its cache."""
    client = StandIn(*answers)
    with Database("memory:", reads=dax(client=client)) as db:
        db.table.create()
        yield db, client


# --- requests and replies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_a_get_calls_the_client_and_returns_the_item_in_dynamodbs_form(colour: str) -> None:
    item = {
        **KEY,
        "hundred": {"N": "1E+2"},
        "half": {"N": "0.50"},
        "raw": {"B": bytearray(b"\x00\xff")},
        "raws": {"BS": [b"a", bytearray(b"b")]},
        "numbers": {"NS": ["1E+1", "2"]},
        "deep": {"M": {"N": {"L": [{"N": "1E+3"}, {"B": b"x"}]}, "B": {"S": "text"}}},
        "none": {"NULL": True},
    }
    with answer_with({"Item": item, "ConsumedCapacity": {"CapacityUnits": Decimal("0.5")}}) as (db, client):
        reply = db.send(GET) if colour == "blocking" else asyncio.run(db.aio.send(GET))
    assert client.calls == [
        ("get_item", {"TableName": "holdall", "Key": KEY, "ReturnConsumedCapacity": "TOTAL"})
    ]
    assert reply.capacity == 0.5
    assert reply.item == {
        **KEY,
        "hundred": {"N": "100"},
        "half": {"N": "0.5"},
        "raw": {"B": "AP8="},
        "raws": {"BS": ["YQ==", "Yg=="]},
        "numbers": {"NS": ["10", "2"]},
        "deep": {"M": {"N": {"L": [{"N": "1000"}, {"B": "eA=="}]}, "B": {"S": "text"}}},
        "none": {"NULL": True},
    }


def test_a_missing_item_is_none() -> None:
    with answer_with({}) as (db, _):
        assert db.send(GET).item is None


def test_binary_values_of_a_request_are_passed_as_bytes() -> None:
    request = Scan("holdall", filter=Compare("=", path("raw"), Value({"B": "AP8="})))
    with answer_with({"Items": [], "Count": 0, "ScannedCount": 7}) as (db, client):
        assert db.send(request).scanned == 7
    ((name, parameters),) = client.calls
    assert name == "scan"
    assert list(parameters["ExpressionAttributeValues"].values()) == [{"B": b"\x00\xff"}]


def test_a_page_of_a_query_continues_where_the_previous_one_ended() -> None:
    request = Query("holdall", KeyCondition("pk", {"S": "p"}), limit=1)
    first = {"Items": [KEY], "Count": 1, "ScannedCount": 1, "LastEvaluatedKey": KEY}
    with answer_with(first, {"Items": [], "Count": 0, "ScannedCount": 0}) as (db, client):
        pages = list(db.pages(request))
    assert [page.count for page in pages] == [1, 0]
    assert [parameters.get("ExclusiveStartKey") for _, parameters in client.calls] == [None, KEY]


def test_unprocessed_keys_of_a_batch_are_requested_again() -> None:
    other = {**KEY, "sk": {"S": "t"}}
    rest = {"holdall": {"Keys": [other], "ConsistentRead": False}}
    first = {"Responses": {"holdall": [KEY]}, "UnprocessedKeys": rest}
    second = {"Responses": {"holdall": [other]}, "UnprocessedKeys": {}}
    with answer_with(first, second) as (db, client):
        reply = db.send(BatchGet((GET, GetItem("holdall", other))))
    assert reply.items == (KEY, other)
    assert client.calls[1][1]["RequestItems"] == rest


@pytest.mark.parametrize("colour", ["blocking", "awaiting"])
def test_an_invalid_request_is_refused_before_the_client_is_called(colour: str) -> None:
    request = GetItem("holdall", {"pk": {"S": "p"}})
    with answer_with() as (db, client):
        with pytest.raises(InvalidKeyError):
            db.send(request) if colour == "blocking" else asyncio.run(db.aio.send(request))
        assert client.calls == []


@pytest.mark.parametrize("request_", [PutItem("holdall", KEY), GetItem("holdall", KEY, consistent=True)])
def test_writes_and_consistent_reads_are_refused(request_: Request[Any]) -> None:
    backend = dax(client=StandIn())
    with Database("memory:", reads=backend):
        with pytest.raises(InvalidRequestError, match="a DAX backend cannot answer"):
            backend.send_blocking(request_)
        with pytest.raises(InvalidRequestError, match="a DAX backend cannot answer"):
            asyncio.run(backend.send_awaiting(request_))


def test_it_cannot_be_the_only_backend_of_a_database() -> None:
    with Database(backend=dax(client=StandIn())) as db, pytest.raises(InvalidRequestError, match="reads="):
        db.send(GET)


# --- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (dax_error("No cluster endpoints available", "NoRouteException"), EndpointError),
        (ConnectionRefusedError("refused"), EndpointError),
        (TimeoutError("timed out"), EndpointError),
        (dax_error("remote socket is closed", "ConnectionException", 408), ServiceUnavailableError),
        (dax_error(None, "InternalServerErrorException"), ServiceUnavailableError),
        (dax_error("oh", None, 503), ServiceUnavailableError),
        (dax_error("slow", "ProvisionedThroughputExceededException", 400), ThrottledError),
        (dax_error("slow", "ThrottlingException", 400), ThrottledError),
        (dax_error("no", "AccessDeniedException", 400), AccessDeniedError),
        (dax_error("gone", "ResourceNotFoundException", 400), TableNotFoundError),
        (dax_error("wrong", "ValidationException", 400), InvalidExpressionError),
        (dax_error("what", "MalformedResultException"), MalformedReplyError),
        (dax_error("unknown", ("ValidationException", "NotImplementedException"), 400), ServiceError),
        (dax_error(None), ServiceError),
        (NoCredentialsError(), CredentialsError),
        (ParamValidationError(report="bad"), InvalidRequestError),
    ],
    ids=repr,
)
def test_an_error_of_the_client_is_translated_into_ours(error: Exception, expected: type[Exception]) -> None:
    with answer_with(error) as (db, _), pytest.raises(expected) as caught:
        db.send(GET)
    assert type(caught.value) is expected
    assert caught.value.__cause__ is error


def test_a_reply_with_an_invalid_number_is_malformed() -> None:
    with answer_with({"Item": {**KEY, "n": {"N": "NaN"}}}) as (db, _), pytest.raises(MalformedReplyError):
        db.send(GET)


# --- the client -------------------------------------------------------------------------------------------


def test_it_connects_once_at_the_first_read() -> None:
    made: list[StandIn] = []

    def connect() -> StandIn:
        made.append(StandIn({}, {}))
        return made[-1]

    with Database("memory:", reads=DaxBackend(connect, ours=True)) as db:
        db.table.create()
        assert made == []
        db.send(GET)
        asyncio.run(db.aio.send(GET))
    (client,) = made
    assert [name for name, _ in client.calls] == ["get_item", "get_item"]
    assert client.closed == 1


def test_after_a_failed_connection_the_next_read_tries_again() -> None:
    outcomes: list[Any] = [dax_error("Not enough routes", "NoRouteException"), StandIn({})]

    def connect() -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with Database("memory:", reads=DaxBackend(connect, ours=True)) as db:
        db.table.create()
        with pytest.raises(EndpointError, match="no node of the DAX cluster can be reached"):
            db.send(GET)
        assert db.send(GET).item is None


def test_threads_that_read_while_it_connects_share_one_client() -> None:
    begun, may_connect = threading.Event(), threading.Event()
    made: list[StandIn] = []

    def connect() -> StandIn:
        begun.set()
        assert may_connect.wait(10)
        made.append(StandIn(*({} for _ in range(4))))
        return made[-1]

    with Database("memory:", reads=DaxBackend(connect, ours=True)) as db:
        db.table.create()
        threads = [threading.Thread(target=db.send, args=(GET,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert begun.wait(10)
        may_connect.set()
        for thread in threads:
            thread.join()
    assert [len(client.calls) for client in made] == [4]


def test_a_client_that_the_user_passes_stays_open() -> None:
    with answer_with({}) as (db, client):
        db.send(GET)
    assert client.closed == 0
    with pytest.raises(StoreClosedError):
        db.send(GET)


def test_after_a_fork_the_child_makes_its_own_client() -> None:
    made: list[StandIn] = []

    def connect() -> StandIn:
        made.append(StandIn(*({} for _ in range(2))))
        return made[-1]

    with Database("memory:", reads=DaxBackend(connect, ours=True)) as db:
        db.table.create()
        db.send(GET)
        db.send(GET)
        child = os.fork()
        if not child:
            try:
                db.send(GET)
                os._exit(0 if [len(client.calls) for client in made] == [2, 1] else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    assert [client.closed for client in made] == [1]


def test_two_databases_cannot_share_an_adapter() -> None:
    backend = dax(client=StandIn())
    with Database("memory:", reads=backend), pytest.raises(ConfigurationError, match="two databases"):
        Database("memory:", reads=backend)


# --- opening ----------------------------------------------------------------------------------------------


class Package(types.ModuleType):
    """Replaces the package amazondax and records how its client is created."""

    def __init__(self) -> None:
        super().__init__("amazondax")
        from importlib.machinery import ModuleSpec

        self.__spec__ = ModuleSpec("amazondax", None)
        self.made: list[dict[str, Any]] = []

    def AmazonDaxClient(self, session: Any, **parameters: Any) -> StandIn:  # noqa: N802
        self.made.append({"profile": session.get_config_variable("profile"), **parameters})
        return StandIn({})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    strip_machine(tmp_path, monkeypatch)
    package = Package()
    monkeypatch.setitem(sys.modules, "amazondax", package)
    return package


def make_client(db: Database) -> None:
    """Make the database's adapter create its client."""
    backend = db._backend
    assert isinstance(backend, SplitBackend)
    assert isinstance(backend.reads, DaxBackend)
    backend.reads._courier._client()


@pytest.mark.parametrize("source", ["argument", "function", "environment", "file", "url"])
def test_an_endpoint_is_enough_from_every_source(
    source: str, package: Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, arguments = URL, dict[str, Any]()
    if source == "argument":
        arguments["reads"] = CLUSTER
    elif source == "function":
        arguments["reads"] = dax(CLUSTER)
    elif source == "environment":
        monkeypatch.setenv("HOLDALL_READS", CLUSTER)
    elif source == "file":
        (tmp_path / "holdall.toml").write_text(f'reads = "{CLUSTER}"\n')
    else:
        url = f"{URL}&reads={CLUSTER}"
    with Database(url, **arguments) as db:
        assert package.made == []
        make_client(db)
    (made,) = package.made
    assert made["endpoint_url"] == CLUSTER
    assert made["region_name"] == "eu-west-1"  # the cluster's region, not the table's
    assert (made["config"].connect_timeout, made["config"].read_timeout) == (5.0, 5.0)


def test_an_endpoint_without_a_region_uses_that_of_the_database(package: Package) -> None:
    with Database(URL, reads="dax://10.0.0.1:8111", profile=None) as db:
        make_client(db)
    assert package.made[0]["region_name"] == "eu-central-1"


@pytest.mark.parametrize("endpoint", ["my-cluster:8111", "https://my-cluster", "daxs://", 17])
def test_an_invalid_endpoint_is_refused(endpoint: Any, package: Package) -> None:
    with pytest.raises(ConfigurationError, match="not the endpoint of a DAX cluster"):
        dax(endpoint)


@pytest.mark.parametrize("arguments", [{}, {"endpoint": CLUSTER, "client": object()}])
def test_it_requires_either_an_endpoint_or_a_client(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="an endpoint or a client"):
        dax(**arguments)


def test_opening_without_the_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "amazondax", raising=False)
    monkeypatch.setattr(sys, "path", [])  # no package can be found
    with pytest.raises(ConfigurationError, match="amazon-dax-client, which is not installed") as caught:
        Database(URL, reads=CLUSTER)
    assert caught.value.hint == 'install it with: pip install "holdall[dax]"'


# --- with models ------------------------------------------------------------------------------------------


class Order(Model, indexes=[Index("by_product", key=["product"])]):
    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int = 1
    label: bytes = b""


class ReshapingClient:
    """The four reads of a botocore client, with replies in the forms of the DAX client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name not in ("get_item", "batch_get_item", "query", "scan"):
            raise NotImplementedError("Table operations are not supported on DAX.")

        def call(**parameters: Any) -> Any:
            self.calls.append(name)
            return self._shape(getattr(self._client, name)(**parameters))

        return call

    def _shape(self, part: Any) -> Any:
        if isinstance(part, dict):
            if part.keys() == {"N"} and isinstance(part["N"], str):
                return {"N": str(Decimal(part["N"]).normalize())}
            return {name: self._shape(member) for name, member in part.items()}
        if isinstance(part, list):
            return [self._shape(member) for member in part]
        return bytearray(part) if isinstance(part, bytes) else part


def test_models_are_read_through_it_and_written_to_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    server = start_server("ministack")
    for name, setting in ENVIRONMENT.items():
        monkeypatch.setenv(name, setting)
    client = get_session().create_client("dynamodb", region_name="us-east-1", endpoint_url=server)
    shaped = ReshapingClient(client)
    url = f"dynamodb://dax-{uuid.uuid4().hex[:12]}?region=us-east-1&endpoint={server}"
    with Database(url, reads=dax(client=shaped)) as db:
        db.table.create(models=[Order])

        def place(tx: Any) -> None:
            for number in (1, 2, 30):
                tx.create(
                    Order, customer="ada", number=number, product="tea", quantity=100 * number, label=b"\xff"
                )

        db.run(place)
        key = Order.key(customer="ada", number=30)
        order = db.get(key, consistent=False)
        assert order is not None
        assert (order.quantity, order.label) == (3000, b"\xff")
        many = where = col(Order.quantity) > 150
        listed = db.query(Order, customer="ada", consistent=False, where=where)
        assert [order.number for order in listed] == [2, 30]
        assert len(db.query(Order, index="by_product", product="tea").all()) == 3
        assert len(db.get_all([key, Order.key(customer="ada", number=4)], consistent=False)) == 2
        assert len(db.scan(Order, segments=2, where=many, only=["number"]).all()) == 2
        assert shaped.calls == ["get_item", "query", "query", "batch_get_item", "scan", "scan"]

        def sell(tx: Any) -> int:
            order = tx.get(key, consistent=False)
            order.quantity -= 1
            return int(order.quantity)

        assert (
            db.run(sell) == 2999
        )  # the commit compares the values it read with the table's, in DynamoDB's form
        assert len(shaped.calls) == 7
        db.table.delete()
    client.close()

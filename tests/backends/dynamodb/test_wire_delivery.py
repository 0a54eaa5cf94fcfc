"""Calls to a failing server: which are sent again, after which pauses, and which errors the caller receives."""

from __future__ import annotations

import socket
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from scripted_server import CLOSE, RESET, Step, http, refuse_with, reply_with, serve_script
from wire_rig import COLOURS, CREATE, GET, KEY, PUT, Colour, client, describe_things

from holdall.backends.aws import courier
from holdall.backends.aws.limit import Limits
from holdall.core.expressions import KeyCondition, NotExists, path
from holdall.core.requests import (
    BatchGet,
    BatchWrite,
    DescribeTable,
    GetItem,
    PutItem,
    Query,
    Request,
    TransactGet,
    TransactWrite,
)
from holdall.errors import (
    AccessDeniedError,
    ConditionFailedError,
    ConfigurationError,
    ConflictError,
    EndpointError,
    HoldallError,
    InvalidExpressionError,
    InvalidRequestError,
    ItemTooLargeError,
    MalformedReplyError,
    ServiceError,
    ServiceUnavailableError,
    TableExistsError,
    TableNotFoundError,
    ThrottledError,
    TokenReusedError,
    TransactionCanceledError,
)

FOUND = reply_with({"Item": {"pk": {"S": "a"}, "n": {"N": "1"}}, "ConsumedCapacity": {"CapacityUnits": 0.5}})
THROTTLED = refuse_with("ProvisionedThroughputExceededException")
FAILED = refuse_with("InternalServerError", status=500)
TRANSACTION = TransactWrite((PutItem("things", KEY),), "token-1")


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


def cancel(*codes: str) -> Step:
    reasons = [{"Code": code} for code in codes]
    return refuse_with("TransactionCanceledException", "cancelled", CancellationReasons=reasons)


def corrupt(payload: bytes) -> Step:
    return reply_with(payload, headers={"x-amz-crc32": crc32(payload) ^ 1})


# --- transient failures ---


PASSING = [
    pytest.param(THROTTLED, id="over the table's throughput"),
    pytest.param(refuse_with("ThrottlingException"), id="throttled"),
    pytest.param(refuse_with("RequestLimitExceeded"), id="over the account's throughput"),
    pytest.param(refuse_with("ThrottlingException", status=503), id="throttled with a 503"),
    pytest.param(refuse_with("TransactionConflictException"), id="in conflict"),
    pytest.param(refuse_with("TransactionInProgressException"), id="in progress"),
    pytest.param(FAILED, id="500"),
    pytest.param(refuse_with("ServiceUnavailable", status=503), id="503"),
    pytest.param(reply_with(b"<html>bad gateway</html>", status=502), id="502 without JSON"),
    pytest.param(reply_with(b"", status=504), id="504 without a body"),
    pytest.param(corrupt(b'{"Item": {}}'), id="a corrupt reply"),
    pytest.param(reply_with(b'{"Item": '), id="half of the JSON"),
    pytest.param(reply_with(b"[]"), id="JSON that is not an object"),
    pytest.param(reply_with(b"\xff\xfe"), id="not text"),
    pytest.param(CLOSE, id="closed"),
    pytest.param(RESET, id="reset"),
    pytest.param(Step((http(200, {"Content-Length": 50}, b"{"),), end="close"), id="cut short"),
    pytest.param(Step((http(200, {"Content-Length": 50}, b"{"),), end="reset"), id="reset in the body"),
    pytest.param(Step((b"garbage\r\n\r\n",)), id="garbage"),
]


@pytest.mark.parametrize("trouble", PASSING)
def test_a_read_is_repeated_until_it_is_answered(colour: Colour, trouble: Step) -> None:
    with (
        serve_script(describe_things(), trouble, trouble, FOUND) as server,
        client(colour, server.url) as ours,
    ):
        reply = ours.ask(GET)
    assert reply.item == {"pk": {"S": "a"}, "n": {"N": "1"}}
    assert reply.capacity == 0.5
    assert len({received.body for received in server.requests[1:]}) == 1
    assert len(ours.pace.sleeps) == 2


@pytest.mark.parametrize("trouble", PASSING)
def test_a_transaction_is_repeated_byte_for_byte_with_its_token(colour: Colour, trouble: Step) -> None:
    with (
        serve_script(describe_things(), trouble, trouble, reply_with({})) as server,
        client(colour, server.url) as ours,
    ):
        ours.ask(TRANSACTION)
    _, first, second, third = server.requests
    assert first.body == second.body == third.body
    assert first.payload["ClientRequestToken"] == "token-1"


@pytest.mark.parametrize(
    "reasons",
    [
        ["TransactionConflict"],
        ["None", "TransactionConflict"],
        ["ThrottlingError", "None", "TransactionConflict"],
        ["ProvisionedThroughputExceeded"],
    ],
)
def test_a_transaction_cancelled_only_by_conflicts_and_throttles_is_sent_again(
    colour: Colour, reasons: list[str]
) -> None:
    with (
        serve_script(describe_things(), cancel(*reasons), reply_with({})) as server,
        client(colour, server.url) as ours,
    ):
        ours.ask(TRANSACTION)
    _, first, second = server.requests
    assert first.body == second.body


@pytest.mark.parametrize(
    "reasons",
    [
        ["ConditionalCheckFailed"],
        ["TransactionConflict", "ConditionalCheckFailed"],
        ["None", "ValidationError"],
        ["ItemCollectionSizeLimitExceeded", "ThrottlingError"],
        [],
    ],
)
def test_a_transaction_cancelled_for_another_reason_is_an_error_at_once(
    colour: Colour, reasons: list[str]
) -> None:
    with serve_script(describe_things(), cancel(*reasons)) as server, client(colour, server.url) as ours:
        with pytest.raises(TransactionCanceledError) as refusal:
            ours.ask(TRANSACTION)
        assert [reason.code for reason in refusal.value.reasons] == reasons
        assert ours.pace.sleeps == []


def test_a_cancellation_has_the_reason_of_each_action_in_order(colour: Colour) -> None:
    stored = {"pk": {"S": "b"}, "n": {"N": "1"}}
    step = refuse_with(
        "TransactionCanceledException",
        CancellationReasons=[
            {"Code": "None"},
            {"Code": "ConditionalCheckFailed", "Message": "no", "Item": stored},
        ],
    )
    with serve_script(describe_things(), step) as server, client(colour, server.url) as ours:
        actions = PutItem("things", KEY), PutItem("things", {"pk": {"S": "b"}}, NotExists(path("pk")))
        with pytest.raises(TransactionCanceledError) as refusal:
            ours.ask(TransactWrite(actions, "token-1"))
    first, second = refusal.value.reasons
    assert (first.code, first.item) == ("None", None)
    assert (second.code, second.message, second.item) == ("ConditionalCheckFailed", "no", stored)


# --- refusals ---


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (refuse_with("ConditionalCheckFailedException"), ConditionFailedError),
        (refuse_with("ValidationException", "bad expression"), InvalidExpressionError),
        (refuse_with("ValidationException", "Item size to update has exceeded"), ItemTooLargeError),
        (refuse_with("SerializationException"), InvalidRequestError),
        (refuse_with("ResourceNotFoundException"), TableNotFoundError),
        (refuse_with("ResourceInUseException"), TableExistsError),
        (refuse_with("IdempotentParameterMismatchException"), TokenReusedError),
        (refuse_with("AccessDeniedException"), AccessDeniedError),
        (refuse_with("UnrecognizedClientException"), AccessDeniedError),
        (refuse_with("MissingAuthenticationTokenException"), AccessDeniedError),
        (refuse_with("UnknownOperationException"), ConfigurationError),
        (refuse_with("SomethingNewException", "an unknown error"), ServiceError),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "request_", [GET, PUT, TRANSACTION, CREATE], ids=lambda request: type(request).__name__
)
def test_a_refusal_is_an_error_at_once_with_the_services_code_and_request_id(
    colour: Colour, request_: Request[Any], step: Step, kind: type[HoldallError]
) -> None:
    with serve_script(describe_things(), step) as server, client(colour, server.url) as ours:
        with pytest.raises(kind) as refusal:
            ours.ask(request_)
        assert ours.pace.sleeps == []
    assert type(refusal.value) is kind
    assert refusal.value.request_id == "REQUEST-1"
    assert refusal.value.service_code is not None
    assert refusal.value.service_code.endswith("Exception")


def test_a_failed_condition_carries_the_stored_item(colour: Colour) -> None:
    stored = {"pk": {"S": "a"}, "n": {"N": "7"}}
    step = refuse_with("ConditionalCheckFailedException", Item=stored)
    with (
        serve_script(describe_things(), step) as server,
        client(colour, server.url) as ours,
        pytest.raises(ConditionFailedError) as refusal,
    ):
        ours.ask(PutItem("things", KEY, NotExists(path("pk")), item_on_failure=True))
    assert refusal.value.item == stored
    assert server.requests[1].payload["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


def test_a_refusal_that_is_not_json_is_a_service_error_with_its_status(colour: Colour) -> None:
    page = reply_with(b"<html>404 not found</html>", status=404, headers={"Content-Type": "text/html"})
    with (
        serve_script(page) as server,
        client(colour, server.url) as ours,
        pytest.raises(ServiceError, match="404"),
    ):
        ours.ask(DescribeTable("things"))


# --- attempts and time ---


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        pytest.param(THROTTLED, ThrottledError, id="throttled"),
        pytest.param(FAILED, ServiceUnavailableError, id="failed"),
        pytest.param(refuse_with("TransactionConflictException"), ConflictError, id="in conflict"),
        pytest.param(CLOSE, ServiceUnavailableError, id="closed"),
        pytest.param(corrupt(b"{}"), MalformedReplyError, id="corrupt"),
        pytest.param(reply_with(b"[]"), MalformedReplyError, id="no object"),
        pytest.param(Step((b"SSH-2.0-OpenSSH\r\n\r\n",)), MalformedReplyError, id="another protocol"),
        pytest.param(
            Step((http(200, {"Content-Length": "nine"}),)), MalformedReplyError, id="a length of nine"
        ),
    ],
)
def test_a_lasting_failure_is_an_error_after_the_last_attempt(
    colour: Colour, trouble: Step, kind: type[HoldallError]
) -> None:
    four = Limits(max_attempts=4)
    with (
        serve_script(describe_things(), *[trouble] * 4) as server,
        client(colour, server.url, limits=four) as ours,
    ):
        with pytest.raises(kind) as refusal:
            ours.ask(GET)
        assert type(refusal.value) is kind


def test_pauses_are_random_below_a_bound_that_doubles(colour: Colour) -> None:
    patient = Limits(total_timeout=1000.0)

    def pauses(chance: float) -> list[float]:
        troubles = [THROTTLED] * patient.max_attempts
        with (
            serve_script(describe_things(), *troubles) as server,
            client(colour, server.url, limits=patient) as ours,
        ):
            ours.pace.chance = chance
            with pytest.raises(ThrottledError):
                ours.ask(GET)
            return ours.pace.sleeps

    bounds = pauses(1.0)
    assert 0.025 <= bounds[0] <= 0.05
    assert bounds == [min(bounds[0] * 2**number, courier.LONGEST_PAUSE) for number in range(len(bounds))]
    assert len(bounds) == patient.max_attempts - 1
    assert pauses(0.25) == pytest.approx([bound / 4 for bound in bounds])
    assert pauses(0.0) == [0.0] * len(bounds)


@pytest.mark.parametrize("request_", [GET, TRANSACTION], ids=["read", "token"])
def test_nothing_is_sent_again_after_the_total_timeout(colour: Colour, request_: Request[Any]) -> None:
    hasty = Limits(total_timeout=10.0)
    with (
        serve_script(describe_things(), *[THROTTLED] * 3) as server,
        client(colour, server.url, limits=hasty) as ours,
    ):
        ours.pace.lasting = 4.0
        with pytest.raises(ThrottledError):
            ours.ask(request_)
    _, *sends = ours.pace.sends
    assert len(sends) == 3
    assert sends[-1] - sends[0] < 10.0


# --- unreachable endpoints ---


def unreachable() -> tuple[socket.socket, str]:
    reserved = socket.socket()
    reserved.bind(("127.0.0.1", 0))
    return reserved, f"http://127.0.0.1:{reserved.getsockname()[1]}"


@pytest.mark.parametrize(
    "request_", [GET, PUT, TRANSACTION, CREATE], ids=lambda request: type(request).__name__
)
def test_an_unreachable_endpoint_is_an_endpoint_error_even_for_writes(
    colour: Colour, request_: Request[Any]
) -> None:
    reserved, url = unreachable()
    with reserved, client(colour, url) as ours, pytest.raises(EndpointError) as refusal:
        ours.ask(request_)
    assert url in str(refusal.value)
    assert refusal.value.retryable
    assert ours.pace.sleeps == [0.05, 0.1, 0.2, 0.4, 0.8]  # it has never answered: its address may be wrong


@pytest.mark.parametrize("request_", [PUT, TRANSACTION, CREATE], ids=lambda request: type(request).__name__)
def test_a_write_without_a_connection_did_not_happen(colour: Colour, request_: Request[Any]) -> None:
    async def flow() -> None:
        await ours.send(GET)
        server.stop_listening()
        server.wait_for_ends(1)
        await ours.send(request_)

    last = reply_with({"Item": KEY}, end="close")
    with (
        serve_script(describe_things(), last) as server,
        client(colour, server.url) as ours,
        pytest.raises(EndpointError),
    ):
        ours.finish(flow)
    assert server.operations == ["DescribeTable", "GetItem"]
    assert sum(ours.pace.sleeps) > 20  # it has answered before, so it may answer again


# --- JSON that is not a reply of the service ---


@pytest.mark.parametrize(
    "request_",
    [
        DescribeTable("things"),
        Query("things", KeyCondition("pk", {"S": "a"})),
        TransactGet((GET,)),
    ],
    ids=lambda request: type(request).__name__,
)
@pytest.mark.parametrize(
    "payload",
    [
        {"message": "welcome"},
        {"Table": {}, "Items": [], "Responses": {}},
        {"Table": None, "Count": "x", "Items": 5, "Responses": 5, "ScannedCount": None},
    ],
)
def test_a_reply_of_another_shape_is_malformed(
    colour: Colour, request_: Request[Any], payload: dict[str, Any]
) -> None:
    steps = (
        [reply_with(payload)]
        if isinstance(request_, DescribeTable)
        else [describe_things(), reply_with(payload)]
    )
    with (
        serve_script(*steps) as server,
        client(colour, server.url) as ours,
        pytest.raises(MalformedReplyError),
    ):
        ours.ask(request_)


@pytest.mark.parametrize(
    "reasons", [None, "none", [None], ["ConditionalCheckFailed"], {"Code": "None"}], ids=repr
)
def test_a_cancellation_with_malformed_reasons_is_an_error_of_ours(colour: Colour, reasons: Any) -> None:
    step = refuse_with("TransactionCanceledException", CancellationReasons=reasons)
    with (
        serve_script(describe_things(), step) as server,
        client(colour, server.url) as ours,
        pytest.raises(HoldallError),
    ):
        ours.ask(TRANSACTION)


def test_json_that_is_too_deep_to_parse_is_malformed(colour: Colour) -> None:
    deep = reply_with(b"[" * 200_000)
    with (
        serve_script(describe_things(), deep, deep) as server,
        client(colour, server.url, limits=Limits(max_attempts=2)) as ours,
        pytest.raises(MalformedReplyError),
    ):
        ours.ask(GET)


def test_json_with_spaces_around_it_is_read(colour: Colour) -> None:
    with (
        serve_script(describe_things(), reply_with(b' {"Item": {"pk": {"S": "a"}}} \n')) as server,
        client(colour, server.url) as ours,
    ):
        assert ours.ask(GET).item == {"pk": {"S": "a"}}


# --- batches ---


def put_request(key: str) -> dict[str, Any]:
    return {"PutRequest": {"Item": {"pk": {"S": key}}}}


def test_unprocessed_items_of_a_batch_write_are_sent_again(colour: Colour) -> None:
    batch = BatchWrite(tuple(PutItem("things", {"pk": {"S": key}}) for key in "abc"))
    left = [{"things": [put_request("b"), put_request("c")]}, {"things": [put_request("c")]}]
    capacity = {"ConsumedCapacity": [{"TableName": "things", "CapacityUnits": 1.0}]}
    steps = [reply_with({"UnprocessedItems": rest, **capacity}) for rest in [*left, {}]]
    with serve_script(describe_things(), *steps) as server, client(colour, server.url) as ours:
        assert ours.ask(batch).capacity == 3.0
    received = [request.payload["RequestItems"] for request in server.requests[1:]]
    assert received == [{"things": [put_request(key) for key in "abc"]}, *left]
    assert len(ours.pace.sleeps) == 2


def test_unprocessed_keys_of_a_batch_read_are_requested_again_and_returned_in_order(colour: Colour) -> None:
    keys = [{"pk": {"S": key}} for key in "abc"]
    rest = {"things": {"Keys": [keys[0], keys[2]], "ConsistentRead": True}}
    first = reply_with({"Responses": {"things": [{**keys[1], "n": {"N": "2"}}]}, "UnprocessedKeys": rest})
    second = reply_with({"Responses": {"things": [{**keys[2], "n": {"N": "3"}}]}, "UnprocessedKeys": {}})
    reads = tuple(GetItem("things", key, consistent=True) for key in keys)
    with serve_script(describe_things(), first, second) as server, client(colour, server.url) as ours:
        reply = ours.ask(BatchGet(reads))
    assert reply.items == (None, {**keys[1], "n": {"N": "2"}}, {**keys[2], "n": {"N": "3"}})
    assert server.requests[2].payload["RequestItems"] == rest


def test_a_batch_without_progress_waits_longer_each_time_and_then_is_throttled(colour: Colour) -> None:
    batch = BatchWrite((PutItem("things", KEY),))
    nothing = reply_with({"UnprocessedItems": {"things": [put_request("a")]}})

    def answer(received: Any) -> Step:
        return describe_things() if received.operation == "DescribeTable" else nothing

    with (
        serve_script(answer=answer) as server,
        client(colour, server.url) as ours,
        pytest.raises(ThrottledError),
    ):
        ours.ask(batch)
    pauses = ours.pace.sleeps
    assert all(later >= earlier for earlier, later in pairwise(pauses))
    assert pauses[0] <= 0.05
    assert pauses[-1] > 1.0
    assert sum(pauses) <= 60.0


def test_a_throttled_part_of_a_batch_is_retried_like_any_call(colour: Colour) -> None:
    batch = BatchWrite((PutItem("things", KEY),))
    left = reply_with({"UnprocessedItems": {"things": [put_request("a")]}})
    steps = [left, THROTTLED, CLOSE, reply_with({})]
    with serve_script(describe_things(), *steps) as server, client(colour, server.url) as ours:
        ours.ask(batch)
    assert len({received.body for received in server.requests[1:]}) == 1

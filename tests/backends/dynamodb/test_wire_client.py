"""The user's boto client as the transport: the same outcomes, or unknown where the client hides them."""

from __future__ import annotations

import asyncio
import socket
import threading
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from scripted_server import CLOSE, ReceivedRequest, Step, http, refuse_with, reply_with, serve_script
from wire_rig import CHANGE, COLOURS, CREATE, GET, KEY, PUT, Colour, describe_things

from holdall.backends.dynamodb.boto import BotoBackend
from holdall.core.expressions import NotExists, path
from holdall.core.requests import PutItem, Request, TransactWrite, WriteReply
from holdall.core.values import Item
from holdall.errors import (
    AccessDeniedError,
    ConditionFailedError,
    CredentialsError,
    EndpointError,
    HoldallError,
    MalformedReplyError,
    OutcomeUnknown,
    TransactionCanceledError,
)

botocore_session = pytest.importorskip("botocore.session", reason="botocore is not installed")

OLD = PutItem("things", KEY, returns="old")
"""A write that returns an item; it cannot be sent as a transaction, so it is a plain write."""

TRANSACTION = TransactWrite((PUT,), "token-1")
OURS = {"pk": {"S": "a"}, "_w": {"S": "our-stamp"}}
THEIRS = {"pk": {"S": "a"}, "_w": {"S": "another"}}


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


@cache
def session() -> Any:
    """One session for all tests: it reads botocore's model of DynamoDB, which takes longer than most tests."""
    return botocore_session.Session()


def client_of(url: str, attempts: int = 1, **keys: str) -> Any:
    from botocore.config import Config

    keys = keys or {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret"}
    return session().create_client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        config=Config(
            retries={"total_max_attempts": attempts, "mode": "standard"}, connect_timeout=5, read_timeout=5
        ),
        **keys,
    )


def ask(colour: Colour, client: Any, request: Request[Any]) -> Any:
    """Send the request; return the reply or the error."""
    backend = BotoBackend(client)
    try:
        if colour == "blocking":
            return backend.send_blocking(request)
        return asyncio.run(backend.send_awaiting(request))
    except HoldallError as error:
        return error
    finally:
        backend.close()
        client.close()


def test_binaries_at_any_depth_are_converted_in_both_directions(colour: Colour) -> None:
    item: Item = {
        "pk": {"S": "a"},
        "B": {"B": "AAH/"},
        "BS": {"BS": ["AA==", "AQ=="]},
        "m": {"M": {"B": {"S": "B"}, "l": {"L": [{"B": "Ag=="}, {"N": "1"}]}}},
    }
    put = TransactWrite((PutItem("things", item),), "token-1")
    with serve_script(describe_things(), reply_with({"Item": item})) as server:
        assert ask(colour, client_of(server.url), GET).item == item
    with serve_script(describe_things(), reply_with({})) as server:
        ask(colour, client_of(server.url), put)
    assert server.requests[1].payload["TransactItems"] == [{"Put": {"TableName": "things", "Item": item}}]


@pytest.mark.parametrize("write", [PUT, CREATE, CHANGE], ids=["put", "stamped put", "stamped update"])
def test_a_single_write_is_sent_as_a_transaction_so_that_the_clients_retries_are_harmless(
    colour: Colour, write: Request[Any]
) -> None:
    with serve_script(describe_things(), CLOSE, reply_with({})) as server:
        assert ask(colour, client_of(server.url, attempts=2), write) == WriteReply()
    _, first, second = server.requests
    assert first.operation == "TransactWriteItems"
    assert first.body == second.body


def test_a_failed_condition_has_item_code_and_request_id(colour: Colour) -> None:
    step = refuse_with("ConditionalCheckFailedException", Item=THEIRS)
    with serve_script(describe_things(), step) as server:
        write = PutItem("things", KEY, NotExists(path("pk")), returns="old", item_on_failure=True)
        outcome = ask(colour, client_of(server.url), write)
    assert type(outcome) is ConditionFailedError
    assert (outcome.item, outcome.service_code, outcome.request_id) == (
        THEIRS,
        "ConditionalCheckFailedException",
        "REQUEST-1",
    )


def test_a_cancellation_has_its_reasons(colour: Colour) -> None:
    reasons = [{"Code": "ConditionalCheckFailed", "Message": "no", "Item": {"pk": {"B": "AA=="}}}]
    step = refuse_with("TransactionCanceledException", "cancelled", CancellationReasons=reasons)
    with serve_script(describe_things(), step) as server:
        outcome = ask(colour, client_of(server.url), TRANSACTION)
    assert isinstance(outcome, TransactionCanceledError)
    (reason,) = outcome.reasons
    assert (reason.code, reason.message, reason.item) == (
        "ConditionalCheckFailed",
        "no",
        {"pk": {"B": "AA=="}},
    )


@pytest.mark.parametrize(
    "lost", [CLOSE, refuse_with("InternalServerError", status=500)], ids=["closed", "500"]
)
def test_a_plain_write_whose_reply_is_lost_has_an_unknown_outcome(colour: Colour, lost: Step) -> None:
    with serve_script(describe_things(), lost) as server:
        assert isinstance(ask(colour, client_of(server.url), OLD), OutcomeUnknown)


DAMAGED = [
    pytest.param(Step((http(200, {"Content-Length": 60}, b'{"Item": {"pk"'),), end="close"), id="cut short"),
    pytest.param(reply_with({"Item": KEY}, headers={"x-amz-crc32": 1}), id="corrupt"),
]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_reply_is_malformed_and_the_outcome_of_a_write_unknown(
    colour: Colour, damaged: Step
) -> None:
    with serve_script(describe_things(), damaged) as server:
        assert isinstance(ask(colour, client_of(server.url), GET), MalformedReplyError)
    with serve_script(describe_things(), damaged) as server:
        assert isinstance(ask(colour, client_of(server.url), OLD), OutcomeUnknown)


@pytest.mark.parametrize(
    "last", [CLOSE, reply_with({}, headers={"x-amz-crc32": 1})], ids=["closed", "corrupt"]
)
def test_a_stamped_write_whose_reply_is_lost_is_verified_by_a_read(colour: Colour, last: Step) -> None:
    write = replace(CHANGE, returns="new")
    with serve_script(describe_things(), last, reply_with({"Item": OURS})) as server:
        assert ask(colour, client_of(server.url), write) == WriteReply(OURS)
    assert server.requests[-1].payload["ConsistentRead"] is True
    for read in (reply_with({"Item": THEIRS}), reply_with({}), refuse_with("AccessDeniedException")):
        with serve_script(describe_things(), last, read) as server:
            assert isinstance(ask(colour, client_of(server.url), write), OutcomeUnknown)


def test_a_stamped_write_that_its_own_stamp_refuses_has_succeeded(colour: Colour) -> None:
    with serve_script(describe_things(), refuse_with("ConditionalCheckFailedException", Item=OURS)) as server:
        assert ask(colour, client_of(server.url), replace(CHANGE, returns="new")) == WriteReply(OURS)


def test_a_failed_condition_after_the_clients_retry_is_an_unknown_outcome(colour: Colour) -> None:
    write = PutItem("things", KEY, NotExists(path("pk")), returns="old")
    with serve_script(describe_things(), CLOSE, refuse_with("ConditionalCheckFailedException")) as server:
        assert isinstance(ask(colour, client_of(server.url, attempts=2), write), OutcomeUnknown)


@pytest.mark.parametrize("write", [OLD, PUT], ids=["plain", "token"])
def test_an_unreachable_endpoint_at_the_clients_retry_is_an_unknown_outcome(
    colour: Colour, write: Request[Any]
) -> None:
    def answer(received: ReceivedRequest) -> Step:
        if received.operation == "DescribeTable":
            return describe_things()
        server.stop_listening()
        return CLOSE

    with serve_script(answer=answer) as server:
        assert isinstance(ask(colour, client_of(server.url, attempts=2), write), OutcomeUnknown)


def test_an_unreachable_endpoint_is_an_endpoint_error(colour: Colour) -> None:
    with serve_script() as server:
        server.stop_listening()
        assert isinstance(ask(colour, client_of(server.url), GET), EndpointError)


def test_a_client_without_credentials_is_a_credentials_error(
    colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with serve_script() as server:
        client = client_of(server.url, aws_session_token="")
        assert isinstance(ask(colour, client, GET), CredentialsError)


def test_a_server_without_tls_is_an_error_of_ours(colour: Colour) -> None:

    def hang_up() -> None:
        connection, _ = listening.accept()
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=hang_up)
        thread.start()
        client = client_of(f"https://127.0.0.1:{listening.getsockname()[1]}")
        assert isinstance(ask(colour, client, GET), HoldallError)
        thread.join()


def test_a_refusal_has_code_and_request_id(colour: Colour) -> None:
    with serve_script(refuse_with("UnrecognizedClientException", "The security token is invalid.")) as server:
        outcome = ask(colour, client_of(server.url), GET)
    assert isinstance(outcome, AccessDeniedError)
    assert (outcome.service_code, outcome.request_id) == ("UnrecognizedClientException", "REQUEST-1")

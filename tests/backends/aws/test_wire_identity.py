"""Requests that the service refuses for their signature: expired tokens, wrong secrets, clocks that disagree."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from rig.colour import finish
from scripted_server import CLOSE, ReceivedRequest, Step, refuse_with, reply_with, serve_script
from wire_rig import COLOURS, CREATE, GET, PUT, Colour, client, describe_things

from holdall.backends.aws.credentials import CallableCredentials, Credentials
from holdall.core.requests import Request, TransactWrite
from holdall.errors import AccessDeniedError, HoldallError, OutcomeUnknown

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
TOKEN = "FwoGZXIvYXdzEXAMPLETOKEN"
TRANSACTION = TransactWrite((PUT,), "token-1")
EXPIRED = refuse_with("ExpiredTokenException", "The security token included in the request is expired")
FOUND = reply_with({"Item": {"pk": {"S": "a"}}})

REQUESTS: list[Any] = [
    pytest.param(GET, id="get"),
    pytest.param(PUT, id="put"),
    pytest.param(CREATE, id="stamped put"),
    pytest.param(TRANSACTION, id="transaction"),
]


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


class Rotating:
    """Returns new credentials each time, with the access keys AKID1, AKID2, …"""

    def __init__(self) -> None:
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self) -> Credentials:
        with self._lock:
            self.calls += 1
            return Credentials(f"AKID{self.calls}", SECRET, f"{TOKEN}{self.calls}")


def access_key(received: ReceivedRequest) -> str:
    return received.headers["authorization"].partition("Credential=")[2].partition("/")[0]


def parse_date(received: ReceivedRequest) -> datetime:
    return datetime.strptime(received.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


# --- expired tokens ---


@pytest.mark.parametrize("request_", REQUESTS)
def test_an_expired_token_is_renewed_once_and_the_call_repeated(
    colour: Colour, request_: Request[Any]
) -> None:
    rotating = Rotating()
    source = CallableCredentials(rotating)
    with (
        serve_script(describe_things(), EXPIRED, reply_with({})) as server,
        client(colour, server.url, source=source) as ours,
    ):
        ours.ask(request_)
        assert ours.pace.sleeps == []
    assert [access_key(received) for received in server.requests] == ["AKID1", "AKID1", "AKID2"]
    assert [received.headers["x-amz-security-token"] for received in server.requests[1:]] == [
        f"{TOKEN}1",
        f"{TOKEN}2",
    ]
    assert rotating.calls == 2


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_second_expired_token_is_an_error_at_once(colour: Colour, request_: Request[Any]) -> None:
    source = CallableCredentials(Rotating())
    with (
        serve_script(describe_things(), EXPIRED, EXPIRED) as server,
        client(colour, server.url, source=source) as ours,
    ):
        with pytest.raises(AccessDeniedError) as refusal:
            ours.ask(request_)
        assert ours.pace.sleeps == []
    assert refusal.value.service_code == "ExpiredTokenException"


def test_a_write_whose_token_expires_after_a_lost_reply_has_an_unknown_outcome(colour: Colour) -> None:
    source = CallableCredentials(Rotating())
    with (
        serve_script(describe_things(), CLOSE, EXPIRED, EXPIRED) as server,
        client(colour, server.url, source=source) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(TRANSACTION)


def test_a_late_rejection_of_expired_credentials_does_not_drop_the_new_ones() -> None:
    rotating = Rotating()
    renewed = threading.Event()
    late = Step((renewed, *EXPIRED.parts))
    with (
        serve_script(describe_things(), FOUND, late, EXPIRED, FOUND, FOUND) as server,
        client("blocking", server.url, source=CallableCredentials(rotating)) as ours,
    ):
        ours.ask(GET)
        slow = threading.Thread(target=ours.ask, args=(GET,))
        slow.start()
        server.wait_for_requests(3)
        ours.ask(GET)
        renewed.set()
        slow.join()
    keys = [access_key(received) for received in server.requests]
    assert keys == ["AKID1", "AKID1", "AKID1", "AKID1", "AKID2", "AKID2"]
    assert rotating.calls == 2


# --- wrong secrets ---


CANONICAL = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details.\n\nThe Canonical String for this request "
    f"should have been\n'POST\n/\n\nhost:h\nx-amz-date:20260101T000000Z\nx-amz-security-token:{TOKEN}\n\n"
    "host;x-amz-date;x-amz-security-token\n0000'\n\nThe String-to-Sign should have been\n'AWS4-HMAC-SHA256\n...'\n"
)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("UnrecognizedClientException", "The security token included in the request is invalid."),
        ("InvalidSignatureException", CANONICAL),
        ("IncompleteSignatureException", f"Authorization header requires 'x'. What came was {TOKEN}"),
        (
            "AccessDeniedException",
            "User: arn:aws:iam::1:user/x is not authorized to perform: dynamodb:GetItem",
        ),
    ],
)
@pytest.mark.parametrize("request_", REQUESTS)
def test_the_error_of_a_refused_signature_has_code_and_request_id_and_shows_no_secret(
    colour: Colour, request_: Request[Any], code: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    source = CallableCredentials(lambda: Credentials("AKIDEXAMPLE", SECRET, TOKEN))
    with (
        serve_script(describe_things(), refuse_with(code, message)) as server,
        client(colour, server.url, source=source) as ours,
        pytest.raises(AccessDeniedError) as refusal,
    ):
        ours.ask(request_)
    error = refusal.value
    assert (error.service_code, error.request_id) == (code, "REQUEST-1")
    shown = f"{collect_text(error)} {source!r} {ours.pace!r} {caplog.text}"
    assert SECRET not in shown
    assert TOKEN not in shown


def collect_text(error: BaseException | None) -> str:
    shown = ""
    while error is not None:
        shown += f"{error} {error!r} {vars(error)} {error.args}"
        error = error.__cause__ or error.__context__
    return shown


def test_the_secret_key_is_never_sent(colour: Colour) -> None:
    source = CallableCredentials(lambda: Credentials("AKIDEXAMPLE", SECRET, TOKEN))
    with serve_script(describe_things(), FOUND) as server, client(colour, server.url, source=source) as ours:
        ours.ask(GET)
    for received in server.requests:
        assert SECRET.encode() not in received.head + received.body
        assert "x-amz-security-token" in received.headers["authorization"]


# --- clocks ---


def skew(by: timedelta, code: str = "InvalidSignatureException") -> Step:
    message = "Signature expired: 20260101T000000Z is now earlier than 20260101T010000Z (20260101T011500Z - 15 min.)"
    if by < timedelta(0):
        message = "Signature not yet current: 20260101T010000Z is still later than 20260101T000000Z"
    theirs = format_datetime(datetime.now(UTC) + by, usegmt=True)
    return refuse_with(code, message, headers={"Date": theirs})


@pytest.mark.parametrize("by", [timedelta(hours=3), timedelta(days=-400)], ids=["ahead", "behind"])
@pytest.mark.parametrize("request_", REQUESTS)
def test_a_clock_that_disagrees_is_corrected_for_this_and_later_requests(
    colour: Colour, request_: Request[Any], by: timedelta
) -> None:
    with (
        serve_script(describe_things(), skew(by), reply_with({}), FOUND) as server,
        client(colour, server.url) as ours,
    ):
        ours.ask(request_)
        ours.ask(GET)
        assert ours.pace.sleeps == []
    _, wrong, right, later = (parse_date(received) for received in server.requests)
    near = timedelta(minutes=2)
    assert abs(right - wrong - by) < near
    assert abs(later - wrong - by) < near


def test_a_skew_with_another_error_code_is_corrected_too(colour: Colour) -> None:
    by = timedelta(hours=1)
    with (
        serve_script(describe_things(), skew(by, "RequestTimeTooSkewed"), FOUND) as server,
        client(colour, server.url) as ours,
    ):
        ours.ask(GET)
    assert abs(parse_date(server.requests[2]) - parse_date(server.requests[1]) - by) < timedelta(minutes=2)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_clock_that_still_disagrees_after_the_correction_is_an_error_at_once(
    colour: Colour, request_: Request[Any]
) -> None:
    by = timedelta(hours=1)
    with (
        serve_script(describe_things(), skew(by), skew(by)) as server,
        client(colour, server.url) as ours,
    ):
        with pytest.raises(AccessDeniedError, match="clock"):
            ours.ask(request_)
        assert ours.pace.sleeps == []


@pytest.mark.parametrize("date", ["", "yesterday", "Thu, 99 Foo 2026 00:00:00 GMT", "\x00", "Thu"], ids=repr)
def test_an_invalid_date_does_not_change_the_clock(colour: Colour, date: str) -> None:
    step = refuse_with(
        "InvalidSignatureException", "Signature expired: x", headers={"X": 1, "Date": date.strip("\0")}
    )

    def answer(received: ReceivedRequest) -> Step:
        return describe_things() if received.operation == "DescribeTable" else step

    with (
        serve_script(answer=answer) as server,
        client(colour, server.url) as ours,
        pytest.raises(HoldallError) as refusal,
    ):
        ours.ask(GET)
    assert isinstance(refusal.value, AccessDeniedError)
    times = [parse_date(received) for received in server.requests]
    assert max(times) - min(times) < timedelta(minutes=2)


def test_a_slow_source_of_credentials_does_not_block_the_event_loop() -> None:
    """The source waits for an event that only the running loop sets."""

    async def flow() -> None:
        reached = threading.Event()

        def slow() -> Credentials:
            assert reached.wait(20)
            return Credentials("AKIDEXAMPLE", SECRET)

        with client("awaiting", server.url, source=CallableCredentials(slow)) as ours:
            waiting = asyncio.ensure_future(ours.send(GET))
            await asyncio.sleep(0)
            reached.set()
            await waiting

    with serve_script(describe_things(), FOUND) as server:
        finish("awaiting", flow())

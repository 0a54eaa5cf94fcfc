"""Who we are to the service, and what time it is there: expired tokens, wrong secrets, clocks that disagree."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from rig.colour import finish
from scripted_server import CLOSE, Asked, Step, refuses, says, serve_script
from wire_rig import COLOURS, CREATE, GET, PUT, Colour, client, describe_things

from holdall.backends.aws.credentials import CallableCredentials, Credentials
from holdall.core.requests import Request, TransactWrite
from holdall.errors import AccessDeniedError, HoldallError, OutcomeUnknown

SECRET = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
TOKEN = "FwoGZXIvYXdzEXAMPLETOKEN"
TRANSACTION = TransactWrite((PUT,), "token-1")
EXPIRED = refuses("ExpiredTokenException", "The security token included in the request is expired")
FOUND = says({"Item": {"pk": {"S": "a"}}})

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
    """Gives other credentials each time: the access keys are AKID1, AKID2, …"""

    def __init__(self) -> None:
        self.calls = 0
        self._lock = threading.Lock()

    def __call__(self) -> Credentials:
        with self._lock:
            self.calls += 1
            return Credentials(f"AKID{self.calls}", SECRET, f"{TOKEN}{self.calls}")


def access_key(asked: Asked) -> str:
    return asked.headers["authorization"].partition("Credential=")[2].partition("/")[0]


def parse_date(asked: Asked) -> datetime:
    return datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


# --- expired ---


@pytest.mark.parametrize("request_", REQUESTS)
def test_an_expired_token_is_renewed_once_and_the_call_sent_again(
    colour: Colour, request_: Request[Any]
) -> None:
    rotating = Rotating()
    source = CallableCredentials(rotating)
    with (
        serve_script(describe_things(), EXPIRED, says({})) as server,
        client(colour, server.url, source=source) as ours,
    ):
        ours.ask(request_)
        assert ours.pace.sleeps == []
    assert [access_key(asked) for asked in server.requests] == ["AKID1", "AKID1", "AKID2"]
    assert [asked.headers["x-amz-security-token"] for asked in server.requests[1:]] == [
        f"{TOKEN}1",
        f"{TOKEN}2",
    ]
    assert rotating.calls == 2


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_token_that_is_expired_again_surfaces_without_waiting(
    colour: Colour, request_: Request[Any]
) -> None:
    source = CallableCredentials(Rotating())
    with (
        serve_script(describe_things(), EXPIRED, EXPIRED) as server,
        client(colour, server.url, source=source) as ours,
    ):
        with pytest.raises(AccessDeniedError) as refusal:
            ours.ask(request_)
        assert ours.pace.sleeps == []
    assert refusal.value.service_code == "ExpiredTokenException"


def test_a_write_whose_token_expired_after_a_lost_reply_is_still_unknown(colour: Colour) -> None:
    source = CallableCredentials(Rotating())
    with (
        serve_script(describe_things(), CLOSE, EXPIRED, EXPIRED) as server,
        client(colour, server.url, source=source) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(TRANSACTION)


def test_credentials_that_replaced_expired_ones_are_not_dropped_by_a_call_that_hears_of_it_later() -> None:
    rotating = Rotating()
    heard = threading.Event()
    late = Step((heard, *EXPIRED.parts))
    with (
        serve_script(describe_things(), FOUND, late, EXPIRED, FOUND, FOUND) as server,
        client("blocking", server.url, source=CallableCredentials(rotating)) as ours,
    ):
        ours.ask(GET)
        slow = threading.Thread(target=ours.ask, args=(GET,))
        slow.start()
        server.wait_for_requests(3)
        ours.ask(GET)
        heard.set()
        slow.join()
    keys = [access_key(asked) for asked in server.requests]
    assert keys == ["AKID1", "AKID1", "AKID1", "AKID1", "AKID2", "AKID2"]
    assert rotating.calls == 2


# --- wrong ---


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
def test_a_wrong_secret_is_named_with_code_and_request_id_and_never_shown(
    colour: Colour, request_: Request[Any], code: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    source = CallableCredentials(lambda: Credentials("AKIDEXAMPLE", SECRET, TOKEN))
    with (
        serve_script(describe_things(), refuses(code, message)) as server,
        client(colour, server.url, source=source) as ours,
        pytest.raises(AccessDeniedError) as refusal,
    ):
        ours.ask(request_)
    error = refusal.value
    assert (error.service_code, error.request_id) == (code, "REQUEST-1")
    said = f"{collect_text(error)} {source!r} {ours.pace!r} {caplog.text}"
    assert SECRET not in said
    assert TOKEN not in said


def collect_text(error: BaseException | None) -> str:
    said = ""
    while error is not None:
        said += f"{error} {error!r} {vars(error)} {error.args}"
        error = error.__cause__ or error.__context__
    return said


def test_the_secret_never_leaves(colour: Colour) -> None:
    source = CallableCredentials(lambda: Credentials("AKIDEXAMPLE", SECRET, TOKEN))
    with serve_script(describe_things(), FOUND) as server, client(colour, server.url, source=source) as ours:
        ours.ask(GET)
    for asked in server.requests:
        assert SECRET.encode() not in asked.head + asked.body
        assert "x-amz-security-token" in asked.headers["authorization"]


# --- clocks ---


def skew(by: timedelta, code: str = "InvalidSignatureException") -> Step:
    message = "Signature expired: 20260101T000000Z is now earlier than 20260101T010000Z (20260101T011500Z - 15 min.)"
    if by < timedelta(0):
        message = "Signature not yet current: 20260101T010000Z is still later than 20260101T000000Z"
    theirs = format_datetime(datetime.now(UTC) + by, usegmt=True)
    return refuses(code, message, headers={"Date": theirs})


@pytest.mark.parametrize("by", [timedelta(hours=3), timedelta(days=-400)], ids=["ahead", "behind"])
@pytest.mark.parametrize("request_", REQUESTS)
def test_a_clock_that_disagrees_is_corrected_from_the_reply_and_stays_so(
    colour: Colour, request_: Request[Any], by: timedelta
) -> None:
    with (
        serve_script(describe_things(), skew(by), says({}), FOUND) as server,
        client(colour, server.url) as ours,
    ):
        ours.ask(request_)
        ours.ask(GET)
        assert ours.pace.sleeps == []
    _, wrong, right, later = (parse_date(asked) for asked in server.requests)
    near = timedelta(minutes=2)
    assert abs(right - wrong - by) < near
    assert abs(later - wrong - by) < near


def test_a_skew_told_by_another_name_is_corrected_too(colour: Colour) -> None:
    by = timedelta(hours=1)
    with (
        serve_script(describe_things(), skew(by, "RequestTimeTooSkewed"), FOUND) as server,
        client(colour, server.url) as ours,
    ):
        ours.ask(GET)
    assert abs(parse_date(server.requests[2]) - parse_date(server.requests[1]) - by) < timedelta(minutes=2)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_clock_that_cannot_be_set_right_surfaces_without_waiting(
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
def test_a_date_that_is_none_leaves_the_clock_alone(colour: Colour, date: str) -> None:
    step = refuses(
        "InvalidSignatureException", "Signature expired: x", headers={"X": 1, "Date": date.strip("\0")}
    )

    def answer(asked: Asked) -> Step:
        return describe_things() if asked.operation == "DescribeTable" else step

    with (
        serve_script(answer=answer) as server,
        client(colour, server.url) as ours,
        pytest.raises(HoldallError) as refusal,
    ):
        ours.ask(GET)
    assert isinstance(refusal.value, AccessDeniedError)
    times = [parse_date(asked) for asked in server.requests]
    assert max(times) - min(times) < timedelta(minutes=2)


def test_a_source_that_is_slow_does_not_hold_up_the_event_loop() -> None:
    """The loop goes on while credentials are fetched: here it must, for the fetching waits for the loop."""

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

"""Writes with a possibly unknown outcome: what is sent again, and what the caller receives, for each class of write.

The outcome of a send is unknown if the request was sent and no reply came, or none that reveals the outcome: a 5xx, or
one that cannot be parsed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scripted_server import CLOSE, RESET, Step, http, refuse_with, reply_with, serve_script, silence
from wire_rig import CHANGE, COLOURS, CREATE, KEY, PUT, Colour, client, describe_things

from holdall.backends.aws.credentials import Credentials
from holdall.backends.aws.limit import Limits
from holdall.core.expressions import Add, NotExists, Update, path, value
from holdall.core.requests import (
    DeleteItem,
    PutItem,
    Request,
    TransactWrite,
    UpdateItem,
    WriteReply,
)
from holdall.core.settings import resolve
from holdall.errors import (
    AccessDeniedError,
    ConditionFailedError,
    ConfigurationError,
    CredentialsError,
    HoldallError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TableNotFoundError,
    ThrottledError,
    TransactionCanceledError,
)

OURS = {"pk": {"S": "a"}, "_w": {"S": "our-stamp"}, "n": {"N": "1"}}
THEIRS = {"pk": {"S": "a"}, "_w": {"S": "another"}, "n": {"N": "9"}}

LOST = [
    pytest.param(CLOSE, id="closed"),
    pytest.param(RESET, id="reset"),
    pytest.param(Step((http(200, {"Content-Length": 9}, b"{"),), end="close"), id="cut short"),
    pytest.param(Step((b"garbage\r\n\r\n",)), id="garbage"),
    pytest.param(
        Step((http(500, {"Transfer-Encoding": "chunked"}, b"1\r\n"),), end="reset"), id="reset in a 500"
    ),
    pytest.param(refuse_with("InternalServerError", status=500), id="500"),
    pytest.param(reply_with(b"", status=502), id="502"),
    pytest.param(refuse_with("ServiceUnavailable", status=503), id="503"),
    pytest.param(reply_with(b"{}", headers={"x-amz-crc32": 1}), id="corrupt"),
    pytest.param(reply_with(b'{"Attr'), id="not JSON"),
]
REFUSED = [
    pytest.param(refuse_with("ThrottlingException"), id="throttled"),
    pytest.param(refuse_with("ProvisionedThroughputExceededException"), id="over the throughput"),
    pytest.param(refuse_with("TransactionConflictException"), id="in conflict"),
]
STAMPED = [pytest.param(CREATE, id="put"), pytest.param(CHANGE, id="update")]
PLAIN = [
    pytest.param(PUT, id="put"),
    pytest.param(PutItem("things", KEY, NotExists(path("pk"))), id="conditional put"),
    pytest.param(UpdateItem("things", KEY, Update((Add(path("n"), value(1)),))), id="update"),
    pytest.param(DeleteItem("things", KEY), id="delete"),
]
TRANSACTION = TransactWrite((UpdateItem("things", KEY, Update((Add(path("n"), value(1)),))),), "token-1")


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


def fail_condition(item: dict[str, Any] | None) -> Step:
    more: dict[str, Any] = {} if item is None else {"Item": item}
    return refuse_with("ConditionalCheckFailedException", **more)


def return_item(item: dict[str, Any] | None) -> Step:
    """The reply to the read that precedes another send."""
    return reply_with({} if item is None else {"Item": item})


ABSENT = return_item(None)


THREE = Limits(max_attempts=3)


def send_for_outcome(colour: Colour, request: Request[Any], *steps: Step, **options: Any) -> Any:
    """Send the request to a server with these steps; return the reply or the error."""
    with serve_script(describe_things(), *steps) as server, client(colour, server.url, **options) as ours:
        try:
            outcome: Any = ours.ask(request)
        except HoldallError as error:
            outcome = error
    sends = {received.body for received in server.requests[1:] if received.operation != "GetItem"}
    assert len(sends) == 1, "the repeated request differs from the first"
    return outcome


# --- stamped writes ---


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_finds_its_own_stamp_has_succeeded(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    assert send_for_outcome(colour, write, lost, return_item(OURS)) == WriteReply()


@pytest.mark.parametrize("before", [ABSENT, return_item(THEIRS)], ids=["absent", "another"])
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_takes_effect_after_the_read_has_succeeded(
    colour: Colour, write: Request[Any], before: Step
) -> None:
    assert send_for_outcome(colour, write, CLOSE, before, fail_condition(OURS)) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_the_read_is_strongly_consistent_and_of_the_written_item(colour: Colour, write: Request[Any]) -> None:
    with (
        serve_script(describe_things(), CLOSE, return_item(OURS)) as server,
        client(colour, server.url) as ours,
    ):
        ours.ask(write)
    read = server.requests[-1]
    assert read.operation == "GetItem"
    assert (read.payload["TableName"], read.payload["Key"], read.payload["ConsistentRead"]) == (
        "things",
        KEY,
        True,
    )


@pytest.mark.parametrize("write", STAMPED)
def test_the_read_is_repeated_until_it_is_answered(colour: Colour, write: Request[Any]) -> None:
    reads = [CLOSE, refuse_with("InternalServerError", status=500), refuse_with("ThrottlingException")]
    assert send_for_outcome(colour, write, CLOSE, *reads, return_item(OURS)) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_without_permission_to_read_the_write_is_sent_again_without_a_read(
    colour: Colour, write: Request[Any]
) -> None:
    denied = refuse_with("AccessDeniedException")
    assert send_for_outcome(colour, write, CLOSE, denied, fail_condition(OURS)) == WriteReply()
    assert send_for_outcome(colour, write, CLOSE, denied, reply_with({})) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_its_own_stamp_refuses_at_the_first_send_has_succeeded(
    colour: Colour, write: Request[Any]
) -> None:
    """A proxy sent it twice and returned the second reply."""
    assert send_for_outcome(colour, write, fail_condition(OURS)) == WriteReply()


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_finds_another_stamp_is_unknown_and_the_error_has_the_item(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    outcome = send_for_outcome(colour, write, lost, return_item(THEIRS), fail_condition(THEIRS))
    assert isinstance(outcome, OutcomeUnknown)
    assert outcome.item == THEIRS
    assert not outcome.retryable


@pytest.mark.parametrize("write", STAMPED)
@pytest.mark.parametrize("item", [None, {"pk": {"S": "a"}}, {"pk": {"S": "a"}, "_w": {"N": "1"}}], ids=repr)
def test_a_stamped_write_that_finds_no_stamp_is_unknown(
    colour: Colour, write: Request[Any], item: dict[str, Any] | None
) -> None:
    outcome = send_for_outcome(colour, write, CLOSE, return_item(item), fail_condition(item))
    assert isinstance(outcome, OutcomeUnknown)
    assert outcome.item == item


@pytest.mark.parametrize("write", STAMPED)
@pytest.mark.parametrize("item", [THEIRS, None], ids=["another", "no item"])
def test_a_stamped_write_whose_condition_fails_at_its_first_send_did_not_happen(
    colour: Colour, write: Request[Any], item: dict[str, Any] | None
) -> None:
    outcome = send_for_outcome(colour, write, fail_condition(item))
    assert isinstance(outcome, ConditionFailedError)
    assert outcome.item == item


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_whose_condition_fails_after_refusals_did_not_happen(
    colour: Colour, write: Request[Any], refused: Step
) -> None:
    outcome = send_for_outcome(colour, write, refused, refused, fail_condition(THEIRS))
    assert isinstance(outcome, ConditionFailedError)


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_is_sent_again_until_it_is_answered(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    steps = [lost, ABSENT, lost, ABSENT, refuse_with("ThrottlingException"), ABSENT, reply_with({})]
    assert send_for_outcome(colour, write, *steps) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_after_a_lost_reply_a_failed_condition_is_an_unknown_outcome(
    colour: Colour, write: Request[Any]
) -> None:
    later = [
        ABSENT,
        refuse_with("ThrottlingException"),
        ABSENT,
        refuse_with("TransactionConflictException"),
        ABSENT,
        fail_condition(THEIRS),
    ]
    assert isinstance(send_for_outcome(colour, write, CLOSE, *later), OutcomeUnknown)


@pytest.mark.parametrize(
    "last",
    [
        refuse_with("AccessDeniedException"),
        refuse_with("ResourceNotFoundException"),
        refuse_with("ValidationException"),
        refuse_with("SomethingNewException"),
    ],
    ids=["denied", "no table", "invalid", "new"],
)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_refused_after_a_lost_reply_is_unknown(
    colour: Colour, write: Request[Any], last: Step
) -> None:
    assert isinstance(send_for_outcome(colour, write, CLOSE, ABSENT, last), OutcomeUnknown)


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_whose_item_cannot_be_read_is_unknown(colour: Colour, write: Request[Any]) -> None:
    gone = refuse_with("ResourceNotFoundException")
    assert isinstance(send_for_outcome(colour, write, CLOSE, gone), OutcomeUnknown)


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_never_answered_is_unknown(colour: Colour, write: Request[Any]) -> None:
    assert isinstance(send_for_outcome(colour, write, CLOSE, CLOSE, CLOSE, limits=THREE), OutcomeUnknown)


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_only_throttled_did_not_happen(colour: Colour, write: Request[Any]) -> None:
    assert isinstance(
        send_for_outcome(colour, write, *[refuse_with("ThrottlingException")] * 3, limits=THREE),
        ThrottledError,
    )


def test_a_stamped_write_that_finds_its_own_stamp_returns_the_new_item(colour: Colour) -> None:
    outcome = send_for_outcome(colour, replace(CHANGE, returns="new"), CLOSE, return_item(OURS))
    assert outcome == WriteReply(OURS)


def test_a_stamp_is_stored_in_the_item_and_the_old_item_is_requested_on_failure(colour: Colour) -> None:
    with serve_script(describe_things(), reply_with({})) as server, client(colour, server.url) as ours:
        ours.ask(CREATE)
    payload = server.requests[1].payload
    assert payload["Item"]["_w"] == {"S": "our-stamp"}
    assert payload["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


# --- plain writes ---


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", PLAIN)
def test_a_plain_write_is_not_sent_again_once_its_outcome_is_unknown(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    outcome = send_for_outcome(colour, write, lost)
    assert isinstance(outcome, OutcomeUnknown)
    assert not outcome.retryable


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("write", PLAIN)
def test_a_plain_write_that_was_refused_is_sent_again(
    colour: Colour, write: Request[Any], refused: Step
) -> None:
    assert send_for_outcome(colour, write, refused, refused, reply_with({})) == WriteReply()


@pytest.mark.parametrize("write", PLAIN)
def test_a_plain_write_whose_reply_is_lost_after_a_refusal_is_unknown(
    colour: Colour, write: Request[Any]
) -> None:
    assert isinstance(
        send_for_outcome(colour, write, refuse_with("ThrottlingException"), CLOSE), OutcomeUnknown
    )


def test_the_error_of_a_lost_plain_write_has_its_cause_and_a_hint(colour: Colour) -> None:
    outcome = send_for_outcome(colour, PUT, CLOSE)
    assert "hint:" in str(outcome)
    assert isinstance(outcome.__cause__, ServiceUnavailableError)


def test_a_plain_write_whose_reply_does_not_come_in_time_is_unknown(colour: Colour) -> None:
    assert isinstance(send_for_outcome(colour, PUT, silence(), read_timeout=1.0), OutcomeUnknown)


def test_a_stamped_write_whose_reply_does_not_come_in_time_is_verified_by_its_stamp(colour: Colour) -> None:
    assert send_for_outcome(colour, CHANGE, silence(), return_item(OURS), read_timeout=1.0) == WriteReply()


# --- writes with a token ---


@pytest.mark.parametrize("lost", LOST)
def test_a_token_write_is_sent_again_with_its_token_until_it_is_answered(colour: Colour, lost: Step) -> None:
    steps = [describe_things(), lost, lost, reply_with({})]
    with serve_script(*steps) as server, client(colour, server.url) as ours:
        ours.ask(TRANSACTION)
    _, first, second, third = server.requests
    assert first.body == second.body == third.body
    assert first.payload["ClientRequestToken"] == "token-1"


def test_a_token_write_that_is_cancelled_after_a_lost_reply_did_not_happen(colour: Colour) -> None:
    reasons = [{"Code": "ConditionalCheckFailed"}]
    cancelled = refuse_with("TransactionCanceledException", CancellationReasons=reasons)
    assert isinstance(send_for_outcome(colour, TRANSACTION, CLOSE, cancelled), TransactionCanceledError)


@pytest.mark.parametrize(
    ("last", "alone"),
    [
        (refuse_with("AccessDeniedException"), AccessDeniedError),
        (refuse_with("ResourceNotFoundException"), TableNotFoundError),
    ],
    ids=["denied", "no table"],
)
def test_a_token_write_that_is_refused_without_a_look_at_its_token_is_unknown_after_a_lost_reply(
    colour: Colour, last: Step, alone: type[HoldallError]
) -> None:
    assert isinstance(send_for_outcome(colour, TRANSACTION, last), alone)
    assert isinstance(send_for_outcome(colour, TRANSACTION, CLOSE, last), OutcomeUnknown)


def test_a_token_write_that_is_never_answered_is_unknown(colour: Colour) -> None:
    assert isinstance(
        send_for_outcome(colour, TRANSACTION, CLOSE, CLOSE, CLOSE, limits=THREE), OutcomeUnknown
    )


def test_a_token_is_not_sent_again_after_the_service_may_have_forgotten_it(colour: Colour) -> None:
    longest = Limits(total_timeout=240.0, max_attempts=10**6)
    with pytest.raises(ConfigurationError):
        resolve({"url": "dynamodb://things", "total_timeout": longest.total_timeout + 1}, {}, {})

    def answer(received: Any) -> Step:
        return describe_things() if received.operation == "DescribeTable" else CLOSE

    with serve_script(answer=answer) as server, client(colour, server.url, limits=longest) as ours:
        ours.pace.lasting = 31.0
        with pytest.raises(OutcomeUnknown):
            ours.ask(TRANSACTION)
    _, *sends = ours.pace.sends
    assert len(sends) > 5
    assert sends[-1] - sends[0] <= 8 * 60


# --- single writes with tokens ---


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", [*PLAIN, *STAMPED])
def test_as_token_a_single_write_is_known_in_spite_of_a_lost_reply(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    outcome = send_for_outcome(colour, write, lost, reply_with({}), single_writes="token")
    assert outcome == WriteReply()


@pytest.mark.parametrize("write", [*PLAIN, *STAMPED])
def test_as_token_a_single_write_is_sent_as_a_transaction(colour: Colour, write: Request[Any]) -> None:
    with (
        serve_script(describe_things(), reply_with({})) as server,
        client(colour, server.url, single_writes="token") as ours,
    ):
        ours.ask(write)
    (_, received) = server.requests
    assert received.operation == "TransactWriteItems"
    assert len(received.payload["TransactItems"]) == 1
    assert len(received.payload["ClientRequestToken"]) == 36


def test_as_token_each_write_has_its_own_token(colour: Colour) -> None:
    with serve_script(describe_things(), reply_with({}), reply_with({})) as server:
        with client(colour, server.url, single_writes="token") as ours:
            ours.ask(PUT)
            ours.ask(PUT)
        first, second = (received.payload["ClientRequestToken"] for received in server.requests[1:])
    assert first != second


@pytest.mark.parametrize("item", [THEIRS, None], ids=["an item", "no item"])
def test_as_token_a_failed_condition_is_the_same_as_without(
    colour: Colour, item: dict[str, Any] | None
) -> None:
    reason = {"Code": "ConditionalCheckFailed", "Message": "no", **({} if item is None else {"Item": item})}
    cancelled = refuse_with("TransactionCanceledException", CancellationReasons=[reason])
    write = PutItem("things", KEY, NotExists(path("pk")), item_on_failure=True)
    outcome = send_for_outcome(colour, write, cancelled, single_writes="token")
    assert type(outcome) is ConditionFailedError
    assert outcome.item == item
    assert outcome.request_id == "REQUEST-1"


# --- failures on our side ---


class Faltering:
    """A source that returns credentials twice (to describe the table, to send) and then raises."""

    def __init__(self) -> None:
        self._left = 2

    def current(self) -> Credentials:
        if not self._left:
            raise CredentialsError("no keys are left")
        self._left -= 1
        return Credentials("AKIDEXAMPLE", "secret")

    def peek(self) -> Credentials:
        return self.current()

    def renew(self, rejected: Credentials) -> None:
        raise AssertionError("nothing was rejected")


UNSETTLED = [*STAMPED, pytest.param(TRANSACTION, id="token")]


@pytest.mark.parametrize("write", UNSETTLED)
def test_a_write_that_cannot_be_signed_again_after_a_lost_reply_is_unknown(
    colour: Colour, write: Request[Any]
) -> None:
    assert isinstance(send_for_outcome(colour, write, CLOSE, source=Faltering()), OutcomeUnknown)


@pytest.mark.parametrize("write", UNSETTLED)
def test_a_write_whose_endpoint_is_gone_after_a_lost_reply_is_unknown(
    colour: Colour, write: Request[Any]
) -> None:
    def answer(received: Any) -> Step:
        if received.operation == "DescribeTable":
            return describe_things()
        server.stop_listening()
        return CLOSE

    with (
        serve_script(answer=answer) as server,
        client(colour, server.url) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(write)

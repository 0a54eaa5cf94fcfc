"""Writes whose fate may be unknown: what is sent again, and what the caller is told, for each class of write.

A send has an unknown fate when its bytes left and no reply came, or a reply that says nothing about it: a 5xx, or one
that cannot be read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scripted_server import CLOSE, RESET, Step, http, refuses, says, serve_script, silence
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
    pytest.param(refuses("InternalServerError", status=500), id="500"),
    pytest.param(says(b"", status=502), id="502"),
    pytest.param(refuses("ServiceUnavailable", status=503), id="503"),
    pytest.param(says(b"{}", headers={"x-amz-crc32": 1}), id="corrupt"),
    pytest.param(says(b'{"Attr'), id="no JSON"),
]
REFUSED = [
    pytest.param(refuses("ThrottlingException"), id="throttled"),
    pytest.param(refuses("ProvisionedThroughputExceededException"), id="over the throughput"),
    pytest.param(refuses("TransactionConflictException"), id="in conflict"),
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
    return refuses("ConditionalCheckFailedException", **more)


def finds(item: dict[str, Any] | None) -> Step:
    """The answer to the look that precedes another send."""
    return says({} if item is None else {"Item": item})


ABSENT = finds(None)


THREE = Limits(max_attempts=3)


def outcome(colour: Colour, request: Request[Any], *steps: Step, **options: Any) -> Any:
    """The reply or the error, after exactly these steps."""
    with serve_script(describe_things(), *steps) as server, client(colour, server.url, **options) as ours:
        try:
            told: Any = ours.ask(request)
        except HoldallError as error:
            told = error
    sends = {asked.body for asked in server.requests[1:] if asked.operation != "GetItem"}
    assert len(sends) == 1, "sent again, but not the same"
    return told


# --- Stamp ---


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_finds_its_own_stamp_has_succeeded(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    assert outcome(colour, write, lost, finds(OURS)) == WriteReply()


@pytest.mark.parametrize("before", [ABSENT, finds(THEIRS)], ids=["absent", "another"])
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_carried_out_after_the_look_has_succeeded(
    colour: Colour, write: Request[Any], before: Step
) -> None:
    assert outcome(colour, write, CLOSE, before, fail_condition(OURS)) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_the_look_is_strongly_consistent_and_of_the_written_item(colour: Colour, write: Request[Any]) -> None:
    with serve_script(describe_things(), CLOSE, finds(OURS)) as server, client(colour, server.url) as ours:
        ours.ask(write)
    look = server.requests[-1]
    assert look.operation == "GetItem"
    assert (look.payload["TableName"], look.payload["Key"], look.payload["ConsistentRead"]) == (
        "things",
        KEY,
        True,
    )


@pytest.mark.parametrize("write", STAMPED)
def test_a_look_is_repeated_until_it_is_answered(colour: Colour, write: Request[Any]) -> None:
    looks = [CLOSE, refuses("InternalServerError", status=500), refuses("ThrottlingException")]
    assert outcome(colour, write, CLOSE, *looks, finds(OURS)) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_who_may_write_and_not_read_sends_again_without_a_look(colour: Colour, write: Request[Any]) -> None:
    denied = refuses("AccessDeniedException")
    assert outcome(colour, write, CLOSE, denied, fail_condition(OURS)) == WriteReply()
    assert outcome(colour, write, CLOSE, denied, says({})) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_refused_by_its_own_stamp_was_delivered_twice_and_has_succeeded(
    colour: Colour, write: Request[Any]
) -> None:
    """Something on the way sent it again and passed the second answer on; we have sent it once."""
    assert outcome(colour, write, fail_condition(OURS)) == WriteReply()


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_finds_another_stamp_is_unknown_and_carries_the_item(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    told = outcome(colour, write, lost, finds(THEIRS), fail_condition(THEIRS))
    assert isinstance(told, OutcomeUnknown)
    assert told.item == THEIRS
    assert not told.retryable


@pytest.mark.parametrize("write", STAMPED)
@pytest.mark.parametrize("item", [None, {"pk": {"S": "a"}}, {"pk": {"S": "a"}, "_w": {"N": "1"}}], ids=repr)
def test_a_stamped_write_that_finds_no_stamp_is_unknown(
    colour: Colour, write: Request[Any], item: dict[str, Any] | None
) -> None:
    told = outcome(colour, write, CLOSE, finds(item), fail_condition(item))
    assert isinstance(told, OutcomeUnknown)
    assert told.item == item


@pytest.mark.parametrize("write", STAMPED)
@pytest.mark.parametrize("item", [THEIRS, None], ids=["another", "no item"])
def test_a_stamped_write_that_fails_at_its_first_send_is_contention(
    colour: Colour, write: Request[Any], item: dict[str, Any] | None
) -> None:
    told = outcome(colour, write, fail_condition(item))
    assert isinstance(told, ConditionFailedError)
    assert told.item == item


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_was_only_refused_before_is_contention(
    colour: Colour, write: Request[Any], refused: Step
) -> None:
    told = outcome(colour, write, refused, refused, fail_condition(THEIRS))
    assert isinstance(told, ConditionFailedError)


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_is_sent_again_until_it_is_answered(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    steps = [lost, ABSENT, lost, ABSENT, refuses("ThrottlingException"), ABSENT, says({})]
    assert outcome(colour, write, *steps) == WriteReply()


@pytest.mark.parametrize("write", STAMPED)
def test_an_unknown_send_stays_unknown_whatever_is_answered_later(
    colour: Colour, write: Request[Any]
) -> None:
    later = [
        ABSENT,
        refuses("ThrottlingException"),
        ABSENT,
        refuses("TransactionConflictException"),
        ABSENT,
        fail_condition(THEIRS),
    ]
    assert isinstance(outcome(colour, write, CLOSE, *later), OutcomeUnknown)


@pytest.mark.parametrize(
    "last",
    [
        refuses("AccessDeniedException"),
        refuses("ResourceNotFoundException"),
        refuses("ValidationException"),
        refuses("SomethingNewException"),
    ],
    ids=["denied", "no table", "invalid", "new"],
)
@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_refused_after_an_unknown_send_is_unknown(
    colour: Colour, write: Request[Any], last: Step
) -> None:
    assert isinstance(outcome(colour, write, CLOSE, ABSENT, last), OutcomeUnknown)


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_whose_item_cannot_be_looked_at_is_unknown(
    colour: Colour, write: Request[Any]
) -> None:
    gone = refuses("ResourceNotFoundException")
    assert isinstance(outcome(colour, write, CLOSE, gone), OutcomeUnknown)


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_never_answered_is_unknown(colour: Colour, write: Request[Any]) -> None:
    assert isinstance(outcome(colour, write, CLOSE, CLOSE, CLOSE, limits=THREE), OutcomeUnknown)


@pytest.mark.parametrize("write", STAMPED)
def test_a_stamped_write_that_is_only_throttled_did_not_happen(colour: Colour, write: Request[Any]) -> None:
    assert isinstance(
        outcome(colour, write, *[refuses("ThrottlingException")] * 3, limits=THREE), ThrottledError
    )


def test_a_stamped_write_that_finds_its_own_stamp_gives_back_the_new_item(colour: Colour) -> None:
    told = outcome(colour, replace(CHANGE, returns="new"), CLOSE, finds(OURS))
    assert told == WriteReply(OURS)


def test_a_stamp_is_in_the_item_and_the_old_item_is_asked_for(colour: Colour) -> None:
    with serve_script(describe_things(), says({})) as server, client(colour, server.url) as ours:
        ours.ask(CREATE)
    payload = server.requests[1].payload
    assert payload["Item"]["_w"] == {"S": "our-stamp"}
    assert payload["ReturnValuesOnConditionCheckFailure"] == "ALL_OLD"


# --- Plain ---


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", PLAIN)
def test_a_plain_write_is_not_sent_again_once_its_fate_is_unknown(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    told = outcome(colour, write, lost)
    assert isinstance(told, OutcomeUnknown)
    assert not told.retryable


@pytest.mark.parametrize("refused", REFUSED)
@pytest.mark.parametrize("write", PLAIN)
def test_a_plain_write_that_was_refused_is_sent_again(
    colour: Colour, write: Request[Any], refused: Step
) -> None:
    assert outcome(colour, write, refused, refused, says({})) == WriteReply()


@pytest.mark.parametrize("write", PLAIN)
def test_a_plain_write_that_was_refused_and_then_lost_is_unknown(colour: Colour, write: Request[Any]) -> None:
    assert isinstance(outcome(colour, write, refuses("ThrottlingException"), CLOSE), OutcomeUnknown)


def test_a_lost_plain_write_says_what_went_wrong_and_what_to_do(colour: Colour) -> None:
    told = outcome(colour, PUT, CLOSE)
    assert "hint:" in str(told)
    assert isinstance(told.__cause__, ServiceUnavailableError)


def test_a_plain_write_whose_reply_does_not_come_in_time_is_unknown(colour: Colour) -> None:
    assert isinstance(outcome(colour, PUT, silence(), read_timeout=1.0), OutcomeUnknown)


def test_a_stamped_write_whose_reply_does_not_come_in_time_is_settled_by_its_stamp(colour: Colour) -> None:
    assert outcome(colour, CHANGE, silence(), finds(OURS), read_timeout=1.0) == WriteReply()


# --- Token ---


@pytest.mark.parametrize("lost", LOST)
def test_a_token_write_is_sent_again_with_its_token_until_it_is_answered(colour: Colour, lost: Step) -> None:
    steps = [describe_things(), lost, lost, says({})]
    with serve_script(*steps) as server, client(colour, server.url) as ours:
        ours.ask(TRANSACTION)
    _, first, second, third = server.requests
    assert first.body == second.body == third.body
    assert first.payload["ClientRequestToken"] == "token-1"


def test_a_token_write_that_is_cancelled_after_a_lost_reply_did_not_happen(colour: Colour) -> None:
    reasons = [{"Code": "ConditionalCheckFailed"}]
    cancelled = refuses("TransactionCanceledException", CancellationReasons=reasons)
    assert isinstance(outcome(colour, TRANSACTION, CLOSE, cancelled), TransactionCanceledError)


@pytest.mark.parametrize(
    ("last", "plainly"),
    [
        (refuses("AccessDeniedException"), AccessDeniedError),
        (refuses("ResourceNotFoundException"), TableNotFoundError),
    ],
    ids=["denied", "no table"],
)
def test_a_token_write_whose_token_was_not_looked_at_again_is_unknown(
    colour: Colour, last: Step, plainly: type[HoldallError]
) -> None:
    assert isinstance(outcome(colour, TRANSACTION, last), plainly)
    assert isinstance(outcome(colour, TRANSACTION, CLOSE, last), OutcomeUnknown)


def test_a_token_write_that_is_never_answered_is_unknown(colour: Colour) -> None:
    assert isinstance(outcome(colour, TRANSACTION, CLOSE, CLOSE, CLOSE, limits=THREE), OutcomeUnknown)


def test_a_token_is_not_sent_again_after_the_service_may_have_forgotten_it(colour: Colour) -> None:
    longest = Limits(total_timeout=240.0, max_attempts=10**6)
    with pytest.raises(ConfigurationError):
        resolve({"url": "dynamodb://things", "total_timeout": longest.total_timeout + 1}, {}, {})

    def answer(asked: Any) -> Step:
        return describe_things() if asked.operation == "DescribeTable" else CLOSE

    with serve_script(answer=answer) as server, client(colour, server.url, limits=longest) as ours:
        ours.pace.lasting = 31.0
        with pytest.raises(OutcomeUnknown):
            ours.ask(TRANSACTION)
    _, *sends = ours.pace.sends
    assert len(sends) > 5
    assert sends[-1] - sends[0] <= 8 * 60


# --- single writes as tokens ---


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("write", [*PLAIN, *STAMPED])
def test_as_token_no_lost_reply_leaves_a_single_write_unknown(
    colour: Colour, write: Request[Any], lost: Step
) -> None:
    told = outcome(colour, write, lost, says({}), single_writes="token")
    assert told == WriteReply()


@pytest.mark.parametrize("write", [*PLAIN, *STAMPED])
def test_as_token_a_single_write_goes_as_a_transaction_of_one(colour: Colour, write: Request[Any]) -> None:
    with (
        serve_script(describe_things(), says({})) as server,
        client(colour, server.url, single_writes="token") as ours,
    ):
        ours.ask(write)
    (_, asked) = server.requests
    assert asked.operation == "TransactWriteItems"
    assert len(asked.payload["TransactItems"]) == 1
    assert len(asked.payload["ClientRequestToken"]) == 36


def test_as_token_each_write_has_a_token_of_its_own(colour: Colour) -> None:
    with serve_script(describe_things(), says({}), says({})) as server:
        with client(colour, server.url, single_writes="token") as ours:
            ours.ask(PUT)
            ours.ask(PUT)
        first, second = (asked.payload["ClientRequestToken"] for asked in server.requests[1:])
    assert first != second


@pytest.mark.parametrize("item", [THEIRS, None], ids=["an item", "no item"])
def test_as_token_a_failed_condition_is_the_same_as_without(
    colour: Colour, item: dict[str, Any] | None
) -> None:
    reason = {"Code": "ConditionalCheckFailed", "Message": "no", **({} if item is None else {"Item": item})}
    cancelled = refuses("TransactionCanceledException", CancellationReasons=[reason])
    write = PutItem("things", KEY, NotExists(path("pk")), item_on_failure=True)
    told = outcome(colour, write, cancelled, single_writes="token")
    assert type(told) is ConditionFailedError
    assert told.item == item
    assert told.request_id == "REQUEST-1"


# --- when we ourselves cannot go on ---


class Faltering:
    """A source of credentials that has them twice (to describe the table, to send) and then no more."""

    def __init__(self) -> None:
        self._left = 2

    def current(self) -> Credentials:
        if not self._left:
            raise CredentialsError("there are no more keys")
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
    assert isinstance(outcome(colour, write, CLOSE, source=Faltering()), OutcomeUnknown)


@pytest.mark.parametrize("write", UNSETTLED)
def test_a_write_whose_endpoint_is_gone_after_a_lost_reply_is_unknown(
    colour: Colour, write: Request[Any]
) -> None:
    def answer(asked: Any) -> Step:
        if asked.operation == "DescribeTable":
            return describe_things()
        server.stop_listening()
        return CLOSE

    with (
        serve_script(answer=answer) as server,
        client(colour, server.url) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(write)

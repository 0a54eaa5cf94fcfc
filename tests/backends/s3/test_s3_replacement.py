"""Replacing and deleting a certain object: what is sent, what is made of the answers, and what after lost replies."""

from __future__ import annotations

from hashlib import md5
from typing import Any

import pytest
from s3_rig import BUCKET, ETAG, bucket, client, denies, line_of, make_object_reply, make_reply, md5_of, tells
from scripted_server import CLOSE, RESET, Asked, Step
from wire_rig import COLOURS, Colour

from holdall.backends.s3.service import LIMITS
from holdall.core.objects import (
    CompleteUpload,
    DeleteObject,
    ObjectInfo,
    ObjectRequest,
    Part,
    PutObject,
    Upload,
)
from holdall.core.requests import Done
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    IntegrityError,
    InvalidRequestError,
    ObjectNotFoundError,
    OutcomeUnknown,
    PreconditionFailedError,
    UnsupportedConditionError,
)

REPLACE = PutObject("", "a", b"words", if_match="old")
UPLOAD = Upload("a", "u1")
PARTS = (Part(1, md5(b"one").hexdigest(), 3),)
WHOLE = f"{md5(md5(b'one').digest()).hexdigest()}-1"
REPLACE_UPLOAD = CompleteUpload("", UPLOAD, PARTS, if_match="old")
DELETE = DeleteObject("", "a", if_match="old")
REFUSED = denies("PreconditionFailed", 412)
MISSING = denies("NoSuchKey", 404)
NO_UPLOAD = denies("NoSuchUpload", 404)
SOME_PARTS = tells("<ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>")
COMPLETED = tells(f"<R><ETag>&quot;{WHOLE}&quot;</ETag></R>")
PUT_ID = "x-amz-meta-holdall-put-id"
LOST = pytest.mark.parametrize(
    "lost", [CLOSE, RESET, denies("InternalError", 500)], ids=["close", "reset", "500"]
)
AMAZON = "s3.us-east-1.amazonaws.com"


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def methods(requests: list[Asked]) -> list[str]:
    return [line_of(asked)[0] for asked in requests]


def there(put_id: str | None = None, etag: str = ETAG) -> Step:
    headers = {"Content-Length": 5, "ETag": f'"{etag}"'} | ({PUT_ID: put_id} if put_id else {})
    return make_object_reply(headers=headers)


class Keeper:
    """A server that loses the reply to the first put, refuses the second, and then shows what the first has left."""

    def __init__(self, lost: Step) -> None:
        self._lost = lost
        self._puts: list[Asked] = []

    def __call__(self, asked: Asked) -> Step:
        if line_of(asked)[0] == "HEAD":
            return there(self._puts[0].headers[PUT_ID])
        self._puts.append(asked)
        return self._lost if len(self._puts) == 1 else REFUSED


# --- puts ---


def test_a_put_demands_the_object_that_it_knows_and_leaves_an_id(colour: Colour) -> None:
    with bucket(make_reply(), make_reply()) as server, client(colour, server) as ours:

        async def flow() -> list[ObjectInfo]:
            return [await ours.send(REPLACE), await ours.send(REPLACE)]

        first, second = ours.finish(flow)
    one, other = server.requests
    assert one.headers["if-match"] == '"old"'
    assert "if-none-match" not in one.headers
    assert (first.put_id, second.put_id) == (one.headers[PUT_ID], other.headers[PUT_ID])
    assert one.headers[PUT_ID] != other.headers[PUT_ID]
    assert (first.etag, first.size) == (ETAG, 5)


@pytest.mark.parametrize("refusal", [REFUSED, MISSING], ids=["another", "missing"])
@pytest.mark.parametrize("request_", [REPLACE, REPLACE_UPLOAD], ids=["put", "upload"])
def test_another_object_and_none_are_refused_alike(colour: Colour, refusal: Step, request_: Any) -> None:
    looks = [SOME_PARTS] if request_ is REPLACE_UPLOAD else [there("another")] if refusal is REFUSED else []
    with (
        bucket(refusal, *looks) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(request_)


def test_a_replacement_that_is_refused_by_its_own_object_was_delivered_twice_and_has_succeeded(
    colour: Colour,
) -> None:
    with bucket(answer=Keeper(REFUSED)) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE).put_id == server.requests[0].headers[PUT_ID]
    assert methods(server.requests) == ["PUT", "HEAD"]


@LOST
def test_after_a_lost_reply_what_refuses_may_be_ours(colour: Colour, lost: Step) -> None:
    with bucket(answer=Keeper(lost)) as server, client(colour, server) as ours:
        info = ours.ask(REPLACE)
    assert methods(server.requests) == ["PUT", "PUT", "HEAD"]
    assert info.put_id == server.requests[0].headers[PUT_ID] == server.requests[1].headers[PUT_ID]


@LOST
@pytest.mark.parametrize(
    "after",
    [
        [REFUSED, there("another")],
        [REFUSED, there()],
        [REFUSED, make_reply(404)],
        [MISSING],
        [denies("AccessDenied", 403)],
    ],
    ids=["another", "plain", "gone", "missing", "refused otherwise"],
)
def test_after_a_lost_reply_what_was_replaced_since_is_unknown(
    colour: Colour, lost: Step, after: list[Step]
) -> None:
    with (
        bucket(lost, *after) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown, match="was replaced"),
    ):
        ours.ask(REPLACE)


@LOST
def test_after_a_lost_reply_the_second_send_may_be_the_first(colour: Colour, lost: Step) -> None:
    with bucket(lost, make_reply()) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE).put_id == server.requests[1].headers[PUT_ID]


def test_replies_that_are_always_lost_leave_the_outcome_unknown(colour: Colour) -> None:
    with (
        bucket(*[CLOSE] * LIMITS.max_attempts) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(REPLACE)


def test_a_conflict_with_another_write_is_tried_again(colour: Colour) -> None:
    conflict = denies("ConditionalRequestConflict", 409)
    with bucket(conflict, make_reply()) as server, client(colour, server) as ours:
        ours.ask(REPLACE)


def test_wrong_bytes_are_not_sent(colour: Colour) -> None:
    with bucket() as server, client(colour, server) as ours, pytest.raises(IntegrityError):
        ours.ask(PutObject("", "a", b"words", md5=md5_of(b"others"), if_match="old"))


@pytest.mark.parametrize("etag", ["", "a b", "a\r\nx: y", "ü"])
def test_what_is_no_etag_is_refused_before_anything_is_sent(colour: Colour, etag: str) -> None:
    requests: tuple[ObjectRequest[Any], ...] = (
        PutObject("", "a", b"", if_match=etag),
        DeleteObject("", "a", if_match=etag),
    )
    with bucket() as server, client(colour, server, conditional_puts=None) as ours:
        for request in requests:
            with pytest.raises(InvalidRequestError, match="etag"):
                ours.ask(request)


# --- uploads ---


def test_an_upload_demands_the_object_that_it_knows(colour: Colour) -> None:
    with bucket(COMPLETED, there(etag=WHOLE)) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE_UPLOAD).etag == WHOLE
    assert server.requests[0].headers["if-match"] == '"old"'
    assert "if-none-match" not in server.requests[0].headers


def test_an_upload_that_is_gone_is_no_failed_precondition(colour: Colour) -> None:
    with (
        bucket(NO_UPLOAD, make_reply(404)) as server,
        client(colour, server) as ours,
        pytest.raises(ObjectNotFoundError),
    ):
        ours.ask(REPLACE_UPLOAD)


@LOST
@pytest.mark.parametrize("refusal", [REFUSED, NO_UPLOAD, MISSING], ids=["refused", "no upload", "no object"])
def test_after_a_lost_reply_the_upload_may_have_become_the_object(
    colour: Colour, lost: Step, refusal: Step
) -> None:
    looks = [there(etag=WHOLE)] if refusal is NO_UPLOAD else [NO_UPLOAD, there(etag=WHOLE)]
    with bucket(lost, refusal, *looks) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE_UPLOAD).etag == WHOLE


@LOST
@pytest.mark.parametrize("refusal", [REFUSED, MISSING], ids=["refused", "no object"])
def test_after_a_lost_reply_an_upload_that_is_still_there_was_refused(
    colour: Colour, lost: Step, refusal: Step
) -> None:
    with (
        bucket(lost, refusal, SOME_PARTS) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(REPLACE_UPLOAD)


@LOST
def test_an_upload_of_which_nobody_can_tell_is_unknown(colour: Colour, lost: Step) -> None:
    with (
        bucket(lost, REFUSED, NO_UPLOAD, there(etag="another")) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(REPLACE_UPLOAD)


# --- deletions ---


def test_a_deletion_demands_the_object_that_it_knows(colour: Colour) -> None:
    with bucket(make_reply(204)) as server, client(colour, server) as ours:
        assert ours.ask(DELETE) == Done()
    (asked,) = server.requests
    assert (line_of(asked), asked.headers["if-match"]) == (("DELETE", f"/{BUCKET}/a"), '"old"')
    with bucket(make_reply(204)) as server, client(colour, server) as ours:
        ours.ask(DeleteObject("", "a"))
    assert "if-match" not in server.requests[0].headers


def test_another_object_is_not_deleted(colour: Colour) -> None:
    with (
        bucket(REFUSED, there()) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(DELETE)


@pytest.mark.parametrize(
    "steps", [[MISSING], [REFUSED, make_reply(404)], [CLOSE, MISSING], [CLOSE, REFUSED, make_reply(404)]]
)
def test_what_is_missing_need_not_be_deleted(colour: Colour, steps: list[Step]) -> None:
    with bucket(*steps) as server, client(colour, server) as ours:
        assert ours.ask(DELETE) == Done()


@LOST
def test_after_a_lost_reply_another_object_leaves_it_unknown(colour: Colour, lost: Step) -> None:
    for after in ([REFUSED, there()], [denies("AccessDenied", 403)]):
        with (
            bucket(lost, *after) as server,
            client(colour, server) as ours,
            pytest.raises(OutcomeUnknown, match="was deleted"),
        ):
            ours.ask(DELETE)


def test_who_may_not_delete_hears_of_it(colour: Colour) -> None:
    with (
        bucket(denies("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError),
    ):
        ours.ask(DELETE)


# --- finding out whether a server can ---


def test_a_server_is_put_to_the_test_once_for_puts_and_deletions(colour: Colour) -> None:
    steps = [make_reply(), REFUSED, REFUSED, make_reply(204), make_reply(), make_reply(204), make_reply()]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None, prefix="p/") as ours:

        async def flow() -> None:
            await ours.send(REPLACE)
            await ours.send(DELETE)
            await ours.send(REPLACE)

        ours.finish(flow)
    probes, real = server.requests[:4], server.requests[4:]
    assert methods(probes) == ["PUT", "PUT", "DELETE", "DELETE"]
    assert len({line_of(asked)[1] for asked in probes}) == 1
    assert line_of(probes[0])[1].startswith(f"/{BUCKET}/p/.holdall-probe-")
    assert ["if-match" in asked.headers for asked in probes] == [False, True, True, False]
    assert [line_of(asked)[1] for asked in real] == [f"/{BUCKET}/p/a"] * 3


UNABLE = pytest.mark.parametrize(
    "ignored", [make_reply(), denies("NotImplemented", 501)], ids=["ignored", "not implemented"]
)


@UNABLE
@pytest.mark.parametrize("request_", [REPLACE, REPLACE_UPLOAD], ids=["put", "upload"])
def test_a_server_that_would_replace_anything_is_found_out(
    colour: Colour, ignored: Step, request_: Any
) -> None:
    steps = [make_reply(), ignored, REFUSED, make_reply(204), make_reply(204)]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None) as ours:

        async def flow() -> None:
            for _ in range(2):
                with pytest.raises(UnsupportedConditionError, match="ignores conditions on puts"):
                    await ours.send(request_)
            await ours.send(DELETE)

        ours.finish(flow)
    assert all("/.holdall-probe-" in line_of(asked)[1] for asked in server.requests[:-1])


@UNABLE
def test_a_server_that_would_delete_anything_is_found_out(colour: Colour, ignored: Step) -> None:
    steps = [make_reply(), REFUSED, ignored, make_reply(204), make_reply()]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None) as ours:

        async def flow() -> None:
            for _ in range(2):
                with pytest.raises(UnsupportedConditionError, match="ignores conditions on deletions"):
                    await ours.send(DELETE)
            await ours.send(REPLACE)

        ours.finish(flow)
    assert all("/.holdall-probe-" in line_of(asked)[1] for asked in server.requests[:-1])


def test_a_server_that_is_known_not_to_be_able_is_not_asked(colour: Colour) -> None:
    requests: tuple[ObjectRequest[Any], ...] = (REPLACE, REPLACE_UPLOAD, DELETE)
    with bucket() as server, client(colour, server, conditional_puts=False) as ours:
        for request in requests:
            with pytest.raises(ConfigurationError, match="If-Match"):
                ours.ask(request)


def test_amazon_is_believed(colour: Colour) -> None:
    with (
        bucket(make_reply(), make_reply(204)) as server,
        client(colour, server, conditional_puts=None, host=AMAZON) as ours,
    ):

        async def flow() -> None:
            await ours.send(REPLACE)
            await ours.send(DELETE)

        ours.finish(flow)

"""Conditional replacements and deletions: the requests, the outcomes of refusals, and those of lost replies."""

from __future__ import annotations

from hashlib import md5
from typing import Any

import pytest
from s3_rig import (
    BUCKET,
    ETAG,
    bucket,
    client,
    line_of,
    make_document_reply,
    make_error_reply,
    make_object_reply,
    make_reply,
    md5_of,
)
from scripted_server import CLOSE, RESET, ReceivedRequest, Step
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
REFUSED = make_error_reply("PreconditionFailed", 412)
MISSING = make_error_reply("NoSuchKey", 404)
NO_UPLOAD = make_error_reply("NoSuchUpload", 404)
SOME_PARTS = make_document_reply("<ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>")
COMPLETED = make_document_reply(f"<R><ETag>&quot;{WHOLE}&quot;</ETag></R>")
PUT_ID = "x-amz-meta-holdall-put-id"
LOST = pytest.mark.parametrize(
    "lost", [CLOSE, RESET, make_error_reply("InternalError", 500)], ids=["close", "reset", "500"]
)
AMAZON = "s3.us-east-1.amazonaws.com"


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def methods(requests: list[ReceivedRequest]) -> list[str]:
    return [line_of(received)[0] for received in requests]


def make_head_reply(put_id: str | None = None, etag: str = ETAG) -> Step:
    headers = {"Content-Length": 5, "ETag": f'"{etag}"'} | ({PUT_ID: put_id} if put_id else {})
    return make_object_reply(headers=headers)


class LosesFirstReply:
    """A server that loses the reply to the first put, refuses the second, and then returns the first put's object."""

    def __init__(self, lost: Step) -> None:
        self._lost = lost
        self._puts: list[ReceivedRequest] = []

    def __call__(self, received: ReceivedRequest) -> Step:
        if line_of(received)[0] == "HEAD":
            return make_head_reply(self._puts[0].headers[PUT_ID])
        self._puts.append(received)
        return self._lost if len(self._puts) == 1 else REFUSED


# --- puts ---


def test_a_put_demands_the_etag_and_stores_a_new_id(colour: Colour) -> None:
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
def test_another_object_and_a_missing_one_are_refused_alike(
    colour: Colour, refusal: Step, request_: Any
) -> None:
    reads = (
        [SOME_PARTS]
        if request_ is REPLACE_UPLOAD
        else [make_head_reply("another")]
        if refusal is REFUSED
        else []
    )
    with (
        bucket(refusal, *reads) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(request_)


def test_a_replacement_that_its_own_object_refuses_has_succeeded(
    colour: Colour,
) -> None:
    with bucket(answer=LosesFirstReply(REFUSED)) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE).put_id == server.requests[0].headers[PUT_ID]
    assert methods(server.requests) == ["PUT", "HEAD"]


@LOST
def test_after_a_lost_reply_a_refusal_by_our_own_replacement_is_a_success(colour: Colour, lost: Step) -> None:
    with bucket(answer=LosesFirstReply(lost)) as server, client(colour, server) as ours:
        info = ours.ask(REPLACE)
    assert methods(server.requests) == ["PUT", "PUT", "HEAD"]
    assert info.put_id == server.requests[0].headers[PUT_ID] == server.requests[1].headers[PUT_ID]


@LOST
@pytest.mark.parametrize(
    "after",
    [
        [REFUSED, make_head_reply("another")],
        [REFUSED, make_head_reply()],
        [REFUSED, make_reply(404)],
        [MISSING],
        [make_error_reply("AccessDenied", 403)],
    ],
    ids=["another", "plain", "gone", "missing", "refused otherwise"],
)
def test_after_a_lost_reply_another_refusal_is_an_unknown_outcome(
    colour: Colour, lost: Step, after: list[Step]
) -> None:
    with (
        bucket(lost, *after) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown, match="was replaced"),
    ):
        ours.ask(REPLACE)


@LOST
def test_after_a_lost_reply_a_second_replacement_can_succeed(colour: Colour, lost: Step) -> None:
    with bucket(lost, make_reply()) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE).put_id == server.requests[1].headers[PUT_ID]


def test_a_replacement_whose_replies_are_all_lost_is_unknown(colour: Colour) -> None:
    with (
        bucket(*[CLOSE] * LIMITS.max_attempts) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(REPLACE)


def test_a_replacement_in_conflict_with_another_write_is_tried_again(colour: Colour) -> None:
    conflict = make_error_reply("ConditionalRequestConflict", 409)
    with bucket(conflict, make_reply()) as server, client(colour, server) as ours:
        ours.ask(REPLACE)


def test_a_replacement_with_a_wrong_digest_is_not_sent(colour: Colour) -> None:
    with bucket() as server, client(colour, server) as ours, pytest.raises(IntegrityError):
        ours.ask(PutObject("", "a", b"words", md5=md5_of(b"others"), if_match="old"))


@pytest.mark.parametrize("etag", ["", "a b", "a\r\nx: y", "ü"])
def test_an_invalid_etag_is_refused_before_a_request_is_sent(colour: Colour, etag: str) -> None:
    requests: tuple[ObjectRequest[Any], ...] = (
        PutObject("", "a", b"", if_match=etag),
        DeleteObject("", "a", if_match=etag),
    )
    with bucket() as server, client(colour, server, conditional_puts=None) as ours:
        for request in requests:
            with pytest.raises(InvalidRequestError, match="etag"):
                ours.ask(request)


# --- uploads ---


def test_a_completion_demands_the_etag(colour: Colour) -> None:
    with bucket(COMPLETED, make_head_reply(etag=WHOLE)) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE_UPLOAD).etag == WHOLE
    assert server.requests[0].headers["if-match"] == '"old"'
    assert "if-none-match" not in server.requests[0].headers


def test_a_missing_upload_is_not_found(colour: Colour) -> None:
    with (
        bucket(NO_UPLOAD, make_reply(404)) as server,
        client(colour, server) as ours,
        pytest.raises(ObjectNotFoundError),
    ):
        ours.ask(REPLACE_UPLOAD)


@LOST
@pytest.mark.parametrize("refusal", [REFUSED, NO_UPLOAD, MISSING], ids=["refused", "no upload", "no object"])
def test_after_a_lost_reply_an_upload_that_has_become_the_object_is_a_success(
    colour: Colour, lost: Step, refusal: Step
) -> None:
    reads = (
        [make_head_reply(etag=WHOLE)] if refusal is NO_UPLOAD else [NO_UPLOAD, make_head_reply(etag=WHOLE)]
    )
    with bucket(lost, refusal, *reads) as server, client(colour, server) as ours:
        assert ours.ask(REPLACE_UPLOAD).etag == WHOLE


@LOST
@pytest.mark.parametrize("refusal", [REFUSED, MISSING], ids=["refused", "no object"])
def test_after_a_lost_reply_an_upload_that_still_exists_was_refused(
    colour: Colour, lost: Step, refusal: Step
) -> None:
    with (
        bucket(lost, refusal, SOME_PARTS) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(REPLACE_UPLOAD)


@LOST
def test_an_upload_that_is_gone_while_another_object_exists_is_unknown(colour: Colour, lost: Step) -> None:
    with (
        bucket(lost, REFUSED, NO_UPLOAD, make_head_reply(etag="another")) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(REPLACE_UPLOAD)


# --- deletions ---


def test_a_deletion_demands_the_etag(colour: Colour) -> None:
    with bucket(make_reply(204)) as server, client(colour, server) as ours:
        assert ours.ask(DELETE) == Done()
    (received,) = server.requests
    assert (line_of(received), received.headers["if-match"]) == (("DELETE", f"/{BUCKET}/a"), '"old"')
    with bucket(make_reply(204)) as server, client(colour, server) as ours:
        ours.ask(DeleteObject("", "a"))
    assert "if-match" not in server.requests[0].headers


def test_another_object_is_not_deleted(colour: Colour) -> None:
    with (
        bucket(REFUSED, make_head_reply()) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(DELETE)


@pytest.mark.parametrize(
    "steps", [[MISSING], [REFUSED, make_reply(404)], [CLOSE, MISSING], [CLOSE, REFUSED, make_reply(404)]]
)
def test_deleting_a_missing_object_succeeds(colour: Colour, steps: list[Step]) -> None:
    with bucket(*steps) as server, client(colour, server) as ours:
        assert ours.ask(DELETE) == Done()


@LOST
def test_after_a_lost_reply_a_refused_deletion_is_unknown(colour: Colour, lost: Step) -> None:
    for after in ([REFUSED, make_head_reply()], [make_error_reply("AccessDenied", 403)]):
        with (
            bucket(lost, *after) as server,
            client(colour, server) as ours,
            pytest.raises(OutcomeUnknown, match="was deleted"),
        ):
            ours.ask(DELETE)


def test_a_deletion_without_permission_is_access_denied(colour: Colour) -> None:
    with (
        bucket(make_error_reply("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError),
    ):
        ours.ask(DELETE)


# --- probing a server ---


def test_a_server_is_probed_once_for_puts_and_deletions(colour: Colour) -> None:
    steps = [make_reply(), REFUSED, REFUSED, make_reply(204), make_reply(), make_reply(204), make_reply()]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None, prefix="p/") as ours:

        async def flow() -> None:
            await ours.send(REPLACE)
            await ours.send(DELETE)
            await ours.send(REPLACE)

        ours.finish(flow)
    probes, real = server.requests[:4], server.requests[4:]
    assert methods(probes) == ["PUT", "PUT", "DELETE", "DELETE"]
    assert len({line_of(received)[1] for received in probes}) == 1
    assert line_of(probes[0])[1].startswith(f"/{BUCKET}/p/.holdall-probe-")
    assert ["if-match" in received.headers for received in probes] == [False, True, True, False]
    assert [line_of(received)[1] for received in real] == [f"/{BUCKET}/p/a"] * 3


UNABLE = pytest.mark.parametrize(
    "ignored", [make_reply(), make_error_reply("NotImplemented", 501)], ids=["ignored", "not implemented"]
)


@UNABLE
@pytest.mark.parametrize("request_", [REPLACE, REPLACE_UPLOAD], ids=["put", "upload"])
def test_a_server_that_ignores_conditions_on_puts_is_detected(
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
    assert all("/.holdall-probe-" in line_of(received)[1] for received in server.requests[:-1])


@UNABLE
def test_a_server_that_ignores_conditions_on_deletions_is_detected(colour: Colour, ignored: Step) -> None:
    steps = [make_reply(), REFUSED, ignored, make_reply(204), make_reply()]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None) as ours:

        async def flow() -> None:
            for _ in range(2):
                with pytest.raises(UnsupportedConditionError, match="ignores conditions on deletions"):
                    await ours.send(DELETE)
            await ours.send(REPLACE)

        ours.finish(flow)
    assert all("/.holdall-probe-" in line_of(received)[1] for received in server.requests[:-1])


def test_without_conditional_puts_replacements_and_deletions_are_refused(colour: Colour) -> None:
    requests: tuple[ObjectRequest[Any], ...] = (REPLACE, REPLACE_UPLOAD, DELETE)
    with bucket() as server, client(colour, server, conditional_puts=False) as ours:
        for request in requests:
            with pytest.raises(ConfigurationError, match="If-Match"):
                ours.ask(request)


def test_aws_is_not_probed_before_replacements_and_deletions(colour: Colour) -> None:
    with (
        bucket(make_reply(), make_reply(204)) as server,
        client(colour, server, conditional_puts=None, host=AMAZON) as ours,
    ):

        async def flow() -> None:
            await ours.send(REPLACE)
            await ours.send(DELETE)

        ours.finish(flow)

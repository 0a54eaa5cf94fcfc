"""Creation of objects: on servers that honour conditions, on those that ignore them, and after lost replies."""

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

from holdall.backends.s3 import copy
from holdall.backends.s3.service import LIMITS
from holdall.core.objects import (
    CompleteUpload,
    CopyObject,
    DeleteObject,
    DeleteObjects,
    ObjectHeaders,
    Part,
    PutObject,
    Upload,
)
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    ConflictError,
    HoldallError,
    IntegrityError,
    InvalidRequestError,
    ObjectNotFoundError,
    OutcomeUnknown,
    PreconditionFailedError,
    UnsupportedConditionError,
)

CREATE = PutObject("", "a", b"words", if_absent="mine")
UPLOAD = Upload("a", "u1")
PARTS = (Part(1, md5(b"one").hexdigest(), 3), Part(2, md5(b"two").hexdigest(), 3))
WHOLE = f"{md5(md5(b'one').digest() + md5(b'two').digest()).hexdigest()}-2"
COMPLETE = CompleteUpload("", UPLOAD, PARTS)
CREATED_UPLOAD = CompleteUpload("", UPLOAD, PARTS, if_absent="mine")
REFUSED = make_error_reply("PreconditionFailed", 412)
COMPLETED = make_document_reply(
    f"<CompleteMultipartUploadResult><ETag>&quot;{WHOLE}&quot;</ETag></CompleteMultipartUploadResult>"
)
NO_UPLOAD = make_error_reply("NoSuchUpload", 404)
SOME_PARTS = make_document_reply("<ListPartsResult><IsTruncated>false</IsTruncated></ListPartsResult>")


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def make_head_reply(put_id: str | None, etag: str = ETAG) -> Step:
    """The reply to HEAD for an object with the id of its put."""
    headers = {"Content-Length": 5, "ETag": f'"{etag}"'}
    return make_object_reply(headers=headers | ({"x-amz-meta-holdall-put-id": put_id} if put_id else {}))


def methods(requests: list[ReceivedRequest]) -> list[str]:
    return [line_of(received)[0] for received in requests]


# --- servers that honour conditions ---


def test_a_creation_demands_absence_and_stores_its_id(colour: Colour) -> None:
    with bucket(make_reply()) as server, client(colour, server) as ours:
        info = ours.ask(CREATE)
    (received,) = server.requests
    assert received.headers["if-none-match"] == "*"
    assert received.headers["x-amz-meta-holdall-put-id"] == "mine"
    assert (info.etag, info.put_id, info.size) == (ETAG, "mine", 5)


@pytest.mark.parametrize(
    "read",
    [make_head_reply("another"), make_head_reply(None), make_reply(404)],
    ids=["another", "none", "gone"],
)
def test_a_refusal_of_the_first_send_by_another_object_is_a_refusal(colour: Colour, read: Step) -> None:
    with (
        bucket(REFUSED, read) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CREATE)
    assert methods(server.requests) == ["PUT", "HEAD"]


def test_a_creation_that_its_own_object_refuses_has_succeeded(
    colour: Colour,
) -> None:
    with bucket(REFUSED, make_head_reply("mine")) as server, client(colour, server) as ours:
        assert ours.ask(CREATE).put_id == "mine"


@pytest.mark.parametrize(
    "steps",
    [[NO_UPLOAD, make_head_reply(None, WHOLE)], [REFUSED, NO_UPLOAD, make_head_reply("mine", "opaque")]],
    ids=["no upload", "refused"],
)
def test_a_completion_that_a_proxy_delivered_twice_has_succeeded(colour: Colour, steps: list[Step]) -> None:
    with bucket(*steps) as server, client(colour, server) as ours:
        ours.ask(CREATED_UPLOAD)


def test_a_creation_in_conflict_with_another_is_tried_again(colour: Colour) -> None:
    conflict = make_error_reply("ConditionalRequestConflict", 409)
    with bucket(conflict, conflict, make_reply()) as server, client(colour, server) as ours:
        assert ours.ask(CREATE).put_id == "mine"
    assert ours.pace.sleeps == [0.05, 0.1]


LOST = pytest.mark.parametrize(
    "lost", [CLOSE, RESET, make_error_reply("InternalError", 500)], ids=["close", "reset", "500"]
)


@LOST
def test_after_a_lost_reply_a_refusal_by_our_own_object_is_a_success(colour: Colour, lost: Step) -> None:
    with bucket(lost, REFUSED, make_head_reply("mine")) as server, client(colour, server) as ours:
        info = ours.ask(CREATE)
    assert (info.put_id, info.size) == ("mine", 5)
    assert methods(server.requests) == ["PUT", "PUT", "HEAD"]


@LOST
@pytest.mark.parametrize("put_id", ["another", None])
def test_after_a_lost_reply_a_refusal_by_another_object_is_a_refusal_of_the_creation(
    colour: Colour, lost: Step, put_id: str | None
) -> None:
    with (
        bucket(lost, REFUSED, make_head_reply(put_id)) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CREATE)


@LOST
def test_after_a_lost_reply_a_second_send_can_succeed(colour: Colour, lost: Step) -> None:
    with bucket(lost, make_reply()) as server, client(colour, server) as ours:
        assert ours.ask(CREATE).put_id == "mine"


@pytest.mark.parametrize(
    "after",
    [
        [REFUSED, make_reply(404)],
        [REFUSED, make_reply(403), make_error_reply("AccessDenied", 403)],
        [make_error_reply("AccessDenied", 403)],
        [make_error_reply("NoSuchBucket", 404)],
    ],
    ids=["gone again", "not readable", "refused otherwise", "no bucket"],
)
def test_a_creation_whose_outcome_cannot_be_verified_is_unknown(colour: Colour, after: list[Step]) -> None:
    with (
        bucket(CLOSE, *after) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown, match="a reply was lost"),
    ):
        ours.ask(CREATE)


def test_a_creation_whose_replies_are_all_lost_is_unknown(colour: Colour) -> None:
    with (
        bucket(*[CLOSE] * LIMITS.max_attempts) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(CREATE)


def test_a_plain_put_after_a_lost_reply_raises_the_last_error(colour: Colour) -> None:
    with (
        bucket(CLOSE, make_error_reply("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError),
    ):
        ours.ask(PutObject("", "a", b"words"))


@pytest.mark.parametrize("put_id", ["", "a b", "a\r\nx: y", "ü"])
def test_an_id_that_does_not_fit_a_header_is_refused(colour: Colour, put_id: str) -> None:
    with (
        bucket() as server,
        client(colour, server) as ours,
        pytest.raises(InvalidRequestError, match="id for a put"),
    ):
        ours.ask(PutObject("", "a", b"words", if_absent=put_id))


# --- probing a server ---


def test_a_server_is_probed_once_before_the_first_creation(colour: Colour) -> None:
    steps = [make_reply(), REFUSED, make_reply(204), make_reply(), make_reply()]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None, prefix="p/") as ours:

        async def flow() -> None:
            await ours.send(CREATE)
            await ours.send(CREATE)

        ours.finish(flow)
    first, second, deletion, *creations = server.requests
    probed = {line_of(received)[1] for received in (first, second, deletion)}
    assert len(probed) == 1
    assert probed.pop().startswith(f"/{BUCKET}/p/.holdall-probe-")
    assert methods([first, second, deletion]) == ["PUT", "PUT", "DELETE"]
    assert ("if-none-match" in first.headers, second.headers["if-none-match"]) == (False, "*")
    assert [line_of(received)[1] for received in creations] == [f"/{BUCKET}/p/a"] * 2


def test_a_server_is_not_probed_for_a_plain_put(colour: Colour) -> None:
    with bucket(make_reply()) as server, client(colour, server, conditional_puts=None) as ours:
        ours.ask(PutObject("", "a", b"words"))


@pytest.mark.parametrize(
    "second", [make_reply(), make_error_reply("NotImplemented", 501)], ids=["ignored", "not implemented"]
)
@pytest.mark.parametrize("request_", [CREATE, CREATED_UPLOAD], ids=lambda request: type(request).__name__)
def test_a_server_that_ignores_conditions_is_detected_and_no_object_created(
    colour: Colour, second: Step, request_: Any
) -> None:
    with (
        bucket(make_reply(), second, make_reply(204)) as server,
        client(colour, server, conditional_puts=None) as ours,
    ):

        async def flow() -> None:
            for _ in range(2):
                with pytest.raises(UnsupportedConditionError, match="ignores conditions"):
                    await ours.send(request_)

        ours.finish(flow)
    assert all("/.holdall-probe-" in line_of(received)[1] for received in server.requests)


def test_a_failed_probe_is_repeated(colour: Colour) -> None:
    steps = [make_error_reply("AccessDenied", 403), make_reply(), REFUSED, make_reply(204), make_reply()]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None) as ours:

        async def flow() -> str | None:
            with pytest.raises(AccessDeniedError, match="holdall-probe"):
                await ours.send(CREATE)
            return (await ours.send(CREATE)).put_id

        assert ours.finish(flow) == "mine"


def test_a_probe_that_cannot_be_deleted_is_still_conclusive(colour: Colour) -> None:
    steps = [make_reply(), REFUSED, make_error_reply("AccessDenied", 403), make_reply()]
    with bucket(*steps) as server, client(colour, server, conditional_puts=None) as ours:
        assert ours.ask(CREATE).put_id == "mine"


def test_a_creation_without_conditional_puts_or_claims_is_refused(colour: Colour) -> None:
    with (
        bucket() as server,
        client(colour, server, conditional_puts=False) as ours,
        pytest.raises(ConfigurationError, match="claims"),
    ):
        ours.ask(CREATE)


def test_aws_is_not_probed_before_a_creation(colour: Colour) -> None:
    with (
        bucket(make_reply()) as server,
        client(colour, server, conditional_puts=None, host="s3.us-east-1.amazonaws.com") as ours,
    ):
        assert ours.ask(CREATE).put_id == "mine"


# --- claims instead of conditions ---


class MemoryClaims:
    """Claims kept in a dictionary."""

    def __init__(self) -> None:
        self.claims: dict[str, str] = {}
        self.colours: set[str] = set()

    def claim_blocking(self, key: str, id: str) -> bool:
        self.colours.add("blocking")
        return self.claims.setdefault(key, id) == id

    async def claim_awaiting(self, key: str, id: str) -> bool:
        self.colours.add("awaiting")
        return self.claims.setdefault(key, id) == id

    def release_blocking(self, key: str) -> None:
        del self.claims[key]

    async def release_awaiting(self, key: str) -> None:
        del self.claims[key]


def test_a_claim_replaces_a_condition(colour: Colour) -> None:
    table = MemoryClaims()
    steps = [make_reply(404), make_reply(), make_reply(204)]
    with (
        bucket(*steps) as server,
        client(colour, server, conditional_puts=False, claims=table, prefix="p/") as ours,
    ):

        async def flow() -> None:
            assert (await ours.send(CREATE)).put_id == "mine"
            assert table.claims == {"a": "mine"}
            with pytest.raises(PreconditionFailedError, match="claimed"):
                await ours.send(PutObject("", "a", b"words", if_absent="another"))
            await ours.send(DeleteObject("", "a"))

        ours.finish(flow)
    assert table.claims == {}
    assert table.colours == {colour}
    assert "if-none-match" not in server.requests[1].headers


def test_deleting_an_object_also_releases_the_claim_of_another_process(colour: Colour) -> None:
    table = MemoryClaims()
    table.claims["a"] = "of another process"
    with (
        bucket(make_reply(204)) as server,
        client(colour, server, conditional_puts=None, claims=table) as ours,
    ):
        ours.ask(DeleteObject("", "a"))
    assert table.claims == {}


def test_a_creation_with_a_claim_is_refused_if_the_object_exists(colour: Colour) -> None:
    for put_id in (None, "another"):
        with (
            bucket(make_head_reply(put_id)) as server,
            client(colour, server, conditional_puts=False, claims=MemoryClaims()) as ours,
            pytest.raises(PreconditionFailedError, match="already"),
        ):
            ours.ask(CREATE)


@pytest.mark.parametrize(
    ("request_", "step"),
    [
        (CREATE, make_error_reply("AccessDenied", 403)),
        (CREATE, make_error_reply("EntityTooLarge")),
        (CREATED_UPLOAD, make_error_reply("InvalidPart")),
    ],
    ids=["denied", "too large", "no such part"],
)
def test_the_claim_of_a_failed_creation_is_released(colour: Colour, request_: Any, step: Step) -> None:
    table = MemoryClaims()
    with (
        bucket(make_reply(404), step) as server,
        client(colour, server, conditional_puts=False, claims=table) as ours,
        pytest.raises(HoldallError),
    ):
        ours.ask(request_)
    assert table.claims == {}
    with (
        bucket(make_head_reply("another")) as server,
        client(colour, server, conditional_puts=False, claims=table) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(request_)
    assert table.claims == {}


@pytest.mark.parametrize("request_", [CREATE, CREATED_UPLOAD], ids=["put", "upload"])
def test_the_claim_of_a_creation_with_an_unknown_outcome_stays(colour: Colour, request_: Any) -> None:
    table = MemoryClaims()
    with (
        bucket(make_reply(404), CLOSE, make_error_reply("AccessDenied", 403)) as server,
        client(colour, server, conditional_puts=False, claims=table) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(request_)
    assert table.claims == {"a": "mine"}


def test_a_repeated_creation_with_a_claim_finds_its_object(colour: Colour) -> None:
    with (
        bucket(make_head_reply("mine")) as server,
        client(colour, server, conditional_puts=False, claims=MemoryClaims()) as ours,
    ):
        assert ours.ask(CREATE).put_id == "mine"


def test_a_claim_replaces_the_condition_of_an_upload(colour: Colour) -> None:
    table = MemoryClaims()
    steps = [
        make_reply(404),
        COMPLETED,
        make_head_reply(None, WHOLE),
        make_document_reply("<DeleteResult></DeleteResult>"),
    ]
    with bucket(*steps) as server, client(colour, server, conditional_puts=False, claims=table) as ours:

        async def flow() -> None:
            assert (await ours.send(CREATED_UPLOAD)).etag == WHOLE
            assert table.claims == {"a": "mine"}
            await ours.send(DeleteObjects("", ("a",)))

        ours.finish(flow)
    assert table.claims == {}


def test_on_a_server_that_honours_conditions_no_key_is_claimed(colour: Colour) -> None:
    table = MemoryClaims()
    with (
        bucket(make_reply(), REFUSED, make_reply(204), make_reply()) as server,
        client(colour, server, conditional_puts=None, claims=table) as ours,
    ):
        ours.ask(CREATE)
    assert table.claims == {}


# --- uploads ---


@pytest.mark.parametrize("request_", [COMPLETE, CREATED_UPLOAD], ids=["plain", "creation"])
def test_an_upload_becomes_an_object(colour: Colour, request_: CompleteUpload) -> None:
    with bucket(COMPLETED, make_head_reply(None, WHOLE)) as server, client(colour, server) as ours:
        assert ours.ask(request_).etag == WHOLE
    conditional = server.requests[0].headers.get("if-none-match")
    assert conditional == ("*" if request_.if_absent else None)


@pytest.mark.parametrize(
    "head",
    [make_reply(404), make_head_reply(None, "another"), make_error_reply("AccessDenied", 403)],
    ids=["gone", "replaced", "hidden"],
)
def test_a_completion_succeeds_even_if_its_object_cannot_be_read_afterwards(
    colour: Colour, head: Step
) -> None:
    steps = [COMPLETED, head] + [make_error_reply("AccessDenied", 403)] * (
        head == make_error_reply("AccessDenied", 403)
    )
    with bucket(*steps) as server, client(colour, server) as ours:
        info = ours.ask(COMPLETE)
    assert (info.key, info.size, info.etag) == ("a", 6, WHOLE)


@LOST
@pytest.mark.parametrize("request_", [COMPLETE, CREATED_UPLOAD], ids=["plain", "creation"])
def test_after_a_lost_reply_an_upload_that_is_gone_has_become_the_object(
    colour: Colour, lost: Step, request_: CompleteUpload
) -> None:
    with bucket(lost, NO_UPLOAD, make_head_reply(None, WHOLE)) as server, client(colour, server) as ours:
        assert ours.ask(request_).etag == WHOLE


@LOST
def test_after_a_lost_reply_a_refused_upload_that_still_exists_has_not_become_the_object(
    colour: Colour, lost: Step
) -> None:
    with (
        bucket(lost, REFUSED, SOME_PARTS) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CREATED_UPLOAD)


@LOST
def test_after_a_lost_reply_a_refused_upload_that_is_gone_has_become_the_object(
    colour: Colour, lost: Step
) -> None:
    with (
        bucket(lost, REFUSED, NO_UPLOAD, make_head_reply(None, WHOLE)) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(CREATED_UPLOAD).etag == WHOLE


@pytest.mark.parametrize(
    "after",
    [
        [NO_UPLOAD, make_head_reply(None, "another")],
        [NO_UPLOAD, make_reply(404)],
        [REFUSED, NO_UPLOAD, make_head_reply("another", "another")],
        [REFUSED, make_error_reply("AccessDenied", 403)],
        [make_error_reply("AccessDenied", 403)],
    ],
    ids=["another object", "no object", "another id", "not readable", "refused otherwise"],
)
def test_a_completion_whose_outcome_cannot_be_verified_is_unknown(colour: Colour, after: list[Step]) -> None:
    with (
        bucket(CLOSE, *after) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(CREATED_UPLOAD)


def test_parts_whose_etags_are_not_digests_cannot_identify_the_object(colour: Colour) -> None:
    request = CompleteUpload("", UPLOAD, (Part(1, "opaque", 3),))
    with (
        bucket(CLOSE, NO_UPLOAD, make_head_reply(None, WHOLE)) as server,
        client(colour, server) as ours,
        pytest.raises(OutcomeUnknown),
    ):
        ours.ask(request)


def test_an_upload_that_is_gone_without_a_lost_reply_is_not_found(colour: Colour) -> None:
    with (
        bucket(NO_UPLOAD, make_reply(404)) as server,
        client(colour, server) as ours,
        pytest.raises(ObjectNotFoundError),
    ):
        ours.ask(COMPLETE)


def test_a_conflict_at_a_completion_is_an_error_because_the_upload_is_gone(colour: Colour) -> None:
    with (
        bucket(make_error_reply("ConditionalRequestConflict", 409)) as server,
        client(colour, server) as ours,
        pytest.raises(ConflictError),
    ):
        ours.ask(CREATED_UPLOAD)


# --- copies ---


GIBIBYTE = 1024**3
SIZE = 2 * GIBIBYTE + 5
BEGUN = make_document_reply(
    "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>"
)
TAKEN = make_document_reply(f"<CopyPartResult><ETag>&quot;{PARTS[0].etag}&quot;</ETag></CopyPartResult>")
LARGE = make_object_reply(headers={"Content-Length": SIZE, "Content-Type": "text/plain"})
BEGINNING = make_object_reply(
    b"words", {"Content-Range": f"bytes 0-4/{SIZE}", "Content-Type": "text/plain"}, 206
)
FIRST_BYTE = make_object_reply(b"w", {"Content-Range": f"bytes 0-0/{SIZE}"}, 206)
REST = make_object_reply(b"words", {"Content-Range": f"bytes {2 * GIBIBYTE}-{SIZE - 1}/{SIZE}"}, 206)


def test_a_large_copy_that_creates_is_an_upload_of_copied_parts(colour: Colour) -> None:
    steps = [BEGINNING, BEGUN, TAKEN, TAKEN, REST, make_reply(), COMPLETED, make_head_reply("mine", WHOLE)]
    with bucket(*steps) as server, client(colour, server, prefix="p/") as ours:
        info = ours.ask(CopyObject("", "source", "a", if_absent="mine"))
    read, begin, first, second, rest, last, complete, _ = server.requests
    assert (line_of(read)[0], read.headers["range"]) == ("GET", f"bytes=0-{5 * 1024**2 - 1}")
    assert (begin.headers["content-type"], begin.headers["x-amz-meta-holdall-put-id"]) == (
        "text/plain",
        "mine",
    )
    assert "x-amz-tagging" not in begin.headers
    for part, start in ((first, 0), (second, GIBIBYTE)):
        assert part.headers["x-amz-copy-source"] == f"/{BUCKET}/p/source"
        assert part.headers["x-amz-copy-source-if-match"] == f'"{ETAG}"'
        assert part.headers["x-amz-copy-source-range"] == f"bytes={start}-{start + GIBIBYTE - 1}"
    assert rest.headers["range"] == f"bytes={2 * GIBIBYTE}-{SIZE - 1}"
    assert last.body == b"words"
    assert complete.headers["if-none-match"] == "*"
    assert (info.key, info.etag, info.put_id) == ("a", WHOLE, "mine")


def test_a_large_copy_that_is_refused_leaves_no_upload(colour: Colour) -> None:
    with (
        bucket(
            BEGINNING, BEGUN, TAKEN, TAKEN, REST, make_reply(), REFUSED, SOME_PARTS, make_reply(204)
        ) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CopyObject("", "source", "a", if_absent="mine"))
    assert line_of(server.requests[-1]) == ("DELETE", f"/{BUCKET}/a?uploadId=u1")


def test_an_object_above_the_limit_of_a_single_copy_is_copied_in_parts(
    colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "LARGEST_COPY", GIBIBYTE)
    steps = [
        LARGE,
        FIRST_BYTE,
        BEGUN,
        TAKEN,
        TAKEN,
        REST,
        make_reply(),
        COMPLETED,
        make_head_reply(None, WHOLE),
    ]
    with bucket(*steps) as server, client(colour, server) as ours:
        assert ours.ask(CopyObject("", "source", "a")).etag == WHOLE
    assert "if-none-match" not in server.requests[-2].headers


def answer_copy(etag: str = ETAG) -> Step:
    return make_document_reply(
        f"<CopyObjectResult><ETag>&quot;{etag}&quot;</ETag>"
        "<LastModified>2025-11-15T05:41:00.000Z</LastModified></CopyObjectResult>"
    )


def test_a_plain_copy_is_made_by_the_server(colour: Colour) -> None:
    source = {"Content-Length": 5, "Content-Type": "text/plain", "x-amz-meta-colour": "red"}
    with (
        bucket(make_object_reply(headers=source), answer_copy()) as server,
        client(colour, server, prefix="p/") as ours,
    ):
        info = ours.ask(CopyObject("", "so urce", "a"))
    _, copy = server.requests
    assert copy.headers["x-amz-copy-source"] == f"/{BUCKET}/p/so%20urce"
    assert copy.headers["x-amz-copy-source-if-match"] == f'"{ETAG}"'
    assert copy.headers["x-amz-metadata-directive"] == "COPY"
    assert (info.key, info.size, info.headers) == (
        "a",
        5,
        ObjectHeaders("text/plain", metadata={"colour": "red"}),
    )
    assert info.modified.minute == 41


def test_a_copy_has_all_headers_but_the_id_of_the_put(colour: Colour) -> None:
    source = {
        "Content-Length": 5,
        "Content-Type": "text/plain",
        "Content-Encoding": "gzip",
        "Expires": "never",
        "x-amz-meta-colour": "red",
        "x-amz-meta-holdall-put-id": "old",
    }
    with bucket(make_object_reply(headers=source), answer_copy()) as server, client(colour, server) as ours:
        assert ours.ask(CopyObject("", "source", "a")).put_id is None
    copy = server.requests[1].headers
    assert copy["x-amz-metadata-directive"] == "REPLACE"
    kept = {
        "content-type": "text/plain",
        "content-encoding": "gzip",
        "expires": "never",
        "x-amz-meta-colour": "red",
    }
    assert {name: copy.get(name) for name in kept} == kept
    assert "x-amz-meta-holdall-put-id" not in copy


def test_a_source_that_changes_during_a_copy_is_read_again(colour: Colour) -> None:
    head = make_object_reply(headers={"Content-Length": 5})
    with bucket(head, REFUSED, head, answer_copy()) as server, client(colour, server) as ours:
        ours.ask(CopyObject("", "source", "a"))
    with (
        bucket(head, REFUSED) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CopyObject("", "source", "a", if_match=ETAG))
    with (
        bucket(*[head, REFUSED] * 3) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CopyObject("", "source", "a"))


def test_we_compare_the_etag_of_the_source_ourselves(colour: Colour) -> None:
    head = make_object_reply(headers={"Content-Length": 5})
    with (
        bucket(head) as server,
        client(colour, server) as ours,
        pytest.raises(PreconditionFailedError, match="has changed"),
    ):
        ours.ask(CopyObject("", "source", "a", if_match="another"))


def test_a_copy_without_an_etag_in_the_reply_is_followed_by_a_head(colour: Colour) -> None:
    head = make_object_reply(headers={"Content-Length": 5})
    with (
        bucket(
            head, make_document_reply("<CopyObjectResult></CopyObjectResult>"), make_head_reply(None, "new")
        ) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(CopyObject("", "source", "a")).etag == "new"


# --- digests ---


def test_bytes_with_a_wrong_digest_are_not_sent_to_other_servers(colour: Colour) -> None:
    with bucket() as server, client(colour, server) as ours:
        for request in (
            PutObject("", "a", b"words", md5=md5_of(b"others")),
            PutObject("", "a", b"words", md5=md5_of(b"others"), if_absent="mine"),
        ):
            with pytest.raises(IntegrityError, match="md5"):
                ours.ask(request)


def test_aws_checks_the_digest_itself(colour: Colour) -> None:
    with (
        bucket(make_error_reply("BadDigest")) as server,
        client(colour, server, host="s3.us-east-1.amazonaws.com") as ours,
        pytest.raises(IntegrityError, match="BadDigest"),
    ):
        ours.ask(PutObject("", "a", b"words", md5=md5_of(b"others")))

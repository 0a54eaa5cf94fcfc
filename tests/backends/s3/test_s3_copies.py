"""Copies that must not replace an object, made by AWS and by us; the tags of copies; and imports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256

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
    sha256_of,
)
from scripted_server import CLOSE, RESET, ReceivedRequest, Step
from wire_rig import COLOURS, Colour

from holdall.backends.s3 import copy
from holdall.backends.s3.call import NO_HEADERS
from holdall.core.frozen import replace
from holdall.core.objects import CopyObject, ImportObject, ObjectHeaders, ObjectInfo, Origin
from holdall.errors import (
    AccessDeniedError,
    IntegrityError,
    MalformedReplyError,
    ObjectNotFoundError,
    OutcomeUnknown,
    PreconditionFailedError,
)

AMAZON = {"host": "s3.us-east-1.amazonaws.com"}
CREATE = CopyObject("", "so urce", "a", if_absent="mine")
REFUSED = make_error_reply("PreconditionFailed", 412)
SOURCE = {
    "Content-Type": "text/plain",
    "Content-Encoding": "gzip",
    "x-amz-meta-colour": "red",
    "x-amz-meta-holdall-put-id": "old",
}
HEAD = make_object_reply(headers={**SOURCE, "Content-Length": 5})
COPIED = make_document_reply(
    f"<CopyObjectResult><ETag>&quot;{ETAG}&quot;</ETag>"
    "<LastModified>2025-11-15T05:41:00.000Z</LastModified></CopyObjectResult>"
)
BEGUN = make_document_reply(
    "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>"
)
TAKEN = make_document_reply(f"<CopyPartResult><ETag>&quot;{ETAG}&quot;</ETag></CopyPartResult>")
COMPLETED = make_document_reply(f"<R><ETag>&quot;{ETAG}&quot;</ETag></R>")
TAGS = make_document_reply(
    "<Tagging><TagSet><Tag><Key>colour</Key><Value>red &amp; ü</Value></Tag><Tag><Key>b</Key><Value/></Tag></TagSet>"
    "</Tagging>"
)
TAGGED = {"x-amz-tagging-count": 2}
SENT_TAGS = "colour=red%20%26%20%C3%BC&b="
SIZE = 7 * 1024**2


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def part_of(size: int, headers: Mapping[str, object] = NO_HEADERS, body: bytes = b"words") -> Step:
    """A reply with the first bytes of an object."""
    return make_object_reply(
        body, {**SOURCE, "Content-Range": f"bytes 0-{len(body) - 1}/{size}", **headers}, status=206
    )


def lines(requests: list[ReceivedRequest]) -> list[str]:
    return [" ".join(line_of(received)).replace(f"/{BUCKET}", "") for received in requests]


def make_head_reply(put_id: str | None) -> Step:
    headers = {"Content-Length": 5} | ({"x-amz-meta-holdall-put-id": put_id} if put_id else {})
    return make_object_reply(headers=headers)


# --- copies by AWS ---


def test_on_aws_a_copy_that_creates_takes_two_requests(colour: Colour) -> None:
    with bucket(HEAD, COPIED) as server, client(colour, server, style="path", **AMAZON) as ours:
        info = ours.ask(CREATE)
    _, copy = server.requests
    assert lines(server.requests) == ["HEAD /so%20urce", "PUT /a"]
    expected = {
        "if-none-match": "*",
        "x-amz-copy-source": f"/{BUCKET}/so%20urce",
        "x-amz-copy-source-if-match": f'"{ETAG}"',
        "x-amz-metadata-directive": "REPLACE",
        "x-amz-tagging-directive": "COPY",
        "x-amz-meta-holdall-put-id": "mine",
        "x-amz-meta-colour": "red",
        "content-type": "text/plain",
        "content-encoding": "gzip",
    }
    assert {name: copy.headers.get(name) for name in expected} == expected
    assert copy.body == b""
    assert (info.key, info.size, info.etag, info.put_id) == ("a", 5, ETAG, "mine")
    assert info.headers == ObjectHeaders("text/plain", metadata={"colour": "red"})
    assert info.modified.minute == 41


def test_on_aws_the_copy_demands_the_requested_etag_of_the_source(colour: Colour) -> None:
    with bucket(HEAD, COPIED) as server, client(colour, server, **AMAZON) as ours:
        ours.ask(CopyObject("", "source", "a", if_match=ETAG, if_absent="mine"))
    head, copy = server.requests
    assert head.headers["if-match"] == copy.headers["x-amz-copy-source-if-match"] == f'"{ETAG}"'


def test_on_aws_a_copy_onto_an_existing_object_is_refused(colour: Colour) -> None:
    with (
        bucket(HEAD, REFUSED, HEAD) as server,
        client(colour, server, **AMAZON) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CREATE)


LOST = pytest.mark.parametrize(
    "lost", [CLOSE, RESET, make_error_reply("InternalError", 500), make_error_reply("InternalError", 200)]
)


@LOST
def test_after_a_lost_reply_a_refusal_by_our_own_copy_is_a_success(colour: Colour, lost: Step) -> None:
    with (
        bucket(HEAD, lost, REFUSED, make_head_reply("mine")) as server,
        client(colour, server, **AMAZON) as ours,
    ):
        assert ours.ask(CREATE).put_id == "mine"
    assert [line_of(received)[0] for received in server.requests] == ["HEAD", "PUT", "PUT", "HEAD"]


@LOST
def test_after_a_lost_reply_a_refusal_by_another_object_is_a_refusal(colour: Colour, lost: Step) -> None:
    for put_id in (None, "another"):
        with (
            bucket(HEAD, lost, REFUSED, make_head_reply(put_id)) as server,
            client(colour, server, **AMAZON) as ours,
            pytest.raises(PreconditionFailedError),
        ):
            ours.ask(CREATE)


def test_a_copy_whose_outcome_cannot_be_verified_is_unknown(colour: Colour) -> None:
    for after in ([REFUSED, make_reply(404)], [make_error_reply("AccessDenied", 403)]):
        with (
            bucket(HEAD, CLOSE, *after) as server,
            client(colour, server, **AMAZON) as ours,
            pytest.raises(OutcomeUnknown),
        ):
            ours.ask(CREATE)


def test_on_aws_an_object_too_large_for_one_request_is_copied_in_parts(
    colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "LARGEST_COPY", SIZE - 1)
    head = make_object_reply(headers={**SOURCE, "Content-Length": SIZE})
    steps = [head, part_of(SIZE, TAGGED, b"w"), TAGS, BEGUN, TAKEN, COMPLETED, make_head_reply("mine")]
    with bucket(*steps) as server, client(colour, server, style="path", **AMAZON) as ours:
        ours.ask(CREATE)
    assert lines(server.requests) == [
        "HEAD /so%20urce",
        "GET /so%20urce",
        "GET /so%20urce?tagging=",
        "POST /a?uploads=",
        "PUT /a?partNumber=1&uploadId=u1",
        "POST /a?uploadId=u1",
        "HEAD /a",
    ]
    assert server.requests[1].headers["range"] == "bytes=0-0"
    assert server.requests[3].headers["x-amz-tagging"] == SENT_TAGS
    assert server.requests[5].headers["if-none-match"] == "*"


def test_a_count_of_tags_in_the_head_saves_a_request(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "LARGEST_COPY", SIZE - 1)
    head = make_object_reply(headers={**SOURCE, **TAGGED, "Content-Length": SIZE})
    steps = [head, TAGS, BEGUN, TAKEN, COMPLETED, make_head_reply("mine")]
    with bucket(*steps) as server, client(colour, server, **AMAZON) as ours:
        ours.ask(CREATE)
    assert server.requests[2].headers["x-amz-tagging"] == SENT_TAGS


# --- copies by us ---


def test_on_other_servers_a_small_copy_that_creates_is_a_get_and_a_put(colour: Colour) -> None:
    with bucket(part_of(5), make_reply()) as server, client(colour, server) as ours:
        info = ours.ask(CopyObject("", "so urce", "a", if_match=ETAG, if_absent="mine"))
    get, put = server.requests
    assert lines(server.requests) == ["GET /so%20urce", "PUT /a"]
    assert get.headers["range"] == f"bytes=0-{5 * 1024**2 - 1}"
    assert get.headers["if-match"] == f'"{ETAG}"'
    assert (put.body, put.headers["if-none-match"]) == (b"words", "*")
    assert (put.headers["content-type"], put.headers["content-encoding"]) == ("text/plain", "gzip")
    assert (put.headers["x-amz-meta-colour"], put.headers["x-amz-meta-holdall-put-id"]) == ("red", "mine")
    assert not {"x-amz-copy-source", "x-amz-tagging", "content-md5"} & put.headers.keys()
    assert (info.key, info.put_id) == ("a", "mine")
    assert info.headers == ObjectHeaders("text/plain", metadata={"colour": "red"})


def test_on_other_servers_the_tags_of_the_source_are_requested_if_it_has_some(colour: Colour) -> None:
    with bucket(part_of(5, TAGGED), TAGS, make_reply()) as server, client(colour, server) as ours:
        ours.ask(CREATE)
    assert lines(server.requests) == ["GET /so%20urce", "GET /so%20urce?tagging=", "PUT /a"]
    assert server.requests[-1].headers["x-amz-tagging"] == SENT_TAGS


def test_an_empty_object_is_read_without_a_range(colour: Colour) -> None:
    steps = [
        make_error_reply("InvalidRange", 416),
        make_object_reply(headers={**SOURCE, "Content-Length": 0}),
        make_object_reply(headers={**SOURCE, **TAGGED}),
        TAGS,
        make_reply(),
    ]
    with bucket(*steps) as server, client(colour, server) as ours:
        assert ours.ask(CREATE).size == 0
    assert [line_of(received)[0] for received in server.requests] == ["GET", "HEAD", "GET", "GET", "PUT"]
    assert "range" not in server.requests[2].headers
    assert server.requests[-1].headers["x-amz-tagging"] == SENT_TAGS
    assert server.requests[-1].headers["content-encoding"] == "gzip"


def test_a_server_without_support_for_ranges_returns_the_whole_object(colour: Colour) -> None:
    with bucket(make_object_reply(b"words", SOURCE), make_reply()) as server, client(colour, server) as ours:
        assert ours.ask(CREATE).size == 5
    assert server.requests[1].body == b"words"


def test_a_reply_with_only_a_part_of_a_small_object_is_malformed(colour: Colour) -> None:
    with (
        bucket(part_of(6)) as server,
        client(colour, server) as ours,
        pytest.raises(MalformedReplyError, match="only a part of the object"),
    ):
        ours.ask(CREATE)


def test_the_source_must_exist_and_have_the_requested_etag(colour: Colour) -> None:
    for step, error in (
        (make_error_reply("NoSuchKey", 404), ObjectNotFoundError),
        (REFUSED, PreconditionFailedError),
    ):
        for options in ({}, AMAZON):
            with bucket(step) as server, client(colour, server, **options) as ours, pytest.raises(error):
                ours.ask(CopyObject("", "source", "a", if_match=ETAG, if_absent="mine"))


def test_on_other_servers_a_large_copy_is_tagged_again_after_the_upload(colour: Colour) -> None:
    tagged = part_of(SIZE, TAGGED)
    steps = [tagged, TAGS, BEGUN, TAKEN, COMPLETED, make_head_reply("mine"), make_reply()]
    with bucket(*steps) as server, client(colour, server) as ours:
        ours.ask(CREATE)
    begin, tags = server.requests[2], server.requests[-1]
    assert begin.headers["x-amz-tagging"] == SENT_TAGS
    assert line_of(tags) == ("PUT", f"/{BUCKET}/a?tagging=")
    assert b"<Tag><Key>colour</Key><Value>red &amp; \xc3\xbc</Value></Tag>" in tags.body


def test_a_copy_whose_tags_cannot_be_read_is_an_error(colour: Colour) -> None:
    with (
        bucket(part_of(5, TAGGED), make_error_reply("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError, match="GetObjectTagging"),
    ):
        ours.ask(CREATE)


def test_the_digest_of_the_source_is_sent_and_signed(colour: Colour) -> None:
    digest = sha256_of(b"words")
    with (
        bucket(part_of(5, {"x-amz-checksum-sha256": digest}), make_reply()) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(CREATE).sha256 == digest
    put = server.requests[1].headers
    assert put["x-amz-content-sha256"] == sha256(b"words").hexdigest()
    assert put["x-amz-checksum-sha256"] == digest
    assert "content-md5" not in put


def test_bytes_that_do_not_match_the_digest_of_the_source_are_not_put(colour: Colour) -> None:
    wrong = part_of(5, {"x-amz-checksum-sha256": sha256_of(b"others")})
    with bucket(wrong) as server, client(colour, server) as ours, pytest.raises(IntegrityError):
        ours.ask(CREATE)


# --- unmarked copies ---


@pytest.mark.parametrize("amazon", [True, False])
def test_an_unmarked_copy_stores_no_id_but_still_demands_absence(colour: Colour, amazon: bool) -> None:
    steps = (HEAD, COPIED) if amazon else (part_of(5), make_reply())
    where = AMAZON if amazon else {"conditional_puts": True}
    with bucket(*steps) as server, client(colour, server, **where) as ours:
        ours.ask(CopyObject("", "so urce", "a", if_absent="mine", unmarked=True))
    copy = server.requests[-1]
    assert copy.headers["if-none-match"] == "*"
    assert "x-amz-meta-holdall-put-id" not in copy.headers
    assert copy.headers["x-amz-meta-colour"] == "red"


def test_a_refusal_of_an_unmarked_copy_after_a_lost_reply_is_a_refusal(colour: Colour) -> None:
    unmarked = CopyObject("", "so urce", "a", if_absent="mine", unmarked=True)
    with (
        bucket(HEAD, CLOSE, REFUSED, make_head_reply(None)) as server,
        client(colour, server, **AMAZON) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(unmarked)


# --- from another bucket ---

ELSEWHERE = Origin("a server", "other-things", "below/")
FOREIGN = ObjectInfo("a ü", 5, ETAG, datetime(2025, 11, 15, tzinfo=UTC), ObjectHeaders("text/plain"))


def test_an_import_is_one_request_without_a_body(colour: Colour) -> None:
    with bucket(COPIED) as server, client(colour, server) as ours:
        info = ours.ask(ImportObject("", ELSEWHERE, FOREIGN))
    (copy,) = server.requests
    assert lines(server.requests) == ["PUT /a%20%C3%BC"]
    assert copy.headers["x-amz-copy-source"] == "/other-things/below/a%20%C3%BC"
    assert copy.headers["x-amz-copy-source-if-match"] == f'"{ETAG}"'
    assert copy.headers["x-amz-metadata-directive"] == "COPY"
    assert "x-amz-tagging" not in copy.headers
    assert copy.body == b""
    assert (info.key, info.size, info.etag, info.put_id) == ("a ü", 5, ETAG, None)


def test_the_id_of_a_put_is_not_imported(colour: Colour) -> None:
    put = replace(FOREIGN, put_id="theirs", headers=ObjectHeaders("text/plain", metadata={"colour": "red"}))
    with bucket(COPIED) as server, client(colour, server) as ours:
        ours.ask(ImportObject("", ELSEWHERE, put))
    (copy,) = server.requests
    assert copy.headers["x-amz-metadata-directive"] == "REPLACE"
    assert (copy.headers["content-type"], copy.headers["x-amz-meta-colour"]) == ("text/plain", "red")
    assert "x-amz-meta-holdall-put-id" not in copy.headers


def test_an_object_above_5_gb_is_imported_in_parts(colour: Colour) -> None:
    size = 5 * 1024**3 + 1
    large = replace(FOREIGN, key="a", size=size)
    head = make_object_reply(headers={"Content-Length": size})
    steps = [BEGUN, *[TAKEN] * 6, COMPLETED, head, make_reply()]
    with bucket(*steps) as server, client(colour, server) as ours:
        info = ours.ask(ImportObject("", ELSEWHERE, large, {"colour": "red & ü", "b": ""}))
    begin, *parts, complete, _, _ = server.requests
    assert begin.headers["x-amz-tagging"] == SENT_TAGS
    assert begin.headers["content-type"] == "text/plain"
    assert [each.headers["x-amz-copy-source"] for each in parts] == ["/other-things/below/a"] * 6
    assert {each.headers["x-amz-copy-source-if-match"] for each in parts} == {f'"{ETAG}"'}
    assert parts[-1].headers["x-amz-copy-source-range"] == f"bytes={size - 1}-{size - 1}"
    assert lines([complete]) == ["POST /a?uploadId=u1"]
    assert not any(each.body for each in parts)
    assert info.size == size


def test_an_import_that_is_not_permitted_is_refused(colour: Colour) -> None:
    with (
        bucket(make_error_reply("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError, match="CopyObject"),
    ):
        ours.ask(ImportObject("", ELSEWHERE, FOREIGN))

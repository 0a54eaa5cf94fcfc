"""Copies that must not replace anything, AWS's own and ours; the tags that go with all copies; and imports."""

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
    denies,
    line_of,
    make_object_reply,
    make_reply,
    sha256_of,
    tells,
)
from scripted_server import CLOSE, RESET, Asked, Step
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
REFUSED = denies("PreconditionFailed", 412)
SOURCE = {
    "Content-Type": "text/plain",
    "Content-Encoding": "gzip",
    "x-amz-meta-colour": "red",
    "x-amz-meta-holdall-put-id": "old",
}
HEAD = make_object_reply(headers={**SOURCE, "Content-Length": 5})
COPIED = tells(
    f"<CopyObjectResult><ETag>&quot;{ETAG}&quot;</ETag>"
    "<LastModified>2025-11-15T05:41:00.000Z</LastModified></CopyObjectResult>"
)
BEGUN = tells("<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>")
TAKEN = tells(f"<CopyPartResult><ETag>&quot;{ETAG}&quot;</ETag></CopyPartResult>")
COMPLETED = tells(f"<R><ETag>&quot;{ETAG}&quot;</ETag></R>")
TAGS = tells(
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
    """The first bytes of an object."""
    return make_object_reply(
        body, {**SOURCE, "Content-Range": f"bytes 0-{len(body) - 1}/{size}", **headers}, status=206
    )


def lines(requests: list[Asked]) -> list[str]:
    return [" ".join(line_of(asked)).replace(f"/{BUCKET}", "") for asked in requests]


def there(put_id: str | None) -> Step:
    headers = {"Content-Length": 5} | ({"x-amz-meta-holdall-put-id": put_id} if put_id else {})
    return make_object_reply(headers=headers)


# --- AWS's own ---


def test_amazon_creates_a_copy_itself_in_two_requests(colour: Colour) -> None:
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


def test_amazon_is_asked_for_the_very_source_that_was_demanded(colour: Colour) -> None:
    with bucket(HEAD, COPIED) as server, client(colour, server, **AMAZON) as ours:
        ours.ask(CopyObject("", "source", "a", if_match=ETAG, if_absent="mine"))
    head, copy = server.requests
    assert head.headers["if-match"] == copy.headers["x-amz-copy-source-if-match"] == f'"{ETAG}"'


def test_amazon_refuses_a_copy_to_where_something_is(colour: Colour) -> None:
    with (
        bucket(HEAD, REFUSED, HEAD) as server,
        client(colour, server, **AMAZON) as ours,
        pytest.raises(PreconditionFailedError),
    ):
        ours.ask(CREATE)


LOST = pytest.mark.parametrize(
    "lost", [CLOSE, RESET, denies("InternalError", 500), denies("InternalError", 200)]
)


@LOST
def test_after_a_lost_reply_the_copy_that_refuses_may_be_ours(colour: Colour, lost: Step) -> None:
    with (
        bucket(HEAD, lost, REFUSED, there("mine")) as server,
        client(colour, server, **AMAZON) as ours,
    ):
        assert ours.ask(CREATE).put_id == "mine"
    assert [line_of(asked)[0] for asked in server.requests] == ["HEAD", "PUT", "PUT", "HEAD"]


@LOST
def test_after_a_lost_reply_the_object_that_refuses_may_be_another(colour: Colour, lost: Step) -> None:
    for put_id in (None, "another"):
        with (
            bucket(HEAD, lost, REFUSED, there(put_id)) as server,
            client(colour, server, **AMAZON) as ours,
            pytest.raises(PreconditionFailedError),
        ):
            ours.ask(CREATE)


def test_a_copy_of_which_nobody_can_tell_is_unknown(colour: Colour) -> None:
    for after in ([REFUSED, make_reply(404)], [denies("AccessDenied", 403)]):
        with (
            bucket(HEAD, CLOSE, *after) as server,
            client(colour, server, **AMAZON) as ours,
            pytest.raises(OutcomeUnknown),
        ):
            ours.ask(CREATE)


def test_amazon_copies_what_is_too_large_for_one_request_in_parts(
    colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "LARGEST_COPY", SIZE - 1)
    head = make_object_reply(headers={**SOURCE, "Content-Length": SIZE})
    steps = [head, part_of(SIZE, TAGGED, b"w"), TAGS, BEGUN, TAKEN, COMPLETED, there("mine")]
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


def test_a_head_that_tells_of_tags_is_believed(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "LARGEST_COPY", SIZE - 1)
    head = make_object_reply(headers={**SOURCE, **TAGGED, "Content-Length": SIZE})
    steps = [head, TAGS, BEGUN, TAKEN, COMPLETED, there("mine")]
    with bucket(*steps) as server, client(colour, server, **AMAZON) as ours:
        ours.ask(CREATE)
    assert server.requests[2].headers["x-amz-tagging"] == SENT_TAGS


# --- ours ---


def test_elsewhere_a_small_copy_that_creates_is_read_and_put_in_two_requests(colour: Colour) -> None:
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


def test_elsewhere_the_tags_of_the_source_are_asked_for_if_it_has_some(colour: Colour) -> None:
    with bucket(part_of(5, TAGGED), TAGS, make_reply()) as server, client(colour, server) as ours:
        ours.ask(CREATE)
    assert lines(server.requests) == ["GET /so%20urce", "GET /so%20urce?tagging=", "PUT /a"]
    assert server.requests[-1].headers["x-amz-tagging"] == SENT_TAGS


def test_an_empty_object_has_no_range_and_is_read_without_one(colour: Colour) -> None:
    steps = [
        denies("InvalidRange", 416),
        make_object_reply(headers={**SOURCE, "Content-Length": 0}),
        make_object_reply(headers={**SOURCE, **TAGGED}),
        TAGS,
        make_reply(),
    ]
    with bucket(*steps) as server, client(colour, server) as ours:
        assert ours.ask(CREATE).size == 0
    assert [line_of(asked)[0] for asked in server.requests] == ["GET", "HEAD", "GET", "GET", "PUT"]
    assert "range" not in server.requests[2].headers
    assert server.requests[-1].headers["x-amz-tagging"] == SENT_TAGS
    assert server.requests[-1].headers["content-encoding"] == "gzip"


def test_a_server_that_knows_no_ranges_gives_all_of_it(colour: Colour) -> None:
    with bucket(make_object_reply(b"words", SOURCE), make_reply()) as server, client(colour, server) as ours:
        assert ours.ask(CREATE).size == 5
    assert server.requests[1].body == b"words"


def test_less_than_a_small_object_has_is_not_taken_for_it(colour: Colour) -> None:
    with (
        bucket(part_of(6)) as server,
        client(colour, server) as ours,
        pytest.raises(MalformedReplyError, match="only a part of the object"),
    ):
        ours.ask(CREATE)


def test_the_source_has_to_be_there_and_the_one_demanded(colour: Colour) -> None:
    for step, error in ((denies("NoSuchKey", 404), ObjectNotFoundError), (REFUSED, PreconditionFailedError)):
        for options in ({}, AMAZON):
            with bucket(step) as server, client(colour, server, **options) as ours, pytest.raises(error):
                ours.ask(CopyObject("", "source", "a", if_match=ETAG, if_absent="mine"))


def test_a_large_copy_elsewhere_has_the_tags_even_if_uploads_are_kept_without(colour: Colour) -> None:
    tagged = part_of(SIZE, TAGGED)
    steps = [tagged, TAGS, BEGUN, TAKEN, COMPLETED, there("mine"), make_reply()]
    with bucket(*steps) as server, client(colour, server) as ours:
        ours.ask(CREATE)
    begin, tags = server.requests[2], server.requests[-1]
    assert begin.headers["x-amz-tagging"] == SENT_TAGS
    assert line_of(tags) == ("PUT", f"/{BUCKET}/a?tagging=")
    assert b"<Tag><Key>colour</Key><Value>red &amp; \xc3\xbc</Value></Tag>" in tags.body


def test_tags_that_may_not_be_read_are_not_left_out_without_a_word(colour: Colour) -> None:
    with (
        bucket(part_of(5, TAGGED), denies("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError, match="GetObjectTagging"),
    ):
        ours.ask(CREATE)


def test_a_digest_that_came_with_the_bytes_is_the_one_that_is_signed(colour: Colour) -> None:
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


def test_bytes_that_are_not_what_came_with_them_are_not_put(colour: Colour) -> None:
    wrong = part_of(5, {"x-amz-checksum-sha256": sha256_of(b"others")})
    with bucket(wrong) as server, client(colour, server) as ours, pytest.raises(IntegrityError):
        ours.ask(CREATE)


# --- without a mark ---


@pytest.mark.parametrize("amazon", [True, False])
def test_an_unmarked_copy_leaves_no_id_and_asks_for_absence_all_the_same(
    colour: Colour, amazon: bool
) -> None:
    steps = (HEAD, COPIED) if amazon else (part_of(5), make_reply())
    where = AMAZON if amazon else {"conditional_puts": True}
    with bucket(*steps) as server, client(colour, server, **where) as ours:
        ours.ask(CopyObject("", "so urce", "a", if_absent="mine", unmarked=True))
    copy = server.requests[-1]
    assert copy.headers["if-none-match"] == "*"
    assert "x-amz-meta-holdall-put-id" not in copy.headers
    assert copy.headers["x-amz-meta-colour"] == "red"


def test_an_unmarked_copy_that_is_refused_after_a_lost_reply_is_refused(colour: Colour) -> None:
    unmarked = CopyObject("", "so urce", "a", if_absent="mine", unmarked=True)
    with (
        bucket(HEAD, CLOSE, REFUSED, there(None)) as server,
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
        bucket(denies("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError, match="CopyObject"),
    ):
        ours.ask(ImportObject("", ELSEWHERE, FOREIGN))

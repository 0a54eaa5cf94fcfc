"""Parsing of replies about objects: fields, digests, ranges and listings."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import md5, sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.aws.blocking import BlockingPace
from holdall.backends.aws.message import Reply
from holdall.backends.s3.digest import Etags, verify
from holdall.backends.s3.document import NoDocument, read_document
from holdall.backends.s3.reply import (
    head_info,
    object_info,
    object_page,
    object_range,
    part_page,
    put_info,
    upload_page,
)
from holdall.core.objects import GetObject, ListedObject, Part, PutObject, Upload
from holdall.core.port import run
from holdall.errors import IntegrityError, MalformedReplyError

BODY = b"the very bytes"
ETAG = md5(BODY).hexdigest()
MD5 = b64encode(md5(BODY).digest()).decode()
SHA256 = b64encode(sha256(BODY).digest()).decode()


def make_reply(body: bytes = b"", status: int = 200, **headers: Any) -> Reply:
    common = {"etag": f'"{ETAG}"', "last-modified": "Sat, 15 Nov 2025 05:40:00 GMT"}
    return Reply(
        status, common | {name.replace("_", "-"): text for name, text in headers.items()}, body, True
    )


def etags(*, amazon: bool = True) -> Etags:
    return Etags(amazon=amazon)


@pytest.mark.parametrize("etag", [f'"{ETAG}"', ETAG, f'W/"{ETAG}"'])
def test_an_etag_has_no_quotes(etag: str) -> None:
    assert object_info("a", make_reply(etag=etag), 5, etags()).etag == ETAG


@given(st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)))
def test_times_are_read_as_http_writes_them(time: datetime) -> None:
    time = time.replace(tzinfo=UTC, microsecond=0)
    written = format_datetime(time, usegmt=True)
    assert object_info("a", make_reply(last_modified=written), 5, etags()).modified == time


@pytest.mark.parametrize("missing", ["etag", "last-modified"])
def test_a_reply_without_a_required_header_is_malformed(missing: str) -> None:
    reply = make_reply()
    headers = {name: text for name, text in reply.headers.items() if name != missing}
    with pytest.raises(MalformedReplyError, match="'a'"):
        object_info("a", Reply(200, headers, b"", True), 5, etags())


@pytest.mark.parametrize("length", ["", "x", "-1", "５"])
def test_a_head_without_a_valid_length_is_malformed(length: str) -> None:
    with pytest.raises(MalformedReplyError, match="has no length"):
        head_info("a", make_reply(content_length=length), etags())


# --- digests ---


def test_on_aws_the_etag_of_an_object_in_one_piece_is_its_md5() -> None:
    assert object_info("a", make_reply(), 5, etags()).md5 == MD5
    encrypted = make_reply(x_amz_server_side_encryption="AES256")
    assert object_info("a", encrypted, 5, etags()).md5 == MD5


@pytest.mark.parametrize(
    "headers",
    [
        {"etag": f'"{ETAG}-2"'},
        {"etag": '"something else"'},
        {"etag": f'"{ETAG.upper()}"'},
        {"x_amz_server_side_encryption": "aws:kms"},
        {"x_amz_server_side_encryption": "aws:kms:dsse"},
        {"x_amz_server_side_encryption_customer_algorithm": "AES256"},
    ],
)
def test_other_etags_are_not_md5s(headers: dict[str, Any]) -> None:
    assert object_info("a", make_reply(**headers), 5, etags()).md5 is None


def test_another_servers_etag_is_taken_for_an_md5_once_one_was_correct() -> None:
    known = etags(amazon=False)
    assert object_info("a", make_reply(), 5, known).md5 is None
    put_info(PutObject("", "a", BODY, md5=MD5), make_reply(), known)
    assert object_info("a", make_reply(), 5, known).md5 == MD5
    assert object_info("a", make_reply(x_amz_server_side_encryption="AES256"), 5, known).md5 is None


def test_another_servers_etag_is_not_taken_for_an_md5_if_it_was_wrong() -> None:
    known = etags(amazon=False)
    put = put_info(PutObject("", "a", BODY, md5=MD5), make_reply(etag=f'"{"0" * 32}"'), known)
    assert put.md5 == MD5
    put_info(PutObject("", "a", BODY), make_reply(), known)
    put_info(PutObject("", "a", BODY, md5=MD5), make_reply(x_amz_server_side_encryption="AES256"), known)
    assert object_info("a", make_reply(), 5, known).md5 is None


def test_the_sha256_of_a_whole_object_is_returned() -> None:
    assert object_info("a", make_reply(x_amz_checksum_sha256=SHA256), 5, etags()).sha256 == SHA256
    assert object_info("a", make_reply(), 5, etags()).sha256 is None
    assert object_info("a", make_reply(x_amz_checksum_sha256=f"{SHA256}-2"), 5, etags()).sha256 is None
    composite = make_reply(x_amz_checksum_sha256=SHA256, x_amz_checksum_type="COMPOSITE")
    assert object_info("a", composite, 5, etags()).sha256 is None


@pytest.mark.parametrize("size", [0, 10, 600_000])
def test_bytes_are_compared_with_their_digests(size: int) -> None:
    body = b"x" * size
    right: dict[str, Any] = {
        "md5": b64encode(md5(body).digest()).decode(),
        "sha256": b64encode(sha256(body).digest()).decode(),
    }
    pace = BlockingPace()
    run(verify(pace, PutObject("", "a", body)))
    run(verify(pace, PutObject("", "a", body, **right)))
    for kind, wrong in (("md5", MD5), ("sha256", SHA256)):
        with pytest.raises(IntegrityError, match=kind):
            run(verify(pace, PutObject("", "a", body, **(right | {kind: wrong}))))


# --- ranges ---


@pytest.mark.parametrize("status", [206, 200])
def test_the_requested_range_is_returned(status: int) -> None:
    reply = make_reply(b"345", status, content_range="bytes 3-5/10")
    found = object_range(GetObject("", "a", 3, 3), reply, etags())
    assert (found.start, found.body, found.info.size) == (3, b"345", 10)


def test_the_range_is_cut_from_the_reply_of_a_server_without_support_for_ranges() -> None:
    found = object_range(GetObject("", "a", 3, 3), make_reply(b"0123456789"), etags())
    assert (found.start, found.body, found.info.size) == (3, b"345", 10)
    rest = object_range(GetObject("", "a", 3), make_reply(b"0123456789"), etags())
    assert rest.body == b"3456789"


@pytest.mark.parametrize(
    ("body", "content_range"),
    [
        (b"345", "bytes 4-6/10"),
        (b"345", "bytes 3-6/10"),
        (b"3456", "bytes 3-6/10"),
        (b"345", "bytes 3-5/*"),
        (b"345", "bytes */10"),
        (b"345", ""),
        (b"345", "lines 3-5/10"),
    ],
)
def test_a_reply_with_another_range_is_malformed(body: bytes, content_range: str) -> None:
    with pytest.raises(MalformedReplyError):
        object_range(GetObject("", "a", 3, 3), make_reply(body, 206, content_range=content_range), etags())


# --- listings ---

CONTENTS = (
    "<Contents><Key>{key}</Key><Size>5</Size><ETag>&quot;e&quot;</ETag>"
    "<LastModified>2025-11-15T05:40:00.123Z</LastModified></Contents>"
)
WHEN = datetime(2025, 11, 15, 5, 40, tzinfo=UTC) + timedelta(milliseconds=123)


def listing(*keys: str, more: bool = False, encoding: str = "url") -> bytes:
    encoded = f"<EncodingType>{encoding}</EncodingType>" if encoding else ""
    entries = "".join(CONTENTS.format(key=key) for key in keys)
    entries += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
    return f"<ListBucketResult>{encoded}{entries}</ListBucketResult>".encode()


def test_a_page_is_read_without_the_prefix() -> None:
    page = object_page(read_document(listing("p/a%20b", "p/a+b", "p/%2B%C3%BC", more=True)), "p/", None)
    assert page.objects[0] == ListedObject("a b", 5, "e", WHEN)
    assert [found.key for found in page.objects] == ["a b", "a b", "+ü"]
    assert page.next == "+ü"


def test_keys_that_are_not_encoded_are_not_decoded() -> None:
    page = object_page(read_document(listing("a+b%20", encoding="")), "", None)
    assert [found.key for found in page.objects] == ["a+b%20"]
    assert page.next is None


def test_keys_up_to_the_marker_of_the_page_are_left_out() -> None:
    page = object_page(read_document(listing("a", "b", "c")), "", "b")
    assert [found.key for found in page.objects] == ["c"]


@pytest.mark.parametrize(
    ("body", "after"),
    [(listing(more=True), None), (listing("a", more=True), "a"), (listing("other"), None)],
    ids=["empty but not the end", "no progress", "keys that were not requested"],
)
def test_an_inconsistent_listing_is_refused(body: bytes, after: str | None) -> None:
    with pytest.raises(NoDocument):
        object_page(read_document(body), "" if after else "p/", after)


def test_a_page_of_parts_is_read_with_its_marker() -> None:
    part = "<Part><PartNumber>{}</PartNumber><ETag>&quot;e&quot;</ETag><Size>5</Size></Part>"
    whole = (
        f"<ListPartsResult><IsTruncated>{{}}</IsTruncated>{part.format(1)}{part.format(7)}</ListPartsResult>"
    )
    page = part_page(read_document(whole.format("true").encode()))
    assert (page.parts, page.next) == ((Part(1, "e", 5), Part(7, "e", 5)), 7)
    assert part_page(read_document(whole.format("false").encode())).next is None
    assert part_page(read_document(b"<ListPartsResult></ListPartsResult>")).parts == ()


def test_a_page_of_uploads_is_read_with_its_marker() -> None:
    text = (
        "<R><EncodingType>url</EncodingType><IsTruncated>{}</IsTruncated><NextKeyMarker>p/b%20c</NextKeyMarker>"
        "<NextUploadIdMarker>u2</NextUploadIdMarker><Upload><Key>p/b%20c</Key><UploadId>u2</UploadId></Upload></R>"
    )
    assert upload_page(read_document(text.format("true").encode()), "p/") == (
        [Upload("b c", "u2")],
        ("p/b c", "u2"),
    )
    assert upload_page(read_document(text.format("false").encode()), "p/")[1] is None

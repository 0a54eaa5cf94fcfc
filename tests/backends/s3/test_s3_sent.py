"""Requests to S3 as they are sent: their paths and headers, and that all of it is signed."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from s3_rig import (
    ASK_FOR_BODY,
    BUCKET,
    ETAG,
    bucket,
    client,
    line_of,
    make_document_reply,
    make_object_reply,
    make_reply,
    md5_of,
    query_of,
    sha256_of,
)
from scripted_server import ReceivedRequest, Step
from test_wire_tls import make_certificate
from wire_rig import COLOURS, KEYS, Colour

from holdall.backends.aws.connection import tls_context
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.s3.header import Storage
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    DeleteObject,
    DeleteObjects,
    GetObject,
    GetTags,
    HeadObject,
    ListObjects,
    ListParts,
    ListUploads,
    ObjectHeaders,
    ObjectRequest,
    Part,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.errors import InvalidObjectKeyError, InvalidRequestError

auth: Any = pytest.importorskip(
    "botocore.auth", reason="botocore, which verifies the signatures, is not installed"
)
awsrequest: Any = pytest.importorskip("botocore.awsrequest")
frozen: Any = pytest.importorskip("botocore.credentials").ReadOnlyCredentials

UPLOAD = Upload("a/b c", "u/1+2=")
STORAGE = Storage("aws:kms", "arn:aws:kms:eu-west-1:1:key/k-1", "STANDARD_IA", "bucket-owner-full-control")
HEADERS = ObjectHeaders(
    "text/plain; charset=utf-8",
    'attachment; filename="two  spaces.txt"',
    "public, max-age=60",
    {"colour": "red", "shape": "Grüße  😀"},
)
TAGS = {"colour": "red + blue", "größe": ""}
COPIED = make_document_reply(
    f"<CopyObjectResult><ETag>&quot;{ETAG}&quot;</ETag>"
    "<LastModified>2025-11-15T05:40:00Z</LastModified></CopyObjectResult>"
)
BEGUN = make_document_reply("<R><UploadId>u1</UploadId></R>")
LISTED = make_document_reply("<R><IsTruncated>false</IsTruncated></R>")


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def send(colour: Colour, request: ObjectRequest[Any], *steps: Step, **options: Any) -> ReceivedRequest:
    """Send our request and return the last request that the server received."""
    with bucket(*steps) as server, client(colour, server, **options) as ours:
        ours.ask(request)
    return server.requests[-1]


def assert_signed(received: ReceivedRequest, *, scheme: str = "http", region: str = "us-east-1") -> None:
    """Check that botocore signs the received request as we did, and that all relevant headers are signed."""
    headers = dict(received.headers)
    method, target = line_of(received)
    _, _, proof = headers["authorization"].partition("SignedHeaders=")
    names, _, signature = proof.partition(", Signature=")
    signed = names.split(";")
    unsigned = set(headers) - set(signed)
    assert unsigned <= {"authorization", "accept-encoding", "user-agent", "content-length", "expect"}
    request = awsrequest.AWSRequest(
        method, f"{scheme}://{headers['host']}{target}", headers={name: headers[name] for name in signed}
    )
    request.context["timestamp"] = headers["x-amz-date"]
    who = frozen(
        KEYS["AWS_ACCESS_KEY_ID"], KEYS["AWS_SECRET_ACCESS_KEY"], headers.get("x-amz-security-token")
    )
    signing = auth.S3SigV4Auth(who, "s3", region)
    assert (
        signing.signature(signing.string_to_sign(request, signing.canonical_request(request)), request)
        == signature
    )
    digest = headers["x-amz-content-sha256"]
    assert digest in (sha256(received.body).hexdigest(), "UNSIGNED-PAYLOAD")


REQUESTS: list[tuple[ObjectRequest[Any], list[Step], tuple[str, str]]] = [
    (HeadObject("", "a/b c"), [make_object_reply()], ("HEAD", "/a/b%20c")),
    (GetObject("", "ü/+?&=%😀"), [make_object_reply()], ("GET", "/%C3%BC/%2B%3F%26%3D%25%F0%9F%98%80")),
    (GetObject("", "/a//b/"), [make_object_reply()], ("GET", "//a//b/")),
    (GetObject("", "a", 3, 4, ETAG), [make_object_reply(b"0123456789")], ("GET", "/a")),
    (PutObject("", "~-_.!*'()", b"words", HEADERS), [make_reply()], ("PUT", "/~-_.%21%2A%27%28%29")),
    (PutObject("", "a", b"words", HEADERS, if_absent="id-1"), [make_reply()], ("PUT", "/a")),
    (PutObject("", "a", b"words", HEADERS, if_match=ETAG, tags=TAGS), [make_reply()], ("PUT", "/a")),
    (GetTags("", "a ü"), [make_document_reply("<Tagging/>")], ("GET", "/a%20%C3%BC?tagging=")),
    (DeleteObject("", "a"), [make_reply(204)], ("DELETE", "/a")),
    (DeleteObject("", "a", if_match=ETAG), [make_reply(204)], ("DELETE", "/a")),
    (DeleteObjects("", ("a", "b")), [make_document_reply("<R/>")], ("POST", "?delete=")),
    (CopyObject("", "a ü", "b"), [make_object_reply(), COPIED], ("PUT", "/b")),
    (
        CopyObject("", "a ü", "b", if_absent="id-1"),
        [make_object_reply(b"words"), make_reply()],
        ("PUT", "/b"),
    ),
    (BeginUpload("", "a", HEADERS, TAGS), [BEGUN], ("POST", "/a?uploads=")),
    (
        UploadPart("", UPLOAD, 7, b"part"),
        [make_reply()],
        ("PUT", "/a/b%20c?partNumber=7&uploadId=u%2F1%2B2%3D"),
    ),
    (
        CopyPart("", UPLOAD, 7, "a ü", 5, 6 * 1024**2, ETAG),
        [make_document_reply("<R><ETag>e</ETag></R>")],
        ("PUT", "/a/b%20c?partNumber=7&uploadId=u%2F1%2B2%3D"),
    ),
    (ListParts("", UPLOAD, 5), [LISTED], ("GET", "/a/b%20c?part-number-marker=5&uploadId=u%2F1%2B2%3D")),
    (AbortUpload("", UPLOAD), [make_reply(204)], ("DELETE", "/a/b%20c?uploadId=u%2F1%2B2%3D")),
    (
        ListObjects("", "a/ü", "a/ü b", 7),
        [LISTED],
        ("GET", "?encoding-type=url&list-type=2&max-keys=7&prefix=a%2F%C3%BC&start-after=a%2F%C3%BC%20b"),
    ),
    (ListUploads("", "a/"), [LISTED], ("GET", "?encoding-type=url&prefix=a%2F&uploads=")),
]


@pytest.mark.parametrize(
    ("request_", "steps", "line"), REQUESTS, ids=[type(request).__name__ for request, *_ in REQUESTS]
)
def test_every_request_has_its_path_and_is_signed(
    colour: Colour, request_: ObjectRequest[Any], steps: list[Step], line: tuple[str, str]
) -> None:
    received = send(colour, request_, *steps)
    assert line_of(received) == (line[0], f"/{BUCKET}{line[1]}")
    assert_signed(received)


def test_a_session_token_is_sent_and_signed(colour: Colour) -> None:
    source = find_credentials(environment={**KEYS, "AWS_SESSION_TOKEN": "a/token+of="})
    received = send(colour, PutObject("", "a", b"words"), make_reply(), source=source)
    assert received.headers["x-amz-security-token"] == "a/token+of="
    assert_signed(received)


def test_a_put_sends_the_headers_and_metadata_of_the_object(colour: Colour) -> None:
    received = send(colour, PutObject("", "a", b"words", HEADERS), make_reply())
    headers = received.headers
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["content-disposition"] == 'attachment; filename="two  spaces.txt"'
    assert headers["cache-control"] == "public, max-age=60"
    assert headers["x-amz-meta-colour"] == "red"
    assert headers["x-amz-meta-shape"].startswith("=?UTF-8?B?")
    assert received.body == b"words"


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        (PutObject("", "a", b"words"), [make_reply()]),
        (PutObject("", "a", b"words", if_absent="id-1"), [make_reply()]),
        (BeginUpload("", "a"), [BEGUN]),
        (CopyObject("", "a", "b"), [make_object_reply(), COPIED]),
        (CopyObject("", "a", "a"), [make_object_reply(), COPIED]),
    ],
    ids=["put", "creation", "upload", "copy", "copy onto itself"],
)
def test_requests_that_make_objects_have_the_storage_options(
    colour: Colour, request_: ObjectRequest[Any], steps: list[Step]
) -> None:
    received = send(colour, request_, *steps, storage=STORAGE)
    assert STORAGE.headers().items() <= received.headers.items()
    assert len(STORAGE.headers()) == 4
    assert_signed(received)


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        (GetObject("", "a"), [make_object_reply()]),
        (UploadPart("", UPLOAD, 1, b"part"), [make_reply()]),
        (
            CompleteUpload("", UPLOAD, (Part(1, ETAG, 5),)),
            [make_document_reply("<R><ETag>e</ETag></R>"), make_object_reply()],
        ),
    ],
    ids=["get", "part", "completion"],
)
def test_other_requests_have_no_storage_options(
    colour: Colour, request_: ObjectRequest[Any], steps: list[Step]
) -> None:
    with bucket(*steps) as server, client(colour, server, storage=STORAGE) as ours:
        ours.ask(request_)
    assert not STORAGE.headers().keys() & server.requests[0].headers.keys()


# --- digests ---


def test_a_sha256_that_the_caller_passes_is_the_one_that_is_signed(colour: Colour) -> None:
    digests = {"md5": md5_of(b"words"), "sha256": sha256_of(b"words")}
    received = send(colour, PutObject("", "a", b"words", **digests), make_reply())  # type: ignore[arg-type]
    assert received.headers["content-md5"] == digests["md5"]
    assert received.headers["x-amz-checksum-sha256"] == digests["sha256"]
    assert received.headers["x-amz-content-sha256"] == sha256(b"words").hexdigest()
    assert_signed(received)


@pytest.mark.parametrize("size", [0, 10, 2 * 1024**2])
def test_without_tls_every_body_is_signed(colour: Colour, size: int) -> None:
    body = b"x" * size
    steps = [ASK_FOR_BODY, make_reply()] if size > 1024**2 else [make_reply()]
    received = send(colour, PutObject("", "a", body, md5=md5_of(body)), *steps)
    assert received.headers["x-amz-content-sha256"] == sha256(body).hexdigest()
    assert_signed(received)


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl, which makes the certificates, is not installed"
)
def test_over_tls_an_md5_replaces_the_signature_of_the_body(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_certificate(tmp_path, "IP:127.0.0.1")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    requests = [
        PutObject("", "a", b"words", md5=md5_of(b"words")),
        PutObject("", "a", b"words"),
        PutObject("", "a", b"words", md5=md5_of(b"words"), sha256=sha256_of(b"words")),
    ]
    with (
        bucket(make_reply(), make_reply(), make_reply(), tls=own.server_side()) as server,
        client(colour, server, tls=tls_context()) as ours,
    ):

        async def flow() -> None:
            for request in requests:
                await ours.send(request)

        ours.finish(flow)
    digest = sha256(b"words").hexdigest()
    signed = [received.headers["x-amz-content-sha256"] for received in server.requests]
    assert signed == ["UNSIGNED-PAYLOAD", digest, digest]
    assert server.requests[0].headers["content-md5"] == md5_of(b"words")
    for received in server.requests:
        assert_signed(received, scheme="https")


@pytest.mark.parametrize(
    "digests",
    [{"md5": "x"}, {"md5": sha256_of(b"")}, {"sha256": md5_of(b"")}, {"md5": "ü"}, {"sha256": "a\r\nb"}],
)
def test_a_malformed_digest_is_refused(colour: Colour, digests: dict[str, Any]) -> None:
    with (
        bucket() as server,
        client(colour, server) as ours,
        pytest.raises(InvalidRequestError, match="base64"),
    ):
        ours.ask(PutObject("", "a", b"words", **digests))


@pytest.mark.parametrize("etag", ["", "a b", "a\r\nx: y", "ü"])
def test_a_malformed_etag_is_refused(colour: Colour, etag: str) -> None:
    with bucket() as server, client(colour, server) as ours, pytest.raises(InvalidRequestError, match="etag"):
        ours.ask(GetObject("", "a", if_match=etag))


# --- styles and prefixes ---


@pytest.fixture
def local_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve subdomains of localhost to this machine, because some resolvers do not."""
    import socket

    real = socket.getaddrinfo

    def local(host: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return real("127.0.0.1" if name.endswith(".localhost") else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)


def test_with_a_virtual_host_the_path_is_the_key(colour: Colour, local_names: None) -> None:
    with (
        bucket(make_reply()) as server,
        client(colour, f"http://{BUCKET}.localhost:{server.port}", style="virtual", host="localhost") as ours,
    ):
        ours.ask(PutObject("", "a/b", b"words"))
    (received,) = server.requests
    assert received.headers["host"] == f"{BUCKET}.localhost:{server.port}"
    assert line_of(received) == ("PUT", "/a/b")
    assert_signed(received)


def test_with_a_virtual_host_the_path_of_the_bucket_is_the_root(colour: Colour, local_names: None) -> None:
    with (
        bucket(LISTED) as server,
        client(colour, f"http://{BUCKET}.localhost:{server.port}", style="virtual", host="localhost") as ours,
    ):
        ours.ask(ListObjects(""))
    assert line_of(server.requests[0])[1].startswith("/?")
    assert_signed(server.requests[0])


def test_a_prefix_is_added_to_every_key_and_removed_from_replies(colour: Colour) -> None:
    listed = make_document_reply(
        "<R><EncodingType>url</EncodingType><Contents><Key>p/q/a%20b</Key><Size>5</Size><ETag>e</ETag>"
        "<LastModified>2025-11-15T05:40:00Z</LastModified></Contents><IsTruncated>true</IsTruncated></R>"
    )
    failed = make_document_reply(
        "<R><Error><Key>p/q/a</Key><Code>AccessDenied</Code><Message>no</Message></Error></R>"
    )
    with (
        bucket(listed, LISTED, failed, make_object_reply()) as server,
        client(colour, server, prefix="p/q/") as ours,
    ):

        async def flow() -> None:
            page = await ours.send(ListObjects("", "a"))
            assert ([found.key for found in page.objects], page.next) == (["a b"], "a b")
            await ours.send(ListObjects("", "a", page.next))
            assert (await ours.send(DeleteObjects("", ("a",)))).failures == {"a": "no"}
            assert (await ours.send(HeadObject("", "a"))).key == "a"

        ours.finish(flow)
    first, second, deletion, head = server.requests
    assert query_of(first)["prefix"] == "p/q/a"
    assert query_of(second)["start-after"] == "p/q/a b"
    assert b"<Key>p/q/a</Key>" in deletion.body
    assert deletion.headers["content-md5"] == md5_of(deletion.body)
    assert line_of(head)[1] == f"/{BUCKET}/p/q/a"


def test_a_key_that_is_too_long_with_its_prefix_is_refused(colour: Colour) -> None:
    with (
        bucket(make_object_reply()) as server,
        client(colour, server, prefix="p/") as ours,
    ):
        with pytest.raises(InvalidObjectKeyError, match="with the prefix"):
            ours.ask(HeadObject("", "x" * 1023))
        ours.ask(HeadObject("", "x" * 1022))


def test_keys_that_xml_cannot_contain_are_deleted_one_by_one(colour: Colour) -> None:
    with (
        bucket(make_document_reply("<R/>"), make_reply(204), make_reply(204)) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(DeleteObjects("", ("a", "\x01", "a", "\ufffe"))).failures == {}
    together, *single = server.requests
    assert together.body.count(b"<Key>") == 1
    assert [line_of(received) for received in single] == [
        ("DELETE", f"/{BUCKET}/%01"),
        ("DELETE", f"/{BUCKET}/%EF%BF%BE"),
    ]


def test_a_get_sends_its_range_and_etag(colour: Colour) -> None:
    ranged = make_object_reply(b"345", {"Content-Range": "bytes 3-5/10"}, 206)
    received = send(colour, GetObject("", "a", 3, 3, ETAG), ranged)
    assert received.headers["range"] == "bytes=3-5"
    assert received.headers["if-match"] == f'"{ETAG}"'
    assert received.headers["x-amz-checksum-mode"] == "ENABLED"
    assert received.headers["accept-encoding"] == "identity"
    rest = make_object_reply(b"3456789", {"Content-Range": "bytes 3-9/10"}, 206)
    assert send(colour, GetObject("", "a", 3), rest).headers["range"] == "bytes=3-"
    assert "range" not in send(colour, GetObject("", "a"), make_object_reply(b"words")).headers


def test_a_small_part_is_copied_by_a_get_and_a_put(colour: Colour) -> None:
    ranged = make_object_reply(b"345", {"Content-Range": "bytes 3-5/10"}, 206)
    with bucket(ranged, make_reply()) as server, client(colour, server) as ours:
        part = ours.ask(CopyPart("", UPLOAD, 7, "source", 3, 3, ETAG))
    assert part == Part(7, ETAG, 3)
    assert [line_of(received)[0] for received in server.requests] == ["GET", "PUT"]
    assert server.requests[1].body == b"345"
    short = make_object_reply(b"789", {"Content-Range": "bytes 7-9/10"}, 206)
    with (
        bucket(short) as server,
        client(colour, server) as ours,
        pytest.raises(InvalidRequestError, match="ends before"),
    ):
        ours.ask(CopyPart("", UPLOAD, 7, "source", 7, 4))

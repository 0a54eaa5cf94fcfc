"""Errors of S3: which the caller receives, which are repeated, and which are corrected."""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
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
    query_of,
)
from scripted_server import CLOSE, RESET, ReceivedRequest, Step, http
from wire_rig import COLOURS, KEYS, Colour

from holdall.backends.aws.credentials import Credentials
from holdall.backends.aws.limit import Limits
from holdall.backends.s3.flow import BucketExists, CreateBucket
from holdall.backends.s3.service import LIMITS
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    DeleteObject,
    DeleteObjects,
    GetObject,
    HeadObject,
    ListObjects,
    ListParts,
    ListUploads,
    ObjectInfo,
    ObjectRequest,
    Part,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.core.requests import Done, GetItem
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    ConflictError,
    EndpointError,
    HoldallError,
    IntegrityError,
    InvalidObjectKeyError,
    InvalidRequestError,
    MalformedReplyError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
    ThrottledError,
)

GET = GetObject("", "a/b")
PUT = PutObject("", "a/b", b"words")
HEAD = HeadObject("", "a/b")
UPLOAD = Upload("a/b", "u1")
COMPLETE = CompleteUpload("", UPLOAD, (Part(1, ETAG, 5),))
EMPTY_LIST = make_document_reply("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def refusal(colour: Colour, request: ObjectRequest[Any], *steps: Step, **options: Any) -> HoldallError:
    """Send the request and return the error that it raises."""
    with (
        bucket(*steps) as server,
        client(colour, server, **options) as ours,
        pytest.raises(HoldallError) as raised,
    ):
        ours.ask(request)
    return raised.value


# --- refusals ---


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("NoSuchKey", 404, ObjectNotFoundError),
        ("NoSuchUpload", 404, ObjectNotFoundError),
        ("PreconditionFailed", 412, PreconditionFailedError),
        ("BadDigest", 400, IntegrityError),
        ("InvalidDigest", 400, IntegrityError),
        ("XAmzContentSHA256Mismatch", 400, IntegrityError),
        ("AccessDenied", 403, AccessDeniedError),
        ("SignatureDoesNotMatch", 403, AccessDeniedError),
        ("InvalidAccessKeyId", 403, AccessDeniedError),
        ("AuthorizationHeaderMalformed", 400, AccessDeniedError),
        ("KMS.DisabledException", 400, AccessDeniedError),
        ("NoSuchBucket", 404, ConfigurationError),
        ("NotImplemented", 501, ConfigurationError),
        ("AccessControlListNotSupported", 400, ConfigurationError),
        ("PermanentRedirect", 301, ConfigurationError),
        ("KeyTooLongError", 400, InvalidObjectKeyError),
        ("EntityTooLarge", 400, InvalidRequestError),
        ("MetadataTooLarge", 400, InvalidRequestError),
        ("InvalidObjectState", 403, ServiceError),
        ("SomethingNew", 400, ServiceError),
    ],
)
def test_a_refusal_is_translated_by_its_code_at_once(
    colour: Colour, code: str, status: int, kind: type[HoldallError]
) -> None:
    error = refusal(colour, PUT, make_error_reply(code, status))
    assert type(error) is kind
    assert (error.service_code, error.request_id) == (code, "REQUEST-1")
    assert "a/b" in str(error) or kind is ConfigurationError


def test_the_error_of_a_missing_bucket_has_a_hint(colour: Colour) -> None:
    error = refusal(colour, GET, make_error_reply("NoSuchBucket", 404))
    assert error.hint is not None
    assert "create the bucket" in error.hint


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        (
            "AccessDenied",
            "not authorized to perform: kms:GenerateDataKey on",
            "allow kms:GenerateDataKey on the KMS key",
        ),
        ("KMS.DisabledException", "arn is disabled", "check the state and the policy of the KMS key"),
        ("AccessDenied", "Access Denied", "check the permissions of the credentials"),
    ],
    ids=["denied key", "disabled key", "denied request"],
)
def test_the_hint_of_a_refusal_names_the_encryption_key_if_that_is_the_cause(
    colour: Colour, code: str, message: str, hint: str
) -> None:
    error = refusal(colour, PUT, make_error_reply(code, 403, Message=message))
    assert error.hint is not None
    assert error.hint.startswith(hint)


def test_a_refusal_in_chunks_is_read(colour: Colour) -> None:
    document = b"<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in document) + b"0\r\n\r\n"
    step = Step((http(404, {"Transfer-Encoding": "chunked"}, chunks),))
    assert isinstance(refusal(colour, GET, step), ObjectNotFoundError)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, AccessDeniedError), (404, ObjectNotFoundError), (412, PreconditionFailedError)],
)
def test_the_error_of_a_head_is_translated_by_its_status(
    colour: Colour, status: int, kind: type[HoldallError]
) -> None:
    then = {403: [make_error_reply("AccessDenied", 403)], 404: [EMPTY_LIST]}
    steps = [make_reply(status), *then.get(status, ())]
    error = refusal(colour, HEAD, *steps)
    assert type(error) is kind
    assert "a/b" in str(error)


@pytest.mark.parametrize("status", [400, 403, 404, 418])
def test_a_server_that_is_not_s3_is_reported_as_such(colour: Colour, status: int) -> None:
    page = make_reply(status, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html>Not here</html>")
    error = refusal(colour, GET, page)
    assert isinstance(error, MalformedReplyError)
    assert error.hint is not None
    assert "a server other than S3" in error.hint


def test_an_error_does_not_repeat_a_secret_from_the_reply(colour: Colour) -> None:
    secret = KEYS["AWS_SECRET_ACCESS_KEY"]
    error = refusal(colour, GET, make_error_reply("SignatureDoesNotMatch", 403, Message=f"with {secret}"))
    assert secret not in str(error)


def test_a_request_of_another_kind_is_refused(colour: Colour) -> None:
    request: Any = GetItem("things", {"pk": {"S": "a"}})
    assert isinstance(refusal(colour, request), InvalidRequestError)


def test_deleting_a_missing_object_and_aborting_a_missing_upload_succeed(colour: Colour) -> None:
    with (
        bucket(make_reply(204), make_error_reply("NoSuchUpload", 404)) as server,
        client(colour, server) as ours,
    ):

        async def flow() -> list[Done]:
            return [await ours.send(DeleteObject("", "a")), await ours.send(AbortUpload("", UPLOAD))]

        assert ours.finish(flow) == [Done(), Done()]


# --- errors with status 200 ---


@pytest.mark.parametrize(
    "request_",
    [COMPLETE, BeginUpload("", "a/b"), ListObjects(""), ListParts("", UPLOAD)],
    ids=lambda request: type(request).__name__,
)
def test_an_error_with_status_200_is_an_error(colour: Colour, request_: ObjectRequest[Any]) -> None:
    error = refusal(colour, request_, make_error_reply("AccessDenied", 200))
    assert isinstance(error, AccessDeniedError)


def test_a_copy_that_fails_after_status_200_is_tried_again(colour: Colour) -> None:
    copied = make_document_reply(
        f"<CopyObjectResult><ETag>&quot;{ETAG}&quot;</ETag>"
        "<LastModified>2025-11-15T05:40:00.000Z</LastModified></CopyObjectResult>"
    )
    with (
        bucket(make_object_reply(b"words"), make_error_reply("InternalError", 200), copied) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(CopyObject("", "source", "copy")).etag == ETAG
    assert len(ours.pace.sleeps) == 1


@pytest.mark.parametrize("document", ["", "{}", "<a>", "<!DOCTYPE a><a/>", "<ListBucketResult>"])
def test_a_malformed_document_is_requested_again_and_then_an_error(colour: Colour, document: str) -> None:
    twice = Limits(max_attempts=2)
    error = refusal(
        colour, ListObjects(""), make_document_reply(document), make_document_reply(document), limits=twice
    )
    assert isinstance(error, MalformedReplyError)


@pytest.mark.parametrize(
    ("request_", "document"),
    [
        (ListObjects(""), "<R><Contents><Key>a</Key></Contents></R>"),
        (BeginUpload("", "a"), "<R></R>"),
        (ListParts("", UPLOAD), "<R><Part><PartNumber>x</PartNumber></Part></R>"),
    ],
    ids=["ListObjects", "BeginUpload", "ListParts"],
)
def test_a_document_of_another_shape_is_malformed(
    colour: Colour, request_: ObjectRequest[Any], document: str
) -> None:
    assert isinstance(refusal(colour, request_, make_document_reply(document)), MalformedReplyError)


def test_spaces_before_the_document_of_a_slow_reply_are_ignored(colour: Colour) -> None:
    document = f"  \n <CompleteMultipartUploadResult><ETag>&quot;{ETAG}-1&quot;</ETag></CompleteMultipartUploadResult>"
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, byte.encode()) for byte in document) + b"0\r\n\r\n"
    step = Step((http(200, {"Transfer-Encoding": "chunked"}, chunks),))
    head = make_object_reply(headers={"ETag": f'"{ETAG}-1"', "Content-Length": 5})
    with bucket(step, head) as server, client(colour, server) as ours:
        assert ours.ask(COMPLETE).etag == f"{ETAG}-1"


# --- repetition ---


@pytest.mark.parametrize(
    "step",
    [
        make_error_reply("SlowDown", 503),
        make_error_reply("InternalError", 500),
        make_error_reply("ServiceUnavailable", 503),
        make_error_reply("RequestTimeout", 400),
        make_error_reply("IncompleteBody", 400),
        make_error_reply("OperationAborted", 409),
        make_error_reply("TooManyRequests", 429),
        make_reply(502, {}, b"<html>Bad Gateway</html>"),
        CLOSE,
        RESET,
        Step((b"nonsense\r\n\r\n",), end="close"),
    ],
    ids=lambda step: repr(step)[:90],
)
@pytest.mark.parametrize(
    "request_", [PUT, UploadPart("", UPLOAD, 1, b"words")], ids=lambda request: type(request).__name__
)
def test_after_a_transient_failure_the_same_request_is_sent_again(
    colour: Colour, request_: ObjectRequest[Any], step: Step
) -> None:
    with bucket(step, step, make_reply()) as server, client(colour, server) as ours:
        ours.ask(request_)
    assert len({(line_of(received), received.body) for received in server.requests}) == 1
    assert ours.pace.sleeps == [0.05, 0.1]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (make_error_reply("SlowDown", 503), ThrottledError),
        (make_error_reply("InternalError", 500), ServiceUnavailableError),
        (make_error_reply("OperationAborted", 409), ConflictError),
        (CLOSE, ServiceUnavailableError),
    ],
    ids=["SlowDown", "InternalError", "OperationAborted", "close"],
)
def test_after_the_last_attempt_the_last_error_is_raised(
    colour: Colour, step: Step, kind: type[HoldallError]
) -> None:
    error = refusal(colour, PUT, *[step] * LIMITS.max_attempts)
    assert type(error) is kind
    assert error.retryable


def test_after_the_total_timeout_the_last_error_is_raised(colour: Colour) -> None:
    slow = make_error_reply("SlowDown", 503)
    hasty = Limits(total_timeout=10.0)
    with bucket(slow, slow, slow) as server, client(colour, server, limits=hasty) as ours:
        ours.pace.lasting = 4.0
        with pytest.raises(ThrottledError):
            ours.ask(PUT)


def test_an_unreachable_endpoint_is_an_error_with_its_url(colour: Colour) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with client(colour, url) as ours, pytest.raises(EndpointError) as raised:
            ours.ask(PUT)
    assert url in str(raised.value)


def test_transient_failures_in_a_deletion_of_many_are_repeated(colour: Colour) -> None:
    def refuse_keys(*keys: str, code: str = "InternalError") -> Step:
        errors = "".join(
            f"<Error><Key>{key}</Key><Code>{code}</Code><Message>why</Message></Error>" for key in keys
        )
        return make_document_reply(f"<DeleteResult>{errors}</DeleteResult>")

    with (
        bucket(refuse_keys("a", "b"), refuse_keys("b"), refuse_keys()) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(DeleteObjects("", ("a", "b", "c"))).failures == {}
    assert [received.body.count(b"<Key>") for received in server.requests] == [3, 2, 1]
    with bucket(refuse_keys("a", code="AccessDenied")) as server, client(colour, server) as ours:
        assert ours.ask(DeleteObjects("", ("a", "b"))).failures == {"a": "why"}
    with bucket(*[refuse_keys("a")] * 4) as server, client(colour, server) as ours:
        assert ours.ask(DeleteObjects("", ("a", "b"))).failures == {"a": "why"}


@pytest.mark.parametrize(
    "step",
    [make_error_reply("NotImplemented", 501), make_error_reply("MethodNotAllowed", 405), make_reply(501)],
    ids=["501", "405", "bare 501"],
)
def test_a_server_that_cannot_delete_many_deletes_one_by_one(colour: Colour, step: Step) -> None:
    with (
        bucket(step, make_reply(204), make_error_reply("AccessDenied", 403)) as server,
        client(colour, server) as ours,
    ):
        failures = ours.ask(DeleteObjects("", ("a", "b"))).failures
    assert list(failures) == ["b"]
    assert [line_of(received) for received in server.requests[1:]] == [
        ("DELETE", f"/{BUCKET}/a"),
        ("DELETE", f"/{BUCKET}/b"),
    ]


def test_a_refused_deletion_of_many_is_an_error(colour: Colour) -> None:
    assert isinstance(
        refusal(colour, DeleteObjects("", ("a",)), make_error_reply("AccessDenied", 403)), AccessDeniedError
    )


# --- credentials and clocks ---


class Renewable:
    """Credentials that can be renewed."""

    def __init__(self) -> None:
        self.number = 1

    def current(self) -> Credentials:
        return Credentials(f"AKID{self.number}", "secret", f"token-{self.number}")

    def peek(self) -> Credentials:
        return self.current()

    def renew(self, rejected: Credentials) -> None:
        assert rejected == self.current()
        self.number += 1


@pytest.mark.parametrize("code", ["ExpiredToken", "TokenRefreshRequired"])
def test_expired_credentials_are_renewed_once(colour: Colour, code: str) -> None:
    with (
        bucket(
            make_error_reply(code), make_reply(), make_error_reply(code), make_error_reply(code)
        ) as server,
        client(colour, server, source=Renewable()) as ours,
    ):

        async def flow() -> None:
            await ours.send(PUT)
            with pytest.raises(AccessDeniedError, match=code):
                await ours.send(PUT)

        ours.finish(flow)
    tokens = [received.headers["x-amz-security-token"] for received in server.requests]
    assert tokens == ["token-1", "token-2", "token-2", "token-3"]
    assert ours.pace.sleeps == []


def test_a_wrong_clock_is_corrected_by_the_services_date(colour: Colour) -> None:
    theirs = datetime.now(UTC) + timedelta(hours=3)
    step = make_error_reply(
        "RequestTimeTooSkewed", 403, headers={"Date": format_datetime(theirs, usegmt=True)}
    )
    with bucket(step, make_reply(), make_reply()) as server, client(colour, server) as ours:

        async def flow() -> None:
            await ours.send(PUT)
            await ours.send(PUT)

        ours.finish(flow)
    stamps = [
        datetime.strptime(received.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        for received in server.requests
    ]
    assert all(abs(stamp - theirs) < timedelta(minutes=1) for stamp in stamps[1:])
    assert theirs - stamps[0] > timedelta(hours=2)


def test_a_clock_that_cannot_be_corrected_is_an_error_with_a_hint(colour: Colour) -> None:
    for date in ("yesterday", None):
        step = make_error_reply("RequestTimeTooSkewed", 403, headers={"Date": date})
        error = refusal(colour, PUT, step, step)
        assert isinstance(error, AccessDeniedError)
        assert error.hint == "correct this machine's clock"


@pytest.mark.parametrize("status", [400, 403])
def test_a_refused_head_is_followed_by_a_get_to_learn_the_reason(colour: Colour, status: int) -> None:
    steps = [
        make_reply(status),
        make_error_reply("ExpiredToken", status),
        make_object_reply(headers={"Content-Length": 5}),
    ]
    with bucket(*steps) as server, client(colour, server, source=Renewable()) as ours:
        assert ours.ask(HEAD).size == 5
    assert [line_of(received)[0] for received in server.requests] == ["HEAD", "GET", "HEAD"]
    assert server.requests[1].headers["range"] == "bytes=0-0"
    assert server.requests[2].headers["x-amz-security-token"] == "token-2"


def test_a_refused_head_without_an_explanation_is_access_denied(colour: Colour) -> None:
    error = refusal(colour, HEAD, make_reply(403), make_object_reply(b"x", status=206))
    assert isinstance(error, AccessDeniedError)


# --- regions ---


def region_of(received: Any) -> str:
    scope: str = received.headers["authorization"].partition("Credential=")[2]
    return scope.split("/")[2]


@pytest.mark.parametrize(
    "step",
    [
        make_error_reply(
            "PermanentRedirect", 301, headers={"x-amz-bucket-region": "eu-west-1"}, Endpoint="evil.example"
        ),
        make_error_reply("AuthorizationHeaderMalformed", 400, Region="eu-west-1"),
        make_error_reply(
            "TemporaryRedirect", 307, headers={"x-amz-bucket-region": "eu-west-1", "Location": "http://evil/"}
        ),
        make_error_reply(
            "IllegalLocationConstraintException", 400, headers={"x-amz-bucket-region": "eu-west-1"}
        ),
        make_reply(301, {"x-amz-bucket-region": "eu-west-1"}),
    ],
    ids=["301", "400", "307", "opt-in", "without a document"],
)
def test_requests_to_a_bucket_in_another_region_are_signed_for_that_region_from_then_on(
    colour: Colour, step: Step
) -> None:
    with bucket(step, make_reply(), make_reply()) as server, client(colour, server) as ours:

        async def flow() -> None:
            await ours.send(PUT)
            await ours.send(PUT)

        ours.finish(flow)
    assert [region_of(received) for received in server.requests] == ["us-east-1", "eu-west-1", "eu-west-1"]
    assert [received.headers["host"] for received in server.requests] == [
        server.url.removeprefix("http://")
    ] * 3
    assert ours.pace.sleeps == []


def test_concurrent_calls_to_a_bucket_in_another_region_are_both_corrected(colour: Colour) -> None:
    redirect = make_error_reply("PermanentRedirect", 301, headers={"x-amz-bucket-region": "eu-west-1"}).parts[
        0
    ]
    both_sent, sent_again = threading.Event(), threading.Event()
    early: list[ReceivedRequest] = []

    def answer(received: ReceivedRequest) -> Step:
        if region_of(received) == "eu-west-1":
            sent_again.set()
            return make_reply()
        early.append(received)
        if len(early) == 1:
            return Step((both_sent, redirect))
        both_sent.set()
        return Step((sent_again, redirect))

    with bucket(answer=answer) as server, client(colour, server) as ours:
        if colour == "blocking":
            with ThreadPoolExecutor(2) as threads:
                replies = list(threads.map(ours.ask, [PUT, PUT]))
        else:

            async def flow() -> list[ObjectInfo]:
                return list(await asyncio.gather(ours.send(PUT), ours.send(PUT)))

            replies = ours.finish(flow)
    assert [reply.etag for reply in replies] == [ETAG, ETAG]
    assert [region_of(received) for received in server.requests] == ["us-east-1"] * 2 + ["eu-west-1"] * 2


def test_a_head_of_a_bucket_in_another_region_is_corrected_too(colour: Colour) -> None:
    steps = [
        make_reply(400),
        make_error_reply("AuthorizationHeaderMalformed", 400, Region="eu-west-1"),
        make_object_reply(headers={"Content-Length": 5}),
    ]
    with bucket(*steps) as server, client(colour, server) as ours:
        assert ours.ask(HEAD).size == 5
    assert [region_of(received) for received in server.requests] == ["us-east-1", "us-east-1", "eu-west-1"]


@pytest.mark.parametrize("region", ["us-east-1", "a b", "x" * 80])
def test_a_redirect_to_a_useless_region_is_an_error_with_a_hint(colour: Colour, region: str) -> None:
    error = refusal(
        colour, PUT, make_error_reply("PermanentRedirect", 301, headers={"x-amz-bucket-region": region})
    )
    assert isinstance(error, ConfigurationError)
    assert error.hint == "set region to the bucket's region"


def test_redirects_between_two_regions_are_not_followed_forever(colour: Colour) -> None:
    steps = [
        make_error_reply("PermanentRedirect", 301, headers={"x-amz-bucket-region": region})
        for region in ("eu-west-1", "us-east-1")
    ]
    assert isinstance(refusal(colour, PUT, *steps), ConfigurationError)


def test_a_temporary_redirect_without_a_region_is_repeated_after_a_pause(colour: Colour) -> None:
    with (
        bucket(make_error_reply("TemporaryRedirect", 307), make_reply()) as server,
        client(colour, server) as ours,
    ):
        ours.ask(PUT)
    assert ours.pace.sleeps == [0.05]


@pytest.fixture
def resolved_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Resolve the hosts of AWS to this machine; return the list of resolved names."""
    resolved: list[str] = []
    real = socket.getaddrinfo

    def local(host: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name != "127.0.0.1":
            resolved.append(name)
        assert name.endswith((".amazonaws.com", "127.0.0.1")), f"{name} must not be resolved"
        return real("127.0.0.1", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    return resolved


def test_on_aws_a_redirect_leads_to_the_host_of_the_region_only(
    colour: Colour, resolved_names: list[str]
) -> None:
    step = make_error_reply("PermanentRedirect", 301, Endpoint=f"{BUCKET}.s3-eu-west-1.amazonaws.com")
    with (
        bucket(step, make_reply()) as server,
        client(colour, server, host="s3.us-east-1.amazonaws.com") as ours,
    ):
        ours.ask(PUT)
    first, second = server.requests
    assert first.headers["host"] == f"{BUCKET}.s3.us-east-1.amazonaws.com:{server.port}"
    assert second.headers["host"] == f"{BUCKET}.s3.eu-west-1.amazonaws.com:{server.port}"
    assert [region_of(received) for received in server.requests] == ["us-east-1", "eu-west-1"]
    assert set(resolved_names) == {f"{BUCKET}.s3.eu-west-1.amazonaws.com"}


def test_on_aws_a_redirect_to_a_foreign_host_is_not_followed(
    colour: Colour, resolved_names: list[str]
) -> None:
    step = make_error_reply(
        "PermanentRedirect", 301, headers={"Location": "https://evil.example/"}, Endpoint="evil.example"
    )
    error = refusal(colour, PUT, step, host="s3.us-east-1.amazonaws.com")
    assert isinstance(error, ConfigurationError)
    assert resolved_names == []


# --- buckets ---


def test_bucket_exists_reports_whether_the_bucket_exists(colour: Colour) -> None:
    for step, exists in ((EMPTY_LIST, True), (make_error_reply("NoSuchBucket", 404), False)):
        with bucket(step) as server, client(colour, server) as ours:
            assert ours.ask(BucketExists()) is exists
    denied = make_error_reply("AccessDenied", 403)
    assert isinstance(refusal(colour, BucketExists(), denied), AccessDeniedError)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer", [EMPTY_LIST, make_error_reply("AccessDenied", 403)], ids=["exists", "not listable"]
)
def test_the_first_head_of_a_missing_object_checks_that_the_bucket_exists(
    colour: Colour, answer: Step
) -> None:
    with bucket(make_reply(404), answer, make_reply(404)) as server, client(colour, server) as ours:
        for _ in range(2):
            with pytest.raises(ObjectNotFoundError):
                ours.ask(HEAD)
    assert [line_of(each)[0] for each in server.requests] == ["HEAD", "GET", "HEAD"]


def test_the_error_of_a_head_in_a_missing_bucket_names_the_bucket(colour: Colour) -> None:
    error = refusal(colour, HEAD, make_reply(404), make_error_reply("NoSuchBucket", 404))
    assert isinstance(error, ConfigurationError)
    assert f"there is no bucket {BUCKET} at http://" in str(error)


def test_a_bucket_is_created_in_its_region(colour: Colour) -> None:
    with bucket(make_reply()) as server, client(colour, server) as ours:
        ours.ask(CreateBucket())
    assert (line_of(server.requests[0]), server.requests[0].body) == (("PUT", f"/{BUCKET}"), b"")
    with bucket(make_reply()) as server, client(colour, server, region="eu-west-1") as ours:
        ours.ask(CreateBucket())
    assert b"<LocationConstraint>eu-west-1</LocationConstraint>" in server.requests[0].body


def test_creating_our_own_existing_bucket_succeeds_and_another_accounts_is_an_error(colour: Colour) -> None:
    with bucket(make_error_reply("BucketAlreadyOwnedByYou", 409)) as server, client(colour, server) as ours:
        assert ours.ask(CreateBucket()) == Done()
    step = make_error_reply("BucketAlreadyExists", 409)
    error = refusal(colour, CreateBucket(), step)  # type: ignore[arg-type]
    assert isinstance(error, ConfigurationError)
    constraint = make_error_reply(
        "IllegalLocationConstraintException", 400, headers={"x-amz-bucket-region": "eu-west-1"}
    )
    assert isinstance(refusal(colour, CreateBucket(), constraint), ServiceError)  # type: ignore[arg-type]


# --- reading ---

BEYOND = make_error_reply("InvalidRange", 416)


@pytest.mark.parametrize("step", [BEYOND, make_reply(416)], ids=["with a document", "status only"])
def test_a_read_beyond_the_end_returns_no_bytes_and_the_objects_headers(colour: Colour, step: Step) -> None:
    head = make_object_reply(headers={"Content-Length": 5, "Content-Type": "text/plain"})
    with bucket(step, head) as server, client(colour, server) as ours:
        nothing = ours.ask(GetObject("", "a", 5, 3, ETAG))
    assert (nothing.start, nothing.body, nothing.info.size) == (5, b"", 5)
    assert nothing.info.headers.content_type == "text/plain"
    assert server.requests[1].headers["if-match"] == f'"{ETAG}"'


def test_a_read_beyond_the_end_of_an_object_that_has_grown_is_repeated(colour: Colour) -> None:
    head = make_object_reply(headers={"Content-Length": 9})
    rest = make_object_reply(b"5678", {"Content-Range": "bytes 5-8/9"}, 206)
    with bucket(BEYOND, head, rest) as server, client(colour, server) as ours:
        assert ours.ask(GetObject("", "a", 5)).body == b"5678"
    with (
        bucket(*[BEYOND, head] * 3) as server,
        client(colour, server) as ours,
        pytest.raises(InvalidRequestError),
    ):
        ours.ask(GetObject("", "a", 5))


def test_a_read_of_a_changed_object_is_a_failed_precondition(colour: Colour) -> None:
    assert isinstance(
        refusal(colour, GetObject("", "a", 5, 3, ETAG), BEYOND, make_reply(412)), PreconditionFailedError
    )
    other = make_object_reply(b"words", {"ETag": '"another"'})
    error = refusal(colour, GetObject("", "a", if_match=ETAG), other)
    assert isinstance(error, PreconditionFailedError)
    assert "another" in str(error)


def test_all_pages_of_uploads_are_listed(colour: Colour) -> None:
    def page(number: int, more: bool) -> Step:
        return make_document_reply(
            f"<R><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"<NextKeyMarker>a%20{number}</NextKeyMarker><NextUploadIdMarker>u{number}</NextUploadIdMarker>"
            f"<Upload><Key>a%20{number}</Key><UploadId>u{number}</UploadId></Upload></R>"
        )

    with bucket(page(1, True), page(2, True), page(3, False)) as server, client(colour, server) as ours:
        assert ours.ask(ListUploads("", "a")) == tuple(
            Upload(f"a {number}", f"u{number}") for number in (1, 2, 3)
        )
    marks = [
        (query_of(received).get("key-marker"), query_of(received).get("upload-id-marker"))
        for received in server.requests
    ]
    assert marks == [(None, None), ("a 1", "u1"), ("a 2", "u2")]
    with bucket(make_error_reply("NoSuchUpload", 404)) as server, client(colour, server) as ours:
        assert ours.ask(ListUploads("", "a")) == ()
    with bucket(page(1, True), page(1, True)) as server, client(colour, server) as ours:
        assert ours.ask(ListUploads("", "a")) == (Upload("a 1", "u1"),)

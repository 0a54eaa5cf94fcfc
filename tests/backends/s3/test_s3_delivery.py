"""What S3 answers instead of a result: named, waited for, put right, or sent again."""

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
    denies,
    line_of,
    make_object_reply,
    make_reply,
    query_of,
    tells,
)
from scripted_server import CLOSE, RESET, Asked, Step, http
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
EMPTY_LIST = tells("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def refusal(colour: Colour, request: ObjectRequest[Any], *steps: Step, **options: Any) -> HoldallError:
    """The error that a request ends with."""
    with (
        bucket(*steps) as server,
        client(colour, server, **options) as ours,
        pytest.raises(HoldallError) as raised,
    ):
        ours.ask(request)
    return raised.value


# --- plain noes ---


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
def test_a_plain_no_surfaces_at_once_by_its_name(
    colour: Colour, code: str, status: int, kind: type[HoldallError]
) -> None:
    error = refusal(colour, PUT, denies(code, status))
    assert type(error) is kind
    assert (error.service_code, error.request_id) == (code, "REQUEST-1")
    assert "a/b" in str(error) or kind is ConfigurationError


def test_a_missing_bucket_says_what_to_do(colour: Colour) -> None:
    error = refusal(colour, GET, denies("NoSuchBucket", 404))
    assert error.hint is not None
    assert "create the bucket" in error.hint


@pytest.mark.parametrize(
    ("code", "message", "words"),
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
def test_a_refusal_because_of_the_key_that_encrypts_objects_says_so(
    colour: Colour, code: str, message: str, words: str
) -> None:
    error = refusal(colour, PUT, denies(code, 403, Message=message))
    assert error.hint is not None
    assert error.hint.startswith(words)


def test_a_refusal_in_chunks_is_read(colour: Colour) -> None:
    document = b"<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>"
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in document) + b"0\r\n\r\n"
    step = Step((http(404, {"Transfer-Encoding": "chunked"}, chunks),))
    assert isinstance(refusal(colour, GET, step), ObjectNotFoundError)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, AccessDeniedError), (404, ObjectNotFoundError), (412, PreconditionFailedError)],
)
def test_the_answer_to_a_head_is_known_by_its_status(
    colour: Colour, status: int, kind: type[HoldallError]
) -> None:
    then = {403: [denies("AccessDenied", 403)], 404: [EMPTY_LIST]}
    steps = [make_reply(status), *then.get(status, ())]
    error = refusal(colour, HEAD, *steps)
    assert type(error) is kind
    assert "a/b" in str(error)


@pytest.mark.parametrize("status", [400, 403, 404, 418])
def test_somebody_else_at_the_endpoint_is_not_taken_for_s3(colour: Colour, status: int) -> None:
    page = make_reply(status, {"Content-Type": "text/html"}, b"<!DOCTYPE html><html>Not here</html>")
    error = refusal(colour, GET, page)
    assert isinstance(error, MalformedReplyError)
    assert error.hint is not None
    assert "a server other than S3" in error.hint


def test_no_secret_is_repeated_from_a_refusal(colour: Colour) -> None:
    secret = KEYS["AWS_SECRET_ACCESS_KEY"]
    error = refusal(colour, GET, denies("SignatureDoesNotMatch", 403, Message=f"with {secret}"))
    assert secret not in str(error)


def test_a_request_of_another_kind_is_refused(colour: Colour) -> None:
    request: Any = GetItem("things", {"pk": {"S": "a"}})
    assert isinstance(refusal(colour, request), InvalidRequestError)


def test_deleting_and_giving_up_what_is_gone_is_fine(colour: Colour) -> None:
    with (
        bucket(make_reply(204), denies("NoSuchUpload", 404)) as server,
        client(colour, server) as ours,
    ):

        async def flow() -> list[Done]:
            return [await ours.send(DeleteObject("", "a")), await ours.send(AbortUpload("", UPLOAD))]

        assert ours.finish(flow) == [Done(), Done()]


# --- a 200 that is none ---


@pytest.mark.parametrize(
    "request_",
    [COMPLETE, BeginUpload("", "a/b"), ListObjects(""), ListParts("", UPLOAD)],
    ids=lambda request: type(request).__name__,
)
def test_a_failure_under_a_good_status_is_a_failure(colour: Colour, request_: ObjectRequest[Any]) -> None:
    error = refusal(colour, request_, denies("AccessDenied", 200))
    assert isinstance(error, AccessDeniedError)


def test_a_copy_that_fails_on_the_way_is_tried_again(colour: Colour) -> None:
    copied = tells(
        f"<CopyObjectResult><ETag>&quot;{ETAG}&quot;</ETag>"
        "<LastModified>2025-11-15T05:40:00.000Z</LastModified></CopyObjectResult>"
    )
    with (
        bucket(make_object_reply(b"words"), denies("InternalError", 200), copied) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(CopyObject("", "source", "copy")).etag == ETAG
    assert len(ours.pace.sleeps) == 1


@pytest.mark.parametrize("document", ["", "{}", "<a>", "<!DOCTYPE a><a/>", "<ListBucketResult>"])
def test_a_document_that_is_none_is_asked_for_again_and_then_named(colour: Colour, document: str) -> None:
    twice = Limits(max_attempts=2)
    error = refusal(colour, ListObjects(""), tells(document), tells(document), limits=twice)
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
def test_a_document_of_another_shape_is_named_as_no_reply(
    colour: Colour, request_: ObjectRequest[Any], document: str
) -> None:
    assert isinstance(refusal(colour, request_, tells(document)), MalformedReplyError)


def test_spaces_that_keep_a_slow_reply_alive_are_no_harm(colour: Colour) -> None:
    document = f"  \n <CompleteMultipartUploadResult><ETag>&quot;{ETAG}-1&quot;</ETag></CompleteMultipartUploadResult>"
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, byte.encode()) for byte in document) + b"0\r\n\r\n"
    step = Step((http(200, {"Transfer-Encoding": "chunked"}, chunks),))
    head = make_object_reply(headers={"ETag": f'"{ETAG}-1"', "Content-Length": 5})
    with bucket(step, head) as server, client(colour, server) as ours:
        assert ours.ask(COMPLETE).etag == f"{ETAG}-1"


# --- sent again ---


@pytest.mark.parametrize(
    "step",
    [
        denies("SlowDown", 503),
        denies("InternalError", 500),
        denies("ServiceUnavailable", 503),
        denies("RequestTimeout", 400),
        denies("IncompleteBody", 400),
        denies("OperationAborted", 409),
        denies("TooManyRequests", 429),
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
def test_what_may_pass_is_sent_again_just_so(
    colour: Colour, request_: ObjectRequest[Any], step: Step
) -> None:
    with bucket(step, step, make_reply()) as server, client(colour, server) as ours:
        ours.ask(request_)
    assert len({(line_of(asked), asked.body) for asked in server.requests}) == 1
    assert ours.pace.sleeps == [0.05, 0.1]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (denies("SlowDown", 503), ThrottledError),
        (denies("InternalError", 500), ServiceUnavailableError),
        (denies("OperationAborted", 409), ConflictError),
        (CLOSE, ServiceUnavailableError),
    ],
    ids=["SlowDown", "InternalError", "OperationAborted", "close"],
)
def test_after_a_while_it_is_given_up_with_the_last_answer(
    colour: Colour, step: Step, kind: type[HoldallError]
) -> None:
    error = refusal(colour, PUT, *[step] * LIMITS.max_attempts)
    assert type(error) is kind
    assert error.retryable


def test_time_is_a_limit_too(colour: Colour) -> None:
    slow = denies("SlowDown", 503)
    hasty = Limits(total_timeout=10.0)
    with bucket(slow, slow, slow) as server, client(colour, server, limits=hasty) as ours:
        ours.pace.lasting = 4.0
        with pytest.raises(ThrottledError):
            ours.ask(PUT)


def test_an_endpoint_that_cannot_be_reached_is_named(colour: Colour) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with client(colour, url) as ours, pytest.raises(EndpointError) as raised:
            ours.ask(PUT)
    assert url in str(raised.value)


def test_what_fails_in_passing_among_many_is_deleted_again(colour: Colour) -> None:
    def refuse_keys(*keys: str, code: str = "InternalError") -> Step:
        errors = "".join(
            f"<Error><Key>{key}</Key><Code>{code}</Code><Message>why</Message></Error>" for key in keys
        )
        return tells(f"<DeleteResult>{errors}</DeleteResult>")

    with (
        bucket(refuse_keys("a", "b"), refuse_keys("b"), refuse_keys()) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(DeleteObjects("", ("a", "b", "c"))).failures == {}
    assert [asked.body.count(b"<Key>") for asked in server.requests] == [3, 2, 1]
    with bucket(refuse_keys("a", code="AccessDenied")) as server, client(colour, server) as ours:
        assert ours.ask(DeleteObjects("", ("a", "b"))).failures == {"a": "why"}
    with bucket(*[refuse_keys("a")] * 4) as server, client(colour, server) as ours:
        assert ours.ask(DeleteObjects("", ("a", "b"))).failures == {"a": "why"}


@pytest.mark.parametrize(
    "step",
    [denies("NotImplemented", 501), denies("MethodNotAllowed", 405), make_reply(501)],
    ids=["501", "405", "bare 501"],
)
def test_a_server_that_cannot_delete_many_deletes_one_by_one(colour: Colour, step: Step) -> None:
    with (
        bucket(step, make_reply(204), denies("AccessDenied", 403)) as server,
        client(colour, server) as ours,
    ):
        failures = ours.ask(DeleteObjects("", ("a", "b"))).failures
    assert list(failures) == ["b"]
    assert [line_of(asked) for asked in server.requests[1:]] == [
        ("DELETE", f"/{BUCKET}/a"),
        ("DELETE", f"/{BUCKET}/b"),
    ]


def test_a_failed_deletion_of_many_is_a_failure(colour: Colour) -> None:
    assert isinstance(
        refusal(colour, DeleteObjects("", ("a",)), denies("AccessDenied", 403)), AccessDeniedError
    )


# --- put right ---


class Renewable:
    """Credentials that the service may reject."""

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
        bucket(denies(code), make_reply(), denies(code), denies(code)) as server,
        client(colour, server, source=Renewable()) as ours,
    ):

        async def flow() -> None:
            await ours.send(PUT)
            with pytest.raises(AccessDeniedError, match=code):
                await ours.send(PUT)

        ours.finish(flow)
    tokens = [asked.headers["x-amz-security-token"] for asked in server.requests]
    assert tokens == ["token-1", "token-2", "token-2", "token-3"]
    assert ours.pace.sleeps == []


def test_a_clock_that_is_wrong_is_set_by_the_services(colour: Colour) -> None:
    theirs = datetime.now(UTC) + timedelta(hours=3)
    step = denies("RequestTimeTooSkewed", 403, headers={"Date": format_datetime(theirs, usegmt=True)})
    with bucket(step, make_reply(), make_reply()) as server, client(colour, server) as ours:

        async def flow() -> None:
            await ours.send(PUT)
            await ours.send(PUT)

        ours.finish(flow)
    stamps = [
        datetime.strptime(asked.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        for asked in server.requests
    ]
    assert all(abs(stamp - theirs) < timedelta(minutes=1) for stamp in stamps[1:])
    assert theirs - stamps[0] > timedelta(hours=2)


def test_a_clock_that_cannot_be_set_is_named(colour: Colour) -> None:
    for date in ("yesterday", None):
        step = denies("RequestTimeTooSkewed", 403, headers={"Date": date})
        error = refusal(colour, PUT, step, step)
        assert isinstance(error, AccessDeniedError)
        assert error.hint == "correct this machine's clock"


@pytest.mark.parametrize("status", [400, 403])
def test_a_head_that_was_refused_is_asked_otherwise_for_the_reason(colour: Colour, status: int) -> None:
    steps = [
        make_reply(status),
        denies("ExpiredToken", status),
        make_object_reply(headers={"Content-Length": 5}),
    ]
    with bucket(*steps) as server, client(colour, server, source=Renewable()) as ours:
        assert ours.ask(HEAD).size == 5
    assert [line_of(asked)[0] for asked in server.requests] == ["HEAD", "GET", "HEAD"]
    assert server.requests[1].headers["range"] == "bytes=0-0"
    assert server.requests[2].headers["x-amz-security-token"] == "token-2"


def test_a_head_that_nobody_can_explain_is_refused_as_it_was(colour: Colour) -> None:
    error = refusal(colour, HEAD, make_reply(403), make_object_reply(b"x", status=206))
    assert isinstance(error, AccessDeniedError)


# --- the wrong region ---


def region_of(asked: Any) -> str:
    scope: str = asked.headers["authorization"].partition("Credential=")[2]
    return scope.split("/")[2]


@pytest.mark.parametrize(
    "step",
    [
        denies(
            "PermanentRedirect", 301, headers={"x-amz-bucket-region": "eu-west-1"}, Endpoint="evil.example"
        ),
        denies("AuthorizationHeaderMalformed", 400, Region="eu-west-1"),
        denies(
            "TemporaryRedirect", 307, headers={"x-amz-bucket-region": "eu-west-1", "Location": "http://evil/"}
        ),
        denies("IllegalLocationConstraintException", 400, headers={"x-amz-bucket-region": "eu-west-1"}),
        make_reply(301, {"x-amz-bucket-region": "eu-west-1"}),
    ],
    ids=["301", "400", "307", "opt-in", "without a document"],
)
def test_a_bucket_in_another_region_is_signed_for_there_and_that_is_remembered(
    colour: Colour, step: Step
) -> None:
    with bucket(step, make_reply(), make_reply()) as server, client(colour, server) as ours:

        async def flow() -> None:
            await ours.send(PUT)
            await ours.send(PUT)

        ours.finish(flow)
    assert [region_of(asked) for asked in server.requests] == ["us-east-1", "eu-west-1", "eu-west-1"]
    assert [asked.headers["host"] for asked in server.requests] == [server.url.removeprefix("http://")] * 3
    assert ours.pace.sleeps == []


def test_a_call_that_was_under_way_when_another_found_the_region_is_put_right_too(colour: Colour) -> None:
    redirect = denies("PermanentRedirect", 301, headers={"x-amz-bucket-region": "eu-west-1"}).parts[0]
    both_sent, asked_anew = threading.Event(), threading.Event()
    early: list[Asked] = []

    def answer(asked: Asked) -> Step:
        if region_of(asked) == "eu-west-1":
            asked_anew.set()
            return make_reply()
        early.append(asked)
        if len(early) == 1:
            return Step((both_sent, redirect))
        both_sent.set()
        return Step((asked_anew, redirect))

    with bucket(answer=answer) as server, client(colour, server) as ours:
        if colour == "blocking":
            with ThreadPoolExecutor(2) as threads:
                replies = list(threads.map(ours.ask, [PUT, PUT]))
        else:

            async def flow() -> list[ObjectInfo]:
                return list(await asyncio.gather(ours.send(PUT), ours.send(PUT)))

            replies = ours.finish(flow)
    assert [reply.etag for reply in replies] == [ETAG, ETAG]
    assert [region_of(asked) for asked in server.requests] == ["us-east-1"] * 2 + ["eu-west-1"] * 2


def test_a_head_for_another_region_is_put_right_too(colour: Colour) -> None:
    steps = [
        make_reply(400),
        denies("AuthorizationHeaderMalformed", 400, Region="eu-west-1"),
        make_object_reply(headers={"Content-Length": 5}),
    ]
    with bucket(*steps) as server, client(colour, server) as ours:
        assert ours.ask(HEAD).size == 5
    assert [region_of(asked) for asked in server.requests] == ["us-east-1", "us-east-1", "eu-west-1"]


@pytest.mark.parametrize("region", ["us-east-1", "a b", "x" * 80])
def test_a_region_that_helps_nothing_is_named(colour: Colour, region: str) -> None:
    error = refusal(colour, PUT, denies("PermanentRedirect", 301, headers={"x-amz-bucket-region": region}))
    assert isinstance(error, ConfigurationError)
    assert error.hint == "set region to the bucket's region"


def test_two_regions_in_turn_are_not_followed_forever(colour: Colour) -> None:
    steps = [
        denies("PermanentRedirect", 301, headers={"x-amz-bucket-region": region})
        for region in ("eu-west-1", "us-east-1")
    ]
    assert isinstance(refusal(colour, PUT, *steps), ConfigurationError)


def test_a_bucket_that_is_being_moved_is_waited_for(colour: Colour) -> None:
    with bucket(denies("TemporaryRedirect", 307), make_reply()) as server, client(colour, server) as ours:
        ours.ask(PUT)
    assert ours.pace.sleeps == [0.05]


@pytest.fixture
def amazon_is_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every host of AWS is this machine; the names that were asked for are kept."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def local(host: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name != "127.0.0.1":
            asked.append(name)
        assert name.endswith((".amazonaws.com", "127.0.0.1")), f"{name} must not be asked for"
        return real("127.0.0.1", *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    return asked


def test_of_amazons_the_host_of_the_region_is_asked_and_no_other(
    colour: Colour, amazon_is_here: list[str]
) -> None:
    step = denies("PermanentRedirect", 301, Endpoint=f"{BUCKET}.s3-eu-west-1.amazonaws.com")
    with (
        bucket(step, make_reply()) as server,
        client(colour, server, host="s3.us-east-1.amazonaws.com") as ours,
    ):
        ours.ask(PUT)
    first, second = server.requests
    assert first.headers["host"] == f"{BUCKET}.s3.us-east-1.amazonaws.com:{server.port}"
    assert second.headers["host"] == f"{BUCKET}.s3.eu-west-1.amazonaws.com:{server.port}"
    assert [region_of(asked) for asked in server.requests] == ["us-east-1", "eu-west-1"]
    assert set(amazon_is_here) == {f"{BUCKET}.s3.eu-west-1.amazonaws.com"}


def test_of_amazons_no_foreign_host_is_followed(colour: Colour, amazon_is_here: list[str]) -> None:
    step = denies(
        "PermanentRedirect", 301, headers={"Location": "https://evil.example/"}, Endpoint="evil.example"
    )
    error = refusal(colour, PUT, step, host="s3.us-east-1.amazonaws.com")
    assert isinstance(error, ConfigurationError)
    assert amazon_is_here == []


# --- the bucket itself ---


def test_a_bucket_is_there_or_not(colour: Colour) -> None:
    for step, there in ((EMPTY_LIST, True), (denies("NoSuchBucket", 404), False)):
        with bucket(step) as server, client(colour, server) as ours:
            assert ours.ask(BucketExists()) is there
    assert isinstance(refusal(colour, BucketExists(), denies("AccessDenied", 403)), AccessDeniedError)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer", [EMPTY_LIST, denies("AccessDenied", 403)], ids=["there", "not to be listed"]
)
def test_a_head_that_finds_nothing_asks_once_whether_there_is_a_bucket(colour: Colour, answer: Step) -> None:
    with bucket(make_reply(404), answer, make_reply(404)) as server, client(colour, server) as ours:
        for _ in range(2):
            with pytest.raises(ObjectNotFoundError):
                ours.ask(HEAD)
    assert [line_of(each)[0] for each in server.requests] == ["HEAD", "GET", "HEAD"]


def test_a_head_in_a_missing_bucket_names_it(colour: Colour) -> None:
    error = refusal(colour, HEAD, make_reply(404), denies("NoSuchBucket", 404))
    assert isinstance(error, ConfigurationError)
    assert f"there is no bucket {BUCKET} at http://" in str(error)


def test_a_bucket_is_made_in_its_region(colour: Colour) -> None:
    with bucket(make_reply()) as server, client(colour, server) as ours:
        ours.ask(CreateBucket())
    assert (line_of(server.requests[0]), server.requests[0].body) == (("PUT", f"/{BUCKET}"), b"")
    with bucket(make_reply()) as server, client(colour, server, region="eu-west-1") as ours:
        ours.ask(CreateBucket())
    assert b"<LocationConstraint>eu-west-1</LocationConstraint>" in server.requests[0].body


def test_a_bucket_of_ours_that_is_there_is_fine_and_one_of_somebody_elses_is_not(colour: Colour) -> None:
    with bucket(denies("BucketAlreadyOwnedByYou", 409)) as server, client(colour, server) as ours:
        assert ours.ask(CreateBucket()) == Done()
    step = denies("BucketAlreadyExists", 409)
    error = refusal(colour, CreateBucket(), step)  # type: ignore[arg-type]
    assert isinstance(error, ConfigurationError)
    constraint = denies(
        "IllegalLocationConstraintException", 400, headers={"x-amz-bucket-region": "eu-west-1"}
    )
    assert isinstance(refusal(colour, CreateBucket(), constraint), ServiceError)  # type: ignore[arg-type]


# --- reading ---

BEYOND = denies("InvalidRange", 416)


@pytest.mark.parametrize("step", [BEYOND, make_reply(416)], ids=["told", "by its status"])
def test_reading_beyond_the_end_gives_nothing_but_what_the_object_is(colour: Colour, step: Step) -> None:
    head = make_object_reply(headers={"Content-Length": 5, "Content-Type": "text/plain"})
    with bucket(step, head) as server, client(colour, server) as ours:
        nothing = ours.ask(GetObject("", "a", 5, 3, ETAG))
    assert (nothing.start, nothing.body, nothing.info.size) == (5, b"", 5)
    assert nothing.info.headers.content_type == "text/plain"
    assert server.requests[1].headers["if-match"] == f'"{ETAG}"'


def test_an_object_that_has_grown_meanwhile_is_read_again(colour: Colour) -> None:
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


def test_an_object_that_changed_is_not_read(colour: Colour) -> None:
    assert isinstance(
        refusal(colour, GetObject("", "a", 5, 3, ETAG), BEYOND, make_reply(412)), PreconditionFailedError
    )
    other = make_object_reply(b"words", {"ETag": '"another"'})
    error = refusal(colour, GetObject("", "a", if_match=ETAG), other)
    assert isinstance(error, PreconditionFailedError)
    assert "another" in str(error)


def test_uploads_are_listed_page_by_page(colour: Colour) -> None:
    def page(number: int, more: bool) -> Step:
        return tells(
            f"<R><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"<NextKeyMarker>a%20{number}</NextKeyMarker><NextUploadIdMarker>u{number}</NextUploadIdMarker>"
            f"<Upload><Key>a%20{number}</Key><UploadId>u{number}</UploadId></Upload></R>"
        )

    with bucket(page(1, True), page(2, True), page(3, False)) as server, client(colour, server) as ours:
        assert ours.ask(ListUploads("", "a")) == tuple(
            Upload(f"a {number}", f"u{number}") for number in (1, 2, 3)
        )
    marks = [
        (query_of(asked).get("key-marker"), query_of(asked).get("upload-id-marker"))
        for asked in server.requests
    ]
    assert marks == [(None, None), ("a 1", "u1"), ("a 2", "u2")]
    with bucket(denies("NoSuchUpload", 404)) as server, client(colour, server) as ours:
        assert ours.ask(ListUploads("", "a")) == ()
    with bucket(page(1, True), page(1, True)) as server, client(colour, server) as ours:
        assert ours.ask(ListUploads("", "a")) == (Upload("a 1", "u1"),)

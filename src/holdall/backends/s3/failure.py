"""S3's errors as ours, in one place.

Pure. `failed` gives the error to raise and what may be done about it: wait and try again (``throttle``, ``conflict``,
``again``, ``server``), renew the credentials (``expired``), set the clock (``skew``), sign for another region
(``region``), or nothing (``final``). Only after ``server`` is the fate of the request unknown; every other answer says
that nothing was done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from holdall.backends.aws.message import Reply
from holdall.backends.s3.addressing import Place, moved, named_region
from holdall.backends.s3.call import Call
from holdall.backends.s3.documents import Document, NoDocument, read_document
from holdall.core.frozen import dataclass
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    ConflictError,
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

__all__ = ["Failure", "Remedy", "failed", "garbled"]

Remedy: TypeAlias = Literal[
    "unsent", "throttle", "conflict", "again", "server", "expired", "skew", "region", "final"
]


@dataclass(frozen=True, slots=True)
class Failure:
    """What the service answered instead of a result; ``place`` is where the bucket is instead."""

    error: HoldallError
    remedy: Remedy
    place: Place | None = None


def failed(reply: Reply, call: Call, place: Place, secrets: Iterable[str | None] = ()) -> Failure:
    """The failure that a reply stands for; no secret is repeated from it."""
    try:
        said: Document | None = read_document(reply.body) if reply.body else None
    except NoDocument:
        said = None
    if said is not None and said.name != "Error":
        said = None
    code = ((said.get("Code") if said is not None else None) or "").strip()
    message = ((said.get("Message") if said is not None else None) or "").strip()
    for secret in filter(None, secrets):
        message = message.replace(secret, "…")
    if not code and (call.method == "HEAD" or reply.status == 416):
        code = _CODES.get(reply.status, "")
    failure = _elsewhere(reply, code, said, call, place) or _failure(reply.status, code, message, call, place)
    failure.error.service_code = code or str(reply.status)
    failure.error.request_id = reply.headers.get("x-amz-request-id")
    return failure


def garbled(call: Call, why: str) -> Failure:
    """What came back makes no sense."""
    return Failure(MalformedReplyError(f"{_about(call)}: the reply is garbled, {why}"), "server")


def _about(call: Call) -> str:
    return f"{call.operation} {call.name!r}" if call.name is not None else call.operation


def _elsewhere(reply: Reply, code: str, said: Document | None, call: Call, place: Place) -> Failure | None:
    """The failure of a request that came to the wrong region."""
    if not 300 <= reply.status < 400 and code not in _WRONG_REGION:
        return None
    region = reply.headers.get("x-amz-bucket-region") or (said.get("Region") if said is not None else None)
    if region is None and said is not None:
        region = named_region(place, said.get("Endpoint") or "")
    if call.operation == "CreateBucket" or (region is None and code == "AuthorizationHeaderMalformed"):
        return None
    about = f"{_about(call)}: the bucket is in the region {region or 'of another endpoint'}, not in {place.region}"
    there = moved(place, region) if region else None
    if there is None and reply.status == 307:
        return Failure(ServiceUnavailableError(f"{_about(call)}: the bucket is being moved"), "again")
    error = ConfigurationError(about, hint="name the bucket's region")
    return Failure(error, "final" if there is None else "region", there)


def _failure(status: int, code: str, message: str, call: Call, place: Place) -> Failure:
    if code == "NoSuchBucket":
        message = f"there is no bucket {place.bucket} at {place.scheme}://{place.authority}"
    elif code == "NoSuchKey":
        message = f"there is no such object in the bucket {place.bucket}"
    about = f"{_about(call)}: {message or code or status}"
    if code in _THROTTLES or (status == 429 and not code):
        return Failure(ThrottledError(about), "throttle")
    if code in _CONFLICTS:
        final = call.operation == "CompleteMultipartUpload"  # its parts are gone: only a new upload can help
        return Failure(ConflictError(about), "final" if final else "conflict")
    if code in _EXPIRED:
        return Failure(AccessDeniedError(about, hint="the session token has expired: renew it"), "expired")
    if code == "RequestTimeTooSkewed":
        return Failure(AccessDeniedError(about, hint="set this machine's clock"), "skew")
    if code in _AGAIN:
        return Failure(ServiceUnavailableError(about), "again")
    if code == "NotImplemented" or status == 501:
        return Failure(ConfigurationError(about, hint="the server has no such feature"), "final")
    if status >= 500 or code in _SERVER_FAULTS:
        return Failure(ServiceUnavailableError(about), "server")
    if code in _REFUSED or code.startswith("KMS."):
        return Failure(AccessDeniedError(about, hint=_REFUSED.get(code, _CHECK)), "final")
    if code in _FINAL:
        return Failure(_FINAL[code](about), "final")
    if not code:
        strange = MalformedReplyError(about, hint="somebody else answers at this endpoint: check it")
        return Failure(strange, "final")
    return Failure(ServiceError(about), "final")


def _hinted(kind: Callable[..., HoldallError], hint: str) -> Callable[[str], HoldallError]:
    return lambda about: kind(about, hint=hint)


_CHECK = "check the access key, its secret, and what they are allowed to do"

_CODES: Mapping[int, str] = {
    403: "AccessDenied",
    404: "NoSuchKey",
    412: "PreconditionFailed",
    416: "InvalidRange",
}
"""The codes of answers that have no document, as those to a HEAD."""

_WRONG_REGION = {"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"}
_THROTTLES = {
    "BandwidthLimitExceeded",
    "RequestLimitExceeded",
    "SlowDown",
    "SlowDownRead",
    "SlowDownWrite",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
}
_CONFLICTS = {"ConditionalRequestConflict", "OperationAborted"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
_AGAIN = {"IncompleteBody", "RequestTimeout"}
_SERVER_FAULTS = {"InternalError", "InternalServerError", "ServiceUnavailable"}
_REFUSED = {
    "AccessDenied": "check what the credentials are allowed to do; who may not list a bucket hears this of a missing "
    "object too",
    **dict.fromkeys(
        (
            "AccountProblem",
            "AllAccessDisabled",
            "AuthorizationHeaderMalformed",
            "InvalidAccessKeyId",
            "InvalidSecurity",
            "InvalidToken",
            "NotSignedUp",
            "SignatureDoesNotMatch",
            "UnauthorizedAccess",
        ),
        _CHECK,
    ),
}
_FINAL: dict[str, Callable[[str], HoldallError]] = {
    **dict.fromkeys(("NoSuchKey", "NoSuchUpload", "NoSuchVersion"), ObjectNotFoundError),
    "PreconditionFailed": PreconditionFailedError,
    **dict.fromkeys(
        ("BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"),
        IntegrityError,
    ),
    "InvalidRange": InvalidRequestError,
    "KeyTooLongError": InvalidObjectKeyError,
    **dict.fromkeys(
        (
            "EntityTooLarge",
            "EntityTooSmall",
            "InvalidArgument",
            "InvalidPart",
            "InvalidPartOrder",
            "InvalidRequest",
            "InvalidURI",
            "MalformedXML",
            "MetadataTooLarge",
        ),
        InvalidRequestError,
    ),
    "NoSuchBucket": _hinted(
        ConfigurationError,
        "create the bucket, or check its name, region, endpoint and style (path or virtual)",
    ),
    "BucketAlreadyExists": _hinted(
        ConfigurationError, "somebody else has a bucket of that name: take another"
    ),
    "InvalidBucketName": ConfigurationError,
    "InvalidLocationConstraint": ConfigurationError,
    "InvalidStorageClass": ConfigurationError,
    "InvalidEncryptionAlgorithmError": ConfigurationError,
    "AccessControlListNotSupported": _hinted(
        ConfigurationError, "the bucket has no lists of who may do what: leave out acl"
    ),
    "InvalidObjectState": _hinted(ServiceError, "the object is in an archive: restore it first"),
}

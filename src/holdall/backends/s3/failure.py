"""S3's errors as ours, in one place.

Pure. `explain_failure` returns the error to raise, and what the courier may do about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from holdall.backends.aws.courier import Failure
from holdall.backends.aws.message import Reply
from holdall.backends.s3.call import Call
from holdall.backends.s3.document import Document, NoDocument, read_document
from holdall.backends.s3.place import Place, find_region, move_place
from holdall.core.frozen import replace
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


def explain_failure(reply: Reply, call: Call, place: Place, secrets: Iterable[str | None] = ()) -> Failure:
    """The failure for a reply; it repeats none of the secrets."""
    try:
        document: Document | None = read_document(reply.body) if reply.body else None
    except NoDocument:
        document = None
    if document is not None and document.name != "Error":
        document = None
    code = ((document.get("Code") if document is not None else None) or "").strip()
    message = ((document.get("Message") if document is not None else None) or "").strip()
    for secret in filter(None, secrets):
        message = message.replace(secret, "…")
    if not code and (call.method == "HEAD" or reply.status == 416):
        code = _CODES.get(reply.status, "")
    failure = _explain_elsewhere(reply, code, document, call, place) or _classify(
        reply, code, message, call, place
    )
    if reply.status == 417 and not code:
        failure.remedy = "unannounced"
    if call.method == "HEAD" and reply.status in (400, 403):  # the reply has no body with the reason
        failure.probe = replace(call, method="GET", headers={**call.headers, "range": "bytes=0-0"})
    failure.error.service_code = code or str(reply.status)
    failure.error.request_id = reply.headers.get("x-amz-request-id")
    return failure


def explain_garbled(call: Call, why: str) -> Failure:
    """The failure for a reply that makes no sense."""
    return Failure(MalformedReplyError(f"{_about(call)}: the reply is garbled ({why})"), "server")


def _about(call: Call) -> str:
    return f"{call.operation} {call.name!r}" if call.name is not None else call.operation


def _explain_elsewhere(
    reply: Reply, code: str, document: Document | None, call: Call, place: Place
) -> Failure | None:
    """The failure of a request that was sent to the wrong region."""
    if not 300 <= reply.status < 400 and code not in _WRONG_REGION:
        return None
    stated = None if document is None else document.get("Region")
    region = reply.headers.get("x-amz-bucket-region") or stated
    if region is None and document is not None:
        region = find_region(place, document.get("Endpoint") or "")
    if call.operation == "CreateBucket" or (region is None and code == "AuthorizationHeaderMalformed"):
        return None
    about = f"{_about(call)}: the bucket is in the region {region or 'of another endpoint'}, not in {place.region}"
    there = move_place(place, region) if region else None
    if there is None and reply.status == 307:
        return Failure(ServiceUnavailableError(f"{_about(call)}: the bucket is being moved"), "again")
    error = ConfigurationError(about, hint="set region to the bucket's region")
    return Failure(error, "final" if there is None else "region", detail=there)


def _classify(reply: Reply, code: str, message: str, call: Call, place: Place) -> Failure:
    status = reply.status
    if code == "NoSuchBucket":
        message = f"there is no bucket {place.bucket} at {place.scheme}://{place.authority}"
    elif code == "NoSuchKey":
        message = f"there is no such object in the bucket {place.bucket}"
    about = f"{_about(call)}: {message or code or status}"
    if code in _THROTTLES or (status == 429 and not code):
        return Failure(ThrottledError(about), "throttle")
    if code in _CONFLICTS:
        final = call.operation == "CompleteMultipartUpload"  # its parts are gone: only a new upload helps
        return Failure(ConflictError(about), "final" if final else "conflict")
    if code in _EXPIRED:
        return Failure(AccessDeniedError(about, hint="the session token has expired: renew it"), "expired")
    if code == "RequestTimeTooSkewed":
        wrong = AccessDeniedError(about, hint="correct this machine's clock")
        return Failure(wrong, "skew", detail=reply.headers.get("date", ""))
    if code in _AGAIN:
        return Failure(ServiceUnavailableError(about), "again")
    if code == "NotImplemented" or status == 501:
        return Failure(ConfigurationError(about, hint="the server does not support this feature"), "final")
    if status >= 500 or code in _SERVER_FAULTS:
        return Failure(ServiceUnavailableError(about), "server")
    if code in _REFUSED or code.startswith("KMS."):
        return Failure(AccessDeniedError(about, hint=_advise(code, message)), "final")
    if code in _FINAL:
        return Failure(_FINAL[code](about), "final")
    if not code:
        strange = MalformedReplyError(about, hint="check the endpoint: a server other than S3 answered")
        return Failure(strange, "final")
    return Failure(ServiceError(about), "final")


def _advise(code: str, message: str) -> str:
    """The hint for a refusal; if S3 may not use the key that encrypts an object, the hint names the key."""
    denied = re.search(r"\bkms:[A-Za-z]+", message)
    if denied is not None:
        return f"allow {denied[0]} on the KMS key that encrypts the objects of this bucket"
    if code.startswith("KMS."):
        return "check the state and the policy of the KMS key that encrypts the objects of this bucket"
    return _REFUSED[code]


_CHECK = "check the access key, its secret, and the permissions that they have"

_CODES: Mapping[int, str] = {
    403: "AccessDenied",
    404: "NoSuchKey",
    412: "PreconditionFailed",
    416: "InvalidRange",
}
"""The codes of answers without a document, like those to a HEAD."""

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
    "AccessDenied": "check the permissions of the credentials; without permission to list the bucket, S3 reports a "
    "missing object this way, too",
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
    "NoSuchBucket": partial(
        ConfigurationError,
        hint="create the bucket, or check its name, region, endpoint and style (path or virtual)",
    ),
    "BucketAlreadyExists": partial(
        ConfigurationError, hint="another account has a bucket of that name: choose another name"
    ),
    "InvalidBucketName": ConfigurationError,
    "InvalidLocationConstraint": ConfigurationError,
    "InvalidStorageClass": ConfigurationError,
    "InvalidEncryptionAlgorithmError": ConfigurationError,
    "AccessControlListNotSupported": partial(
        ConfigurationError, hint="the bucket does not use access control lists: leave out acl"
    ),
    "InvalidObjectState": partial(
        ServiceError, hint="the object is in an archive storage class: restore it first"
    ),
}

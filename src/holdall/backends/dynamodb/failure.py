"""The service's errors as ours, in one place.

Pure. `explain_failure` returns the error to raise, and what the courier may do about it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from holdall.backends.aws.courier import Failure
from holdall.backends.aws.message import Reply
from holdall.backends.dynamodb.reply import is_item
from holdall.errors import (
    AccessDeniedError,
    CancellationReason,
    ConditionFailedError,
    ConfigurationError,
    ConflictError,
    HoldallError,
    IndexExistsError,
    IndexNotFoundError,
    InvalidExpressionError,
    InvalidRequestError,
    ItemTooLargeError,
    MalformedReplyError,
    ServiceError,
    ServiceUnavailableError,
    TableExistsError,
    TableNotFoundError,
    ThrottledError,
    TokenReusedError,
    TransactionCanceledError,
    TransactionTooLarge,
)


def explain_failure(
    reply: Reply, operation: str, payload: Mapping[str, Any], secrets: Iterable[str | None] = ()
) -> Failure:
    """The failure for a reply with a status other than 200; it repeats none of the secrets.

    After a wrong signature, the message contains, after an empty line, what the service would have signed, including
    the session token.
    """
    body = _body(reply)
    code = str(body.get("__type", "")).rpartition("#")[2]
    message = str(body.get("message") or body.get("Message") or "").partition("\n\n")[0]
    for secret in filter(None, secrets):
        message = message.replace(secret, "…")
    table = payload.get("TableName")
    about = f"{operation}{f' on table {table}' if table else ''}: {message or code or reply.status}"
    failure = _classify(reply, code, message, about, body)
    failure.error.service_code = code or str(reply.status)
    failure.error.request_id = reply.headers.get("x-amzn-requestid")
    return failure


def _body(reply: Reply) -> Mapping[str, Any]:
    try:
        body = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}


def _classify(reply: Reply, code: str, message: str, about: str, body: Mapping[str, Any]) -> Failure:
    status = reply.status
    if code == "ConditionalCheckFailedException":
        error = ConditionFailedError(f"the condition does not hold ({about})", item=_item(body))
        return Failure(error, "final")
    if code == "TransactionCanceledException":
        canceled = TransactionCanceledError(about, reasons=_reasons(body))
        return Failure(canceled, "conflict" if canceled.retryable else "final")
    if code in _THROTTLES or (status == 429 and not code):
        return Failure(ThrottledError(about), "throttle")
    if code in _CONFLICTS:
        return Failure(ConflictError(about), "conflict")
    if code in _EXPIRED:
        return Failure(AccessDeniedError(about, hint="the session token has expired: renew it"), "expired")
    if code in _SKEWED and ("signature" in message.lower() or "time" in message.lower()):
        clock = "Signature expired" in message or "Signature not yet current" in message
        if clock or code == "RequestTimeTooSkewed":
            wrong = AccessDeniedError(about, hint="correct this machine's clock")
            return Failure(wrong, "skew", detail=reply.headers.get("date", ""))
    if status >= 500 or code in _SERVER_FAULTS:
        return Failure(ServiceUnavailableError(about), "server")
    if code in _REFUSED:
        hint = "check the access key, its secret, and the permissions that they have"
        return Failure(AccessDeniedError(about, hint=hint), "final")
    if not code:
        strange = MalformedReplyError(about, hint="check the endpoint: a server other than DynamoDB answered")
        return Failure(strange, "final")
    if code == "ValidationException":
        return Failure(_explain_invalid(message, about), "final")
    return Failure(_FINAL.get(code, ServiceError)(about), "final")


def _reasons(body: Mapping[str, Any]) -> list[CancellationReason]:
    """The reasons; none if they are malformed."""
    reasons = body.get("CancellationReasons")
    if not isinstance(reasons, list) or not all(isinstance(reason, Mapping) for reason in reasons):
        return []
    return [
        CancellationReason(str(reason.get("Code") or "None"), reason.get("Message"), _item(reason))
        for reason in reasons
    ]


def _item(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    item = body.get("Item")
    return item if item and is_item(item) else None


def _explain_invalid(message: str, about: str) -> HoldallError:
    """A ValidationException that our own checks could not foresee, because it depends on stored data."""
    lowered = message.lower()
    if "item size" in lowered:
        return ItemTooLargeError(about, hint="DynamoDB accepts at most 409,600 bytes per item")
    if "4mb" in lowered or "expressionattributevalues exceeds max size" in lowered:
        return TransactionTooLarge(about, hint="split the work into several transactions")
    if "specified index" in lowered:
        return IndexNotFoundError(about, hint="another process may have removed the index")
    if "index" in lowered and ("exist" in lowered or "duplicate" in lowered):
        return IndexExistsError(about)
    return InvalidExpressionError(about)


_THROTTLES = {
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "RequestLimitExceeded",
    "LimitExceededException",
    "SlowDown",
}
_CONFLICTS = {"TransactionConflictException", "TransactionInProgressException"}
_EXPIRED = {"ExpiredTokenException", "ExpiredToken", "RequestExpired"}
_SKEWED = {"InvalidSignatureException", "RequestTimeTooSkewed", "RequestExpired"}
_SERVER_FAULTS = {
    "InternalServerError",
    "InternalFailure",
    "ServiceUnavailable",
    "ServiceUnavailableException",
}
_REFUSED = {
    "AccessDeniedException",
    "IncompleteSignatureException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "MissingAuthenticationToken",
    "NotAuthorized",
    "OptInRequired",
    "UnrecognizedClientException",
    "InvalidClientTokenId",
}
_FINAL: dict[str, Callable[[str], HoldallError]] = {
    "SerializationException": InvalidRequestError,
    "ResourceNotFoundException": partial(
        TableNotFoundError, hint="create the table, or check its name, region and endpoint"
    ),
    "TableNotFoundException": TableNotFoundError,
    "ResourceInUseException": TableExistsError,
    "TableAlreadyExistsException": TableExistsError,
    "IdempotentParameterMismatchException": partial(
        TokenReusedError, hint="use a new token (port.new_id()) for each new transaction"
    ),
    "ItemCollectionSizeLimitExceededException": ItemTooLargeError,
    "UnknownOperationException": partial(
        ConfigurationError, hint="check the endpoint: it does not speak DynamoDB's protocol"
    ),
}

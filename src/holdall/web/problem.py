"""What a client learns about an error: one table for the handlers of every framework and for the middlewares.

Pure. A problem is a reply as RFC 9457 describes it (``application/problem+json``). Its texts are fixed: of the error
itself, a client sees the code and the names of fields, but no data that was read or written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from holdall.errors import (
    AliasNotFoundError,
    ArtifactChangedError,
    ArtifactInUseError,
    ArtifactNotFoundError,
    BodyTooLargeError,
    ConditionFailedError,
    ConflictError,
    ContentionError,
    EndpointError,
    ForeignKeyViolation,
    HoldallError,
    InvalidFieldError,
    InvalidFileError,
    InvalidKeyError,
    InvalidModelUpdateError,
    InvalidObjectKeyError,
    InvalidTokenError,
    InvalidValueError,
    InvariableError,
    ItemArchivedError,
    ItemTooLargeError,
    JobBusyError,
    JobNotFoundError,
    MediaError,
    ModelAlreadyExistsError,
    ModelMismatchError,
    ObjectNotFoundError,
    PreconditionFailedError,
    RecordNotFound,
    ServiceUnavailableError,
    StoreBusyError,
    ThrottledError,
    TransactionCanceledError,
    TransactionFailedError,
    UniqueViolationError,
    UnpreviewableError,
    UnrepresentableError,
    UploadConflictError,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A reply that describes an error to a client, as defined by RFC 9457.

    ``members``, such as ``code`` and ``field``, are added to the body. ``retry_after`` is the number of seconds after
    which the same request may succeed.
    """

    status: int
    title: str
    detail: str = ""
    type: str = "about:blank"
    retry_after: int | None = None
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        """The reply's headers, except its length."""
        headers = {"content-type": "application/problem+json", "cache-control": "no-store"}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        return headers

    def encode(self, path: str | None = None) -> bytes:
        """The body, as JSON; ``path``, the request's path, becomes ``instance``."""
        body = {"type": self.type, "title": self.title, "status": self.status}
        if self.detail:
            body["detail"] = self.detail
        if path is not None:
            body["instance"] = quote(path, errors="replace")
        return json.dumps(body | dict(self.members)).encode()


_MISSING = Problem(404, "Not found", "The requested resource does not exist.")
_INVALID = Problem(422, "Invalid value", "A value in the request is not valid.")
_CONFLICT = Problem(409, "Conflict", "The request conflicts with stored data.")
_CONTENTION = Problem(
    409, "Conflict", "Another request changed the same data. Please try again.", retry_after=1
)
_TOO_LARGE = Problem(413, "Too large", "The request is larger than accepted.")
_BUSY = Problem(503, "Busy", "The store is busy. Please try again.", retry_after=1)

_PROBLEMS: dict[type[HoldallError], Problem] = {
    RecordNotFound: _MISSING,
    ModelMismatchError: _MISSING,
    ObjectNotFoundError: _MISSING,
    ArtifactNotFoundError: _MISSING,
    AliasNotFoundError: _MISSING,
    JobNotFoundError: _MISSING,
    InvalidFieldError: _INVALID,
    InvalidValueError: _INVALID,
    InvalidKeyError: _INVALID,
    InvalidObjectKeyError: _INVALID,
    InvalidTokenError: _INVALID,
    InvalidFileError: replace(
        _INVALID, title="Invalid file", detail="A file in the request is not accepted."
    ),
    **dict.fromkeys(
        (MediaError, InvariableError, UnpreviewableError, UnrepresentableError),
        replace(_INVALID, title="Unusable file", detail="The file cannot be processed."),
    ),
    UniqueViolationError: replace(_CONFLICT, title="Already taken", detail="Another item has this value."),
    ModelAlreadyExistsError: replace(
        _CONFLICT, title="Already exists", detail="The resource already exists."
    ),
    InvalidModelUpdateError: _CONFLICT,
    ConditionFailedError: _CONFLICT,
    PreconditionFailedError: _CONFLICT,
    ForeignKeyViolation: _CONFLICT,
    UploadConflictError: _CONFLICT,
    ArtifactChangedError: _CONFLICT,
    ArtifactInUseError: _CONFLICT,
    ItemArchivedError: _CONFLICT,
    TransactionCanceledError: _CONFLICT,
    ContentionError: _CONTENTION,
    ConflictError: _CONTENTION,
    JobBusyError: _CONTENTION,
    BodyTooLargeError: _TOO_LARGE,
    ItemTooLargeError: _TOO_LARGE,
    EndpointError: _BUSY,
    ServiceUnavailableError: _BUSY,
    StoreBusyError: _BUSY,
    ThrottledError: _BUSY,
}
"""The errors that depend on what a client requests, and when. All others are the application's fault: a 500."""


def find_problem(error: BaseException) -> Problem | None:
    """The problem to send to a client for an error; None if the error is not the client's fault: raise it again.

    Several errors of one transaction become one problem with ``errors``, or None if one of them is not the client's
    fault.
    """
    if isinstance(error, TransactionFailedError):
        if error.__cause__ is None:
            return None
        found = [_find(reason) for reason in _take_apart(error.__cause__)]
        temporary = [problem for problem in found if problem is not None and problem.retry_after is not None]
        if len(temporary) < len(found):
            return None
        return max(temporary, key=lambda problem: problem.status)
    found = [_find(reason) for reason in _take_apart(error)]
    problems = [problem for problem in found if problem is not None]
    if len(problems) < len(found):
        return None
    worst = max(problems, key=lambda problem: problem.status)
    if len(problems) == 1:
        return worst
    errors = [{"detail": each.detail, **each.members} for each in problems]
    return replace(worst, members={**worst.members, "errors": errors})


def _find(error: BaseException) -> Problem | None:
    if not isinstance(error, HoldallError):
        return None
    if isinstance(error, InvalidFieldError) and error.stored is not None:
        return None  # the stored value is invalid, and the client cannot change that
    known = next((_PROBLEMS[kind] for kind in type(error).__mro__ if kind in _PROBLEMS), None)
    if known is None:
        return None
    if isinstance(error, TransactionCanceledError) and error.retryable:
        known = _CONTENTION
    members: dict[str, Any] = {"code": error.code}
    name = error.place if isinstance(error, InvalidValueError) else getattr(error, "field", None)
    if name:
        members["field"] = name
    return replace(known, type=f"urn:holdall:error:{error.code}", members=members)


def _take_apart(error: BaseException) -> Iterator[BaseException]:
    """The errors of a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from _take_apart(member)
    else:
        yield error

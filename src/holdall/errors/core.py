"""The root of all errors, and the errors of values, requests and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

__all__ = [
    "HoldallError",
    "ConfigurationError",
    "InvalidRequestError",
    "InvalidValueError",
    "InvalidKeyError",
    "InvalidExpressionError",
    "InvalidOptionsError",
    "InvalidTokenError",
    "ItemTooLargeError",
    "TransactionTooLarge",
    "BatchTooLargeError",
    "DuplicateItemError",
    "ConditionFailedError",
    "CancellationReason",
    "TransactionCanceledError",
    "GeneratorRefused",
    "AwaitableRefused",
    "FlowSuspended",
]


class HoldallError(Exception):
    """The root of all errors: ``except HoldallError`` catches everything that this library raises on purpose.

    If a service reported the error, ``service_code`` is the service's name for it and ``request_id`` the request's id.
    """

    code: ClassVar[str] = "holdall"
    retryable: bool = False
    service_code: str | None = None
    request_id: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\nhint: {self.hint}"

    @property
    def docs(self) -> str:
        """The page and anchor that explain this error."""
        return f"docs/errors.md#{self.code}"


class ConfigurationError(HoldallError, ValueError):
    """A setting, a URL or a table definition is wrong; nothing was opened or changed."""

    code = "configuration"


class InvalidRequestError(HoldallError, ValueError):
    """The request itself is wrong. Holdall refused it before anything was sent or written."""

    code = "invalid-request"


class InvalidValueError(InvalidRequestError):
    """DynamoDB cannot store a value: NaN, a number of 39 digits, a mixed or empty set, an object of an unknown type.

    ``place`` is where in the item the value is, such as ``lines[3].price``; ``problem`` is what is wrong with it.
    """

    code = "invalid-value"

    def __init__(self, problem: str, *, hint: str | None = None, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem, hint=hint)
        self.problem = problem
        self.place = place

    def inside(self, container: str) -> InvalidValueError:
        """The same error, with the container's name before its place."""
        joint = "." if self.place and not self.place.startswith("[") else ""
        return InvalidValueError(self.problem, hint=self.hint, place=f"{container}{joint}{self.place}")


class InvalidKeyError(InvalidRequestError):
    """A key attribute is missing, unexpected, of the wrong type, empty or too long."""

    code = "invalid-key"


class InvalidExpressionError(InvalidRequestError):
    """A condition, update or projection cannot work, or exceeds DynamoDB's limits."""

    code = "invalid-expression"


class InvalidOptionsError(InvalidRequestError, TypeError):
    """An option is unknown, has the wrong type, or does not apply to this call."""

    code = "invalid-options"


class InvalidTokenError(InvalidRequestError):
    """A page token or signed id was signed with another secret, was changed, has another purpose, or has expired."""

    code = "invalid-token"


class ItemTooLargeError(InvalidRequestError):
    """An item is larger than 400 KB, counted as DynamoDB counts it: names and values."""

    code = "item-too-large"


class TransactionTooLarge(InvalidRequestError):
    """A transaction has more than 100 actions or 4 MB, or a write's expressions have 2 MB of names and values."""

    code = "transaction-too-large"


class BatchTooLargeError(InvalidRequestError):
    """A batch has more than 100 reads or more than 25 writes."""

    code = "batch-too-large"


class DuplicateItemError(InvalidRequestError):
    """One transaction or batch names the same item twice."""

    code = "duplicate-item"


class ConditionFailedError(HoldallError):
    """The stored item did not meet the write's condition; nothing was written.

    ``item`` is the stored item, if the request asked for it and the item exists.
    """

    code = "condition-failed"

    def __init__(
        self, message: str, *, item: Mapping[str, Any] | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.item = item


class CancellationReason(NamedTuple):
    """Why one action of a transaction was refused; ``code`` is ``"None"`` if nothing was wrong with this action.

    The codes are DynamoDB's: ``None``, ``ConditionalCheckFailed``, ``TransactionConflict``,
    ``ThrottlingError``, ``ProvisionedThroughputExceeded``, ``ItemCollectionSizeLimitExceeded``,
    ``ValidationError``. ``item`` is the stored item, if the action asked for it.
    """

    code: str
    message: str | None = None
    item: Mapping[str, Any] | None = None


_PASSING_REASONS = frozenset(
    {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


class TransactionCanceledError(HoldallError):
    """The whole transaction was cancelled; nothing was written.

    ``reasons[i]`` explains action *i* of the request. The error is retryable if every reason is temporary
    (a conflict or throttling); a failed condition is not.
    """

    code = "transaction-canceled"

    def __init__(self, message: str, *, reasons: Sequence[CancellationReason] = ()) -> None:
        super().__init__(message)
        self.reasons = tuple(reasons)
        self.retryable = bool(self.reasons) and all(r.code in _PASSING_REASONS for r in self.reasons)


class GeneratorRefused(InvalidRequestError, TypeError):
    """A generator (a function with ``yield``) was passed where Holdall calls a function: nothing would have run."""

    code = "generator-refused"


class AwaitableRefused(HoldallError, TypeError):
    """Async code (a coroutine function, an async stream) was passed to the sync API."""

    code = "awaitable-refused"


class FlowSuspended(HoldallError, RuntimeError):
    """A procedure that runs without an event loop awaited something other than its port; Holdall closed it."""

    code = "flow-suspended"

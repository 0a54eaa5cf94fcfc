"""The root, and errors of values, requests and settings."""

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
    """The root: ``except HoldallError`` catches everything that this library raises on purpose.

    An error that a service reported carries the service's own name for it and the id of the request.
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
    """The request itself is wrong. It was refused before anything was sent or written."""

    code = "invalid-request"


class InvalidValueError(InvalidRequestError):
    """A value that DynamoDB cannot store: NaN, 39 digits, a mixed or empty set, a foreign type.

    ``place`` says where in the item: ``lines[3].price``.
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
    """A condition, update or projection that cannot work, or is over DynamoDB's limits."""

    code = "invalid-expression"


class InvalidOptionsError(InvalidRequestError):
    """An option that is unknown, of the wrong type, or means nothing here."""

    code = "invalid-options"


class InvalidTokenError(InvalidRequestError):
    """A page token or signed id that has another signer, was changed, is meant for something else, or has expired."""

    code = "invalid-token"


class ItemTooLargeError(InvalidRequestError):
    """An item, as DynamoDB bills it, is over 400 KB."""

    code = "item-too-large"


class TransactionTooLarge(InvalidRequestError):
    """A transaction has over 100 actions or 4 MB, or the expressions of a write have over 2 MB of names and values."""

    code = "transaction-too-large"


class BatchTooLargeError(InvalidRequestError):
    """A batch has over 100 reads or over 25 writes."""

    code = "batch-too-large"


class DuplicateItemError(InvalidRequestError):
    """One transaction or batch names the same item twice."""

    code = "duplicate-item"


class ConditionFailedError(HoldallError):
    """The stored item did not meet the write's condition; nothing was written.

    ``item`` is the stored item when the request asked for it and there was one.
    """

    code = "condition-failed"

    def __init__(
        self, message: str, *, item: Mapping[str, Any] | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.item = item


class CancellationReason(NamedTuple):
    """Why one action of a transaction was refused; ``code`` is ``"None"`` for an action without objection.

    The codes are DynamoDB's: ``None``, ``ConditionalCheckFailed``, ``TransactionConflict``,
    ``ThrottlingError``, ``ProvisionedThroughputExceeded``, ``ItemCollectionSizeLimitExceeded``,
    ``ValidationError``. ``item`` is the stored item when the action asked for it.
    """

    code: str
    message: str | None = None
    item: Mapping[str, Any] | None = None


_PASSING_REASONS = frozenset(
    {"None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


class TransactionCanceledError(HoldallError):
    """A transaction was cancelled as a whole: nothing was written.

    ``reasons[i]`` explains action *i* of the request. Retryable when every reason is temporary
    (a conflict or a throttle); a failed condition is not.
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
    """A flow that runs without an event loop awaited something other than its port; it was closed."""

    code = "flow-suspended"

"""Errors of transactions, reads and queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from holdall.errors.core import HoldallError, InvalidRequestError

__all__ = [
    "RecordNotFound",
    "ModelMismatchError",
    "ModelAlreadyExistsError",
    "ModelTrackedTwiceError",
    "InvalidModelUpdateError",
    "UniqueViolationError",
    "QueryNotSupported",
    "WriteAttemptedInReadOnlyTxError",
    "TransactionClosedError",
    "NoTransactionError",
    "Difference",
    "ContentionError",
    "TransactionFailedError",
    "TransactionTimeoutError",
    "TransactionErrors",
    "AfterCommitError",
]


class RecordNotFound(HoldallError, LookupError):
    """``get_one`` found no item under the key."""

    code = "record-not-found"


class ModelMismatchError(HoldallError, LookupError):
    """The item under the key belongs to a model other than the requested one."""

    code = "model-mismatch"


class ModelAlreadyExistsError(HoldallError, ValueError):
    """``create`` found an item under the key."""

    code = "model-already-exists"


class ModelTrackedTwiceError(InvalidRequestError):
    """The transaction already uses this item in a way that rules out the new one."""

    code = "model-tracked-twice"


class InvalidModelUpdateError(HoldallError, ValueError):
    """A blind write found no item, or an item that does not meet its expected values or its ``where=``."""

    code = "invalid-model-update"


class UniqueViolationError(HoldallError, ValueError):
    """Another item already has this value of a unique field; ``field`` is the field's name."""

    code = "unique-violation"

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field


class QueryNotSupported(InvalidRequestError):
    """DynamoDB cannot answer this query from one range of one partition; the hint says how to rewrite it."""

    code = "query-not-supported"


class WriteAttemptedInReadOnlyTxError(InvalidRequestError):
    """The caller tried to write in a transaction with ``read_only=True``."""

    code = "read-only-transaction"


class TransactionClosedError(InvalidRequestError):
    """A transaction was used after it had been committed or abandoned."""

    code = "transaction-closed"


class NoTransactionError(HoldallError, LookupError):
    """``current_transaction()`` found no running transaction of the requested kind, sync or async."""

    code = "no-transaction"


class Difference(NamedTuple):
    """One difference between what a transaction had read and what is stored.

    ``field`` is None if the item's existence differs. ``expected`` and ``stored`` are attributes, None if absent; both
    are None for a hidden field.
    """

    item: str
    field: str | None
    expected: Mapping[str, Any] | None
    stored: Mapping[str, Any] | None


class ContentionError(HoldallError):
    """Another transaction changed data that this one had read, before this one could commit. Nothing was written.

    ``differences`` lists what differed. ``items`` are the items that another attempt will find changed; it is empty if
    only a blind write was refused.
    """

    code = "contention"
    retryable = True

    def __init__(
        self,
        message: str,
        *,
        differences: Sequence[Difference] = (),
        items: Sequence[str] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.differences = tuple(differences)
        known = [difference.item for difference in differences] if items is None else items
        self.items = tuple(dict.fromkeys(known))


class TransactionFailedError(HoldallError):
    """A transaction failed after ``attempts`` attempts and wrote nothing; ``__cause__`` is the last attempt's error."""

    code = "transaction-failed"

    def __init__(self, message: str, *, attempts: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.attempts = attempts


class TransactionTimeoutError(TransactionFailedError, TimeoutError):
    """No attempt of a transaction succeeded within its ``timeout``."""

    code = "transaction-timeout"


class TransactionErrors(HoldallError, ExceptionGroup[Exception]):
    """A transaction failed for several permanent reasons and wrote nothing; ``except*`` handles them separately."""

    code = "transaction-errors"

    def __new__(cls, message: str, errors: Sequence[Exception]) -> TransactionErrors:  # noqa: D102
        return super().__new__(cls, message, errors)

    def __init__(self, message: str, errors: Sequence[Exception]) -> None:
        self.hint = None  # an ExceptionGroup sets its message itself

    def derive(self, errors: Sequence[Exception]) -> TransactionErrors:  # type: ignore[override]
        """Return the same group with only these errors."""
        return TransactionErrors(self.message, errors)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"- {error}" for error in self.exceptions)])


class AfterCommitError(HoldallError):
    """The transaction **was committed**, but work that follows the commit failed.

    ``result`` is what the transaction's function returned; ``errors`` are the failures, the first also ``__cause__``.
    """

    code = "after-commit"

    def __init__(self, message: str, *, errors: Sequence[Exception] = (), result: Any = None) -> None:
        super().__init__(message, hint="do not run the transaction again: its writes are done")
        self.errors = tuple(errors)
        self.result = result

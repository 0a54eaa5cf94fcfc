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
    """A transaction already has this item in a role that excludes the new one."""

    code = "model-tracked-twice"


class InvalidModelUpdateError(HoldallError, ValueError):
    """A blind update found no item, or values other than those it expected."""

    code = "invalid-model-update"


class UniqueViolationError(HoldallError, ValueError):
    """Another item already has this value of a unique field; ``field`` is the field's name."""

    code = "unique-violation"

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field


class QueryNotSupported(InvalidRequestError):
    """A query that DynamoDB cannot answer from one range of one partition; the hint says how to ask instead."""

    code = "query-not-supported"


class WriteAttemptedInReadOnlyTxError(InvalidRequestError):
    """A write in a transaction that was opened with ``read_only=True``."""

    code = "read-only-transaction"


class TransactionClosedError(InvalidRequestError):
    """A transaction was used after it was committed or abandoned."""

    code = "transaction-closed"


class NoTransactionError(HoldallError, LookupError):
    """``current_transaction()`` was called where no transaction runs, after its end, or across sync and async."""

    code = "no-transaction"


class Difference(NamedTuple):
    """One difference between what a transaction had read and what is stored.

    ``field`` is None for the item's existence. ``expected`` and ``stored`` are stored attributes, None if absent.
    """

    item: str
    field: str | None
    expected: Mapping[str, Any] | None
    stored: Mapping[str, Any] | None


class ContentionError(HoldallError):
    """Before this transaction could commit, another changed what it had read; nothing was written.

    ``differences`` lists what differed. ``items`` are those that another attempt will find changed; empty if only a
    blind write was refused.
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
    """A transaction failed after ``attempts`` attempts and wrote nothing; its last cause is ``__cause__``."""

    code = "transaction-failed"

    def __init__(self, message: str, *, attempts: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.attempts = attempts


class TransactionTimeoutError(TransactionFailedError, TimeoutError):
    """A transaction's ``timeout`` passed before an attempt succeeded."""

    code = "transaction-timeout"


class TransactionErrors(HoldallError, ExceptionGroup[Exception]):
    """Several permanent errors of one transaction, which wrote nothing; ``except*`` takes them apart."""

    code = "transaction-errors"

    def __new__(cls, message: str, errors: Sequence[Exception]) -> TransactionErrors:  # noqa: D102
        return super().__new__(cls, message, errors)

    def __init__(self, message: str, errors: Sequence[Exception]) -> None:
        self.hint = None  # a group has a message of its own, which cannot be set

    def derive(self, errors: Sequence[Exception]) -> TransactionErrors:  # type: ignore[override]
        """The same group with some of its errors."""
        return TransactionErrors(self.message, errors)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"- {error}" for error in self.exceptions)])


class AfterCommitError(HoldallError):
    """The transaction **was committed**, but work after it failed.

    ``result`` is what the transaction's function returned; ``errors`` are the failures, the first also ``__cause__``.
    """

    code = "after-commit"

    def __init__(self, message: str, *, errors: Sequence[Exception] = (), result: Any = None) -> None:
        super().__init__(message, hint="do not run the transaction again: its writes are done")
        self.errors = tuple(errors)
        self.result = result

"""Every error Holdall raises, under one root. Importable from everywhere; imports nothing.

::

    HoldallError
    ├── ConfigurationError (ValueError)          a setting, URL or definition is wrong
    │   ├── CredentialsError                     no credentials could be had, and where they were looked for
    │   ├── ModelDefinitionError (TypeError)     a model class cannot work as it is written
    │   └── JobDefinitionError (TypeError)       a job cannot work as it is declared
    ├── InvalidRequestError (ValueError)         refused before anything was sent or written
    │   ├── InvalidValueError                    a value DynamoDB has no form for
    │   ├── InvalidKeyError                      a key is missing, mistyped, empty or too long
    │   ├── InvalidExpressionError               a condition, update or projection cannot work
    │   ├── ItemTooLargeError                    an item over 400 KB
    │   ├── TransactionTooLarge                  over 100 actions, 4 MB, or 2 MB in one write's expressions
    │   ├── BatchTooLargeError                   over 100 reads or 25 writes
    │   ├── DuplicateItemError                   one item twice in a transaction or batch
    │   ├── InvalidFieldError                    a field's value does not fit its model
    │   ├── InvalidJobArgumentsError             arguments that a job cannot keep
    │   ├── InvalidObjectKeyError                a key that no service can keep bytes under
    │   ├── InvalidTokenError                    a token that is not ours, changed, or out of date
    │   ├── InvalidArtifactError                 a name, version or manifest that no artifact can have
    │   ├── InvalidAliasError                    an alias or a split that cannot be
    │   │   └── InvalidWeightError (TypeError)   a weight that is no whole number
    │   ├── QueryNotSupported                    a question that no single query can answer
    │   ├── InvalidOptionsError                  an option of a transaction or read that means nothing
    │   ├── GeneratorRefused (TypeError)         a generator in place of a function: it would run nothing
    │   ├── ModelTrackedTwiceError               the transaction already has that item in another role
    │   ├── FrozenItemError                      an item that no transaction would write
    │   ├── TransactionClosedError               a transaction used after its end
    │   └── WriteAttemptedInReadOnlyTxError      a write in a transaction opened with read_only
    ├── TableNotFoundError (LookupError)
    ├── TableExistsError (ValueError)
    ├── IndexNotFoundError (LookupError)
    ├── IndexExistsError (ValueError)
    ├── ConditionFailedError                     the stored item was not as the write demanded
    ├── TransactionCanceledError                 nothing written; one reason per action, in order
    ├── RecordNotFound (LookupError)             get_one found nothing
    ├── ObjectNotFoundError (FileNotFoundError)  a service has no bytes under that key
    ├── PreconditionFailedError                  the object there is not as the request demanded
    ├── IntegrityError (ValueError)              bytes that are not those they should be
    ├── ArtifactNotFoundError (LookupError)      there is no such artifact, or no such version of it
    ├── AliasNotFoundError (LookupError)         the artifact has no such alias
    ├── ArtifactChangedError                     it is not as the caller expected; nothing was done
    ├── ArtifactInUseError                       aliases serve it; they are named
    ├── ProtectedAliasError (PermissionError)    an alias that is changed only on purpose
    ├── VersionsExhaustedError (OverflowError)   all 999,999 versions were used
    ├── RolloutError                             a rollout that cannot go on like that
    ├── ModelMismatchError (LookupError)         the item there is of another model
    ├── ModelAlreadyExistsError (ValueError)     create found an item
    ├── InvalidModelUpdateError (ValueError)     a blind update found other values than it was told
    ├── UniqueViolationError (ValueError)        another item has that value of a unique field
    ├── ContentionError                          retryable: what a transaction read has changed
    ├── TransactionFailedError                   given up; the last cause is kept
    │   └── TransactionTimeoutError (TimeoutError)
    ├── TransactionErrors (ExceptionGroup)       several permanent errors of one transaction
    ├── AfterCommitError                         committed, but work that was to follow failed
    ├── NoTransactionError (LookupError)         the running transaction was asked for where none runs
    ├── RequestAbandoned                         a web request's transaction, given up because of its response
    ├── JobNotFoundError (LookupError)           there is no job with that id
    ├── MalformedJobError (ValueError)           an item under a job's key cannot be read as a job
    ├── JobBusyError                             retryable: the job is running, or was just changed
    ├── JobTimeoutError (TimeoutError)           a job took longer than it may
    ├── JobProcessError                          a job failed in its own process, or the process died
    ├── LeaseLostError                           a worker was held up, and its job is no longer its own
    ├── NoJobError (LookupError)                 the running job was asked for where none runs
    ├── TokenReusedError (ValueError)            one client token on two different transactions
    ├── ServiceError                             the service did not do it, and said or showed so
    │   ├── ThrottledError                       retryable
    │   ├── ConflictError                        retryable: another transaction held the item
    │   ├── ServiceUnavailableError              retryable (a 5xx)
    │   ├── EndpointError (ConnectionError)      retryable: no connection could be made; nothing was sent
    │   ├── MalformedReplyError                  what came back is no reply of the service's
    │   └── AccessDeniedError (PermissionError)  the credentials were refused, or may not do this
    ├── OutcomeUnknown                           the request left, no reply came: it may have happened
    ├── StoreError (OSError)                     the embedded store's file
    │   ├── StoreBusyError (TimeoutError)        retryable: other processes kept it locked
    │   ├── StoreCorruptError                    damaged, or no Holdall file at all
    │   ├── StoreVersionError                    written by a newer Holdall
    │   ├── StoreNotWritableError                the file or its directory is read-only or missing
    │   ├── StoreMovedError                      deleted, moved or replaced while it was open
    │   └── StoreFullError                       no space left
    ├── StoreClosedError (ValueError)            used after close()
    ├── FlowSuspended (RuntimeError)             a flow awaited something other than its port
    └── AwaitableRefused (TypeError)             async code handed to the blocking API

Each class has a stable ``code`` (also its anchor in ``docs/errors.md``) and says whether trying the same
thing again can help (``retryable``). What to do about it follows the message on a line of its own, after ``hint:``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

__all__ = [
    "AccessDeniedError",
    "AfterCommitError",
    "AliasNotFoundError",
    "ArtifactChangedError",
    "ArtifactInUseError",
    "ArtifactNotFoundError",
    "AwaitableRefused",
    "BatchTooLargeError",
    "CancellationReason",
    "ConditionFailedError",
    "ConfigurationError",
    "ConflictError",
    "ContentionError",
    "CredentialsError",
    "Difference",
    "DuplicateItemError",
    "EndpointError",
    "FlowSuspended",
    "FrozenItemError",
    "GeneratorRefused",
    "HoldallError",
    "IndexExistsError",
    "IndexNotFoundError",
    "IntegrityError",
    "InvalidAliasError",
    "InvalidArtifactError",
    "InvalidExpressionError",
    "InvalidFieldError",
    "InvalidJobArgumentsError",
    "InvalidKeyError",
    "InvalidModelUpdateError",
    "InvalidObjectKeyError",
    "InvalidOptionsError",
    "InvalidRequestError",
    "InvalidTokenError",
    "InvalidValueError",
    "InvalidWeightError",
    "ItemTooLargeError",
    "JobBusyError",
    "JobDefinitionError",
    "JobNotFoundError",
    "JobProcessError",
    "JobTimeoutError",
    "LeaseLostError",
    "MalformedJobError",
    "MalformedReplyError",
    "ModelAlreadyExistsError",
    "ModelDefinitionError",
    "ModelMismatchError",
    "ModelTrackedTwiceError",
    "NoJobError",
    "NoTransactionError",
    "ObjectNotFoundError",
    "OutcomeUnknown",
    "PreconditionFailedError",
    "ProtectedAliasError",
    "QueryNotSupported",
    "RecordNotFound",
    "RequestAbandoned",
    "RolloutError",
    "ServiceError",
    "ServiceUnavailableError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreMovedError",
    "StoreNotWritableError",
    "StoreVersionError",
    "TableExistsError",
    "TableNotFoundError",
    "ThrottledError",
    "TokenReusedError",
    "TransactionCanceledError",
    "TransactionClosedError",
    "TransactionErrors",
    "TransactionFailedError",
    "TransactionTimeoutError",
    "TransactionTooLarge",
    "UniqueViolationError",
    "VersionsExhaustedError",
    "WriteAttemptedInReadOnlyTxError",
]


class HoldallError(Exception):
    """The root: ``except HoldallError`` catches whatever this library raises on purpose.

    An error that a service answered carries the service's own name for it and the id of the request.
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


class CredentialsError(ConfigurationError):
    """No credentials could be had. The message says where they were looked for, and never shows one."""

    code = "credentials"


class ModelDefinitionError(ConfigurationError, TypeError):
    """A model class that cannot work as it is written; the message names the class and the field."""

    code = "model-definition"


class InvalidRequestError(HoldallError, ValueError):
    """The request itself is wrong. It was refused before anything was sent or written."""

    code = "invalid-request"


class InvalidValueError(InvalidRequestError):
    """A value that DynamoDB has no form for: NaN, 39 digits, a mixed or empty set, a foreign type.

    ``place`` says where in the item: ``lines[3].price``.
    """

    code = "invalid-value"

    def __init__(self, problem: str, *, hint: str | None = None, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem, hint=hint)
        self.problem = problem
        self.place = place

    def inside(self, container: str) -> InvalidValueError:
        """The same complaint, seen from one level further out."""
        joint = "." if self.place and not self.place.startswith("[") else ""
        return InvalidValueError(self.problem, hint=self.hint, place=f"{container}{joint}{self.place}")


class InvalidKeyError(InvalidRequestError):
    """A key attribute is missing, superfluous, of the wrong type, empty or too long."""

    code = "invalid-key"


class InvalidExpressionError(InvalidRequestError):
    """A condition, update or projection that cannot work, or is over DynamoDB's limits."""

    code = "invalid-expression"


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


class InvalidFieldError(InvalidRequestError):
    """A value does not fit its field, a name is no field's, a required value is missing or cannot be changed.

    ``model`` and ``field`` say where; ``stored`` is the stored attribute when that is what does not fit.
    """

    code = "invalid-field"

    def __init__(
        self,
        model: str,
        field: str,
        problem: str,
        *,
        stored: Mapping[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{model}.{field}: {problem}", hint=hint)
        self.model = model
        self.field = field
        self.problem = problem
        self.stored = stored

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), (self.model, self.field, self.problem), dict(vars(self)))


class InvalidTokenError(InvalidRequestError):
    """A page token or signed id that we did not sign, that was changed, is for something else, or is out of date."""

    code = "invalid-token"


class QueryNotSupported(InvalidRequestError):
    """A query asks what DynamoDB cannot answer by one range of one partition; the hint says how to ask instead."""

    code = "query-not-supported"


class InvalidOptionsError(InvalidRequestError):
    """An option that is unknown, of the wrong type, or means nothing here."""

    code = "invalid-options"


class GeneratorRefused(InvalidRequestError, TypeError):
    """A generator (a function with ``yield``) was passed where Holdall calls a function: nothing would have run."""

    code = "generator-refused"


class ModelTrackedTwiceError(InvalidRequestError):
    """A transaction already has this item in a role that does not go with the new one."""

    code = "model-tracked-twice"


class FrozenItemError(InvalidRequestError):
    """An item was changed that no transaction would write: read outside of one, or after its end."""

    code = "frozen-item"


class TransactionClosedError(InvalidRequestError):
    """A transaction was used after it was committed or given up."""

    code = "transaction-closed"


class WriteAttemptedInReadOnlyTxError(InvalidRequestError):
    """Something was to be written in a transaction that was opened with ``read_only=True``."""

    code = "read-only-transaction"


class TableNotFoundError(HoldallError, LookupError):
    """There is no such table."""

    code = "table-not-found"


class TableExistsError(HoldallError, ValueError):
    """A table of that name is already there."""

    code = "table-exists"


class IndexNotFoundError(HoldallError, LookupError):
    """The table has no such index."""

    code = "index-not-found"


class IndexExistsError(HoldallError, ValueError):
    """The table already has an index of that name."""

    code = "index-exists"


class ConditionFailedError(HoldallError):
    """The stored item was not as the write demanded; nothing was written.

    ``item`` is the stored item when the request asked for it and there was one.
    """

    code = "condition-failed"

    def __init__(
        self, message: str, *, item: Mapping[str, Any] | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.item = item


class CancellationReason(NamedTuple):
    """Why one action of a transaction did not go through; ``code`` is ``"None"`` for one that would have.

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

    ``reasons[i]`` explains action *i* of the request. Retryable when every reason is a passing one
    (a conflict or a throttle); a failed condition is for the caller to look at.
    """

    code = "transaction-canceled"

    def __init__(self, message: str, *, reasons: Sequence[CancellationReason] = ()) -> None:
        super().__init__(message)
        self.reasons = tuple(reasons)
        self.retryable = bool(self.reasons) and all(r.code in _PASSING_REASONS for r in self.reasons)


class RecordNotFound(HoldallError, LookupError):
    """``get_one`` found no item under the key."""

    code = "record-not-found"


class JobDefinitionError(ConfigurationError, TypeError):
    """A job cannot work as it is declared."""

    code = "job-definition"


class InvalidJobArgumentsError(InvalidRequestError):
    """Arguments that a job cannot keep: they are JSON, keys and items."""

    code = "invalid-job-arguments"


class JobNotFoundError(HoldallError, LookupError):
    """There is no job with that id; those that succeeded are gone."""

    code = "job-not-found"


class MalformedJobError(HoldallError, ValueError):
    """An item is stored under a job's key but cannot be read as a job, so it cannot be run."""

    code = "malformed-job"


class JobBusyError(HoldallError):
    """The job is running, or was changed while it was looked at, so nothing was done to it."""

    code = "job-busy"
    retryable = True


class JobTimeoutError(HoldallError, TimeoutError):
    """A job took longer than its ``timeout``."""

    code = "job-timeout"


class JobProcessError(HoldallError):
    """A job failed in a process of its own, or the process died; the message has what it left behind."""

    code = "job-process"


class LeaseLostError(HoldallError):
    """A worker was held up for longer than its lease on a job, which is no longer its own to end."""

    code = "lease-lost"


class NoJobError(HoldallError, LookupError):
    """The running job was asked for where none is running."""

    code = "no-job"


class InvalidObjectKeyError(InvalidRequestError):
    """A key that no service can keep bytes under."""

    code = "invalid-object-key"


class ObjectNotFoundError(HoldallError, FileNotFoundError):
    """A service has no bytes under the key, or no such upload."""

    code = "object-not-found"


class PreconditionFailedError(HoldallError):
    """The object there is not as the request demanded: there is one already, or it is another than it was."""

    code = "precondition-failed"


class IntegrityError(HoldallError, ValueError):
    """Bytes are not those they should be: their digest or their length is another. Nothing of them was kept."""

    code = "integrity"


class InvalidArtifactError(InvalidRequestError):
    """A name that no artifact can have, a version that cannot be, or a manifest that is none."""

    code = "invalid-artifact"


class InvalidAliasError(InvalidRequestError):
    """An alias with a name that means something else, or a split that cannot be."""

    code = "invalid-alias"


class InvalidWeightError(InvalidAliasError, TypeError):
    """A weight that is no whole number, or is missing."""

    code = "invalid-weight"


class ArtifactNotFoundError(HoldallError, LookupError):
    """There is no such artifact, no such version of it, or it is deleted."""

    code = "artifact-not-found"


class AliasNotFoundError(HoldallError, LookupError):
    """The artifact has no such alias."""

    code = "alias-not-found"


class ArtifactChangedError(HoldallError):
    """What was expected of an artifact or alias (``expect_…=``) is not so. Nothing was done."""

    code = "artifact-changed"


class ArtifactInUseError(HoldallError):
    """Aliases serve what was to be deleted; ``aliases`` are their names."""

    code = "artifact-in-use"

    def __init__(self, message: str, *, aliases: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.aliases = tuple(aliases)


class ProtectedAliasError(HoldallError, PermissionError):
    """A protected alias is changed, moved or deleted only by those who say that they mean it."""

    code = "protected-alias"


class VersionsExhaustedError(HoldallError, OverflowError):
    """An artifact has had 999,999 versions, and there is no number left."""

    code = "versions-exhausted"


class RolloutError(HoldallError):
    """A staged rollout that is not there, has ended, or is not in the state for what was asked."""

    code = "rollout"


class ModelMismatchError(HoldallError, LookupError):
    """The item under the key is of another model than the one asked for."""

    code = "model-mismatch"


class ModelAlreadyExistsError(HoldallError, ValueError):
    """An item was to be created where there is one."""

    code = "model-already-exists"


class InvalidModelUpdateError(HoldallError, ValueError):
    """A blind update found no item, or other values than the ones it was told to expect."""

    code = "invalid-model-update"


class UniqueViolationError(HoldallError, ValueError):
    """Another item already has this value of a unique field."""

    code = "unique-violation"


class Difference(NamedTuple):
    """One thing that was not as a transaction had read it.

    ``field`` is None when it is the item's existence. ``expected`` and ``stored`` are stored attributes, None for one
    that is absent.
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
    """A transaction was given up after ``attempts`` attempts; its last cause is ``__cause__``. Nothing was written."""

    code = "transaction-failed"

    def __init__(self, message: str, *, attempts: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.attempts = attempts


class TransactionTimeoutError(TransactionFailedError, TimeoutError):
    """A transaction's ``timeout`` passed before an attempt went through."""

    code = "transaction-timeout"

    def __str__(self) -> str:  # OSError has a __str__ of its own
        return HoldallError.__str__(self)


class TransactionErrors(HoldallError, ExceptionGroup[Exception]):
    """Several permanent errors of one transaction, which wrote nothing; ``except*`` takes them apart."""

    code = "transaction-errors"

    def __new__(cls, message: str, errors: Sequence[Exception]) -> TransactionErrors:  # noqa: D102
        return super().__new__(cls, message, errors)

    def __init__(self, message: str, errors: Sequence[Exception]) -> None:
        self.hint = None  # a group has a message of its own, which cannot be set

    def derive(self, errors: Sequence[Exception]) -> TransactionErrors:  # type: ignore[override]
        """The same group with a part of its errors."""
        return TransactionErrors(self.message, errors)

    def __str__(self) -> str:
        return "\n".join([self.message, *(f"- {error}" for error in self.exceptions)])


class AfterCommitError(HoldallError):
    """The transaction **was committed**, but work that was to follow it failed.

    ``result`` is what the transaction's function had returned; ``errors`` are the failures, the first of them also
    ``__cause__``.
    """

    code = "after-commit"

    def __init__(self, message: str, *, errors: Sequence[Exception] = (), result: Any = None) -> None:
        super().__init__(message, hint="do not run the transaction again: its writes are done")
        self.errors = tuple(errors)
        self.result = result


class NoTransactionError(HoldallError, LookupError):
    """The running transaction was asked for where none is running, it has ended, or it is of the other colour."""

    code = "no-transaction"


class RequestAbandoned(HoldallError):
    """The transaction of a web request was given up because of its response. Failure handlers are told; nobody else.

    ``status`` is the response's, an error; None when there was no response, or nobody left to have it.
    """

    code = "request-abandoned"

    def __init__(self, message: str, *, status: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class TokenReusedError(HoldallError, ValueError):
    """A client token that already belongs to another transaction of the last ten minutes."""

    code = "token-reused"


class ServiceError(HoldallError):
    """The service answered that it did not do it."""

    code = "service"


class ThrottledError(ServiceError):
    """Too many requests for now; nothing was done."""

    code = "throttled"
    retryable = True


class ServiceUnavailableError(ServiceError):
    """The service failed on its side (a 5xx)."""

    code = "service-unavailable"
    retryable = True


class ConflictError(ServiceError):
    """Another transaction was at work on the item; nothing was done."""

    code = "conflict"
    retryable = True


class EndpointError(ServiceError, ConnectionError):
    """No connection to the service could be made; nothing was sent."""

    code = "endpoint"
    retryable = True

    def __str__(self) -> str:  # OSError has a __str__ of its own
        return HoldallError.__str__(self)


class MalformedReplyError(ServiceError):
    """What came back is no reply of the service's: broken off, garbled, or somebody else's."""

    code = "malformed-reply"


class AccessDeniedError(ServiceError, PermissionError):
    """The service refused the credentials, or they do not permit this."""

    code = "access-denied"

    def __str__(self) -> str:  # OSError has a __str__ of its own
        return HoldallError.__str__(self)


class OutcomeUnknown(HoldallError):
    """The request left and no reply came back: it may or may not have taken effect.

    Not retryable, because a second try could do it twice. ``item`` is the stored item where it is known.
    """

    code = "outcome-unknown"

    def __init__(
        self, message: str, *, item: Mapping[str, Any] | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.item = item


class StoreError(HoldallError, OSError):
    """The embedded store's file could not be used."""

    code = "store"

    def __str__(self) -> str:  # OSError has a __str__ of its own
        return HoldallError.__str__(self)


class StoreBusyError(StoreError, TimeoutError):
    """Other processes kept the store locked for the whole time we were willing to wait."""

    code = "store-busy"
    retryable = True


class StoreCorruptError(StoreError):
    """The file is damaged, or is no Holdall store."""

    code = "store-corrupt"


class StoreVersionError(StoreError):
    """The file was written by a newer Holdall than this one."""

    code = "store-version"


class StoreNotWritableError(StoreError):
    """The file or its directory cannot be written or does not exist."""

    code = "store-not-writable"


class StoreMovedError(StoreError):
    """The store's file was deleted, moved or replaced while it was open. Nothing was written."""

    code = "store-moved"


class StoreFullError(StoreError):
    """No space is left where the store lives; the write was rolled back."""

    code = "store-full"


class StoreClosedError(HoldallError, ValueError):
    """The database was closed."""

    code = "store-closed"


class FlowSuspended(HoldallError, RuntimeError):
    """A flow under the blocking API awaited something other than its port; it was closed."""

    code = "flow-suspended"


class AwaitableRefused(HoldallError, TypeError):
    """Async code (a coroutine function, an async stream) was handed to the blocking API."""

    code = "awaitable-refused"


def _rebuilt(kind: type[HoldallError], arguments: tuple[Any, ...], state: dict[str, Any]) -> HoldallError:
    """An error from a pickle."""
    error = kind(*arguments)
    vars(error).update(state)
    return error

"""Exit statuses: what a script can learn from a failed command without reading its message.

=====  ============  =====================================================================================
 1     error         any failure not listed here
 2     usage         the command line, a setting or a value in it is wrong
 3     not found     the thing that the command names does not exist
 4     conflict      something changed in the meantime or already exists; look again, then decide
 5     refused       not permitted, protected, still in use, or not confirmed
 6     unavailable   the store is unreachable, throttling or busy; try again later
=====  ============  =====================================================================================
"""

from __future__ import annotations

from enum import IntEnum

from holdall.errors import (
    AccessDeniedError,
    ArchiveLossError,
    ArtifactChangedError,
    ArtifactInUseError,
    ConditionFailedError,
    ConfigurationError,
    ConflictError,
    ContentionError,
    EndpointError,
    ForeignKeyViolation,
    HoldallError,
    IndexExistsError,
    InvalidModelUpdateError,
    InvalidRequestError,
    ItemArchivedError,
    JobBusyError,
    ModelAlreadyExistsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ProtectedAliasError,
    RolloutError,
    ServiceUnavailableError,
    StoreBusyError,
    TableExistsError,
    ThrottledError,
    TransactionFailedError,
    UniqueViolationError,
    VersionsExhaustedError,
)


class ExitStatus(IntEnum):
    """How a command can fail."""

    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    REFUSED = 5
    UNAVAILABLE = 6


_STATUSES: dict[ExitStatus, tuple[type[BaseException], ...]] = {
    ExitStatus.UNAVAILABLE: (
        ThrottledError,
        ServiceUnavailableError,
        EndpointError,
        StoreBusyError,
        TimeoutError,
    ),
    ExitStatus.CONFLICT: (
        *(ContentionError, ConflictError, ConditionFailedError, PreconditionFailedError, JobBusyError),
        *(ArtifactChangedError, ModelAlreadyExistsError, InvalidModelUpdateError, UniqueViolationError),
        *(TableExistsError, IndexExistsError),
    ),
    ExitStatus.REFUSED: (
        *(AccessDeniedError, ProtectedAliasError, ArtifactInUseError, RolloutError, VersionsExhaustedError),
        *(ForeignKeyViolation, ArchiveLossError, ItemArchivedError),
    ),
    ExitStatus.NOT_FOUND: (LookupError, ObjectNotFoundError),
    ExitStatus.USAGE: (InvalidRequestError, ConfigurationError),
}
"""The first match wins."""


def exit_status(error: HoldallError) -> ExitStatus:
    """The exit status for this error."""
    cause: BaseException = error
    if isinstance(error, TransactionFailedError) and error.__cause__ is not None:
        cause = error.__cause__
    return next((status for status, kinds in _STATUSES.items() if isinstance(cause, kinds)), ExitStatus.ERROR)

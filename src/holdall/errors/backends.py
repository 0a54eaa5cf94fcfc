"""Errors of services, connections, credentials and the embedded store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.errors.core import ConfigurationError, HoldallError, InvalidRequestError

__all__ = [
    "CredentialsError",
    "ServiceError",
    "ThrottledError",
    "ServiceUnavailableError",
    "ConflictError",
    "EndpointError",
    "MalformedReplyError",
    "AccessDeniedError",
    "TokenReusedError",
    "OutcomeUnknown",
    "StoreError",
    "StoreBusyError",
    "StoreCorruptError",
    "StoreVersionError",
    "StoreNotWritableError",
    "StoreMovedError",
    "StoreFullError",
    "StoreClosedError",
    "ProcessDiedError",
    "ProcessTimeoutError",
    "MediaError",
    "MalformedMediaError",
    "MediaLimitError",
    "UnsupportedMediaError",
    "MediaPackageMissingError",
]


class CredentialsError(ConfigurationError):
    """No credentials were found. The message lists where Holdall looked; it never contains a credential."""

    code = "credentials"


class ServiceError(HoldallError):
    """The service reported that it did not carry out the request."""

    code = "service"


class ThrottledError(ServiceError):
    """The service received too many requests; it did not carry out this one."""

    code = "throttled"
    retryable = True


class ServiceUnavailableError(ServiceError):
    """The service failed on its side (an HTTP status of 5xx)."""

    code = "service-unavailable"
    retryable = True


class ConflictError(ServiceError):
    """Another transaction held the item; nothing was written."""

    code = "conflict"
    retryable = True


class EndpointError(ServiceError, ConnectionError):
    """No connection to the service could be made; nothing was sent."""

    code = "endpoint"
    retryable = True


class MalformedReplyError(ServiceError):
    """The reply is not one that the service sends: it is truncated, garbled, or from another server."""

    code = "malformed-reply"


class AccessDeniedError(ServiceError, PermissionError):
    """The service refused the credentials, or they do not permit this request."""

    code = "access-denied"


class TokenReusedError(HoldallError, ValueError):
    """Another transaction used the same client token within the last ten minutes."""

    code = "token-reused"


class OutcomeUnknown(HoldallError):
    """The request was sent and no reply arrived: it may or may not have taken effect.

    Not retryable, because a second attempt could write twice. ``item`` is the stored item, if known.
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


class StoreBusyError(StoreError, TimeoutError):
    """Other processes kept the store locked for longer than this process waits."""

    code = "store-busy"
    retryable = True


class StoreCorruptError(StoreError):
    """The file is damaged, or is not a Holdall store."""

    code = "store-corrupt"


class StoreVersionError(StoreError):
    """The file was written by a newer Holdall than this one."""

    code = "store-version"


class StoreNotWritableError(StoreError):
    """The file or its directory is read-only or does not exist."""

    code = "store-not-writable"


class StoreMovedError(StoreError):
    """The store's file was deleted, moved or replaced while it was open. Nothing was written."""

    code = "store-moved"


class StoreFullError(StoreError):
    """The disk that holds the store is full; the write was rolled back."""

    code = "store-full"


class StoreClosedError(HoldallError, ValueError):
    """The database was used after it had been closed."""

    code = "store-closed"


class ProcessDiedError(HoldallError):
    """A child process died in the middle of a call, or raised an error that could not be passed on."""

    code = "process-died"


class ProcessTimeoutError(HoldallError, TimeoutError):
    """A call in a child process took too long, and the process was killed."""

    code = "process-timeout"


class MediaError(InvalidRequestError):
    """A picture, film, sound or document cannot be processed. Partial results were discarded."""

    code = "media"


class MalformedMediaError(MediaError):
    """The content does not match its type: it is broken, truncated, or crafted to crash programs that read it."""

    code = "malformed-media"


class MediaLimitError(MediaError):
    """The content needs more pixels, memory, time or space than the limits allow."""

    code = "media-limit"


class UnsupportedMediaError(MediaError):
    """Holdall cannot read content of this type, or cannot write the requested format."""

    code = "unsupported-media"


class MediaPackageMissingError(ConfigurationError):
    """A package that reads pictures, films, sound or documents is not installed."""

    code = "media-package-missing"

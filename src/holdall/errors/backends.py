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
    """No credentials were found. The message says where Holdall looked, and never contains one."""

    code = "credentials"


class ServiceError(HoldallError):
    """The service reported that it did not do what was asked."""

    code = "service"


class ThrottledError(ServiceError):
    """Too many requests at the moment; nothing was done."""

    code = "throttled"
    retryable = True


class ServiceUnavailableError(ServiceError):
    """The service failed on its side (a 5xx)."""

    code = "service-unavailable"
    retryable = True


class ConflictError(ServiceError):
    """Another transaction held the item; nothing was done."""

    code = "conflict"
    retryable = True


class EndpointError(ServiceError, ConnectionError):
    """No connection to the service could be made; nothing was sent."""

    code = "endpoint"
    retryable = True


class MalformedReplyError(ServiceError):
    """What came back is not a reply of the service: truncated, garbled, or from another server."""

    code = "malformed-reply"


class AccessDeniedError(ServiceError, PermissionError):
    """The service refused the credentials, or they do not permit this."""

    code = "access-denied"


class TokenReusedError(HoldallError, ValueError):
    """The client token already belongs to another transaction of the last ten minutes."""

    code = "token-reused"


class OutcomeUnknown(HoldallError):
    """The request left and no reply came back: it may or may not have taken effect.

    Not retryable, because a second try could do it twice. ``item`` is the stored item if known.
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
    """Other processes kept the store locked for longer than this one waits."""

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
    """No space is left where the store lives; the write was rolled back."""

    code = "store-full"


class StoreClosedError(HoldallError, ValueError):
    """The database was closed."""

    code = "store-closed"


class ProcessDiedError(HoldallError):
    """A child process died in the middle of a call, or raised an error that could not be passed on."""

    code = "process-died"


class ProcessTimeoutError(HoldallError, TimeoutError):
    """A call in a child process took too long, and the process was killed."""

    code = "process-timeout"


class MediaError(InvalidRequestError):
    """A picture, film, sound or document cannot be worked on. Nothing was kept of what was made of it."""

    code = "media"


class MalformedMediaError(MediaError):
    """The content is not what its type says: broken, truncated, or made to break its reader."""

    code = "malformed-media"


class MediaLimitError(MediaError):
    """The content takes more pixels, memory, time or space than it may."""

    code = "media-limit"


class UnsupportedMediaError(MediaError):
    """There is no reader for content of this type, or no writer for the format."""

    code = "unsupported-media"


class MediaPackageMissingError(ConfigurationError):
    """A package that reads pictures, films, sound or documents is not installed here."""

    code = "media-package-missing"

"""Errors of files and the services that keep them."""

from __future__ import annotations

from holdall.errors.core import ConfigurationError, HoldallError, InvalidRequestError

__all__ = [
    "InvalidObjectKeyError",
    "ObjectNotFoundError",
    "PreconditionFailedError",
    "IntegrityError",
    "UnsupportedConditionError",
]


class InvalidObjectKeyError(InvalidRequestError):
    """A key that no service can store an object under."""

    code = "invalid-object-key"


class ObjectNotFoundError(HoldallError, FileNotFoundError):
    """The service has no object under the key, or no such upload."""

    code = "object-not-found"


class PreconditionFailedError(HoldallError):
    """The object did not meet the request's condition: one already exists, or it was replaced."""

    code = "precondition-failed"


class IntegrityError(HoldallError, ValueError):
    """Bytes have another digest or length than they should. None of them were kept."""

    code = "integrity"


class UnsupportedConditionError(ConfigurationError):
    """The server ignores a condition that the request depends on. Nothing was put or deleted."""

    code = "unsupported-condition"

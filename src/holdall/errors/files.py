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
    """No file service can store an object under this key."""

    code = "invalid-object-key"


class ObjectNotFoundError(HoldallError, FileNotFoundError):
    """The service has no object under the key, or does not know the upload."""

    code = "object-not-found"


class PreconditionFailedError(HoldallError):
    """The object did not meet the request's condition: it already exists, or it was replaced."""

    code = "precondition-failed"


class IntegrityError(HoldallError, ValueError):
    """The bytes do not have the expected digest or length. None of them were kept."""

    code = "integrity"


class UnsupportedConditionError(ConfigurationError):
    """The server ignores a condition that the request depends on. Nothing was stored or deleted."""

    code = "unsupported-condition"

"""Errors of web requests."""

from __future__ import annotations

from holdall.errors.core import HoldallError, InvalidRequestError

__all__ = [
    "BodyTooLargeError",
    "RequestAbandoned",
]


class BodyTooLargeError(InvalidRequestError):
    """The body of a web request is longer than the application accepts."""

    code = "body-too-large"


class RequestAbandoned(HoldallError):
    """A web request's transaction was abandoned because of its response. Only failure handlers receive this error.

    ``status`` is the response's status, which reports an error; None if there was no response or the client was gone.
    """

    code = "request-abandoned"

    def __init__(self, message: str, *, status: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status

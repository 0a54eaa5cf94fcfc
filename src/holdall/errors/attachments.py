"""Errors of attachments."""

from __future__ import annotations

from holdall.errors.core import HoldallError, InvalidRequestError

__all__ = [
    "AttachmentNotLoadedError",
    "ForeignKeyViolation",
    "InvalidFileError",
    "InvariableError",
    "UnpreviewableError",
    "UnrepresentableError",
    "UploadConflictError",
]


class AttachmentNotLoadedError(HoldallError):
    """An attachment was asked for that was not loaded with its owner."""

    code = "attachment-not-loaded"


class ForeignKeyViolation(HoldallError):
    """A blob cannot be deleted while attachments refer to it."""

    code = "foreign-key-violation"


class InvalidFileError(InvalidRequestError):
    """A file is of a type, of a size, or one of a number that its declaration does not accept.

    ``field`` is the name of the attribute that it was meant for.
    """

    code = "invalid-file"

    def __init__(self, message: str, *, field: str | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.field = field


class InvariableError(InvalidRequestError):
    """No variant can be made of a file of this type."""

    code = "invariable"


class UnpreviewableError(InvalidRequestError):
    """No preview can be drawn of a file of this type."""

    code = "unpreviewable"


class UnrepresentableError(InvalidRequestError):
    """Neither a variant nor a preview can be made of a file of this type."""

    code = "unrepresentable"


class UploadConflictError(HoldallError):
    """Bytes came for another place than the one where an upload goes on, or another request continued it meanwhile.

    ``offset`` is where it goes on.
    """

    code = "upload-conflict"

    def __init__(self, message: str, *, offset: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.offset = offset

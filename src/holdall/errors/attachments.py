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
    """The caller used an attachment that was not loaded with its owner."""

    code = "attachment-not-loaded"


class ForeignKeyViolation(HoldallError):
    """The blob cannot be deleted while attachments refer to it."""

    code = "foreign-key-violation"


class InvalidFileError(InvalidRequestError):
    """The declaration of an attachment does not accept the type, the size or the number of the files.

    ``field`` is the name of the declared attribute.
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
    """The bytes do not continue the upload where it stopped, or another request continued it in the meantime.

    ``offset`` is where the upload continues.
    """

    code = "upload-conflict"

    def __init__(self, message: str, *, offset: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.offset = offset

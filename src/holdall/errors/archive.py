"""Errors of the archive."""

from __future__ import annotations

from holdall.errors.core import HoldallError

__all__ = ["ArchiveLossError", "CorruptArchiveError", "DanglingPointerError", "ItemArchivedError"]


class DanglingPointerError(HoldallError, LookupError):
    """The object that holds an archived item is missing from the file service."""

    code = "dangling-pointer"


class CorruptArchiveError(HoldallError, ValueError):
    """The object that holds an archived item, or the pointer to it, is not what Holdall wrote."""

    code = "corrupt-archive"


class ItemArchivedError(HoldallError):
    """A transaction tried to change or delete an archived item of a model with ``on_write="error"``."""

    code = "item-archived"


class ArchiveLossError(HoldallError):
    """An archive run would cost more than it saves in the time for which the items are kept."""

    code = "archive-loss"

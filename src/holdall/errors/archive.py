"""Errors of the archive."""

from __future__ import annotations

from holdall.errors.core import HoldallError

__all__ = ["ArchiveLossError", "CorruptArchiveError", "DanglingPointerError", "ItemArchivedError"]


class DanglingPointerError(HoldallError, LookupError):
    """The object of an archived item is gone."""

    code = "dangling-pointer"


class CorruptArchiveError(HoldallError, ValueError):
    """The object of an archived item, or its pointer, is not what was archived."""

    code = "corrupt-archive"


class ItemArchivedError(HoldallError):
    """An archived item of a model with ``on_write="error"`` was to be changed or deleted."""

    code = "item-archived"


class ArchiveLossError(HoldallError):
    """An archive run would cost more than it saves in the time that the items are kept."""

    code = "archive-loss"

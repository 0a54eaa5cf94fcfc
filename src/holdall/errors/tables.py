"""Errors of tables and their indexes."""

from __future__ import annotations

from holdall.errors.core import HoldallError

__all__ = [
    "TableNotFoundError",
    "TableExistsError",
    "IndexNotFoundError",
    "IndexExistsError",
]


class TableNotFoundError(HoldallError, LookupError):
    """There is no such table."""

    code = "table-not-found"


class TableExistsError(HoldallError, ValueError):
    """A table of that name already exists."""

    code = "table-exists"


class IndexNotFoundError(HoldallError, LookupError):
    """The table has no such index."""

    code = "index-not-found"


class IndexExistsError(HoldallError, ValueError):
    """The table already has an index of that name."""

    code = "index-exists"

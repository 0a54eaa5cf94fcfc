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
    """The table does not exist."""

    code = "table-not-found"


class TableExistsError(HoldallError, ValueError):
    """A table with this name already exists."""

    code = "table-exists"


class IndexNotFoundError(HoldallError, LookupError):
    """The table has no index with this name."""

    code = "index-not-found"


class IndexExistsError(HoldallError, ValueError):
    """The table already has an index with this name."""

    code = "index-exists"

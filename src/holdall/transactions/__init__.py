"""Transactions: what was read and changed, planned as one atomic write, sent, settled, tried again.

Loaded when first used: a program that only sends requests pays nothing for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdall.transactions.api import AsyncTransaction, Transaction
    from holdall.transactions.participant import Participant
    from holdall.transactions.query import AsyncRows, Rows
    from holdall.transactions.retry import RunArguments
    from holdall.transactions.scan import AsyncScanRows, ScanProgress, ScanRows
    from holdall.transactions.unit import ItemChange

__all__ = [
    "AsyncRows",
    "AsyncScanRows",
    "AsyncTransaction",
    "ItemChange",
    "Participant",
    "Rows",
    "RunArguments",
    "ScanProgress",
    "ScanRows",
    "Transaction",
]

_HOMES = {
    "AsyncRows": "query",
    "AsyncScanRows": "scan",
    "AsyncTransaction": "api",
    "ItemChange": "unit",
    "Participant": "participant",
    "Rows": "query",
    "RunArguments": "retry",
    "ScanProgress": "scan",
    "ScanRows": "scan",
    "Transaction": "api",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.transactions' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"holdall.transactions.{home}"), name)
    globals()[name] = found
    return found

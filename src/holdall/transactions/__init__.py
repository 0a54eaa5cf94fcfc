"""Transactions: items are read and changed; the changes become one atomic write, which is retried on contention.

Names are loaded when first used, so a program that only sends requests does not load them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdall.lazy import fetch_names

if TYPE_CHECKING:
    from holdall.core.context import Carry
    from holdall.tables.commit.change import Change, Participant
    from holdall.tables.commit.retry import RunArguments
    from holdall.transactions.api import AsyncTransaction, Transaction
    from holdall.transactions.bulk.api import AsyncBulk, Bulk
    from holdall.transactions.bulk.batch import BulkReport
    from holdall.transactions.bulk.chunk import ChangeReport
    from holdall.transactions.enqueued import Enqueued
    from holdall.transactions.migration.bulk import MigrationReport
    from holdall.transactions.move.flow import MoveArguments, MoveReport
    from holdall.transactions.query.api import AsyncRows, AsyncScanRows, Rows, ScanRows
    from holdall.transactions.query.cursor import RowPage
    from holdall.transactions.query.row import FoundItem
    from holdall.transactions.query.scan import ScanProgress
    from holdall.transactions.read.stored_item import StoredItem
    from holdall.transactions.unit import ItemChange

__all__ = [
    "AsyncBulk",
    "AsyncRows",
    "AsyncScanRows",
    "AsyncTransaction",
    "Bulk",
    "BulkReport",
    "Carry",
    "Change",
    "ChangeReport",
    "Enqueued",
    "FoundItem",
    "ItemChange",
    "MigrationReport",
    "MoveArguments",
    "MoveReport",
    "Participant",
    "RowPage",
    "Rows",
    "RunArguments",
    "ScanProgress",
    "ScanRows",
    "StoredItem",
    "Transaction",
]

_HOMES = {
    "AsyncBulk": "holdall.transactions.bulk.api",
    "AsyncRows": "holdall.transactions.query.api",
    "AsyncScanRows": "holdall.transactions.query.api",
    "AsyncTransaction": "holdall.transactions.api",
    "Bulk": "holdall.transactions.bulk.api",
    "BulkReport": "holdall.transactions.bulk.batch",
    "Carry": "holdall.core.context",
    "Change": "holdall.tables.commit.change",
    "ChangeReport": "holdall.transactions.bulk.chunk",
    "Enqueued": "holdall.transactions.enqueued",
    "FoundItem": "holdall.transactions.query.row",
    "ItemChange": "holdall.transactions.unit",
    "MigrationReport": "holdall.transactions.migration.bulk",
    "MoveArguments": "holdall.transactions.move.flow",
    "MoveReport": "holdall.transactions.move.flow",
    "Participant": "holdall.tables.commit.change",
    "RowPage": "holdall.transactions.query.cursor",
    "Rows": "holdall.transactions.query.api",
    "RunArguments": "holdall.tables.commit.retry",
    "ScanProgress": "holdall.transactions.query.scan",
    "ScanRows": "holdall.transactions.query.api",
    "StoredItem": "holdall.transactions.read.stored_item",
    "Transaction": "holdall.transactions.api",
}

__getattr__ = fetch_names(__name__, _HOMES)

"""The one table of a database: found out about, created, described, deleted, exported; and the tables of models.

`Table` and `AsyncTable` are what ``db.table`` gives; `Layout` says where a table keeps an item's keys, `TablePlan` what
models need of their tables against what those have.
"""

from __future__ import annotations

from holdall.tables.api import AsyncTable, Table
from holdall.tables.definition import Mode
from holdall.tables.export import Format
from holdall.tables.layout import Layout
from holdall.tables.plan import PlannedIndex, PlannedTable, TablePlan
from holdall.tables.record import Address, Record, flag, number, text, texts

__all__ = [
    "Address",
    "AsyncTable",
    "Format",
    "Layout",
    "Mode",
    "PlannedIndex",
    "PlannedTable",
    "Record",
    "Table",
    "TablePlan",
    "flag",
    "number",
    "text",
    "texts",
]

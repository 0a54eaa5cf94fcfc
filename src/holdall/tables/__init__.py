"""The tables of a database: creating, describing, planning, exporting and deleting them.

``db.table`` is a `Table` or an `AsyncTable`. A `Layout` describes where a table keeps an item's keys. A `TablePlan`
compares what models need with what their tables have.
"""

from __future__ import annotations

from holdall.tables.api import AsyncTable, Table
from holdall.tables.definition import Mode
from holdall.tables.export import Format, PolicyFeature
from holdall.tables.layout import Address, Layout
from holdall.tables.plan import PlannedIndex, PlannedTable, TablePlan
from holdall.tables.record import Record
from holdall.tables.record_column import RecordColumn, flag, number, text, texts

__all__ = [
    "Address",
    "AsyncTable",
    "Format",
    "Layout",
    "Mode",
    "PlannedIndex",
    "PlannedTable",
    "PolicyFeature",
    "Record",
    "RecordColumn",
    "Table",
    "TablePlan",
    "flag",
    "number",
    "text",
    "texts",
]

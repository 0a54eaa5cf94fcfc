"""The one table of a database: found out about, created, described, deleted, exported.

`Table` and `AsyncTable` are what ``db.table`` gives; `Layout` says where a table keeps an item's keys.
"""

from __future__ import annotations

from holdall.tables.api import AsyncTable, Table
from holdall.tables.definition import Mode
from holdall.tables.export import Format
from holdall.tables.layout import Layout

__all__ = ["AsyncTable", "Format", "Layout", "Mode", "Table"]

"""The figures of tables: how many items, how many bytes, and when they were counted.

DynamoDB keeps these figures; the embedded engine counts, which takes a while in a large table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from holdall import AsyncDatabase, Model
from holdall.core import DescribeTable, TableDescription
from holdall.errors import HoldallError
from holdall.maintenance import ModelFigure
from holdall.tables import PlannedTable


@dataclass(frozen=True, slots=True)
class TableFigures:
    """A table as it was described. ``description`` is None if the table does not exist."""

    plan: PlannedTable
    description: TableDescription | None


@dataclass(frozen=True, slots=True)
class Figures:
    """All tables of the database, and when they were described. ``problem`` is why they could not be.

    ``models`` is what the last check of the database has counted: see `holdall.Database.doctor`.
    """

    tables: tuple[TableFigures, ...]
    counted_at: datetime
    problem: str | None = None
    models: tuple[ModelFigure, ...] = ()


async def count_figures(db: AsyncDatabase, models: Sequence[type[Model]]) -> Figures:
    """Return the figures of a database, with what its models need."""
    try:
        plan = await db.table.plan(models=list(models))
        described = {
            table.name: await db.send(DescribeTable(table.name)) for table in plan.tables if table.exists
        }
        tables = [TableFigures(table, described.get(table.name)) for table in plan.tables]
        counted = tuple(await db.figures())
    except HoldallError as error:
        return Figures((), datetime.now(UTC), error.message)
    return Figures(tuple(tables), datetime.now(UTC), models=counted)

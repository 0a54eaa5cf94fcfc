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
from holdall.web.console.keeper import Keeper


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


class FigureKeeper(Keeper[Figures]):
    """Keeps the figures of a database, with what its models need."""

    def __init__(self, db: AsyncDatabase, models: Sequence[type[Model]]) -> None:
        super().__init__(self._count)
        self._db = db
        self._models = models

    async def _count(self) -> Figures:
        try:
            plan = await self._db.table.plan(models=list(self._models))
            tables = [await self._describe(table) for table in plan.tables]
            models = tuple(await self._db.figures())
        except HoldallError as error:
            return Figures((), datetime.now(UTC), error.message)
        return Figures(tuple(tables), datetime.now(UTC), models=models)

    async def _describe(self, table: PlannedTable) -> TableFigures:
        if not table.exists:
            return TableFigures(table, None)
        description: TableDescription = await self._db.send(DescribeTable(table.name))
        return TableFigures(table, description)

"""The figures of tables: how many items, how many bytes, and when they were counted.

DynamoDB keeps these figures; the embedded engine counts, which takes a while in a large table. So a page never waits
long for them: it shows the last ones with their date, while newer ones are fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdall import AsyncDatabase, Model
from holdall.core import DescribeTable, TableDescription
from holdall.errors import HoldallError
from holdall.maintenance import ModelFigure
from holdall.tables import PlannedTable

_FRESH = timedelta(seconds=20)
_PATIENCE = 0.02


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


class FigureKeeper:
    """Keeps the last figures, and fetches newer ones once they are some seconds old."""

    def __init__(self, db: AsyncDatabase, models: Sequence[type[Model]]) -> None:
        self._db = db
        self._models = models
        self._last: Figures | None = None
        self._task: asyncio.Task[None] | None = None

    async def get(self) -> Figures | None:
        """Return the figures; None if they are still being counted for the first time."""
        is_old = self._last is None or datetime.now(UTC) - self._last.counted_at > _FRESH
        if is_old and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._fetch())
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=_PATIENCE)
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()  # raises the error of an unexpected failure
        return self._last

    async def _fetch(self) -> None:
        try:
            plan = await self._db.table.plan(models=list(self._models))
            tables = [await self._describe(table) for table in plan.tables]
            models = tuple(await self._db.figures())
            self._last = Figures(tuple(tables), datetime.now(UTC), models=models)
        except HoldallError as error:
            self._last = Figures((), datetime.now(UTC), error.message)

    async def _describe(self, table: PlannedTable) -> TableFigures:
        if not table.exists:
            return TableFigures(table, None)
        description: TableDescription = await self._db.send(DescribeTable(table.name))
        return TableFigures(table, description)

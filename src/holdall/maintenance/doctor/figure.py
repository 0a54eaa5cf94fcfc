"""The figures of models: how many items each has, and how large they are; stored so that the console can show them.

Each model has one small item, ``holdall#Figures`` / ``<model>``, which the next check replaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from holdall.core.context import Context
from holdall.core.measure import item_size
from holdall.core.values import Item
from holdall.errors import HoldallError
from holdall.maintenance.doctor.report import ModelFigure
from holdall.maintenance.doctor.work import Work
from holdall.models.schema import ModelSchema
from holdall.tables.flow import find_table
from holdall.tables.layout import Layout, layout_of
from holdall.tables.record import Record, RecordPages, put_all
from holdall.tables.record_column import RecordColumn, number, text
from holdall.transactions.binding import Binding
from holdall.transactions.table_run.flow import TableRun, Tally

FIGURES = "holdall#Figures"
"""The partition key of the figures, in a table whose sort key is a string."""


class FigureRecord(Record, type="holdall.Figures"):
    """The stored figures of a model."""

    model = text("model")
    items = number("items")
    bytes = number("bytes")
    counted_at: RecordColumn[datetime] = text("counted_at").through(
        datetime.isoformat, datetime.fromisoformat
    )


def count_item(tally: Tally, schema: ModelSchema, item: Item) -> None:
    """Count an item, in its segment."""
    tally.count(f"items of {schema.name}")
    tally.count(f"bytes of {schema.name}", item_size(item))


class Figures:
    """Counts the items of models while their tables are read."""

    def __init__(self, bindings: Sequence[Binding]) -> None:
        names = [each.name for binding in bindings for each in binding.schema.family() if not each.abstract]
        self._counts = {name: [0, 0] for name in sorted(set(names))}

    def add(self, run: TableRun) -> None:
        """Add what the segments of a table have counted."""
        for name, count in self._counts.items():
            count[0] += run.count(f"items of {name}")
            count[1] += run.count(f"bytes of {name}")

    def list(self, now: datetime) -> tuple[ModelFigure, ...]:
        """The figures of all models."""
        return tuple(ModelFigure(name, count[0], count[1], now) for name, count in self._counts.items())


async def store_figures(work: Work, layout: Layout) -> None:
    """Store the figures; without permission to write, they are only reported."""
    records = [
        FigureRecord.new(
            layout.address(FIGURES, each.model, f"{FIGURES}#{each.model}"),
            FigureRecord.model.set(each.model),
            FigureRecord.items.set(each.items),
            FigureRecord.bytes.set(each.bytes),
            FigureRecord.counted_at.set(each.counted_at),
        )
        for each in work.figures
    ]
    try:
        await put_all(work.context.port, records)
    except HoldallError as error:
        await work.find("configuration", "notice", "figures", f"they were not stored: {error.message}")


async def read_figures(context: Context) -> list[ModelFigure]:
    """The figures of each model, as the last check that counted its items has stored them, by name."""
    description = await find_table(context, context.settings.table_name)
    if description is None:
        return []
    layout = layout_of(description, context.settings)
    pages = RecordPages(context.port, FigureRecord, layout.listing(FIGURES), layout.address_of)
    return [
        ModelFigure(each.model, each.items, each.bytes, each.counted_at) for each in await pages.read_all()
    ]

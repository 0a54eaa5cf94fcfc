"""One pass over a table: every page is read once, and each check looks at it.

The segments of a table may be read in different threads, so each has its own checks and its own findings. What only
the whole table shows is decided after the last page.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.maintenance.doctor.figure import Figures, count_item
from holdall.maintenance.doctor.guard import GuardCheck
from holdall.maintenance.doctor.item import ItemCheck, ModelFinder
from holdall.maintenance.doctor.job import JobCheck
from holdall.maintenance.doctor.owner import OwnerCheck
from holdall.maintenance.doctor.report import CheckName
from holdall.maintenance.doctor.work import Visitor, Work
from holdall.tables.layout import Layout
from holdall.transactions.binding import Binding
from holdall.transactions.table_run import TableRun, Tally

_PAGE = 500


class TableCheck:
    """The checks of one table. ``layout`` is that of the database's table; None for any other table."""

    def __init__(
        self,
        work: Work,
        bindings: Sequence[Binding],
        layout: Layout | None,
        table: str,
        wanted: frozenset[CheckName],
    ) -> None:
        self._work = work
        self._finder = ModelFinder(work.context, bindings)
        self._table = table
        self._counts = "items" in wanted
        self._jobs: list[JobCheck] = []
        self._visitors: list[list[Visitor]] = []
        for _ in range(work.segments):
            part = work.fork() if work.segments > 1 else work
            visitors: list[Visitor] = []
            if "items" in wanted:
                visitors.append(ItemCheck(part, self._finder, table))
            if "unique" in wanted:
                visitors.append(GuardCheck(part, self._finder, table))
            if layout is not None and "jobs" in wanted:
                self._jobs.append(JobCheck(part, layout))
                visitors.append(self._jobs[-1])
            if layout is not None and "orphans" in wanted:
                visitors.append(OwnerCheck(part, layout, bindings))
            self._visitors.append(visitors)

    async def read(self, figures: Figures) -> None:
        """Read the table, unless no check needs that."""
        work = self._work
        if not self._visitors[0]:
            return
        # a page has what may be read in a second, so that a low rate does not mean rare bursts
        page = _PAGE if work.rate is None else min(_PAGE, max(1, int(work.rate / work.segments)))
        run = TableRun(
            work.context,
            Scan(self._table, limit=page, consistent=True),
            self._visit,
            segments=work.segments,
            rate=work.rate,
            report=lambda run: work.report(run.count("scanned")),
            progress=work.progress,
        )
        await run.work(None, restart=False)
        work.scanned += run.count("scanned")
        figures.add(run)
        if self._jobs:
            await self._jobs[0].finish(self._jobs)

    async def _visit(self, tally: Tally, rows: Sequence[Item]) -> None:
        await tally.pace.wait(self._work.context.port, len(rows))
        if self._counts:
            for item in rows:
                if (found := self._finder.find(self._table, item)) is not None:
                    count_item(tally, found[1], item)
        for visitor in self._visitors[tally.segment]:
            await visitor.visit(rows)

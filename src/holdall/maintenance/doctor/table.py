"""One pass over a table: every page is read once, and each check looks at it.

The segments of a table may be read in different threads, so each has its own checks and its own findings. What only
the whole table shows is decided after the last page.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdall.artifacts.home import Home as ArtifactHome
from holdall.attachments.home import Home
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.maintenance.doctor.artifact import FileCheck, NameCheck
from holdall.maintenance.doctor.attachment import ClaimCheck, SlotCheck, VariantCheck
from holdall.maintenance.doctor.blob import BlobCheck
from holdall.maintenance.doctor.figure import Figures, count_item
from holdall.maintenance.doctor.guard import GuardCheck
from holdall.maintenance.doctor.item import ItemCheck, ModelFinder
from holdall.maintenance.doctor.job import JobCheck
from holdall.maintenance.doctor.key_filter import KeyFilter
from holdall.maintenance.doctor.object import BlobObjectCheck
from holdall.maintenance.doctor.owner import OwnerCheck
from holdall.maintenance.doctor.report import CheckName
from holdall.maintenance.doctor.work import Finisher, Visitor, Work
from holdall.tables.layout import Layout
from holdall.transactions.binding import Binding
from holdall.transactions.table_run.flow import TableRun, Tally


class TableCheck:
    """The checks of one table. ``layout`` is that of the database's table; None for any other table.

    ``artifacts`` is the home of artifacts, if they are in this table.
    """

    def __init__(
        self,
        work: Work,
        bindings: Sequence[Binding],
        layout: Layout | None,
        artifacts: ArtifactHome | None,
        table: str,
        wanted: frozenset[CheckName],
    ) -> None:
        self._work = work
        self._bindings = bindings
        self._finder = ModelFinder(work.context, bindings)
        self._layout = layout
        self._artifacts = artifacts
        self._table = table
        self._wanted = wanted
        forks = [work.fork() for _ in range(work.segments)] if work.segments > 1 else [work]
        self._known = KeyFilter()
        self._visitors = [self._choose(fork) for fork in forks]

    def _choose(self, work: Work) -> list[Visitor]:
        """The checks of a segment."""
        table, layout, wanted = self._table, self._layout, self._wanted
        found: list[Visitor] = []
        if "items" in wanted:
            found.append(ItemCheck(work, self._finder, table))
        if "unique" in wanted:
            found.append(GuardCheck(work, self._finder, table))
        if layout is not None:
            settings = work.context.settings
            home = Home(layout, settings.namespace, settings.separator)
            if "jobs" in wanted:
                found.append(JobCheck(work, layout, self._known))
            if "blobs" in wanted:
                found += [BlobCheck(work, home), SlotCheck(work, home), VariantCheck(work, home)]
                found.append(ClaimCheck(work, home))
            if "orphans" in wanted:
                found.append(OwnerCheck(work, layout, self._bindings))
                found.append(BlobObjectCheck(work, layout, self._known))
        if self._artifacts is not None and "artifacts" in wanted:
            found += [NameCheck(work, self._artifacts), FileCheck(work, self._artifacts)]
        return found

    async def read(self, figures: Figures) -> None:
        """Read the table, unless no check needs that."""
        work = self._work
        if not self._visitors[0]:
            return
        run = TableRun(
            work.context,
            Scan(self._table, limit=work.page_size, consistent=True),
            self._visit,
            segments=work.segments,
            rate=work.rate,
            report=lambda run: work.report(run.count("scanned")),
            progress=work.progress,
        )
        await run.work(None, restart=False)
        work.scanned += run.count("scanned")
        figures.add(run)
        for parts in zip(*self._visitors, strict=True):
            if isinstance(parts[0], Finisher):
                await parts[0].finish(parts)

    async def _visit(self, tally: Tally, rows: Sequence[Item]) -> None:
        await tally.pace.wait(self._work.context.port, len(rows))
        if "items" in self._wanted:
            for item in rows:
                if (found := self._finder.find(self._table, item)) is not None:
                    count_item(tally, found[1], item)
        for visitor in self._visitors[tally.segment]:
            await visitor.visit(rows)

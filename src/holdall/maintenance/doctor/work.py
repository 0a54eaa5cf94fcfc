"""A check in progress: what it works on, and what it has found."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar, runtime_checkable

from holdall.core.context import Context, State
from holdall.core.frozen import replace
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.errors import HoldallError
from holdall.maintenance.doctor.report import (
    CheckName,
    DoctorFinding,
    DoctorReport,
    ModelFigure,
    Severity,
    UntriedAction,
)
from holdall.models.model import Model
from holdall.transactions.table_run.flow import TableRun, Tally

_MOST = 1000
_PAGE = 500

Mend = Callable[[], Coroutine[Any, Any, object]]
"""Repairs a fault; returns False if another program has changed something meanwhile."""


T = TypeVar("T")


class _Layout:
    """Keeps the layout of the table for one check."""

    def __init__(self) -> None:
        self._known: list[Any] = []

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if not self._known:
            self._known.append(await flow())
        return self._known[0]  # type: ignore[no-any-return]

    def forget(self) -> None:
        self._known.clear()


def observe(context: Context) -> Context:
    """The context of a check: it creates no table, even if the settings allow that, and knows nothing from before."""
    settings = replace(context.settings, manage_table=False)
    return replace(context, settings=settings, discovery=_Layout(), state=State())


class _Findings:
    """The findings of one thread. Only the first are kept; the others are counted."""

    def __init__(self) -> None:
        self.kept: list[DoctorFinding] = []
        self.found = self.repaired = 0

    def add(self, finding: DoctorFinding) -> None:
        self.found += 1
        self.repaired += finding.repaired
        if len(self.kept) < _MOST:
            self.kept.append(finding)


class Work:
    """One check of a database."""

    def __init__(
        self,
        context: Context,
        models: Sequence[type[Model]],
        services: Mapping[str, str | None],
        *,
        repair: bool,
        segments: int,
        rate: float | None,
        progress: Callable[[DoctorReport], Any] | None,
    ) -> None:
        self.context = observe(context)
        self.models = models
        self.services = services
        self.repair = repair
        self.segments = segments
        self.rate = rate
        self.progress = progress
        self.scanned = 0
        self.figures: tuple[ModelFigure, ...] = ()
        self.untried: list[UntriedAction] = []
        self.silent: set[str] = set()
        """The file services that did not answer."""
        self._findings = _Findings()
        self._all = [self._findings]

    @property
    def page_size(self) -> int:
        """How many items to read at a time: no more than in a second, so that a low rate does not mean bursts."""
        return _PAGE if self.rate is None else min(_PAGE, max(1, int(self.rate / self.segments)))

    def fork(self) -> Work:
        """The same check for a segment of a table, which may be read in another thread; the report has its findings."""
        other = copy(self)
        other._findings = _Findings()
        self._all.append(other._findings)
        return other

    async def find(
        self,
        check: CheckName,
        severity: Severity,
        subject: str,
        message: str,
        repair: str | None = None,
        mend: Mend | None = None,
    ) -> None:
        """Report a fault; if faults are to be repaired and this one can be, repair it."""
        repaired = False
        if self.repair and mend is not None:
            try:
                repaired = await mend() is not False
            except HoldallError as error:
                message = f"{message}; the repair failed: {error.message}"
        self.add(DoctorFinding(check, severity, subject, message, repair, repaired))

    async def examine(self, check: CheckName, subject: str, flow: Coroutine[Any, Any, None]) -> None:
        """Examine a stored record; if its attributes cannot be read, that is a finding."""
        try:
            await flow
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            await self.find(check, "error", subject, f"it cannot be read: {why}")

    def add(self, finding: DoctorFinding) -> None:
        """Keep a finding."""
        self._findings.add(finding)

    def report(self, scanned: int = 0) -> DoctorReport:
        """What was found so far; ``scanned`` items of the current table have been read."""
        kept = tuple(each for some in self._all for each in list(some.kept))[:_MOST]
        found, repaired = sum(each.found for each in self._all), sum(each.repaired for each in self._all)
        scanned += self.scanned
        return DoctorReport(kept, found, repaired, scanned, self.figures, tuple(self.untried))

    async def read_again(self, table: str, look: Callable[[Sequence[Item]], None]) -> None:
        """Read a table once more; ``look`` is called with the items of each page, maybe in several threads."""

        async def visit(tally: Tally, rows: Sequence[Item]) -> None:
            await tally.pace.wait(self.context.port, len(rows))
            look(rows)

        run = TableRun(
            self.context,
            Scan(table, limit=self.page_size, consistent=True),
            visit,
            segments=self.segments,
            rate=self.rate,
            report=lambda run: self.report(),
            progress=self.progress,
        )
        await run.work(None, restart=False)

    async def show(self) -> None:
        """Call the user's function with the report so far."""
        if self.progress is not None:
            await self.context.port.call(self.progress, self.report())


class Visitor(Protocol):
    """A check that looks at all items of a table, page by page."""

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the items of a page."""


@runtime_checkable
class Finisher(Visitor, Protocol):
    """A check that can decide some things only after the last page."""

    async def finish(self, parts: Sequence[Any]) -> None:
        """Report what all segments together have found; ``parts`` are their checks, with this one."""


def show_key(key: Item) -> str:
    """A key, for a finding."""
    return " / ".join(str(part) for attribute in key.values() for part in attribute.values())

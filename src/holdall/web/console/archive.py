"""The archive: how much of each model is hot and cold, what that saves, and what another run would do.

Both read the whole table. So they run beside the pages, only when a person asks, and the pages show how far they are.
Nothing is archived here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from starlette.responses import Response

from holdall import AsyncDatabase, Model
from holdall.archive import ArchiveReport, Holdings, Prices, find_archive
from holdall.errors import HoldallError
from holdall.models import describe_model
from holdall.web.console.item import find_model
from holdall.web.console.plot import place_bars, place_line, share_out
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import RefusedVisitError, Visit, explain_problem

_PATIENCE = 0.02
_PAYBACKS = ("3 months", "6 months", "1 year", "2 years", "3 years", "later")

Kind = Literal["holdings", "dry-run"]


@dataclass(slots=True)
class _Measurement:
    """A measurement of a model in the background: its result, or the reason why there is none."""

    began: datetime
    ended: datetime | None = None
    scanned: int = 0
    holdings: Holdings | None = None
    report: ArchiveReport | None = None
    problem: str | None = None
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def was_cancelled(self) -> bool:
        """Whether it ended without a result, because the server's event loop ended."""
        return self.ended is not None and not (self.holdings or self.report or self.problem)

    async def run(self, db: AsyncDatabase, model: type[Model], kind: Kind) -> None:
        """Read the table."""

        def note(report: ArchiveReport) -> None:
            self.scanned = report.scanned

        try:
            if kind == "holdings":
                self.holdings = await db.archive.report(model)
            else:
                self.report = await db.archive.run(model, dry_run=True, progress=note)
        except HoldallError as error:
            self.problem = explain_problem(error)
        except Exception:
            self.problem = "Something went wrong. The server's log has the details."
            raise
        finally:
            self.ended = datetime.now(UTC)


async def _list(visit: Visit) -> Response:
    found = [(model, find_archive(model)) for model in visit.desk.models.values()]
    models = [(describe_model(model), archive) for model, archive in found if archive is not None]
    return visit.render("archives.html", models=models, title="Archive")


async def _show(visit: Visit) -> Response:
    name, model = find_model(visit)
    archive = find_archive(model)
    if archive is None:
        raise RefusedVisitError(404, f"The model {name:.200} has no archive.")
    wanted = visit.query("show")
    kind: Kind | None = "holdings" if wanted == "holdings" else "dry-run" if wanted == "dry-run" else None
    if kind is not None and visit.query("again") == "1":
        _forget(visit, name, kind)
        return visit.redirect(visit.url("archive", name, show=kind))
    found = None if kind is None else await _measure(visit, name, model, kind)
    return visit.render(
        "archive.html",
        name=name,
        facts=describe_model(model),
        archive=archive,
        kind=kind,
        found=found,
        plots=None if found is None else _plot(found),
        title=f"Archive of {describe_model(model)['name']}",
    )


def _find_kept(visit: Visit) -> dict[tuple[str, Kind], _Measurement]:
    found: dict[tuple[str, Kind], _Measurement] = visit.desk.memory.setdefault("archive", {})
    return found


def _forget(visit: Visit, name: str, kind: Kind) -> None:
    """Forget a measurement that has ended, so that the next page begins another."""
    kept = _find_kept(visit)
    found = kept.get((name, kind))
    if found is not None and found.ended is not None:
        del kept[name, kind]


async def _measure(visit: Visit, name: str, model: type[Model], kind: Kind) -> _Measurement:
    """Return the last measurement, or one that begins now."""
    kept = _find_kept(visit)
    found = kept.get((name, kind))
    if found is None or found.was_cancelled:
        found = kept[name, kind] = _Measurement(datetime.now(UTC))
        found.task = asyncio.ensure_future(found.run(visit.db, model, kind))
    if found.task is not None and not found.task.done():
        await asyncio.wait([found.task], timeout=_PATIENCE)
    return found


@dataclass(frozen=True, slots=True)
class Costs:
    """What storing a model costs each month in dollars: its hot items, its pointers, and its cold items.

    ``unarchived`` is what the cold items would cost in the table, if they were as large as the hot ones on average.
    """

    hot: float
    pointers: float
    cold: float
    unarchived: float

    @property
    def saved(self) -> float:
        """What the archive saves each month."""
        return self.unarchived - self.pointers - self.cold

    @property
    def largest(self) -> float:
        """The longer of the two bars that compare them."""
        return max(self.hot + self.pointers + self.cold, self.hot + self.unarchived) or 1.0


def compare_costs(held: Holdings, prices: Prices) -> Costs | None:
    """Return the costs with and without the archive; None without hot items, whose size stands for that of all."""
    if not held.hot_items:
        return None
    table, average = prices.table_storage / 1e9, held.hot_bytes / held.hot_items
    return Costs(
        held.hot_bytes * table,
        held.pointer_bytes * table,
        held.cold_bytes * prices.object_storage / 1e9,
        held.cold_items * average * table,
    )


def _plot(found: _Measurement) -> dict[str, Any]:
    if found.holdings is not None:
        held, prices = found.holdings, Prices()
        return {
            "items": share_out([held.hot_items, held.cold_items]),
            "bytes": share_out([held.hot_bytes, held.pointer_bytes, held.cold_bytes]),
            "costs": compare_costs(held, prices),
            "prices": prices,
        }
    if found.report is not None:
        report = found.report
        return {
            "line": place_line(report.estimate.once, report.estimate.monthly),
            "paybacks": place_bars(dict(zip(_PAYBACKS, report.paybacks, strict=True))),
            "looked_at": report.archived + report.failed + sum(report.skipped.values()),
        }
    return {}


SECTION = Section("archive", "Archive", "snow", (Page("/archive", _list), Page("/archive/{model}", _show)))

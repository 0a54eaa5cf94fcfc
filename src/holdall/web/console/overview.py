"""The overview: the tables of the database with their counts and sizes, and the figures of each model."""

from __future__ import annotations

from starlette.responses import Response

from holdall.web.console.figure import FigureKeeper
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import Visit


async def _show(visit: Visit) -> Response:
    keeper = visit.desk.memory.get("overview")
    if keeper is None:
        keeper = visit.desk.memory["overview"] = FigureKeeper(visit.db, [*visit.desk.models.values()])
    return visit.render("overview.html", figures=await keeper.get(), title="Overview")


SECTION = Section("overview", "Overview", "gauge", (Page("/", _show),))

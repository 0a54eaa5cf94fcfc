"""The overview: the tables of the database with their counts and sizes, and the figures of each model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from starlette.responses import Response

from holdall.maintenance import ModelFigure
from holdall.models import describe_model
from holdall.web.console.figure import count_figures
from holdall.web.console.figure_cache import FigureCache
from holdall.web.console.plot import share_out
from holdall.web.console.section import Page, Section
from holdall.web.console.template import format_size
from holdall.web.console.visit import Visit

_MOST_SHARES = 5


async def _show(visit: Visit) -> Response:
    cache = visit.desk.memory.get("overview")
    if cache is None:
        cache = visit.desk.memory["overview"] = FigureCache(
            partial(count_figures, visit.db, [*visit.desk.models.values()])
        )
    figures = await cache.get()
    return visit.render(
        "overview.html",
        figures=figures,
        shares=[] if figures is None else share_bytes(figures.models),
        links={
            describe_model(model)["name"]: visit.url("models", name)
            for name, model in visit.desk.models.items()
        },
        title="Overview",
    )


def share_bytes(models: Sequence[ModelFigure]) -> list[tuple[str, str, float, str]]:
    """Return the parts of a bar: the models with the most bytes, and all others together."""
    largest = sorted(models, key=lambda each: -each.bytes)
    sizes = {each.model: each.bytes for each in largest[:_MOST_SHARES]}
    if others := sum(each.bytes for each in largest[_MOST_SHARES:]):
        sizes["other models"] = others
    shares = share_out(list(sizes.values()))
    return [
        (name, format_size(size), share, f"arm-{tone}")
        for tone, ((name, size), share) in enumerate(zip(sizes.items(), shares, strict=True))
    ]


SECTION = Section("overview", "Overview", "gauge", (Page("/", _show),))

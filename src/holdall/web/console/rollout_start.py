"""Starting a rollout of an alias: a form with the new version and the stages."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from holdall.artifacts import Alias, Rollout
from holdall.errors import InvalidRequestError
from holdall.web.console.rollout import BY
from holdall.web.console.visit import RefusedVisitError, Visit, explain_problem

_VERSIONS = 25
_PARTS = ("percent", "time", "unit")
UNITS: Mapping[str, int | None] = {"minutes": 60, "hours": 3600, "days": 86_400, "until approved": None}
_ROWS = (("5", "1", "hours"), ("25", "1", "hours"), ("50", "1", "days"), ("", "1", "days"))
"""The stages that the form proposes: per cent, time and unit."""


def can_begin(alias: Alias | None, rollout: Rollout | None) -> bool:
    """Whether a rollout of an alias can begin: it serves one version, and no other rollout is in progress."""
    if alias is None or alias.protected or (rollout is not None and rollout.is_open):
        return False
    served = [version for version, share in alias.shares.items() if share]
    return len(served) == 1 and served[0].isdigit()


async def show_start(visit: Visit) -> Response:
    """Show the form."""
    visit.require_writing()
    alias = await visit.db.artifacts.alias(visit.query("name"), visit.query("alias"))
    return await _show_form(visit, alias, {}, None)


async def _show_form(visit: Visit, alias: Alias, typed: Mapping[str, str], problem: str | None) -> Response:
    versions = [
        version.version
        async for version in visit.db.artifacts.versions(alias.name, limit=_VERSIONS)
        if version.number is not None and not alias.shares.get(version.version)
    ]
    rows = [
        tuple(typed.get(f"{part}-{position}", given) for part, given in zip(_PARTS, row, strict=True))
        for position, row in enumerate(_ROWS)
    ]
    return visit.render(
        "rollout_start.html",
        alias=alias,
        versions=versions,
        rows=rows,
        units=UNITS,
        typed=typed,
        problem=problem,
        title=f"Roll out to {alias.alias:.200}",
        status=200 if problem is None else 422,
    )


async def start_rollout(visit: Visit) -> Response:
    """Start the rollout, if the alias is still as the person saw it."""
    name, wanted, form = visit.query("name"), visit.query("alias"), visit.form
    alias = await visit.db.artifacts.alias(name, wanted)
    try:
        rollout = await visit.db.artifacts.start_rollout(
            name,
            wanted,
            form.get("version", ""),
            _read_stages(form),
            approve="approve" in form,
            expect_revision=form.get("revision") or None,
            by=BY,
            reason=form.get("reason") or None,
        )
    except (InvalidRequestError, RefusedVisitError) as error:
        return await _show_form(visit, alias, form, explain_problem(error))
    return visit.redirect(
        visit.url("artifacts", "alias", name=name, alias=wanted),
        notice=f"Started. Version {rollout.version} gets {rollout.percent} per cent of the traffic.",
    )


def _read_stages(form: Mapping[str, str]) -> list[tuple[int, float | None]]:
    """Return the stages of a form; rows without a percentage are left out."""
    found: list[tuple[int, float | None]] = []
    for position in range(len(_ROWS)):
        percent, time = (form.get(f"{part}-{position}", "").strip() for part in ("percent", "time"))
        unit = form.get(f"unit-{position}", "")
        if not percent:
            continue
        if unit not in UNITS:
            raise RefusedVisitError(422, f"A stage cannot last {unit:.100}.")
        seconds = UNITS[unit]
        numbers = [percent] if seconds is None else [percent, time]
        if not all(text.isascii() and text.isdigit() and len(text) < 7 for text in numbers):
            raise RefusedVisitError(422, "The per cent and the time of a stage must be whole numbers.")
        found.append((int(percent), None if seconds is None else float(int(time) * seconds)))
    return found

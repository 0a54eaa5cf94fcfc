"""A rollout of an alias: how it is advanced, paused, resumed and aborted, each after a page that asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response

from holdall.artifacts import Rollout
from holdall.errors import RolloutError
from holdall.web.console.visit import RefusedVisitError, Visit

BY = "console"
"""Who makes the changes, for the history of an alias."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a person can do with a rollout in one of these states. ``explain`` returns what then happens.

    ``alters`` is whether the alias changes, which a protected one must not.
    """

    verb: str
    past: str
    icon: str
    tone: str
    states: tuple[str, ...]
    alters: bool
    explain: Callable[[Rollout], str]


def _explain_advance(rollout: Rollout) -> str:
    percent, seconds = rollout.stages[rollout.stage + 1]
    if percent == 100:
        return f"Version {rollout.version} gets all traffic at once, and the rollout is done."
    waits = seconds is None or rollout.approve
    then = "until the next stage is approved" if waits else "and the next stage begins by itself"
    return f"Version {rollout.version} gets {percent} per cent of the traffic at once, {then}."


def _explain_pause(rollout: Rollout) -> str:
    kept = f"Version {rollout.version} keeps {rollout.percent} per cent of the traffic"
    return f"{kept} until you resume or abort the rollout."


def _explain_resume(rollout: Rollout) -> str:
    if rollout.left is None:
        return "The rollout waits for approval, as it did before."
    return "The stage continues for the time that it had left."


def _explain_abort(rollout: Rollout) -> str:
    return f"The rollout ends, and version {rollout.base} gets all traffic at once."


MOVES = {
    "advance": Move(
        "Advance", "Advanced", "arrow", "primary", ("running", "waiting", "failed"), True, _explain_advance
    ),
    "pause": Move("Pause", "Paused", "pause", "primary", ("running", "waiting"), False, _explain_pause),
    "resume": Move("Resume", "Resumed", "play", "primary", ("paused",), False, _explain_resume),
    "abort": Move(
        "Abort", "Aborted", "stop", "danger", ("running", "waiting", "paused", "failed"), True, _explain_abort
    ),
}


async def find_rollout(visit: Visit, name: str, alias: str) -> Rollout | None:
    """Return the rollout of an alias, in progress or ended; None if it never had one."""
    try:
        return await visit.db.artifacts.rollout(name, alias)
    except RolloutError:
        return None


def list_moves(rollout: Rollout | None, *, protected: bool) -> dict[str, Move]:
    """Return what a person can do with a rollout now."""
    if rollout is None:
        return {}
    return {
        name: move
        for name, move in MOVES.items()
        if rollout.state in move.states and not (protected and move.alters)
    }


def _read_move(visit: Visit) -> tuple[str, Move]:
    name = str(visit.request.path_params["move"])
    if name not in MOVES:
        raise RefusedVisitError(404, "There is no page at this address.")
    return name, MOVES[name]


async def confirm_rollout_move(visit: Visit) -> Response:
    """Ask whether to make a move, and explain what then happens."""
    visit.require_writing()
    (name, move), artifact, alias = _read_move(visit), visit.query("name"), visit.query("alias")
    rollout = await visit.db.artifacts.rollout(artifact, alias)
    if rollout.state not in move.states:
        raise RefusedVisitError(409, f"The rollout is {rollout.state}.")
    return visit.render(
        "confirm.html",
        heading=f"{move.verb} the rollout of version {rollout.version}?",
        subject=f"{alias} of {artifact}",
        consequence=move.explain(rollout),
        verb=move.verb,
        tone=move.tone,
        values={"id": rollout.id, "revision": rollout.revision},
        asks_reason=move.alters,
        action=visit.url("artifacts", "rollout", name, name=artifact, alias=alias),
        back=visit.url("artifacts", "alias", name=artifact, alias=alias),
        title=f"{move.verb} a rollout",
    )


async def move_rollout(visit: Visit) -> Response:
    """Make a move, if the rollout is still the one that the person saw; advance it only from the stage they saw."""
    (name, move), artifact, alias = _read_move(visit), visit.query("name"), visit.query("alias")
    artifacts, reason = visit.db.artifacts, visit.form.get("reason") or None
    id = visit.form.get("id", "")
    if name == "advance":
        rollout = await artifacts.advance_rollout(
            artifact, alias, expect_revision=visit.form.get("revision", ""), by=BY, reason=reason
        )
    elif name == "abort":
        rollout = await artifacts.abort_rollout(artifact, alias, expect_id=id, by=BY, reason=reason)
    elif name == "pause":
        rollout = await artifacts.pause_rollout(artifact, alias, expect_id=id)
    else:
        rollout = await artifacts.resume_rollout(artifact, alias, expect_id=id)
    percent = 0 if rollout.state == "aborted" else rollout.percent
    return visit.redirect(
        visit.url("artifacts", "alias", name=artifact, alias=alias),
        notice=f"{move.past}. Version {rollout.version} gets {percent} per cent of the traffic.",
    )

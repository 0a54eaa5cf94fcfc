"""An alias of an artifact: its split, how the split is moved and rolled back, its history and its rollout."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from holdall.artifacts import Alias
from holdall.errors import AliasNotFoundError
from holdall.web.console.plot import share_out
from holdall.web.console.rollout import BY, find_rollout, list_moves
from holdall.web.console.rollout_start import can_begin
from holdall.web.console.value_text import parse_number
from holdall.web.console.visit import RefusedVisitError, Visit

_CHOICES = 5
_CHANGES = 50
_TONES = 6
"""How many colours the style sheet has for versions."""


def find_shares(weights: Mapping[str, int]) -> dict[str, float]:
    """Return the share of each version, from 0 to 1."""
    return dict(zip(weights, share_out(list(weights.values())), strict=True))


def list_arms(shares: Mapping[str, float]) -> list[tuple[str, float, int]]:
    """Return versions in their order, each with its share and the number of its colour.

    A version has the same colour in all bars, unless two versions of a bar would have the same.
    """
    found: list[tuple[str, float, int]] = []
    for version in sorted(shares, key=lambda each: (not each.isdigit(), int(each) if each.isdigit() else 0)):
        tone = int(version) % _TONES if version.isdigit() else _TONES - 1
        taken = {each[2] for each in found}
        while tone in taken and len(taken) < _TONES:
            tone = (tone + 1) % _TONES
        found.append((version, shares[version], tone))
    return found


def _read_names(visit: Visit) -> tuple[str, str]:
    return visit.query("name"), visit.query("alias")


async def show_alias(visit: Visit) -> Response:
    """Show an alias; also the history of one that was deleted."""
    name, wanted = _read_names(visit)
    alias = await _find_alias(visit, name, wanted)
    history = await visit.db.artifacts.alias_history(name, wanted, limit=_CHANGES)
    if alias is None and not history:
        raise RefusedVisitError(404, f"{name:.200} has no alias {wanted:.200}.")
    weights: dict[str, int] = {} if alias is None else alias.describe()["weights"]
    rollout = await find_rollout(visit, name, wanted)
    return visit.render(
        "alias.html",
        name=name,
        wanted=wanted,
        alias=alias,
        weights=weights,
        choices=await _list_choices(visit, name, weights),
        history=[
            (change, None if change.weights is None else find_shares(change.weights)) for change in history
        ],
        current=history[0].number if history and alias is not None else None,
        rollout=rollout,
        can_begin=can_begin(alias, rollout),
        moves=list_moves(rollout, protected=alias is not None and alias.protected),
        title=f"{wanted:.200} of {name:.200}",
    )


async def _find_alias(visit: Visit, name: str, wanted: str) -> Alias | None:
    try:
        return await visit.db.artifacts.alias(name, wanted)
    except AliasNotFoundError:
        return None


async def _list_choices(visit: Visit, name: str, weights: Mapping[str, int]) -> list[str]:
    """Return the newest versions that an alias does not serve."""
    found = [
        version.version
        async for version in visit.db.artifacts.versions(name, limit=_CHOICES + len(weights))
        if version.version not in weights and version.number is not None
    ]
    return found[:_CHOICES]


# --- changes --------------------------------------------------------------------------------------------------


def _parse_weights(values: Mapping[str, str]) -> dict[str, int]:
    """Return the weights of a form, by version; those that are empty or 0 are left out."""
    found: dict[str, int] = {}
    for key, text in values.items():
        if not key.startswith("weight-") or not text.strip():
            continue
        weight = parse_number(text)
        if weight is None:
            raise RefusedVisitError(422, f"A weight must be a whole number, not {text:.100}.")
        if weight:
            found[key.removeprefix("weight-")] = weight
    if not found:
        raise RefusedVisitError(422, "At least one version needs a weight above 0.")
    return found


async def confirm_move(visit: Visit) -> Response:
    """Ask whether to move the split, with the splits before and after."""
    visit.require_writing()
    name, wanted = _read_names(visit)
    alias = await visit.db.artifacts.alias(name, wanted)
    weights = _parse_weights(visit.request.query_params)
    for version in weights:
        await visit.db.artifacts.get(name, version)  # refuses a version that does not exist
    rollout = await find_rollout(visit, name, wanted)
    return visit.render(
        "alias_move.html",
        name=name,
        alias=alias,
        weights=weights,
        after=find_shares(weights),
        ends_rollout=rollout is not None and rollout.is_open,
        title=f"Move {wanted:.200}",
    )


async def move_alias(visit: Visit) -> Response:
    """Move the split, if the alias is still as the person saw it."""
    name, wanted = _read_names(visit)
    weights: dict[int | str, int] = dict(_parse_weights(visit.form).items())
    alias = await visit.db.artifacts.put_alias(
        name,
        wanted,
        weights=weights,
        expect_revision=visit.form.get("revision") or None,
        by=BY,
        reason=visit.form.get("reason") or None,
    )
    return _report(visit, alias, "Moved")


async def roll_back_alias(visit: Visit) -> Response:
    """Undo the last change of an alias, or go back to the change that the form names."""
    name, wanted = _read_names(visit)
    to = visit.form.get("to", "")
    if to and parse_number(to) is None:
        raise RefusedVisitError(422, "The number of the change is not a number.")
    alias = await visit.db.artifacts.rollback_alias(
        name,
        wanted,
        to=parse_number(to),
        expect_revision=visit.form.get("revision") or None,
        by=BY,
    )
    return _report(visit, alias, "Rolled back")


def _report(visit: Visit, alias: Alias, verb: str) -> Response:
    split = ", ".join(f"{share:.0%} version {version}" for version, share, _ in list_arms(alias.shares))
    return visit.redirect(
        visit.url("artifacts", "alias", name=alias.name, alias=alias.alias),
        notice=f"{verb}. {alias.alias} now serves {split}.",
    )

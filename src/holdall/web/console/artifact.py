"""Artifacts: a list of them, and one with its versions and its aliases. An alias has pages of its own."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from holdall.artifacts import Alias, Artifact
from holdall.web.console.alias import confirm_move, move_alias, roll_back_alias, show_alias
from holdall.web.console.rollout import confirm_rollout_move, move_rollout
from holdall.web.console.rollout_start import show_start, start_rollout
from holdall.web.console.section import Page, Section
from holdall.web.console.value_text import parse_number
from holdall.web.console.visit import RefusedVisitError, Visit

_SIZE = 24
_ALIASES = 48
_VERSIONS = 25


async def _list(visit: Visit) -> Response:
    prefix = visit.query("prefix")
    after = visit.query("after") or None
    names: list[str] = []
    async for name in visit.db.artifacts.names(prefix, after=after):
        names.append(name)
        if len(names) > _SIZE:
            break
    shown = names[:_SIZE]
    aliases = await asyncio.gather(*(visit.db.artifacts.aliases(name) for name in shown))
    chosen = {"prefix": prefix or None}
    return visit.render(
        "artifacts.html",
        prefix=prefix,
        after=after,
        artifacts=list(zip(shown, aliases, strict=True)),
        first_url=visit.url("artifacts", **chosen),
        next_url=visit.url("artifacts", **chosen, after=shown[-1]) if len(names) > _SIZE else None,
        title="Artifacts",
    )


async def _show(visit: Visit) -> Response:
    name, before = visit.query("name"), visit.query("before") or None
    deleted = "1" if visit.query("deleted") == "1" else None
    aliases = await visit.db.artifacts.aliases(name)
    found = [
        version
        async for version in visit.db.artifacts.versions(
            name, where={"deleted": None if deleted else False}, before=before, limit=_VERSIONS + 1
        )
    ]
    if not found and not aliases and before is None and not await _has_deleted(visit, name):
        raise RefusedVisitError(404, f"There is no artifact {name:.200}.")
    shown = found[:_VERSIONS]
    place = parse_number(visit.query("aliases")) or 0
    first = place if place < len(aliases) else 0
    return visit.render(
        "artifact.html",
        name=name,
        aliases=aliases[first : first + _ALIASES],
        first_alias=first,
        alias_count=len(aliases),
        alias_step=_ALIASES,
        versions=[(version, _list_aliases(version, aliases)) for version in shown],
        before=before,
        deleted=deleted,
        next_url=None
        if len(found) <= _VERSIONS
        else visit.url("artifacts", "artifact", name=name, deleted=deleted, before=shown[-1].version),
        title=name,
    )


async def _has_deleted(visit: Visit, name: str) -> bool:
    async for _ in visit.db.artifacts.versions(name, where={"deleted": True}, limit=1):
        return True
    return False


def _list_aliases(version: Artifact, aliases: list[Alias]) -> list[tuple[str, float]]:
    """Return the aliases that serve a version, each with the version's share."""
    return [
        (alias.alias, alias.shares[version.version]) for alias in aliases if version.version in alias.shares
    ]


SECTION = Section(
    "artifacts",
    "Artifacts",
    "box",
    (
        Page("/artifacts", _list),
        Page("/artifacts/artifact", _show),
        Page("/artifacts/alias", show_alias),
        Page("/artifacts/alias/move", confirm_move),
        Page("/artifacts/alias/move", move_alias, changes=True),
        Page("/artifacts/alias/roll-back", roll_back_alias, changes=True),
        Page("/artifacts/roll-out", show_start),
        Page("/artifacts/roll-out", start_rollout, changes=True),
        Page("/artifacts/rollout/{move}", confirm_rollout_move),
        Page("/artifacts/rollout/{move}", move_rollout, changes=True),
    ),
)

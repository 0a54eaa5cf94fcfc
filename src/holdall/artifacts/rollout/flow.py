"""Flows that start, read, advance, pause, resume and abort staged rollouts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from holdall.artifacts.alias.alias import Version
from holdall.artifacts.alias.flow import alter_alias, check_protected, check_revision
from holdall.artifacts.alias.state import AliasState, explain_no_alias, read_state
from holdall.artifacts.home import find_home
from holdall.artifacts.name import LATEST, check_alias, check_name, display_version, encode_version_sk
from holdall.artifacts.record import RolloutRecord
from holdall.artifacts.rollout.move import (
    Move,
    change_rollout,
    check_state,
    end_superseded,
    enter_stage,
    has_traffic,
    plan_next,
    see_rollout,
    write_rollout,
)
from holdall.artifacts.rollout.rollout import Rollout, rollout_of, stages_of
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.errors import ArtifactChangedError, InvalidOptionsError, RolloutError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit
from holdall.tables.record import fetch

# --- looking ----------------------------------------------------------------------------------------------


async def rollout(context: Context, name: str, alias: str) -> Rollout:
    """Return the current rollout of an alias, or the last one; `RolloutError` if there has never been one."""
    check_name(name)
    seen = await see_rollout(context, await find_home(context), name, alias)
    return seen.rollout if seen.current else end_superseded(seen.rollout)


# --- starting ---------------------------------------------------------------------------------------------


async def start_rollout(
    context: Context,
    name: str,
    alias: str,
    version: Version,
    stages: Iterable[tuple[int, float | timedelta | None]],
    *,
    approve: bool = False,
    allow_protected: bool = False,
    expect_revision: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> Rollout:
    """Move an alias from one version to another in stages, each a percentage of its traffic and a duration.

    The alias must serve exactly one version. Durations are seconds or a timedelta; a stage with None waits for
    `advance_rollout`. With ``approve=True``, every stage waits for it when its time is over. Percentages rise, from 1
    to 99; 100 follows the last. The first stage begins now; a worker begins the others. Any other change of the alias
    ends the rollout. With ``expect_revision``, it starts only if the alias still has that revision; otherwise
    `ArtifactChangedError`. ``by`` and ``reason`` are recorded in the alias's history.
    """
    check_name(name)
    check_alias(alias)
    checked, target = stages_of(stages), _check_target(version)
    home, port = await find_home(context), context.port
    noted: dict[str, Any] = {"by": by, "reason": reason}

    async def body(change: Change) -> Rollout:
        state = await read_state(context, home, name, alias)
        check_revision(state, expect_revision)
        check_protected(state, allow_protected)
        if not state.row.is_stored:
            raise explain_no_alias(name, alias)
        last = await fetch(port, RolloutRecord.at(home, name, alias))
        _check_free(state, last)
        base, now = _base(state, target), port.now()
        place = name, alias, port.new_id()
        begun = Rollout(
            *place, base, target, checked, 0, "running", now, now, 0, "", "", bool(approve), **noted
        )
        changed = await alter_alias(
            change, home, state, begun.arms(0), "rollout", allow_protected=allow_protected, **noted
        )
        return write_rollout(change, home, last, enter_stage(begun, 0, now), changed)

    return await commit(context, body, f"the alias {alias!r:.60} of {name!r:.60}")


def _check_target(version: Version) -> str:
    """The version as it is displayed."""
    target = display_version(encode_version_sk(version))
    if target == LATEST:
        raise InvalidOptionsError(
            "LATEST cannot be rolled out", hint="publish it, and use the number of the new version"
        )
    return target


def _check_free(state: AliasState, record: RolloutRecord) -> None:
    if not record.is_stored:
        return
    last = rollout_of(state.name, state.alias, record)
    if has_traffic(last) and last.alias_revision == state.revision:
        raise RolloutError(
            f"a rollout of version {last.version} is in progress on the alias {state.alias!r:.60} of "
            f"{state.name!r:.60}",
            hint="finish or abort it before you start another",
        )


def _base(state: AliasState, target: str) -> str:
    served = [display_version(sk) for sk, weight in state.arms if weight]
    what = f"the alias {state.alias!r:.60} of {state.name!r:.60}"
    if len(served) > 1:
        raise RolloutError(
            f"{what} serves the versions {', '.join(served)}, but a rollout must begin from one version",
            hint="point the alias to one of them first",
        )
    if served[0] == LATEST:
        raise RolloutError(
            f"{what} serves LATEST, which cannot be part of a rollout",
            hint="publish it, and point the alias to the new version first",
        )
    if served[0] == target:
        raise RolloutError(f"{what} already serves version {target}")
    return served[0]


# --- going on ---------------------------------------------------------------------------------------------


async def advance_rollout(
    context: Context,
    name: str,
    alias: str,
    *,
    allow_protected: bool = False,
    expect_revision: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> Rollout:
    """Begin the next stage now. This approves a rollout that waits, cuts a stage short, or retries a failed one.

    With ``expect_revision``, it does so only if the rollout still has that revision, so that you never approve a stage
    that you have not seen; otherwise `ArtifactChangedError`. If several callers, or a caller and the worker, advance at
    the same time, the rollout advances by one stage.
    """
    first: list[Rollout] = []

    def plan(rollout: Rollout, now: datetime) -> Move | None:
        if first and rollout.id == first[0].id and rollout.stage > first[0].stage:
            return None
        first.append(rollout)
        if expect_revision is not None and rollout.revision != expect_revision:
            raise ArtifactChangedError(
                f"the rollout of {name!r:.60} has revision {rollout.revision}, not {expect_revision:.40}",
                hint="it has changed since you read it: read it again, then decide",
            )
        check_state(rollout, "running", "waiting", "failed")
        return plan_next(rollout, now)

    return await change_rollout(context, name, alias, plan, allow_protected, by, reason)


async def abort_rollout(
    context: Context,
    name: str,
    alias: str,
    *,
    allow_protected: bool = False,
    expect_id: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> Rollout:
    """Abort a rollout: its alias serves only the version that it served before.

    With ``expect_id``, it does so only if the rollout still has that id; otherwise `ArtifactChangedError`.
    """

    def plan(rollout: Rollout, now: datetime) -> Move:
        _check_id(rollout, expect_id)
        check_state(rollout, "running", "waiting", "paused", "failed")
        back = ((encode_version_sk(rollout.base), 100),)
        return Move(replace(rollout, state="aborted", due=None, left=None), back)

    return await change_rollout(context, name, alias, plan, allow_protected, by, reason)


async def pause_rollout(context: Context, name: str, alias: str, *, expect_id: str | None = None) -> Rollout:
    """Pause a rollout at its current stage until it is resumed or aborted.

    With ``expect_id``, it does so only if the rollout still has that id; otherwise `ArtifactChangedError`.
    """

    def plan(rollout: Rollout, now: datetime) -> Move:
        _check_id(rollout, expect_id)
        check_state(rollout, "running", "waiting")
        left = None if rollout.due is None else max(0.0, (rollout.due - now).total_seconds())
        return Move(replace(rollout, state="paused", due=None, left=left))

    return await change_rollout(context, name, alias, plan)


async def resume_rollout(context: Context, name: str, alias: str, *, expect_id: str | None = None) -> Rollout:
    """Resume a paused rollout; the stage continues for the time that it had left.

    With ``expect_id``, it does so only if the rollout still has that id; otherwise `ArtifactChangedError`.
    """

    def plan(rollout: Rollout, now: datetime) -> Move:
        _check_id(rollout, expect_id)
        check_state(rollout, "paused")
        if rollout.left is None:
            return Move(replace(rollout, state="waiting"))
        due = now + timedelta(seconds=rollout.left)
        return Move(replace(rollout, state="running", due=due, left=None))

    return await change_rollout(context, name, alias, plan)


def _check_id(rollout: Rollout, expect_id: str | None) -> None:
    if expect_id is not None and rollout.id != expect_id:
        raise ArtifactChangedError(
            f"another rollout has begun, that of version {rollout.version} with the id {rollout.id}",
            hint="read it again, then decide",
        )

"""One move of a staged rollout, and the job that makes the next move.

**One transaction for each move**: it writes the alias, the rollout, and the job that makes the next move when the stage
is over. So there is always exactly one job that matters, wherever a process stops. It carries the rollout's id and
turn; any other job (late, early, repeated, or of an earlier rollout) finds another turn and does nothing.

**Other changes take precedence.** A rollout remembers the revision in which it left the alias. If the alias has another
revision, a caller has changed it, and the rollout ends as superseded without touching the alias.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeAlias

from holdall.artifacts.alias.alias import Alias, Arms
from holdall.artifacts.alias.flow import alter_alias
from holdall.artifacts.alias.state import AliasState, read_state
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import check_name
from holdall.artifacts.record import RolloutRecord
from holdall.artifacts.rollout.job import next_stage
from holdall.artifacts.rollout.rollout import Rollout, make_record, rollout_of
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.errors import ArtifactNotFoundError, InvalidRequestError, RolloutError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit
from holdall.tables.record import fetch


@dataclass(frozen=True, slots=True)
class Seen:
    """A stored rollout; ``state`` is its alias, if it was read; ``current``: the alias is as the rollout left it."""

    record: RolloutRecord
    rollout: Rollout
    state: AliasState | None
    current: bool


@dataclass(frozen=True, slots=True)
class Move:
    """The next state of a rollout and, unless it stays the same, what its alias serves next."""

    after: Rollout
    arms: Arms | None = None


Plan: TypeAlias = Callable[[Rollout, datetime], "Move | None"]
"""Decides the move to make from the rollout and the time; None for no move. Raises `RolloutError` to refuse."""


# --- looking ----------------------------------------------------------------------------------------------


async def see_rollout(context: Context, home: Home, name: str, alias: str) -> Seen:
    """Read a rollout, and whether the alias is as it left it; read again if a move may have come in between."""
    record = await fetch(context.port, RolloutRecord.at(home, name, alias))
    while True:
        found = rollout_of(name, alias, record)
        if not has_traffic(found):
            return Seen(record, found, None, True)
        state = await read_state(context, home, name, alias)
        if state.revision == found.alias_revision:
            return Seen(record, found, state, True)
        again = await fetch(context.port, record)
        if again.is_stored and again.revision == record.revision:
            return Seen(record, found, state, False)
        record = again


def has_traffic(rollout: Rollout) -> bool:
    """Whether the rollout controls part of the traffic."""
    return rollout.is_open or rollout.state == "failed"


def end_superseded(rollout: Rollout) -> Rollout:
    """The rollout after a caller has changed its alias."""
    problem = "another caller changed the alias"
    return replace(rollout, state="superseded", problem=problem, due=None, left=None)


def check_state(rollout: Rollout, *states: str) -> None:
    """Raise `RolloutError` unless the rollout is in one of these states."""
    if rollout.state in states:
        return
    hints = {
        "paused": "resume or abort it first",
        "done": "to go back, roll back the alias",
        "aborted": "start a new rollout",
        "superseded": "start a new rollout",
    }
    why = f": {rollout.problem}" if rollout.problem else ""
    raise RolloutError(
        f"the rollout of version {rollout.version} on the alias {rollout.alias!r:.60} of {rollout.name!r:.60} "
        f"is {rollout.state}{why}",
        hint=hints.get(rollout.state, f"this call needs a rollout that is {' or '.join(states)}"),
    )


def plan_next(rollout: Rollout, now: datetime) -> Move:
    """The move to the next stage."""
    stage = rollout.stage + 1
    return Move(enter_stage(rollout, stage, now), rollout.arms(stage))


def enter_stage(rollout: Rollout, stage: int, now: datetime) -> Rollout:
    """The rollout at the beginning of a stage."""
    entered = replace(rollout, stage=stage, due=None, left=None, problem=None)
    if entered.is_last:
        return replace(entered, state="done")
    seconds = rollout.stages[stage][1]
    if seconds is None:
        return replace(entered, state="waiting")
    return replace(entered, state="running", due=now + timedelta(seconds=seconds))


# --- one move ---------------------------------------------------------------------------------------------


def write_rollout(
    change: Change, home: Home, before: RolloutRecord, after: Rollout, alias: Alias | None = None
) -> Rollout:
    """Write a rollout's next turn and its job, if no other process has; ``alias`` is the alias after the change."""
    port = change.context.port
    after = replace(after, turn=after.turn + 1, revision=port.new_id(), update_at=port.now())
    if alias is not None:
        assert alias.revision is not None
        after = replace(after, alias_revision=alias.revision)
    change.put(make_record(home, after), expect=[before.same(RolloutRecord.revision)])
    _leave_job(change, after)
    return after


async def change_rollout(
    context: Context,
    name: str,
    alias: str,
    plan: Plan,
    allow_protected: bool = False,
    by: str | None = None,
    reason: str | None = None,
    *,
    by_job: bool = False,
) -> Rollout:
    """Make a planned move; plan it again after contention. The job acts on behalf of the caller who started it."""
    check_name(name)
    home = await find_home(context)

    async def body(change: Change) -> tuple[Rollout, bool]:
        seen = await see_rollout(context, home, name, alias)
        found = seen.rollout
        if not seen.current:
            return write_rollout(change, home, seen.record, end_superseded(found)), False
        move = plan(found, context.port.now())
        if move is None:
            return found, True
        if move.arms is None:
            return write_rollout(change, home, seen.record, move.after), True
        who, why = (found.by, found.reason) if by_job else (by, reason)
        changed = await alter_alias(
            change,
            home,
            seen.state or await read_state(context, home, name, alias),
            move.arms,
            "rollout",
            allow_protected=allow_protected,
            by=who,
            reason=why,
        )
        return write_rollout(change, home, seen.record, move.after, changed), True

    done, current = await commit(context, body, f"the rollout of {name!r:.60}")
    if not current:
        check_state(done)
    return done


# --- the job ----------------------------------------------------------------------------------------------


async def continue_rollout(context: Context, name: str, alias: str, id: str, turn: int) -> None:
    """Make the next move of a rollout whose stage is over, if it is still at that turn."""
    problem = ""

    def is_meant(rollout: Rollout) -> bool:
        return (rollout.id, rollout.turn, rollout.state) == (id, turn, "running")

    def plan(rollout: Rollout, now: datetime) -> Move | None:
        if not is_meant(rollout) or (rollout.due is not None and rollout.due > now):
            return None
        if rollout.approve:
            return Move(replace(rollout, state="waiting", due=None))
        return plan_next(rollout, now)

    def fail(rollout: Rollout, now: datetime) -> Move | None:
        failed = replace(rollout, state="failed", due=None, problem=problem)
        return Move(failed) if is_meant(rollout) else None

    try:
        try:
            found = await change_rollout(context, name, alias, plan, True, by_job=True)
        except (ArtifactNotFoundError, InvalidRequestError) as error:  # a retry would fail in the same way
            problem = error.message
            found = await change_rollout(context, name, alias, fail)
    except RolloutError:
        return  # it was superseded, or purged with its artifact
    if is_meant(found):  # the clock of the process that enqueued or started this job was ahead of ours
        await enqueue_turn(context, found)


async def enqueue_turn(context: Context, rollout: Rollout) -> None:
    """Enqueue another job for the current stage of a rollout; one too many is harmless."""

    async def body(change: Change) -> None:
        _leave_job(change, rollout)

    await commit(context, body, f"the rollout of {rollout.name!r:.60}")


def _leave_job(change: Change, rollout: Rollout) -> None:
    """Enqueue the job that continues when the current stage is over; none if the stage does not end by itself."""
    if rollout.state != "running" or rollout.due is None:
        return
    from holdall.jobs.outbox import Outbox  # it takes a while to load

    context = change.context
    delay = max(0.0, (rollout.due - context.port.now()).total_seconds())
    arguments = (rollout.name, rollout.alias, rollout.id, rollout.turn)
    outbox = Outbox(context)
    outbox.add(next_stage, arguments, delay=delay)
    change.join(outbox)

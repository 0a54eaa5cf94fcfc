"""One step of a staged rollout, and what the job does that takes the next.

**One transaction for each step**: the alias, the rollout, and the job that is to take the next step, due when the stage
is over. So there is always exactly one job that matters, wherever anybody stops. It carries the rollout's id and turn;
any other job, be it late, early, a second time, or of an earlier rollout, finds another turn and leaves it alone.

**Others go first.** A rollout remembers the revision that it left the alias with. Once the alias has another,
somebody has changed it, and the rollout ends as superseded without touching it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeAlias

from holdall.artifacts.alias import Alias, Arms
from holdall.artifacts.alias_state import AliasState, read_state
from holdall.artifacts.aliasing import change_alias
from holdall.artifacts.events import Announcement
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.latest import committed, pauses
from holdall.artifacts.naming import check_name, encode_meta_pk
from holdall.artifacts.rollouts.rollout import Rollout, rollout_item, rollout_of, rollout_sk
from holdall.artifacts.rollouts.staging import next_stage
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import PutItem, TransactAction
from holdall.core.values import Item
from holdall.errors import ArtifactNotFoundError, ContentionError, InvalidRequestError, RolloutError
from holdall.tables.commit.change import Change

__all__ = [
    "Moving",
    "Plan",
    "Seen",
    "Step",
    "change_rollout",
    "check_state",
    "entered",
    "following",
    "go_on",
    "matters",
    "seen_rollout",
    "stored_rollout",
    "superseded",
]

_SUPERSEDED = "the alias was changed by others"


@dataclass(frozen=True, slots=True)
class Seen:
    """A rollout as it is stored; ``current``: the alias is still as it left it."""

    item: Item
    rollout: Rollout
    current: bool


@dataclass(frozen=True, slots=True)
class Step:
    """What a rollout is to become, and, unless it stays, what its alias is to serve."""

    after: Rollout
    arms: Arms | None = None


Plan: TypeAlias = Callable[[Rollout, datetime], "Step | None"]
"""The step to take, in view of the rollout and the time; None for none. Refuses by `RolloutError`."""


# --- looking ----------------------------------------------------------------------------------------------


async def seen_rollout(context: Context, home: Home, name: str, alias: str) -> Seen:
    """The rollout, and whether the alias is as it left it: looked at again where a step may have come in between."""
    item = await stored_rollout(context, home, name, alias)
    while True:
        found = rollout_of(name, alias, item)
        assert item is not None
        if not matters(found):
            return Seen(item, found, True)
        state = await read_state(context, home, name, alias)
        if state.revision == found.alias_revision:
            return Seen(item, found, True)
        again = await stored_rollout(context, home, name, alias)
        if again is not None and again["revision"] == item["revision"]:
            return Seen(item, found, False)
        item = again


async def stored_rollout(context: Context, home: Home, name: str, alias: str) -> Item | None:
    """The item of an alias's rollout; None when there never was one."""
    return (await context.port.send(home.get(encode_meta_pk(name), rollout_sk(alias)))).item


def matters(rollout: Rollout) -> bool:
    """Whether it has a part of the traffic in its hands."""
    return rollout.is_open or rollout.state == "failed"


def superseded(rollout: Rollout) -> Rollout:
    """The rollout after others have changed its alias."""
    return replace(rollout, state="superseded", problem=_SUPERSEDED, due=None, left=None)


def check_state(rollout: Rollout, *states: str) -> None:
    """Refuse what can be done only in these states."""
    if rollout.state in states:
        return
    hints = {
        "paused": "resume it, or abort it",
        "done": "to go back, see rollback_alias",
        "aborted": "start another one",
        "superseded": "start another one",
    }
    why = f": {rollout.problem}" if rollout.problem else ""
    raise RolloutError(
        f"the rollout of version {rollout.version} on the alias {rollout.alias!r:.60} of {rollout.name!r:.60} "
        f"is {rollout.state}{why}",
        hint=hints.get(rollout.state, f"that is for one that is {' or '.join(states)}"),
    )


def following(rollout: Rollout, now: datetime) -> Step:
    """The step to the next stage."""
    stage = rollout.stage + 1
    return Step(entered(rollout, stage, now), rollout.arms(stage))


def entered(rollout: Rollout, stage: int, now: datetime) -> Rollout:
    """The rollout at the beginning of a stage."""
    entered = replace(rollout, stage=stage, due=None, left=None, problem=None)
    if entered.is_last:
        return replace(entered, state="done")
    seconds = rollout.stages[stage][1]
    if seconds is None:
        return replace(entered, state="waiting")
    return replace(entered, state="running", due=now + timedelta(seconds=seconds))


# --- one step ---------------------------------------------------------------------------------------------


class Moving:
    """The rollout's part of the transaction of a step; prepared anew where that is tried again."""

    def __init__(self, context: Context, home: Home) -> None:
        self._context = context
        self._home = home
        self._before: Item | None = None
        self._after: Rollout | None = None
        self._job = Announcement(context, (), ())

    async def prepare(self, before: Item | None, after: Rollout) -> None:
        """What it was, and what it is to be: another turn of it."""
        port = self._context.port
        self._before = before
        self._after = replace(after, turn=after.turn + 1, revision=port.new_id(), update_at=port.now())
        self._job = await _left_job(self._context, self._after)

    def actions(self, alias: Alias | None = None) -> list[TransactAction]:
        """The rollout, if nobody has changed it, and the job; ``alias`` as it will be, if it changes."""
        assert self._after is not None
        if alias is not None:
            assert alias.revision is not None
            self._after = replace(self._after, alias_revision=alias.revision)
        unchanged = self._home.unchanged(self._before, "revision")
        return [
            PutItem(self._home.table, rollout_item(self._home, self._after), unchanged),
            *self._job.actions,
        ]

    async def settle(self, alias: Alias | None = None) -> Rollout:
        """It went through."""
        assert self._after is not None
        await self._job.settle()
        return self._after


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
    """Take a planned step; planned anew where others came in between. The job's are in the name of who started it."""
    check_name(name)
    home = await home_of(context)
    for pause in pauses():
        seen = await seen_rollout(context, home, name, alias)
        found = seen.rollout
        if not seen.current:
            if await _stepped(context, home, seen, Step(superseded(found))) is not None:
                check_state(superseded(found))
            continue
        step = plan(found, context.port.now())
        if step is None:
            return found
        if by_job:
            by, reason = found.by, found.reason
        done = await _taken(context, home, seen, step, allow_protected, by, reason)
        if done is not None:
            return done
        await context.port.sleep(pause)
    raise ContentionError(f"the rollout of {name!r:.60} is being changed by others, again and again")


class _Meanwhile(Exception):
    """Others have changed the rollout, or its alias, since it was looked at."""


async def _taken(
    context: Context,
    home: Home,
    seen: Seen,
    step: Step,
    allow_protected: bool,
    by: str | None,
    reason: str | None,
) -> Rollout | None:
    """What a step made of a rollout; None when others came in between."""
    found, arms, moving = seen.rollout, step.arms, Moving(context, home)
    if arms is None:
        return await _stepped(context, home, seen, step)
    latest: list[Item | None] = [seen.item]

    async def decide(state: AliasState) -> Arms:
        item = latest.pop() if latest else await stored_rollout(context, home, found.name, found.alias)
        same = item is not None and item["revision"] == seen.item["revision"]
        if not same or state.revision != found.alias_revision:
            raise _Meanwhile
        await moving.prepare(seen.item, step.after)
        return arms

    try:
        changed = await change_alias(
            context,
            found.name,
            found.alias,
            decide,
            "rollout",
            allow_protected=allow_protected,
            by=by,
            reason=reason,
            extra=moving.actions,
        )
    except _Meanwhile:
        return None
    return await moving.settle(changed)


async def _stepped(context: Context, home: Home, seen: Seen, step: Step) -> Rollout | None:
    """A step that leaves the alias alone; None when others came in between."""
    moving = Moving(context, home)
    await moving.prepare(seen.item, step.after)
    return await moving.settle() if await committed(context, moving.actions()) else None


# --- the job ----------------------------------------------------------------------------------------------


async def go_on(context: Context, name: str, alias: str, id: str, turn: int) -> None:
    """Take the next step of a rollout whose stage is over, if it is still at that turn."""
    problem = ""

    def is_meant(rollout: Rollout) -> bool:
        return (rollout.id, rollout.turn, rollout.state) == (id, turn, "running")

    def plan(rollout: Rollout, now: datetime) -> Step | None:
        if not is_meant(rollout) or (rollout.due is not None and rollout.due > now):
            return None
        if rollout.approve:
            return Step(replace(rollout, state="waiting", due=None))
        return following(rollout, now)

    def fail(rollout: Rollout, now: datetime) -> Step | None:
        failed = replace(rollout, state="failed", due=None, problem=problem)
        return Step(failed) if is_meant(rollout) else None

    try:
        try:
            found = await change_rollout(context, name, alias, plan, True, by_job=True)
        except (ArtifactNotFoundError, InvalidRequestError) as error:  # no other attempt would end otherwise
            problem = error.message
            found = await change_rollout(context, name, alias, fail)
    except RolloutError:
        return  # it was superseded, or is gone with its artifact
    if is_meant(found):  # a clock was ahead of ours when it found that it was time
        await _wait_on(context, found)


async def _wait_on(context: Context, rollout: Rollout) -> None:
    """Leave another job for a rollout whose time has not come; one too many does no harm."""
    waiting = await _left_job(context, rollout)
    if not await committed(context, waiting.actions):
        raise ContentionError(f"the rollout of {rollout.name!r:.60} could not be put off")
    await waiting.settle()


async def _left_job(context: Context, rollout: Rollout) -> Announcement:
    """The job that is to go on when the current stage is over; nothing where it does not end by itself."""
    if rollout.state != "running" or rollout.due is None:
        return Announcement(context, (), ())
    delay = max(0.0, (rollout.due - context.port.now()).total_seconds())
    arguments = (rollout.name, rollout.alias, rollout.id, rollout.turn)
    _, enqueuing = context.hook("plan_job")(
        context, (), next_stage, arguments, key=None, delay=delay, queue=None
    )
    part = Change(context)
    await enqueuing.state(part)
    await enqueuing.prepare(context.port)
    return Announcement(context, (enqueuing,), [step.action for step in part.plan.steps])

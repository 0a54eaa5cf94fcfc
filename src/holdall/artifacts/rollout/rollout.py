"""A staged rollout: how an alias moves from one version to another, a few per cent of its traffic at a time.

Pure: the value, the rules for its stages, and its stored form, the item ``rollout#<alias>`` in ``__<name>-meta``.

``turn`` counts what happened to a rollout. The job that is to go on carries the turn it was left at; whoever comes for
another turn, late, twice, or of an earlier rollout, has nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, cast

from holdall.artifacts.alias.alias import Arms
from holdall.artifacts.home import Home
from holdall.artifacts.name import encode_version_sk
from holdall.artifacts.record import RolloutRecord
from holdall.core.frozen import dataclass
from holdall.errors import InvalidOptionsError, RolloutError
from holdall.jobs.declaration import seconds_of

RolloutState: TypeAlias = Literal["running", "waiting", "paused", "done", "aborted", "superseded", "failed"]
"""``waiting`` is for an approval; ``superseded``: somebody else changed the alias; ``failed``: a version is gone."""

Stages: TypeAlias = tuple[tuple[int, float | None], ...]
"""Percents of the new version, rising to 100, and for how many seconds; None: until somebody approves."""

OPEN = ("running", "waiting", "paused")
"""The states of a rollout that is under way."""

_WHOLE = 100


@dataclass(frozen=True, slots=True)
class Rollout:
    """A rollout of ``version`` in place of ``base``, as it is or as it ended.

    ``stages`` are the percents that ``version`` gets, each with its seconds (None: until it is approved), the last of
    them 100; ``stage`` is the place of the current one. ``due`` is when the next follows by itself, ``left`` how many
    seconds a paused one has left. ``approve``: also a stage whose time is over waits. ``problem`` says why it failed or
    was superseded. ``revision`` changes with every change; ``alias_revision`` is that which the alias was left with.
    """

    name: str
    alias: str
    id: str
    base: str
    version: str
    stages: Stages
    stage: int
    state: RolloutState
    started_at: datetime
    update_at: datetime
    turn: int
    revision: str
    alias_revision: str
    approve: bool = False
    due: datetime | None = None
    left: float | None = None
    by: str | None = None
    reason: str | None = None
    problem: str | None = None

    @property
    def percent(self) -> int:
        """The share of the new version in the current stage."""
        return self.stages[self.stage][0]

    @property
    def is_open(self) -> bool:
        """Whether it is under way: it runs, waits for an approval, or is paused."""
        return self.state in OPEN

    @property
    def is_last(self) -> bool:
        """Whether no stage follows."""
        return self.stage == len(self.stages) - 1

    def arms(self, stage: int) -> Arms:
        """What the alias serves in a stage: the new version is the second, so that keys only ever move into it."""
        base, version = encode_version_sk(self.base), encode_version_sk(self.version)
        percent = self.stages[stage][0]
        if percent == _WHOLE:
            return ((version, _WHOLE),)
        return ((base, _WHOLE - percent), (version, percent))

    def describe(self) -> dict[str, Any]:
        """Everything that is known of it, in values that JSON has, times in ISO 8601."""
        return {
            "name": self.name,
            "alias": self.alias,
            "id": self.id,
            "base": self.base,
            "version": self.version,
            "state": self.state,
            "percent": self.percent,
            "stage": self.stage,
            "stages": [list(each) for each in self.stages],
            "approve": self.approve,
            "started_at": self.started_at.isoformat(),
            "update_at": self.update_at.isoformat(),
            "due": None if self.due is None else self.due.isoformat(),
            "left": self.left,
            "by": self.by,
            "reason": self.reason,
            "problem": self.problem,
            "revision": self.revision,
        }


# --- stages -----------------------------------------------------------------------------------------------


def stages_of(given: Iterable[tuple[int, float | timedelta | None]]) -> Stages:
    """The stages that a caller means, checked, with the 100 at their end."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _refuse_stages(given)
    stages = [_stage(each) for each in given]
    if stages and stages[-1][0] == _WHOLE:
        if stages[-1][1]:
            raise InvalidOptionsError(
                f"the stage of {_WHOLE} per cent is to take {stages[-1][1]:g} seconds",
                hint="with it the rollout is done: leave it out, or give it None",
            )
        stages.pop()
    if not stages:
        raise _refuse_stages(stages)
    percents = [percent for percent, _ in stages]
    for before, percent in zip([0, *percents], percents, strict=False):
        if not before < percent < _WHOLE:
            raise InvalidOptionsError(
                f"a stage of {percent} per cent follows one of {before}",
                hint="percents rise, from 1 up to 99; the 100 at the end is understood",
            )
    return (*stages, (_WHOLE, None))


def _stage(given: object) -> tuple[int, float | None]:
    match given:
        case (int(percent), duration) if not isinstance(percent, bool):
            return percent, None if duration is None else round(seconds_of(duration, "a stage's time"), 6)
        case _:
            raise _refuse_stages(given)


def _refuse_stages(given: object) -> InvalidOptionsError:
    return InvalidOptionsError(
        f"{given!r:.60} cannot be the stages of a rollout",
        hint="give percents with their times: [(5, timedelta(hours=1)), (50, 3600)]; None waits for an approval",
    )


# --- the record -------------------------------------------------------------------------------------------


def make_record(home: Home, rollout: Rollout) -> RolloutRecord:
    """The record of a rollout, to be written."""
    kind = RolloutRecord
    return kind.new(
        kind.at(home, rollout.name, rollout.alias).address,
        kind.id.set(rollout.id),
        kind.base.set(rollout.base),
        kind.version.set(rollout.version),
        kind.stages.set(rollout.stages),
        kind.stage.set(rollout.stage),
        kind.state.set(rollout.state),
        kind.started_at.set(rollout.started_at),
        kind.update_at.set(rollout.update_at),
        kind.turn.set(rollout.turn),
        kind.revision.set(rollout.revision),
        kind.alias_revision.set(rollout.alias_revision),
        kind.approve.set(rollout.approve),
        kind.due.set(rollout.due),
        kind.left.set(rollout.left),
        kind.by.set(rollout.by),
        kind.reason.set(rollout.reason),
        kind.problem.set(rollout.problem),
    )


def rollout_of(name: str, alias: str, record: RolloutRecord) -> Rollout:
    """A stored rollout; `RolloutError` if there is none."""
    if not record.is_stored:
        raise RolloutError(f"there was no rollout of the alias {alias!r:.60} of {name!r:.60}")
    assert record.started_at is not None
    assert record.update_at is not None
    return Rollout(
        name,
        alias,
        record.id,
        record.base,
        record.version,
        tuple((int(percent), None if time is None else float(time)) for percent, time in record.stages),
        record.stage,
        cast("RolloutState", record.state),
        record.started_at,
        record.update_at,
        record.turn,
        record.revision,
        record.alias_revision,
        record.approve,
        record.due,
        record.left,
        record.by,
        record.reason,
        record.problem,
    )

"""A staged rollout: how an alias moves from one version to another, a few per cent of its traffic at a time.

Pure: the value, the rules for its stages, and its stored form, the item ``rollout#<alias>`` in ``__<name>-meta``.

``turn`` counts the changes of a rollout. The job that continues a rollout carries the turn at which it was enqueued; a
job with another turn (late, repeated, or of an earlier rollout) does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from holdall.artifacts.alias.alias import Arms
from holdall.artifacts.home import Home
from holdall.artifacts.name import encode_version_sk
from holdall.artifacts.record import RolloutRecord
from holdall.core.frozen import dataclass
from holdall.errors import InvalidOptionsError, RolloutError
from holdall.jobs.declaration import seconds_of

RolloutState: TypeAlias = Literal["running", "waiting", "paused", "done", "aborted", "superseded", "failed"]
"""``waiting``: for approval; ``superseded``: another caller changed the alias; ``failed``: a version is missing."""

Stages: TypeAlias = tuple[tuple[int, float | None], ...]
"""Percentages of the new version, rising to 100, each with its seconds; None waits for approval."""

OPEN = ("running", "waiting", "paused")
"""The states of a rollout in progress."""

_WHOLE = 100


@dataclass(frozen=True, slots=True)
class Rollout:
    """A staged rollout that replaces ``base`` with ``version``, in progress or ended.

    ``stages`` are the percentages of traffic that ``version`` gets, each with its seconds (None waits for approval);
    the last is 100. ``stage`` is the index of the current one. ``due`` is when the next stage begins by itself;
    ``left`` is how many seconds the stage of a paused rollout has left. With ``approve``, every stage waits for
    approval when its time is over. ``problem`` explains why the rollout failed or was superseded. ``revision`` changes
    with every change; ``alias_revision`` is the revision in which the rollout left the alias.
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
        """The percentage of the new version in the current stage."""
        return self.stages[self.stage][0]

    @property
    def is_open(self) -> bool:
        """Whether the rollout is in progress: running, waiting for approval, or paused."""
        return self.state in OPEN

    @property
    def is_last(self) -> bool:
        """Whether no stage follows."""
        return self.stage == len(self.stages) - 1

    def arms(self, stage: int) -> Arms:
        """What the alias serves in a stage; the new version comes second, so that keys only ever move to it."""
        base, version = encode_version_sk(self.base), encode_version_sk(self.version)
        percent = self.stages[stage][0]
        if percent == _WHOLE:
            return ((version, _WHOLE),)
        return ((base, _WHOLE - percent), (version, percent))

    def describe(self) -> dict[str, Any]:
        """Return everything known about the rollout, as JSON-compatible values; times are in ISO 8601."""
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
    """Check a caller's stages, and return them with 100 at the end."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise _refuse_stages(given)
    stages = [_stage(each) for each in given]
    if stages and stages[-1][0] == _WHOLE:
        if stages[-1][1]:
            raise InvalidOptionsError(
                f"the last stage, {_WHOLE} per cent, cannot have a duration, and has {stages[-1][1]:g} seconds",
                hint="leave it out, or give it None: the rollout is done when it reaches 100 per cent",
            )
        stages.pop()
    if not stages:
        raise _refuse_stages(stages)
    percents = [percent for percent, _ in stages]
    for before, percent in zip([0, *percents], percents, strict=False):
        if not before < percent < _WHOLE:
            raise InvalidOptionsError(
                f"a stage of {percent} per cent cannot follow one of {before} per cent",
                hint="percentages must rise, from 1 to 99; 100 is added at the end",
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
        f"the stages of a rollout cannot be {given!r:.60}",
        hint="pass percentages with durations: [(5, timedelta(hours=1)), (50, 3600)]; None waits for approval",
    )


# --- the record -------------------------------------------------------------------------------------------


_STORED = tuple(name for name in Rollout.__match_args__ if name not in ("name", "alias"))
"""The fields with a column of the same name; the record's key has the others."""


def make_record(home: Home, rollout: Rollout) -> RolloutRecord:
    """Make the record of a rollout."""
    address = RolloutRecord.at(home, rollout.name, rollout.alias).address
    return RolloutRecord.new(
        address, *(getattr(RolloutRecord, name).set(getattr(rollout, name)) for name in _STORED)
    )


def rollout_of(name: str, alias: str, record: RolloutRecord) -> Rollout:
    """Read a rollout from its record; `RolloutError` if it is not stored."""
    if not record.is_stored:
        raise RolloutError(
            f"the alias {alias!r:.60} of {name!r:.60} has never had a rollout",
            hint="start one first",
        )
    stored: dict[str, Any] = {field: getattr(record, field) for field in _STORED}
    stored["stages"] = tuple(
        (int(percent), None if time is None else float(time)) for percent, time in record.stages
    )
    return Rollout(name, alias, **stored)

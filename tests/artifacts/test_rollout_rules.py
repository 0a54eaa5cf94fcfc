"""The rules of rollouts: valid stages, the weights in each stage, and the stored form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from json import dumps
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.artifacts.alias.traffic import Split
from holdall.artifacts.home import Home
from holdall.artifacts.record import RolloutRecord
from holdall.artifacts.rollout.rollout import Rollout, make_record, rollout_of, stages_of
from holdall.core.measure import canonical_item
from holdall.errors import InvalidOptionsError, RolloutError

HOME = Home("table", "pk", "sk", "main", "", "")
NOW = datetime(2026, 5, 1, tzinfo=UTC)

percents = st.sets(st.integers(1, 99), min_size=1).map(sorted)
times = st.none() | st.floats(0, 366 * 86400) | st.timedeltas(timedelta(0), timedelta(days=366))
given_stages = st.builds(
    lambda ordered, chosen: [(each, chosen[each % len(chosen)]) for each in ordered],
    percents,
    st.lists(times, min_size=1, max_size=5),
)


def rollout(stages: Any, **more: Any) -> Rollout:
    values: dict[str, Any] = {"state": "running", "stage": 0, "turn": 1, "revision": "r", **more}
    return Rollout(
        "model",
        "prod",
        "id",
        "1",
        "2",
        stages_of(stages),
        started_at=NOW,
        update_at=NOW,
        alias_revision="a",
        **values,
    )


@given(given_stages)
def test_a_last_stage_of_100_percent_is_implied(stages: list[Any]) -> None:
    found = stages_of(stages)
    assert [percent for percent, _ in found] == [*(percent for percent, _ in stages), 100]
    assert found == stages_of([*stages, (100, None)]) == stages_of([*stages, (100, timedelta(0))])


def test_durations_are_seconds_or_a_timedelta_or_none() -> None:
    assert stages_of(((1, 5), (2, 0.5), (3, timedelta(minutes=1)), (4, None))) == (
        (1, 5.0),
        (2, 0.5),
        (3, 60.0),
        (4, None),
        (100, None),
    )


WRONG = [
    [],
    [(100, None)],
    [(0, 1)],
    [(-1, 1)],
    [(101, 1)],
    [(5, 1), (5, 1)],
    [(50, 1), (5, 1)],
    [(5, 1), (100, None), (50, 1)],
    [(5, 1), (100, 60)],
    [(5, -1)],
    [(5, float("nan"))],
    [(5, timedelta(days=400))],
    [(5, "soon")],
    [(5, True)],
    [(True, 1)],
    [(5.0, 1)],
    [("5", 1)],
    [5],
    [(5,)],
    [(5, 1, 2)],
    "5",
    5,
    None,
]


@pytest.mark.parametrize("stages", WRONG, ids=repr)
def test_invalid_stages_are_refused(stages: Any) -> None:
    with pytest.raises(InvalidOptionsError):
        stages_of(stages)


@given(given_stages, st.text(min_size=1, max_size=20))
def test_a_key_that_moved_to_the_new_version_stays_there(stages: list[Any], key: str) -> None:
    moving = rollout(stages)
    picks = [Split(moving.arms(stage)).pick(key, "prod") for stage in range(len(moving.stages))]
    assert picks == sorted(picks)
    assert picks[-1] == "000002"


@given(given_stages, st.integers(0, 1000), times, st.booleans())
def test_a_stored_rollout_is_read_back(stages: list[Any], turn: int, left: Any, ended: bool) -> None:
    seconds = left.total_seconds() if isinstance(left, timedelta) else left
    moving = rollout(
        stages,
        turn=turn,
        left=None if seconds is None else round(seconds, 6),
        due=None if ended else NOW + timedelta(microseconds=turn),
        by="me" if ended else None,
        problem="gone" if ended else None,
        approve=ended,
    )
    record = make_record(HOME, moving)
    item, _ = canonical_item(record.stored)
    assert rollout_of("model", "prod", RolloutRecord(record.address, item)) == moving
    dumps(moving.describe(), allow_nan=False)


def test_reading_a_missing_rollout_is_an_error() -> None:
    with pytest.raises(RolloutError):
        rollout_of("model", "prod", RolloutRecord.at(HOME, "model", "prod"))

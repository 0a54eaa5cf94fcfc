"""When a lease is over: after it stayed unchanged for its length, or, for a brief worker, by the wall clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.jobs.lease import MARGIN, Sightings
from holdall.jobs.record import JobRecord, Lease

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_running(id: str = "a", token: str = "t", seconds: float = 30.0, until: datetime = NOW) -> JobRecord:
    return JobRecord(id, "n", "q", "[]", NOW, NOW, 1, lease=Lease(token, until, seconds))


@pytest.mark.parametrize("brief", [False, True])
def test_a_lease_that_is_seen_for_the_first_time_is_not_over(brief: bool) -> None:
    assert not Sightings(brief=brief).is_over(make_running(), 1000.0, NOW)


@pytest.mark.parametrize("brief", [False, True])
def test_a_lease_is_over_when_it_was_seen_unchanged_for_its_whole_length(brief: bool) -> None:
    sightings = Sightings(brief=brief)
    assert not sightings.is_over(make_running(), 1000.0, NOW)
    assert not sightings.is_over(make_running(), 1029.9, NOW)
    assert sightings.is_over(make_running(), 1030.0, NOW)


def test_a_heartbeat_restarts_the_count() -> None:
    sightings = Sightings()
    sightings.is_over(make_running(), 0.0, NOW)
    assert not sightings.is_over(make_running(token="u"), 29.0, NOW)
    assert not sightings.is_over(make_running(token="u"), 58.0, NOW)
    assert sightings.is_over(make_running(token="u"), 59.0, NOW)


def test_each_lease_is_watched_separately() -> None:
    sightings = Sightings()
    sightings.is_over(make_running("a"), 0.0, NOW)
    sightings.is_over(make_running("b"), 20.0, NOW)
    assert sightings.is_over(make_running("a"), 30.0, NOW)
    assert not sightings.is_over(make_running("b"), 30.0, NOW)


def test_a_lasting_worker_ignores_the_wall_clock() -> None:
    late = NOW + timedelta(days=10)
    assert not Sightings().is_over(make_running(), 0.0, late)


def test_a_brief_worker_uses_the_wall_clock_with_a_margin() -> None:
    sightings = Sightings(brief=True)
    assert not sightings.is_over(make_running(), 0.0, NOW + MARGIN - timedelta(microseconds=1))
    assert sightings.is_over(make_running(), 0.0, NOW + MARGIN)


@given(st.lists(st.floats(0.0, 9.9), max_size=50))
def test_a_living_worker_never_loses_its_job_to_a_wrong_wall_clock(pauses: list[float]) -> None:
    """The worker renews its lease of thirty seconds every ten; the watcher looks at random times."""
    sightings = Sightings()
    steady = 0.0
    for pause in pauses:
        steady += pause
        token = str(int(steady // 10))
        assert not sightings.is_over(make_running(token=token), steady, NOW + timedelta(days=pause))


def test_leases_that_were_not_seen_for_long_are_forgotten() -> None:
    sightings = Sightings()
    for n in range(1000):
        sightings.is_over(make_running(str(n)), 0.0, NOW)
    for n in range(500):  # leases that still exist
        sightings.is_over(make_running(str(n)), 200.0, NOW)
    sightings.is_over(make_running("one more"), 301.0, NOW)
    assert sightings.is_over(make_running("1"), 302.0, NOW)
    assert not sightings.is_over(make_running("700"), 302.0, NOW)

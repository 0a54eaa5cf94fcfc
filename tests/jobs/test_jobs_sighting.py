"""When a lease is over: by how long it has looked the same, and for a brief worker by the clock on the wall."""

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
def test_a_lease_is_over_when_it_has_looked_the_same_for_as_long_as_it_was_to_last(brief: bool) -> None:
    sightings = Sightings(brief=brief)
    assert not sightings.is_over(make_running(), 1000.0, NOW)
    assert not sightings.is_over(make_running(), 1029.9, NOW)
    assert sightings.is_over(make_running(), 1030.0, NOW)


def test_a_heartbeat_begins_the_count_anew() -> None:
    sightings = Sightings()
    sightings.is_over(make_running(), 0.0, NOW)
    assert not sightings.is_over(make_running(token="u"), 29.0, NOW)
    assert not sightings.is_over(make_running(token="u"), 58.0, NOW)
    assert sightings.is_over(make_running(token="u"), 59.0, NOW)


def test_leases_are_watched_one_by_one() -> None:
    sightings = Sightings()
    sightings.is_over(make_running("a"), 0.0, NOW)
    sightings.is_over(make_running("b"), 20.0, NOW)
    assert sightings.is_over(make_running("a"), 30.0, NOW)
    assert not sightings.is_over(make_running("b"), 30.0, NOW)


def test_a_worker_that_stays_pays_no_attention_to_the_wall() -> None:
    late = NOW + timedelta(days=10)
    assert not Sightings().is_over(make_running(), 0.0, late)


def test_a_worker_that_stays_for_a_moment_goes_by_the_wall_with_a_margin() -> None:
    sightings = Sightings(brief=True)
    assert not sightings.is_over(make_running(), 0.0, NOW + MARGIN - timedelta(microseconds=1))
    assert sightings.is_over(make_running(), 0.0, NOW + MARGIN)


@given(st.lists(st.floats(0.0, 9.9), max_size=50))
def test_a_living_worker_never_loses_its_job_whatever_the_clock_on_the_wall_says(pauses: list[float]) -> None:
    """It changes its lease every ten of thirty seconds; the watcher looks whenever it likes."""
    sightings = Sightings()
    steady = 0.0
    for pause in pauses:
        steady += pause
        token = str(int(steady // 10))
        assert not sightings.is_over(make_running(token=token), steady, NOW + timedelta(days=pause))


def test_what_has_not_been_seen_for_long_is_forgotten() -> None:
    sightings = Sightings()
    for n in range(1000):
        sightings.is_over(make_running(str(n)), 0.0, NOW)
    for n in range(500):  # those that are still there
        sightings.is_over(make_running(str(n)), 200.0, NOW)
    sightings.is_over(make_running("one more"), 301.0, NOW)
    assert sightings.is_over(make_running("1"), 302.0, NOW)
    assert not sightings.is_over(make_running("700"), 302.0, NOW)

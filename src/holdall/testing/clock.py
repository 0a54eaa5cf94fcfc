"""A clock that stands still until a test moves it, for everything in this process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Self

from holdall.backends import clock
from holdall.core.internal import internal


class Clock:
    """Holds the time for every database of this process while a ``with`` block runs.

    It starts at the present, or at ``start``, and stands still until `advance` or `set` moves it. Leases, expiry, the
    time at which jobs are due, schedules, signed URLs and ids, and the age of items in the archive all follow it. When
    Holdall waits, as between the attempts of a transaction, the wait passes at once and moves the clock instead.

    Your own calls of ``datetime.now()`` do not follow it, nor do processes that your program starts.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = _check(datetime.now(UTC).replace(microsecond=0) if start is None else start)
        self._before: list[clock.Held | None] = []

    def now(self) -> datetime:
        """The time, in UTC."""
        return self._now

    def advance(self, by: float | timedelta) -> None:
        """Move the clock forward, by seconds or a timedelta."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)

    def set(self, now: datetime) -> None:
        """Move the clock to a moment, which may be in the past; it needs a time zone."""
        self._now = _check(now)

    @internal
    def pass_by(self, seconds: float) -> None:
        """Let one of Holdall's own waits pass."""
        self.advance(seconds)

    def __enter__(self) -> Self:
        self._before.append(clock.hold(self))
        return self

    def __exit__(self, *_: object) -> None:
        clock.hold(self._before.pop())


def _check(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone; use datetime.now(UTC), for example")
    return moment.astimezone(UTC)

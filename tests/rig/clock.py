"""One clock for all tests, and a port that uses it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdall.core.port import Port

__all__ = ["Clock", "TimedPort"]


class Clock:
    """Starts at the present, and stands still until a test moves it or a flow waits.

    ``start`` sets another start, in seconds since 1970; a ``ticking`` clock also advances with the real time.
    ``chance`` is the result of every random draw; ``waits`` lists the waits so far, in seconds. Calling the clock
    returns the seconds since 1970.
    """

    chance = 0.5

    def __init__(self, start: float | None = None, *, ticking: bool = False) -> None:
        self.waits: list[float] = []
        begin = (
            datetime.now(UTC).replace(microsecond=0) if start is None else datetime.fromtimestamp(start, UTC)
        )
        self._stopped = None if ticking else begin
        self._moved = timedelta()

    def now(self) -> datetime:
        """The current time of this clock."""
        return (self._stopped or datetime.now(UTC)) + self._moved

    def __call__(self) -> float:
        return self.now().timestamp()

    @property
    def epoch(self) -> int:
        """The time in whole seconds since 1970."""
        return int(self())

    def forward(self, seconds: float) -> None:
        """Advance by this many seconds at once; a negative number goes back."""
        self._moved += timedelta(seconds=seconds)

    def set(self, seconds: float) -> None:
        """Set the time, in seconds since 1970."""
        self.forward(seconds - self())

    def wait(self, seconds: float) -> None:
        """Record a flow's wait, and advance by it at once."""
        self.waits.append(seconds)
        self.forward(seconds)


class TimedPort:
    """A port with another clock: a sleep advances that clock."""

    def __init__(self, port: Port, clock: Clock) -> None:
        self._port = port
        self.clock = clock
        self.now = clock.now

    def random(self) -> float:
        """The clock's chance."""
        return self.clock.chance

    async def sleep(self, seconds: float) -> None:
        """Advance the clock, and let other tasks run."""
        self.clock.wait(seconds)
        await self._port.sleep(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

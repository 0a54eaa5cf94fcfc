"""One clock for all tests, and a port that goes by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdall.core.port import Port

__all__ = ["Clock", "TimedPort"]


class Clock:
    """Begins at the present, and stands still until a test moves it or a flow waits.

    ``start`` is another beginning, in seconds since 1970; a ``ticking`` clock goes on with the wall's, too. ``chance``
    is what every random number comes out as; ``waits`` are the waits so far, in seconds. Called, the clock returns the
    seconds since 1970.
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
        """The time."""
        return (self._stopped or datetime.now(UTC)) + self._moved

    def __call__(self) -> float:
        return self.now().timestamp()

    @property
    def epoch(self) -> int:
        """The whole seconds since 1970."""
        return int(self())

    def forward(self, seconds: float) -> None:
        """Let so much time pass at once, or go back."""
        self._moved += timedelta(seconds=seconds)

    def set(self, seconds: float) -> None:
        """Be at a moment, in seconds since 1970."""
        self.forward(seconds - self())

    def wait(self, seconds: float) -> None:
        """Pass a flow's wait at once, and note it."""
        self.waits.append(seconds)
        self.forward(seconds)


class TimedPort:
    """A port with another clock: to sleep is to move that."""

    def __init__(self, port: Port, clock: Clock) -> None:
        self._port = port
        self.clock = clock
        self.now = clock.now

    def random(self) -> float:
        """The clock's chance."""
        return self.clock.chance

    async def sleep(self, seconds: float) -> None:
        """Move the clock, and let others run."""
        self.clock.wait(seconds)
        await self._port.sleep(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

"""The clock of this process: ports, stores and services all use it, so a test can hold and move time for all of them.

Code that only measures how long something takes (timeouts, polling, a worker's heartbeat) uses the monotonic clock of
`time` instead and is not affected.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Held(Protocol):
    """A clock that stands still until it is moved."""

    def now(self) -> datetime:
        """The time, in UTC."""

    def pass_by(self, seconds: float) -> None:
        """Let a wait pass."""


_held: Held | None = None


def hold(clock: Held | None) -> Held | None:
    """Use this clock from now on; None is the real one. Returns the clock used before."""
    global _held
    before, _held = _held, clock
    return before


def find_held() -> Held | None:
    """The clock that is held; None if time is real."""
    return _held


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC) if _held is None else _held.now()


def read_seconds() -> float:
    """The seconds since 1970."""
    return time.time() if _held is None else _held.now().timestamp()

"""The pace of a run: a limit on how many items it writes per second."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from holdall.core.port import Port
from holdall.errors import InvalidOptionsError


class Pace:
    """Lets ``rate`` items per second pass; None means any number. Time in which nothing passed is not made up for."""

    def __init__(self, rate: float | None) -> None:
        self._pause = None if rate is None else timedelta(seconds=1 / rate)
        self._due: datetime | None = None  # when the next items may pass

    async def wait(self, port: Port, items: int = 1) -> None:
        """Wait until the next items may pass."""
        if self._pause is None:
            return
        now = port.now()
        if self._due is not None and self._due > now:
            await port.sleep((self._due - now).total_seconds())
            now = self._due
        self._due = now + items * self._pause


def check_rate(rate: Any) -> None:
    """Refuse a rate that is not a positive number."""
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0):
        raise InvalidOptionsError(f"rate must be a number of items per second above 0, not {rate!r:.60}")

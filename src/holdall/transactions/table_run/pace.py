"""The pace of a run: a limit on how many items it writes, or how much capacity it uses, per second."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from holdall.core.port import Port
from holdall.errors import InvalidOptionsError


class Pace:
    """Lets ``rate`` items or units per second pass; None means any number. Unused time is not made up for."""

    def __init__(self, rate: float | None) -> None:
        self.rate = rate
        self._due: datetime | None = None  # when the next may pass

    async def wait(self, port: Port, items: int = 1) -> None:
        """Wait until the next items may pass."""
        if self.rate is None:
            return
        now = port.now()
        start = now if self._due is None else max(now, self._due)
        # before the wait, so that several flows can share a pace
        self._due = start + timedelta(seconds=items / self.rate)
        if start > now:
            await port.sleep((start - now).total_seconds())

    async def pay(self, port: Port, units: float) -> None:
        """Wait as long as units take that a request has used."""
        if self.rate is None or not units:
            return
        now = port.now()
        self._due = max(now, (self._due or now) + timedelta(seconds=units / self.rate))
        if self._due > now:
            await port.sleep((self._due - now).total_seconds())


def check_rate(rate: Any, what: str = "items") -> None:
    """Refuse a rate that is not a positive number."""
    if rate is not None and (isinstance(rate, bool) or not isinstance(rate, int | float) or not rate > 0):
        raise InvalidOptionsError(f"rate must be a number of {what} per second above 0, not {rate!r:.60}")

"""Finding something out once for all tasks: `holdall.core.context.Once` in the awaiting colour.

Each event loop has flights of its own: waiting for another loop, or for a thread, could be waiting for oneself.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from holdall.backends.finding import Finding, Flight

__all__ = ["AwaitingOnce"]

T = TypeVar("T")


class AwaitingOnce:
    """One flight at a time on an event loop; its other tasks wait for it."""

    def __init__(self, finding: Finding) -> None:
        self._finding = finding
        self._flights: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Flight[asyncio.Event]]
        self._flights = weakref.WeakKeyDictionary()

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The finding, or what the flow finds."""
        loop = asyncio.get_running_loop()
        while True:
            if (known := self._finding.outcome) is not None:
                return cast("T", known.result())
            flight = self._flights.get(loop)
            if flight is None or flight.generation != self._finding.generation:
                flight = self._flights[loop] = Flight(asyncio.Event(), self._finding.generation)
                try:
                    await flight.fly(flow())
                finally:
                    self._land(loop, flight)
            else:
                await flight.ended.wait()
            if flight.outcome is not None:
                return cast("T", flight.outcome.result())

    def forget(self) -> None:
        """Let the next to ask find out anew."""
        self._finding.forget()

    def _land(self, loop: asyncio.AbstractEventLoop, flight: Flight[asyncio.Event]) -> None:
        self._finding.keep(flight)
        if self._flights.get(loop) is flight:
            del self._flights[loop]
        flight.ended.set()

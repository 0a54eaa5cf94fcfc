"""Finding something out once for all tasks of an event loop: `holdall.core.context.Once` in async code."""

from __future__ import annotations

import asyncio
import weakref

from holdall.backends.port.once import Flight, Memo, SharedOnce


class AwaitingOnce(SharedOnce[asyncio.Event]):
    """One flight at a time on an event loop."""

    def __init__(self, memo: Memo) -> None:
        super().__init__(memo)
        self._flights: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Flight[asyncio.Event]]
        self._flights = weakref.WeakKeyDictionary()

    def _board(self) -> tuple[Flight[asyncio.Event], bool]:
        loop = asyncio.get_running_loop()
        flight = self._flights.get(loop)
        if flight is not None and flight.generation == self._memo.generation:
            return flight, False
        flight = self._flights[loop] = Flight(asyncio.Event(), self._memo.generation)
        return flight, True

    async def _wait(self, flight: Flight[asyncio.Event]) -> None:
        await flight.ended.wait()

    def _land(self, flight: Flight[asyncio.Event]) -> None:
        loop = asyncio.get_running_loop()
        if self._flights.get(loop) is flight:
            del self._flights[loop]
        flight.ended.set()

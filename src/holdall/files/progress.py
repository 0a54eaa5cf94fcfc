"""Progress: reporting to the caller how far a transfer has come.

Parts that are sent concurrently finish in any order; in sync code, in several threads. The caller's function is called
by one of them at a time, with numbers that only grow and end with the total.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from holdall.core.port import Port

Progress: TypeAlias = Callable[[int, int | None], Any]
"""Called with the number of bytes done and the total (None if unknown); the first call is before any byte is sent."""


class Meter:
    """Counts bytes and reports them; without a function it only counts."""

    def __init__(self, port: Port, function: Progress | None) -> None:
        self._port = port
        self._function = function
        self._done = 0
        self._total: int | None = None
        self._news: deque[int] = deque()
        self._turn: deque[None] = deque([None])

    async def begin(self, total: int | None, done: int = 0) -> None:
        """Report the beginning, before anything is sent, so that a function that raises does so at once."""
        self._done, self._total = done, total
        if self._function is not None:
            await self._port.call(self._function, done, total)

    async def add(self, size: int) -> None:
        """Report this many more bytes. If another part is reporting at the moment, it reports these as well."""
        if self._function is None or not size:
            return
        self._news.append(size)
        while self._news:
            try:
                self._turn.pop()
            except IndexError:
                return
            try:
                while self._news:
                    self._done += self._news.popleft()
                await self._port.call(self._function, self._done, self._total)
            finally:
                self._turn.append(None)

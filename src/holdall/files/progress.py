"""Progress: reporting to a caller how far a transfer has come.

Parts that are sent side by side end in any order, in blocking code in several threads. The caller's function is called
by one of them at a time, with numbers that only grow, the last of them the total.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from holdall.core.port import Port

Progress: TypeAlias = Callable[[int, int | None], Any]
"""Called with the bytes that are done and the total, None if it is unknown; first when nothing is done."""


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
        """Report the beginning, before anything is sent: a function that cannot be called shows here."""
        self._done, self._total = done, total
        if self._function is not None:
            await self._port.call(self._function, done, total)

    async def add(self, size: int) -> None:
        """Report so many bytes more. If another part is just reporting, that one reports these, too."""
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

"""Figures that take a while to count: a page shows the last ones with their date, while newer ones are counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

_FRESH = timedelta(seconds=20)
_PATIENCE = 0.02


T = TypeVar("T")


class FigureCache(Generic[T]):
    """Keeps the last figures, and fetches newer ones once they are some seconds old."""

    def __init__(self, fetch: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._fetch = fetch
        self._last: T | None = None
        self._fetched_at: datetime
        self._task: asyncio.Task[None] | None = None

    async def get(self) -> T | None:
        """Return the figures; None if they are still being counted for the first time."""
        self._settle()
        is_old = self._last is None or datetime.now(UTC) - self._fetched_at > _FRESH
        if self._task is None and is_old:
            self._task = asyncio.ensure_future(self._renew())
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_PATIENCE)
            self._settle()
        return self._last

    def _settle(self) -> None:
        """Forget a task that has ended, and raise its error if it failed, perhaps after a page was shown."""
        task = self._task
        if task is not None and task.done():
            self._task = None
            if not task.cancelled():
                task.result()

    async def _renew(self) -> None:
        self._last = await self._fetch()
        self._fetched_at = datetime.now(UTC)

"""Awaiting waits that end with their call's deadline, even when it moves."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType

from holdall.backends.aws.limit import Limit
from holdall.backends.port.notice import current_notice

__all__ = ["AwaitingTurn", "sleep_heeding", "within"]


class within:  # noqa: N801 - reads as `asyncio.timeout` does
    """A block that ends with `TimeoutError` at the limit's deadline, or after ``seconds``."""

    def __init__(self, limit: Limit, seconds: float | None = None) -> None:
        self._limit = limit
        left = limit.left
        self._timeout = asyncio.timeout(max(0.0, left if seconds is None else min(left, seconds)))
        self._outer = limit.moved

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._limit.moved = self._move

    def _move(self) -> None:
        loop = asyncio.get_running_loop()
        when = self._timeout.when()
        with suppress(RuntimeError):  # the block has just ended
            self._timeout.reschedule(min(when or 0.0, loop.time() + max(0.0, self._limit.left)))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._limit.moved = self._outer
        await self._timeout.__aexit__(kind, error, trace)


async def sleep_heeding(seconds: float) -> None:
    """Sleep; return early if the caller is cancelled."""
    if current_notice.get() is None:
        await asyncio.sleep(seconds)
        return
    limit = Limit(seconds)
    limit.heed_notice()
    with suppress(TimeoutError):
        async with within(limit):
            await asyncio.get_running_loop().create_future()


class AwaitingTurn:
    """A task's turn in the line for a connection."""

    __slots__ = ("_came",)

    def __init__(self) -> None:
        self._came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, limit: Limit) -> bool:
        """Wait for the turn; False if it did not come before the deadline."""
        try:
            async with within(limit):
                await self._came
        except TimeoutError:
            return False
        return True

    def come(self) -> None:
        """Begin the turn: wake the task."""
        if not self._came.done():
            self._came.set_result(None)

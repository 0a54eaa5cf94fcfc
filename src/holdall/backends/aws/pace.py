"""Time and company in each colour: what sending needs of the world besides a connection."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.signer import Credentials

if TYPE_CHECKING:
    import asyncio  # at run time by those who await: it takes a while to load

__all__ = ["AwaitingPace", "BlockingPace", "Pace"]

T = TypeVar("T")


class Pace(Protocol):
    """How one colour waits."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work while nobody else of this colour does such work."""

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks."""

    def now(self) -> float:
        """Seconds that only grow."""

    def random(self) -> float:
        """A random number from 0 up to 1."""


class _Clock:
    def now(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def random(self) -> float:
        """A random number from 0 up to 1."""
        from random import random  # only where there is something to try again

        return random()


class BlockingPace(_Clock):
    """The calling thread waits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _paces.add(self)

    def after_fork(self) -> None:
        """In a forked child: whoever held the lock is not here to release it."""
        self._lock = threading.RLock()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work while no other thread does such work."""
        with self._lock:
            return await work()

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks."""
        return function(*args)

    async def credentials(self, source: CredentialSource) -> Credentials:
        """The credentials to sign with."""
        return source.current()


_paces: weakref.WeakSet[BlockingPace] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for pace in list(_paces):
        pace.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class _Turns:
    """A lock, and how many hold it or wait for it."""

    def __init__(self) -> None:
        import asyncio

        self.lock = asyncio.Lock()
        self.users = 0


class AwaitingPace(_Clock):
    """The event loop goes on."""

    def __init__(self) -> None:
        self._turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns]
        self._turns = weakref.WeakKeyDictionary()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import asyncio

        await asyncio.sleep(seconds)

    async def alone(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do the work while no other task of this event loop does such work."""
        import asyncio

        loop = asyncio.get_running_loop()
        turns = self._turns.setdefault(loop, _Turns())
        turns.users += 1
        try:
            async with turns.lock:
                return await work()
        finally:
            turns.users -= 1
            if not turns.users:  # a lock that had to be waited for keeps its event loop in memory
                del self._turns[loop]

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks, in a thread."""
        import asyncio

        return await asyncio.to_thread(function, *args)

    async def credentials(self, source: CredentialSource) -> Credentials:
        """The credentials to sign with; where getting them takes a while, in a thread."""
        return source.current() if source.ready() else await self.call(source.current)

"""Time and company in each colour: what sending needs of the world besides a connection."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.signer import Credentials
from holdall.backends.aws.trouble import Unsent
from holdall.errors import EndpointError

if TYPE_CHECKING:
    import asyncio  # at run time by those who await: it takes a while to load

__all__ = ["AwaitingPace", "BlockingPace", "Pace"]

T = TypeVar("T")

PATIENCE = 120.0
"""How many seconds to wait for work that is done alone, unless the caller passes another number."""


class Pace(Protocol):
    """How one colour waits."""

    async def sleep(self, seconds: float) -> None:
        """Wait; return early if the caller is cancelled."""

    def limit(self, seconds: float) -> Limit:
        """The limit of a call that begins now."""

    async def alone(self, work: Callable[[], Awaitable[T]], seconds: float = PATIENCE) -> T:
        """Do the work while no other caller does; `EndpointError` after waiting that many seconds."""

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
        # the module random is slow to load, and cannot be loaded without file descriptors
        return int.from_bytes(os.urandom(7)) / (1 << 56)


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

    def limit(self, seconds: float) -> Limit:
        """The limit of a call that begins now."""
        return Limit(seconds)

    async def alone(self, work: Callable[[], Awaitable[T]], seconds: float = PATIENCE) -> T:
        """Do the work while no other thread does such work."""
        lock = self._lock
        if not lock.acquire(timeout=seconds):
            raise _explain_timeout(seconds)
        try:
            return await work()
        finally:
            lock.release()

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks."""
        return function(*args)

    async def credentials(self, source: CredentialSource, within: Limit) -> Credentials:
        """The credentials to sign with."""
        return source.current()


def _explain_timeout(seconds: float) -> EndpointError:
    return EndpointError(
        f"waited {seconds:g} seconds for another request to query the service",
        hint="check the endpoint, the region and the network",
    )


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
        """Wait; return early if the caller is cancelled."""
        from holdall.backends.aws.awaiting_limit import sleep_heeding

        await sleep_heeding(seconds)

    def limit(self, seconds: float) -> Limit:
        """The limit of a call that begins now."""
        limit = Limit(seconds)
        limit.heed_notice()
        return limit

    async def alone(self, work: Callable[[], Awaitable[T]], seconds: float = PATIENCE) -> T:
        """Do the work while no other task of this event loop does such work."""
        import asyncio

        from holdall.backends.aws.awaiting_limit import within

        loop = asyncio.get_running_loop()
        turns = self._turns.setdefault(loop, _Turns())
        turns.users += 1
        try:
            try:
                async with within(self.limit(seconds)):
                    await turns.lock.acquire()
            except TimeoutError:
                raise _explain_timeout(seconds) from None
            try:
                return await work()
            finally:
                turns.lock.release()
        finally:
            turns.users -= 1
            if not turns.users:  # a lock that had to be waited for keeps its event loop in memory
                del self._turns[loop]

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks, in a thread."""
        import asyncio

        return await asyncio.to_thread(function, *args)

    async def credentials(self, source: CredentialSource, within: Limit) -> Credentials:
        """The credentials to sign with; where getting them takes a while, in a thread."""
        if source.ready():
            return source.current()
        from holdall.backends.aws.awaiting_limit import within as bounded

        try:
            async with bounded(within):
                return await self.call(source.current)
        except TimeoutError:
            raise Unsent("no credentials were found in time", lasting=True) from None

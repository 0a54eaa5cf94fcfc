"""Kept connections: a `Lane` for this process (sync) and one for each event loop (async), up to a maximum.

A request that finds all connections in use waits in line. In a forked child a transport starts without connections.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast

from holdall.backends.aws.address import authority
from holdall.backends.aws.blocking import BlockingStream, BlockingWaiter, connect_blocking
from holdall.backends.aws.connection import Target, Unsent, explain_trouble
from holdall.backends.aws.exchange import Carrier
from holdall.backends.aws.limit import Limit
from holdall.backends.fork import call_after_fork

if TYPE_CHECKING:
    import asyncio  # at run time only in async programs: it takes a while to load

    from holdall.backends.aws.awaiting import AwaitingStream

MAX_IDLE = 32
MAX_IDLE_SECONDS = 20.0
MAX_AGE_SECONDS = 300.0

S = TypeVar("S", bound=Carrier)
_Idle: TypeAlias = tuple[S, float, float]
"""A kept connection, the time it was made, and the time since which it is idle."""


class Waiter(Protocol):
    """One request in the line for a connection."""

    handed: list[Any]
    """What it received: a kept connection, or None for permission to open one."""

    async def wait(self, limit: Limit) -> bool:
        """Wait for `wake`; False if it did not come before the deadline."""

    def wake(self) -> None:
        """Let the request go on."""


class Lane(Generic[S]):
    """Connections to one target: those in use, and those that wait to be used again, the latest first.

    There are never more than the target allows. A connection that is returned while requests wait, or the room that a
    closed one leaves, goes to the request that has waited longest; so no later request can overtake it.
    """

    def __init__(
        self, target: Target, connect: Callable[[Target, Limit], Awaitable[S]], waiter: Callable[[], Waiter]
    ) -> None:
        self._target = target
        self._connect = connect
        self._waiter = waiter
        self._lock = threading.Lock()
        self._open = 0
        self._idle: list[_Idle[S]] = []
        self._line: deque[Waiter] = deque()
        self._closed = False
        self.end: AsyncGenerator[None, None] | None = None

    def take(self, limit: Limit) -> tuple[S, float] | None:
        """A kept connection that is ready for a request, and the time it was opened; None if there is none."""
        now = time.monotonic()
        while not self._line and now < limit.deadline:
            try:  # taking from a list and adding to it need no lock, and every request pays for it
                stream, born, since = self._idle.pop()
            except IndexError:
                return None
            if now - born < MAX_AGE_SECONDS and now - since < MAX_IDLE_SECONDS and stream.begin(limit):
                return stream, born
            self.drop(stream)
        return None

    async def acquire(self, limit: Limit) -> tuple[S, float]:
        """The same if `take` found none: one that another request returns, or a new one; `Unsent` if there is none."""
        now = time.monotonic()
        if now >= limit.deadline:
            raise Unsent("no time was left to send the request", lasting=True)
        kept = await self._take_room(limit)
        if kept is not None:
            stream, born, _ = kept
            if now - born < MAX_AGE_SECONDS and stream.begin(limit):
                return stream, born
            stream.close()  # a new one takes its place
        try:
            stream = await self._connect(self._target, limit)
            stream.begin(limit)  # if it is closed already, the first byte will show
            return stream, time.monotonic()
        except (OSError, UnicodeError) as error:  # UnicodeError: the name cannot be a host's
            self._make_room()
            raise explain_trouble(error) from error
        except BaseException:
            self._make_room()
            raise

    async def _take_room(self, limit: Limit) -> _Idle[S] | None:
        """Permission to open a connection (None), or one that another request has returned."""
        waiter = self._waiter()
        with self._lock:
            if self._open < self._target.max_connections:
                self._open += 1
                return None
            self._line.append(waiter)
            self._serve_line()  # one may have come back just before
        try:
            came = await waiter.wait(limit)
        except BaseException:
            self._leave_line(waiter)
            raise
        if came or waiter.handed:
            return cast("_Idle[S] | None", waiter.handed[0])
        self._leave_line(waiter)
        raise Unsent(
            f"all {self._target.max_connections} connections were in use, and none became free in time",
            lasting=True,
            hint="raise max_connections or total_timeout, or send fewer requests at once",
        )

    def _take_idle(self) -> _Idle[S] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _serve_line(self) -> None:
        """Hand kept connections to waiting requests. The lock is held."""
        while self._line and (kept := self._take_idle()) is not None:
            self._hand_over(kept)

    def _hand_over(self, kept: _Idle[S] | None) -> None:
        waiter = self._line.popleft()
        waiter.handed.append(kept)
        waiter.wake()

    def _leave_line(self, waiter: Waiter) -> None:
        with self._lock, suppress(ValueError):
            self._line.remove(waiter)
        for kept in waiter.handed:
            if kept is None:
                self._make_room()
            else:
                self.release(*kept[:2])

    def release(self, stream: S, born: float) -> None:
        """Keep a connection for later, or hand it over."""
        if self._closed or len(self._idle) >= MAX_IDLE:
            self.drop(stream)
            return
        self._idle.append((stream, born, time.monotonic()))
        if self._line:  # checked afterwards: a request that joined earlier has looked for a connection since
            with self._lock:
                self._serve_line()

    def drop(self, stream: S) -> None:
        """Close a connection that must not be used again."""
        stream.close()
        self._make_room()

    def _make_room(self) -> None:
        """A connection is gone: another may be opened in its place."""
        with self._lock:
            if self._line:
                self._hand_over(None)
            else:
                self._open -= 1

    def close(self) -> None:
        """Close the idle connections, and from now on every connection that is returned."""
        self._closed = True
        while (kept := self._take_idle()) is not None:
            self.drop(kept[0])


class Transport:
    """The connections to one endpoint, of this process (``blocking``) and of each event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.blocking: Lane[BlockingStream] = Lane(target, connect_blocking, BlockingWaiter)
        self._awaiting: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Lane[AwaitingStream]]
        self._awaiting = weakref.WeakKeyDictionary()
        self._parked: list[object] = []
        call_after_fork(self.forget)

    @property
    def relay(self) -> tuple[str, str]:
        """How requests are addressed to a forwarding proxy: a prefix of their targets, and header lines."""
        target = self._target
        if target.proxy is None or target.tls is not None:
            return "", ""
        lines = "".join([f"{name}: {value}\r\n" for name, value in target.proxy.headers.items()])
        return f"http://{authority('http', target.host, target.port)}", lines

    def find_lane(self, loop: asyncio.AbstractEventLoop) -> Lane[AwaitingStream]:
        """The connections of the event loop, which is running."""
        lane = self._awaiting.get(loop)
        if lane is None:
            from holdall.backends.aws.awaiting import AwaitingWaiter, connect_awaiting

            lane = self._awaiting[loop] = Lane(self._target, connect_awaiting, AwaitingWaiter)
            _close_with_the_loop(lane)
        return lane

    def close(self) -> None:
        """Close the kept connections."""
        self.blocking.close()
        for loop, lane in list(self._awaiting.items()):
            if loop.is_running():
                loop.call_soon_threadsafe(lane.close)

    def forget(self) -> None:
        """In a forked child: start without connections. Those of event loops are parked, not closed: an event loop
        would unregister them from what it shares with the parent's."""
        self.blocking.close()
        self.blocking = Lane(self._target, connect_blocking, BlockingWaiter)
        self._parked.append(self._awaiting)
        self._awaiting = weakref.WeakKeyDictionary()


def _close_with_the_loop(lane: Lane[AwaitingStream]) -> None:
    """Close the lane when the running event loop ends, which is when it closes its async generators.

    Later, connections could no longer be closed, and an open connection keeps the loop in memory.
    """

    async def until_the_end() -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            lane.end = None  # it refers to the loop
            lane.close()

    lane.end = until_the_end()
    with suppress(StopIteration):
        lane.end.__anext__().send(None)  # up to its yield

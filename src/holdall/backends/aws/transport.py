"""Requests over kept connections, with exact knowledge of what may have left.

Blocking and awaiting from one source: `exchange` is a flow over a `Lane`, the connections of a process (blocking) or an
event loop (awaiting), up to a maximum; a request that finds all of them in use waits in line. A failure before anything
was sent is `Unsent`; every later one is `Broken`: the request may have taken effect. A connection whose reply was not
read to its end is closed, whatever the reason.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from holdall.backends.aws.address import authority
from holdall.backends.aws.connection import BlockingStream, Target, connect_blocking
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import BrokenOff, MalformedReply, Reply, Stream, read_reply, request_bytes
from holdall.backends.aws.trouble import Unsent, explain_trouble
from holdall.backends.aws.turn import BlockingTurn, Turn

if TYPE_CHECKING:
    import asyncio  # at run time by those who await: it takes a while to load

    from holdall.backends.aws.awaiting_connection import AwaitingStream

__all__ = ["Broken", "Garbled", "Lane", "Transport", "Unsent", "exchange"]

MAX_IDLE = 32
MAX_IDLE_SECONDS = 20.0
MAX_AGE_SECONDS = 300.0


class Broken(Exception):
    """The connection failed after the request began to leave: it may have been carried out."""


class Garbled(Broken):
    """What came back is no reply; the request may have been carried out all the same."""


class Kept(Stream, Protocol):
    """A stream that can be kept for later."""

    def begin(self, limit: Limit) -> None:
        """Wait no longer than the limit's deadline from now on."""

    def stale(self) -> bool:
        """Whether the other side has closed it meanwhile."""

    def close(self) -> None:
        """Let go of it."""


S = TypeVar("S", bound=Kept)
_Idle: TypeAlias = tuple[S, float, float]
_Place: TypeAlias = tuple[Turn, list[_Idle[S] | None]]
"""A turn in the line, and what is handed over when it comes: a connection, or None for the room to make one."""


class Lane(Generic[S]):
    """Connections to one target: those in use, and those that wait to be used again, the latest first.

    There are never more than the target allows. A connection that is returned while requests wait, or the room that a
    closed one leaves, goes to the request that has waited longest; so no later request can overtake it.
    """

    def __init__(
        self, target: Target, connect: Callable[[Target, Limit], Awaitable[S]], turn: Callable[[], Turn]
    ) -> None:
        self._target = target
        self._connect = connect
        self._turn = turn
        self._lock = threading.Lock()
        self._open = 0
        self._idle: list[_Idle[S]] = []
        self._line: deque[_Place[S]] = deque()
        self._closed = False
        self.end: AsyncGenerator[None, None] | None = None
        self.relay: tuple[str, Mapping[str, str]] | None = None
        """How requests are addressed to a forwarding proxy: a prefix of their targets, and headers."""
        if target.proxy is not None and target.tls is None:
            self.relay = f"http://{authority('http', target.host, target.port)}", target.proxy.headers

    async def acquire(self, limit: Limit) -> tuple[S, float]:
        """A connection and the time it was made; `Unsent` when none can be had."""
        now = time.monotonic()
        if now >= limit.deadline:
            raise Unsent("there was no time left to send it", lasting=True)
        try:  # taking from a list and adding to it need no lock, and every request pays for it
            kept = None if self._line else self._idle.pop()
        except IndexError:
            kept = None
        if kept is None:
            kept = await self._take_room(limit)
        while kept is not None:
            stream, born, since = kept
            if now - born < MAX_AGE_SECONDS and now - since < MAX_IDLE_SECONDS and not stream.stale():
                return stream, born
            stream.close()
            with self._lock:  # another one, or else a new one in its place
                kept = self._take_idle()
                self._open -= kept is not None
        try:
            return await self._connect(self._target, limit), time.monotonic()
        except (OSError, UnicodeError) as error:  # UnicodeError: of a name that no host can have
            self._make_room()
            raise explain_trouble(error) from error
        except BaseException:
            self._make_room()
            raise

    async def _take_room(self, limit: Limit) -> _Idle[S] | None:
        """Room to make a connection (None), or one that another request returns."""
        place: _Place[S] = self._turn(), []
        with self._lock:
            if self._open < self._target.max_connections:
                self._open += 1
                return None
            self._line.append(place)
            self._serve_line()  # one may have come back just before
        return await self._wait_in_line(place, limit)

    def _take_idle(self) -> _Idle[S] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _serve_line(self) -> None:
        """Hand kept connections to waiting requests. The lock is held."""
        while self._line and (kept := self._take_idle()) is not None:
            turn, handed = self._line.popleft()
            handed.append(kept)
            turn.come()

    async def _wait_in_line(self, place: _Place[S], limit: Limit) -> _Idle[S] | None:
        """What is handed over when it is our turn: a connection, or None for the room to make one."""
        turn, handed = place
        try:
            came = await turn.wait(limit)
        except BaseException:
            self._leave_line(place)
            raise
        if came or handed:
            return handed[0]
        self._leave_line(place)
        raise Unsent(
            f"all {self._target.max_connections} connections were in use, and none became free in time",
            lasting=True,
            hint="raise max_connections or total_timeout, or send fewer requests at once",
        )

    def _leave_line(self, place: _Place[S]) -> None:
        with self._lock:
            with suppress(ValueError):
                self._line.remove(place)
            handed = place[1]
        if not handed:
            return
        kept = handed[0]
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
        """Close a connection that is not to be used again."""
        stream.close()
        self._make_room()

    def _make_room(self) -> None:
        """A connection is gone: one may be made in its place."""
        with self._lock:
            if self._line:
                turn, handed = self._line.popleft()
                handed.append(None)
                turn.come()
            else:
                self._open -= 1

    def close(self) -> None:
        """Close what is waiting, and from now on what comes back."""
        self._closed = True
        while (kept := self._take_idle()) is not None:
            self.drop(kept[0])


class Transport:
    """Exchanges with one endpoint, in both colours."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._blocking: Lane[BlockingStream] = Lane(target, connect_blocking, BlockingTurn)
        self._awaiting: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Lane[AwaitingStream]]
        self._awaiting = weakref.WeakKeyDictionary()
        self._parked: list[object] = []
        _transports.add(self)

    @property
    def blocking(self) -> Lane[BlockingStream]:
        """The connections of this process."""
        return self._blocking

    @property
    def awaiting(self) -> Lane[AwaitingStream]:
        """The connections of the running event loop."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        lane = self._awaiting.get(loop)
        if lane is None:
            from holdall.backends.aws.awaiting_connection import connect_awaiting
            from holdall.backends.aws.awaiting_limit import AwaitingTurn

            lane = self._awaiting[loop] = Lane(self._target, connect_awaiting, AwaitingTurn)
            _close_with_the_loop(lane)
        return lane

    def close(self) -> None:
        """Close the kept connections."""
        self._blocking.close()
        for loop, lane in list(self._awaiting.items()):
            if loop.is_running():
                loop.call_soon_threadsafe(lane.close)

    def forget(self) -> None:
        """In a forked child: start without connections. Those of event loops are parked, not closed: an event loop
        would unregister them from what it shares with the parent's."""
        self._blocking.close()
        self._blocking = Lane(self._target, connect_blocking, BlockingTurn)
        self._parked.append(self._awaiting)
        self._awaiting = weakref.WeakKeyDictionary()


def _close_with_the_loop(lane: Lane[AwaitingStream]) -> None:
    """See to it that the lane is closed when the running event loop ends, which is when it closes its generators.

    Afterwards nothing could be closed any more; and what stays open keeps the loop in memory.
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


async def exchange(
    lane: Lane[S], method: str, target: str, headers: Mapping[str, str], body: bytes, within: Limit
) -> Reply:
    """Send one request and read its reply."""
    if lane.relay is not None:
        prefix, more = lane.relay
        target, headers = prefix + target, {**headers, **more}
    data = request_bytes(method, target, headers, body)
    stream, born = await lane.acquire(within)
    done = False
    try:
        stream.begin(within)
        within.has_left = True
        await stream.send(data)
        reply = await read_reply(stream, method)
        done = reply.reusable
        return reply
    except (OSError, BrokenOff) as error:
        raise Broken(str(error) or type(error).__name__) from error
    except MalformedReply as error:
        raise Garbled(str(error)) from error
    finally:
        if done:
            lane.release(stream, born)
        else:  # also when we are cancelled: a late reply must never meet the next request
            lane.drop(stream)


_transports: weakref.WeakSet[Transport] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for transport in _transports:
        transport.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

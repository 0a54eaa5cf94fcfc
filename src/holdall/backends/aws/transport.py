"""Requests over kept connections, with exact knowledge of what may have left.

One text for both colours: `exchange` is a flow over a `Lane`: the connections of a process (blocking) or an event
loop (awaiting). A failure before anything was sent is `Unsent`; every later one is `Broken`: the request may have
taken effect. A connection whose reply was not read to its end is closed, whatever the reason.
"""

from __future__ import annotations

import os
import socket
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from holdall.backends.aws.connection import BlockingStream, Target, connect_blocking
from holdall.backends.aws.message import BrokenOff, MalformedReply, Reply, Stream, read_reply, request_bytes

if TYPE_CHECKING:
    import asyncio  # at run time by those who await: it takes a while to load

    from holdall.backends.aws.awaiting_connection import AwaitingStream

__all__ = ["Broken", "Garbled", "Lane", "Transport", "Unsent", "exchange"]

MAX_IDLE = 32
MAX_IDLE_SECONDS = 20.0
MAX_AGE_SECONDS = 300.0


class Unsent(Exception):
    """There was no connection: nothing of the request has left. ``lasting`` when trying again is of no use."""

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


class Broken(Exception):
    """The connection failed after the request began to leave: it may have been carried out."""


class Garbled(Broken):
    """What came back is no reply; the request may have been carried out all the same."""


class Kept(Stream, Protocol):
    """A stream that can be kept for later."""

    def stale(self) -> bool:
        """Whether the other side has closed it meanwhile."""

    def close(self) -> None:
        """Let go of it."""


S = TypeVar("S", bound=Kept)


class Lane(Generic[S]):
    """Connections to one target that are waiting to be used again, the latest first."""

    def __init__(self, target: Target, connect: Callable[[Target], Awaitable[S]]) -> None:
        self._target = target
        self._connect = connect
        self._idle: list[tuple[S, float, float]] = []
        self._closed = False
        self.end: AsyncGenerator[None, None] | None = None

    async def acquire(self) -> tuple[S, float]:
        """A connection and the time it was made; `Unsent` when none can be had."""
        now = time.monotonic()
        while self._idle:
            try:
                stream, born, since = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if now - born < MAX_AGE_SECONDS and now - since < MAX_IDLE_SECONDS and not stream.stale():
                return stream, born
            stream.close()
        try:
            return await self._connect(self._target), time.monotonic()
        except (OSError, UnicodeError) as error:  # UnicodeError: of a name that no host can have
            raise _unsent(error) from error

    def release(self, stream: S, born: float) -> None:
        """Keep a connection for later."""
        if len(self._idle) < MAX_IDLE and not self._closed:
            self._idle.append((stream, born, time.monotonic()))
        else:
            stream.close()

    def close(self) -> None:
        """Close what is waiting, and from now on what comes back."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()


class Transport:
    """Exchanges with one endpoint, in both colours."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._blocking: Lane[BlockingStream] = Lane(target, connect_blocking)
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

            lane = self._awaiting[loop] = Lane(self._target, connect_awaiting)
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
        self._blocking = Lane(self._target, connect_blocking)
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


def _unsent(error: OSError | UnicodeError) -> Unsent:
    import ssl

    if isinstance(error, ssl.SSLError):
        lasting = isinstance(error, ssl.SSLCertVerificationError)
        return Unsent(f"TLS was refused: {error.reason or error}", lasting=lasting)
    lasting = isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME
    return Unsent(str(error) or type(error).__name__, lasting=lasting)


async def exchange(lane: Lane[S], method: str, target: str, headers: Mapping[str, str], body: bytes) -> Reply:
    """Send one request and read its reply."""
    data = request_bytes(method, target, headers, body)
    stream, born = await lane.acquire()
    done = False
    try:
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
            stream.close()


_transports: weakref.WeakSet[Transport] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for transport in _transports:
        transport.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

"""The wire for async code: the event loop keeps running. A separate module, because asyncio takes a while to load."""

from __future__ import annotations

import asyncio
import select
import socket
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from holdall.backends.aws.blocking import PATIENCE, Clock, explain_wait
from holdall.backends.aws.connection import CHUNK, Address, Target, Unsent, make_poll, open_connection
from holdall.backends.aws.exchange import exchange
from holdall.backends.aws.limit import Limit
from holdall.backends.port.notice import current_notice

if TYPE_CHECKING:
    from holdall.backends.aws.credentials import CredentialSource
    from holdall.backends.aws.message import Reply
    from holdall.backends.aws.signer import Credentials
    from holdall.backends.aws.transport import Transport

T = TypeVar("T")


class _Company:
    """A lock, and how many tasks hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class AwaitingPace(Clock):
    """How async code waits: the event loop keeps running."""

    def __init__(self) -> None:
        self._company: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Company]
        self._company = weakref.WeakKeyDictionary()

    async def sleep(self, seconds: float) -> None:
        """Sleep; return early if the caller is cancelled."""
        if current_notice.get() is None:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with within(self.limit(seconds)):
                await asyncio.get_running_loop().create_future()

    def limit(self, seconds: float) -> Limit:
        """The limit of a call that begins now, and ends early if the caller is cancelled."""
        limit = Limit(seconds)
        if (notice := current_notice.get()) is not None:
            limit.heed(notice)
        return limit

    async def alone(self, work: Callable[[], Awaitable[T]], seconds: float = PATIENCE) -> T:
        """Do the work while no other task of this event loop does work of this kind."""
        loop = asyncio.get_running_loop()
        company = self._company.setdefault(loop, _Company())
        company.users += 1
        try:
            try:
                async with within(self.limit(seconds)):
                    await company.lock.acquire()
            except TimeoutError:
                raise explain_wait(seconds) from None
            try:
                return await work()
            finally:
                company.lock.release()
        finally:
            company.users -= 1
            if not company.users:  # a lock that had to be waited for keeps its event loop in memory
                del self._company[loop]

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks, in a thread."""
        return await asyncio.to_thread(function, *args)

    async def choose(
        self, blocking: Callable[..., T], awaiting: Callable[..., Awaitable[T]], *args: Any
    ) -> T:
        """Await the async function."""
        return await awaiting(*args)

    async def credentials(self, source: CredentialSource, limit: Limit) -> Credentials:
        """The credentials to sign with, found in a thread."""
        try:
            async with within(limit):
                return await self.call(source.current)
        except TimeoutError:
            raise Unsent("no credentials were found in time", lasting=True) from None

    def exchange(self, transport: Transport, within: Limit, *parcel: Any) -> Coroutine[Any, Any, Reply]:
        """Send a parcel over one of the event loop's connections."""
        return exchange(transport.find_lane(asyncio.get_running_loop()), within, *parcel)


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


class AwaitingStream(asyncio.BufferedProtocol):
    """A connection of an event loop.

    It has its own buffer: asyncio would allocate a quarter of a megabyte each time that bytes arrive.
    """

    def __init__(self, read_timeout: float) -> None:
        self._read_timeout = read_timeout
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._watch: select.poll | None = None
        self._buffer = memoryview(bytearray(CHUNK))
        self._place: memoryview | None = None
        self._moving = False
        self._arrived: list[bytes] = []
        self._ended: Exception | bool = False
        self._reader: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings = self._until = 0.0
        self._limit = Limit(read_timeout)
        self._writable = asyncio.Event()
        self._writable.set()

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._watch = make_poll(transport.get_extra_info("socket"))

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go."""
        return self._buffer if self._place is None else self._place

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes arrived."""
        if self._place is None:
            self._arrived.append(bytes(self._buffer[:nbytes]))
            self._wake()
            return
        self._moving = True
        self._place = self._place[nbytes:]
        if not self._place:
            self._place = None
            self._wake()

    def eof_received(self) -> bool:
        """The other side has closed."""
        self._ended = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._ended = exc or self._ended or True
        if self._timer is not None:
            self._timer.cancel()
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        """Too much is waiting to be sent."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """There is room again."""
        self._writable.set()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- called by flows ---

    def begin(self, limit: Limit) -> bool:
        """Wait no longer than the limit's deadline from now on; False if the other side has closed the connection.

        Anything that arrives between requests can only be the end. The socket is polled too: the event loop may not
        have run since.
        """
        self._limit = limit
        limit.moved = self._heed_deadline
        if self._arrived or self._ended or self._transport is None or self._transport.is_closing():
            return False
        return self._watch is not None and not self._watch.poll(0)

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""
        assert self._transport is not None
        if self._transport.is_closing():  # asyncio would accept the data, and log a warning
            raise ConnectionResetError("the connection was closed")
        self._transport.write(data)
        if not self._writable.is_set():
            async with within(self._limit, self._read_timeout):
                await self._writable.wait()

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""
        if not self._arrived and not self._ended:
            await self._wait(self._read_timeout)
        if self._arrived:
            data = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
            self._arrived.clear()
            return data
        if isinstance(self._ended, Exception):
            raise self._ended
        return b""

    async def receive_within(self, seconds: float) -> bytes | None:
        """The same; None if nothing arrived within that many seconds."""
        if not self._arrived and not self._ended:
            try:
                await self._wait(seconds)
            except TimeoutError:
                if self._limit.left <= 0:
                    raise
                return None
        return await self.receive()

    async def fill(self, view: memoryview) -> bool:
        """Receive until the memory is full; False if the other side has closed before."""
        while view and self._arrived:
            first = self._arrived.pop(0)
            taken = min(len(first), len(view))
            view[:taken] = first[:taken]
            view = view[taken:]
            if taken < len(first):
                self._arrived.insert(0, first[taken:])
        if view and not self._ended:
            self._place = view
            try:
                await self._wait(self._read_timeout)
            finally:
                unfilled, self._place = self._place, None
            view = unfilled or view[:0]
        if view and isinstance(self._ended, Exception):
            raise self._ended
        return not view

    async def _wait(self, seconds: float) -> None:
        """Wait for progress; TimeoutError after that many idle seconds, or at the deadline."""
        while True:
            self._moving = False
            self._reader = self._loop.create_future()
            self._until = time.monotonic() + seconds
            self._heed_deadline()
            try:
                await self._reader
            finally:
                self._reader = None
            if self._place is None or self._ended:
                return  # otherwise it was only the timer, and there was progress

    def _heed_deadline(self) -> None:
        """Make the waiting caller give up no later than at the deadline.

        Setting and cancelling a timer for each request would be a twentieth of its work. So one that rings earlier is
        left alone; when it rings, it is set again if the caller still waits.
        """
        self._until = min(self._until, self._limit.deadline)
        if self._reader is None or (self._timer is not None and self._rings <= self._until):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._rings = self._until
        self._timer = self._loop.call_later(self._until - time.monotonic(), self._ring)

    def _ring(self) -> None:
        self._timer = None
        reader = self._reader
        if reader is None or reader.done():
            return
        if time.monotonic() < self._until:
            self._heed_deadline()
        elif self._moving and self._limit.left > 0:
            reader.set_result(None)
        else:
            reader.set_exception(TimeoutError("timed out"))

    def close(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()


class AwaitingWaiter:
    """A task in the line for a connection."""

    def __init__(self) -> None:
        self.handed: list[Any] = []
        self._woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, limit: Limit) -> bool:
        """Wait for `wake`; False if it did not come before the deadline."""
        try:
            async with within(limit):
                await self._woken
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """Let the task continue."""
        if not self._woken.done():
            self._woken.set_result(None)


class _BareStream:
    """A socket before the event loop has it as a connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def receive(self) -> bytes:
        return await self._loop.sock_recv(self._socket, CHUNK)


class _Dialler:
    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        with suppress(socket.gaierror, UnicodeError):  # a numeric host needs no thread
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)

    async def dial(self, plain: socket.socket, address: Any, seconds: float) -> None:
        plain.setblocking(False)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(plain, address)

    def bare_stream(self, plain: socket.socket, limit: Limit) -> _BareStream:
        return _BareStream(plain)

    async def finish(self, plain: socket.socket, target: Target, limit: Limit) -> AwaitingStream:
        _, stream = await asyncio.get_running_loop().create_connection(
            lambda: AwaitingStream(target.read_timeout),
            sock=plain,
            ssl=target.tls,
            server_hostname=target.host if target.tls is not None else None,
        )
        return stream


async def connect_awaiting(target: Target, limit: Limit) -> AwaitingStream:
    """A connection, opened without blocking the event loop."""
    async with within(limit, target.connect_timeout):
        return await open_connection(target, _Dialler(), Limit(target.connect_timeout))

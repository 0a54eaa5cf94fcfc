"""Connections in the awaiting colour. A module of their own, because asyncio takes a while to load."""

from __future__ import annotations

import asyncio
import select
import socket
import time

from holdall.backends.aws.awaiting_limit import within
from holdall.backends.aws.connection import CHUNK, Target, numeric_addresses, watched
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.proxy import open_tunnel

__all__ = ["AwaitingStream", "connect_awaiting"]


class AwaitingStream(asyncio.BufferedProtocol):
    """A connection of an event loop.

    It brings its own buffer: asyncio would ask for a quarter of a megabyte for each bit that arrives.
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
        self._limit = Limit(read_timeout)
        self._writable = asyncio.Event()
        self._writable.set()

    # --- what the event loop tells us ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._watch = watched(transport.get_extra_info("socket"))

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

    # --- what flows ask of us ---

    def begin(self, limit: Limit) -> None:
        """Wait no longer than the limit's deadline from now on."""
        self._limit = limit
        limit.moved = self._set_timer

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""
        assert self._transport is not None
        if self._transport.is_closing():  # it would take the data, and complain about it to the log
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
        """The same; None when nothing arrived in so many seconds."""
        if not self._arrived and not self._ended:
            try:
                await self._wait(seconds)
            except TimeoutError:
                if self._limit.left <= 0:
                    raise
                return None
        return await self.receive()

    async def fill(self, view: memoryview) -> bool:
        """Receive until the memory is full; False when the other side has closed before."""
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
            self._set_timer(seconds)
            try:
                await self._reader
            finally:
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                self._reader = None
            if self._place is None or self._ended:
                return  # otherwise it was only the timer, and there was progress

    def _set_timer(self, seconds: float | None = None) -> None:
        """Make the waiting caller give up after that many seconds, and no later than the deadline."""
        if self._reader is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        left = self._limit.deadline - time.monotonic()
        patience = self._read_timeout if seconds is None else seconds
        self._timer = self._loop.call_later(min(patience, left), self._give_up, self._reader)

    def _give_up(self, reader: asyncio.Future[None]) -> None:
        if reader.done():
            return
        if self._moving and self._limit.left > 0:
            reader.set_result(None)
        else:
            reader.set_exception(TimeoutError("timed out"))

    def stale(self) -> bool:
        """Whether something arrived unasked, which between requests can only be the end.

        The socket is looked at too: the event loop may not have been there since to hear of it.
        """
        if self._arrived or self._ended or self._transport is None or self._transport.is_closing():
            return True
        return self._watch is None or bool(self._watch.poll(0))

    def close(self) -> None:
        """Let go of it at once."""
        if self._transport is not None:
            self._transport.abort()


async def connect_awaiting(target: Target, limit: Limit) -> AwaitingStream:
    """A connection, made while the event loop goes on."""
    loop = asyncio.get_running_loop()
    async with within(limit, target.connect_timeout):
        plain = await _dial(*target.next_hop, target.connect_timeout)
        try:
            if target.tunnel is not None:
                await open_tunnel(_Bare(plain), target.tunnel, target.host, target.port)
            _, stream = await loop.create_connection(
                lambda: AwaitingStream(target.read_timeout),
                sock=plain,
                ssl=target.tls,
                server_hostname=target.host if target.tls is not None else None,
            )
        except BaseException:
            plain.close()
            raise
    return stream


class _Bare:
    """A socket before the event loop has it as a connection."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)

    async def receive(self) -> bytes:
        return await self._loop.sock_recv(self._socket, CHUNK)


async def _dial(host: str, port: int, seconds: float) -> socket.socket:
    """A socket connected to the first of the host's addresses that answers; each gets its share of the time."""
    loop = asyncio.get_running_loop()
    end = time.monotonic() + seconds
    addresses = numeric_addresses(host, port) or await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    trouble: OSError = TimeoutError("timed out")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        dialling = None
        try:
            dialling = socket.socket(family, kind, protocol)
            dialling.setblocking(False)
            async with asyncio.timeout((end - time.monotonic()) / (len(addresses) - number)):
                await loop.sock_connect(dialling, address)
        except BaseException as error:
            if dialling is not None:
                dialling.close()
            if not isinstance(error, OSError):
                raise
            trouble = error
        else:
            return dialling
    raise trouble

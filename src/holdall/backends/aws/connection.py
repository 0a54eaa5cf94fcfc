"""Connections in both colours: a stream of bytes to one endpoint, with timeouts, TLS verified."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
from dataclasses import dataclass

from holdall.errors import ConfigurationError

__all__ = [
    "AwaitingStream",
    "BlockingStream",
    "Target",
    "connect_awaiting",
    "connect_blocking",
    "tls_context",
]

_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect, how long to wait for it, and the TLS to speak (None: plain)."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    connect_timeout: float = 5.0
    read_timeout: float = 30.0


def tls_context() -> ssl.SSLContext:
    """TLS that verifies the endpoint, by ``AWS_CA_BUNDLE`` where that is set."""
    bundle = os.environ.get("AWS_CA_BUNDLE")
    try:
        context = ssl.create_default_context(cafile=bundle or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(
            f"the certificates of AWS_CA_BUNDLE cannot be read: {error}",
            hint="name a file of PEM certificates, or unset it",
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _readable(connected: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


class BlockingStream:
    """A connection that the calling thread waits for."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        self._socket.sendall(data)

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""
        return self._socket.recv(_CHUNK)

    def stale(self) -> bool:
        """Whether something arrived unasked, which between requests can only be the end."""
        return _readable(self._socket)

    def close(self) -> None:
        """Let go of it at once."""
        self._socket.close()


async def connect_blocking(target: Target) -> BlockingStream:
    """A connection, made while the calling thread waits."""
    plain = socket.create_connection((target.host, target.port), target.connect_timeout)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected = plain
        if target.tls is not None:
            connected = target.tls.wrap_socket(plain, server_hostname=target.host)
        connected.settimeout(target.read_timeout)
    except BaseException:
        plain.close()
        raise
    return BlockingStream(connected)


class AwaitingStream(asyncio.Protocol):
    """A connection of an event loop."""

    def __init__(self, read_timeout: float) -> None:
        self._read_timeout = read_timeout
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._arrived: list[bytes] = []
        self._ended: Exception | bool = False
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    # --- what the event loop tells us ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Bytes arrived."""
        self._arrived.append(data)
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

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        assert self._transport is not None
        self._transport.write(data)
        if not self._writable.is_set():
            async with asyncio.timeout(self._read_timeout):
                await self._writable.wait()

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""
        if not self._arrived and not self._ended:
            self._reader = self._loop.create_future()
            timer = self._loop.call_later(self._read_timeout, self._give_up, self._reader)
            try:
                await self._reader
            finally:
                timer.cancel()
                self._reader = None
        if self._arrived:
            data = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
            self._arrived.clear()
            return data
        if isinstance(self._ended, Exception):
            raise self._ended
        return b""

    @staticmethod
    def _give_up(reader: asyncio.Future[None]) -> None:
        if not reader.done():
            reader.set_exception(TimeoutError("timed out"))

    def stale(self) -> bool:
        """Whether something arrived unasked, which between requests can only be the end.

        The socket is looked at too: the event loop may not have been there since to hear of it.
        """
        if self._arrived or self._ended or self._transport is None or self._transport.is_closing():
            return True
        return _readable(self._transport.get_extra_info("socket"))

    def close(self) -> None:
        """Let go of it at once."""
        if self._transport is not None:
            self._transport.abort()


async def connect_awaiting(target: Target) -> AwaitingStream:
    """A connection, made while the event loop goes on."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(target.connect_timeout):
        _, stream = await loop.create_connection(
            lambda: AwaitingStream(target.read_timeout),
            target.host,
            target.port,
            ssl=target.tls,
            server_hostname=target.host if target.tls is not None else None,
        )
    return stream

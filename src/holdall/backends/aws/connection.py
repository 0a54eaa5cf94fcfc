"""Connections in the blocking colour: a stream of bytes to one endpoint, with timeouts, TLS verified."""

from __future__ import annotations

import os
import select
import socket
from typing import TYPE_CHECKING, Any

from holdall.core.frozen import dataclass
from holdall.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl  # at run time only where TLS is spoken: it takes a while to load

__all__ = ["CHUNK", "BlockingStream", "Target", "connect_blocking", "tls_context", "watched"]

CHUNK = 64 * 1024
"""The most that is received at once; memory for more would be mapped and unmapped each time."""


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
    import ssl

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


def watched(connected: socket.socket) -> select.poll:
    """What tells, with ``poll(0)``, whether there is anything to receive."""
    watch = select.poll()
    watch.register(connected, select.POLLIN)
    return watch


class BlockingStream:
    """A connection that the calling thread waits for."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._watch = watched(connected)

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""
        self._socket.sendall(data)

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""
        return self._socket.recv(CHUNK)

    async def receive_within(self, seconds: float) -> bytes | None:
        """The same; None when nothing arrived in so many seconds."""
        patience = self._socket.gettimeout()
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(CHUNK)
        except TimeoutError:
            return None
        finally:
            self._socket.settimeout(patience)

    async def fill(self, view: memoryview) -> bool:
        """Receive until the memory is full; False when the other side has closed before."""
        receive = self._socket.recv_into
        while view:
            arrived = receive(view)
            if not arrived:
                return False
            view = view[arrived:]
        return True

    def stale(self) -> bool:
        """Whether something arrived unasked, which between requests can only be the end."""
        return bool(self._watch.poll(0))

    def close(self) -> None:
        """Let go of it at once."""
        self._socket.close()


async def connect_blocking(target: Target) -> BlockingStream:
    """A connection, made while the calling thread waits."""
    where: Any = (
        target.host.encode("ascii"),
        target.port,
    )  # text would load the codec for international names
    plain = socket.create_connection(where, target.connect_timeout)
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

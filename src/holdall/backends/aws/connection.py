"""Connections in the blocking colour: a stream of bytes to one endpoint, with timeouts, TLS verified."""

from __future__ import annotations

import os
import select
import socket
from time import monotonic
from typing import TYPE_CHECKING, Any

from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.proxy import Proxy, find_proxy, open_tunnel
from holdall.core.frozen import dataclass
from holdall.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl  # at run time only where TLS is spoken: it takes a while to load

__all__ = [
    "CHUNK",
    "BlockingStream",
    "Target",
    "connect_blocking",
    "numeric_addresses",
    "target_of",
    "tls_context",
    "watched",
]

CHUNK = 64 * 1024
"""The most that is received at once; memory for more would be mapped and unmapped each time."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect, through which proxy, how long to wait, and the TLS context (None: plain)."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    max_connections: int = 64
    proxy: Proxy | None = None

    @property
    def next_hop(self) -> tuple[str, int]:
        """What the socket connects to."""
        return (self.host, self.port) if self.proxy is None else (self.proxy.host, self.proxy.port)

    @property
    def tunnel(self) -> Proxy | None:
        """The proxy that tunnels to the host, if it does not forward single requests."""
        return self.proxy if self.tls is not None else None


def target_of(scheme: str, host: str, port: int, limits: Limits) -> Target:
    """The target for an endpoint, with the certificates and the proxy that the environment names."""
    return Target(
        host,
        port,
        tls_context() if scheme == "https" else None,
        limits.connect_timeout,
        limits.read_timeout,
        limits.max_connections,
        find_proxy(scheme, host, port, os.environ),
    )


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

    def __init__(self, connected: socket.socket, read_timeout: float) -> None:
        self._socket = connected
        self._watch = watched(connected)
        self._read_timeout = self._timeout = read_timeout
        self._limit = Limit(read_timeout)
        connected.settimeout(read_timeout)

    def begin(self, limit: Limit) -> None:
        """Wait no longer than the limit's deadline from now on."""
        self._limit = limit
        if self._timeout != self._read_timeout:
            self._set_timeout(self._read_timeout)

    def _heed_deadline(self) -> None:
        left = self._limit.deadline - monotonic()
        if left < self._timeout:
            if left <= 0:
                raise TimeoutError("timed out")
            self._set_timeout(left)

    def _set_timeout(self, seconds: float) -> None:
        self._timeout = seconds
        self._socket.settimeout(seconds)

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""
        self._heed_deadline()
        self._socket.sendall(data)

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""
        self._heed_deadline()
        return self._socket.recv(CHUNK)

    async def receive_within(self, seconds: float) -> bytes | None:
        """The same; None when nothing arrived in so many seconds."""
        self._heed_deadline()
        if seconds >= self._timeout:
            return self._socket.recv(CHUNK)
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(CHUNK)
        except TimeoutError:
            return None
        finally:
            self._socket.settimeout(self._timeout)

    async def fill(self, view: memoryview) -> bool:
        """Receive until the memory is full; False when the other side has closed before."""
        receive = self._socket.recv_into
        while view:
            self._heed_deadline()
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


async def connect_blocking(target: Target, within: Limit) -> BlockingStream:
    """A connection, made while the calling thread waits; the lookup of the host's name has no time limit."""
    limit = Limit(min(target.connect_timeout, within.left))
    plain = _dial(*target.next_hop, limit)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.tunnel is not None:
            stream = BlockingStream(plain, target.connect_timeout)
            stream.begin(limit)
            await open_tunnel(stream, target.tunnel, target.host, target.port)
        connected = plain
        if target.tls is not None:
            plain.settimeout(max(limit.left, 0.001))
            connected = target.tls.wrap_socket(plain, server_hostname=target.host)
        return BlockingStream(connected, target.read_timeout)
    except BaseException:
        plain.close()
        raise


def _dial(host: str, port: int, limit: Limit) -> socket.socket:
    """A socket connected to the first of the host's addresses that answers; each gets its share of the time."""
    name: Any = host.encode("ascii")  # text would load the codec for international names
    addresses = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    trouble: OSError = TimeoutError("timed out")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        share = limit.left / (len(addresses) - number)
        if share <= 0:
            break
        dialling = None
        try:
            dialling = socket.socket(family, kind, protocol)
            dialling.settimeout(share)
            dialling.connect(address)
        except BaseException as error:
            if dialling is not None:
                dialling.close()
            if not isinstance(error, OSError):
                raise
            trouble = error
        else:
            return dialling
    raise trouble


def numeric_addresses(host: str, port: int) -> list[Any] | None:
    """The addresses of a numeric host, without a lookup; None for a name."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (socket.gaierror, UnicodeError):
        return None

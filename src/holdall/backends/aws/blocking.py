"""The wire for sync code: the calling thread waits. `awaiting` is its async counterpart."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from holdall.backends.aws.connection import CHUNK, Address, Target, make_poll, open_connection
from holdall.backends.aws.exchange import exchange
from holdall.backends.aws.limit import Limit
from holdall.backends.fork import call_after_fork
from holdall.errors import EndpointError

if TYPE_CHECKING:
    from holdall.backends.aws.credentials import CredentialSource
    from holdall.backends.aws.message import Reply
    from holdall.backends.aws.signer import Credentials
    from holdall.backends.aws.transport import Transport

T = TypeVar("T")

PATIENCE = 120.0
"""How many seconds `alone` waits for its turn, unless the caller passes another number."""


class Clock:
    """The part of a pace that does not wait."""

    now = staticmethod(time.monotonic)

    def random(self) -> float:
        """A random number from 0 up to 1."""
        # the module random is slow to load, and cannot be loaded without file descriptors
        return int.from_bytes(os.urandom(7)) / (1 << 56)


class BlockingPace(Clock):
    """The calling thread waits."""

    limit = Limit

    def __init__(self) -> None:
        self._lock = threading.RLock()
        call_after_fork(self.after_fork)

    def after_fork(self) -> None:
        """In a forked child: the thread that held the lock is not here to release it."""
        self._lock = threading.RLock()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    async def alone(self, work: Callable[[], Awaitable[T]], seconds: float = PATIENCE) -> T:
        """Do the work while no other thread does work of this kind."""
        lock = self._lock
        if not lock.acquire(timeout=seconds):
            raise explain_wait(seconds)
        try:
            return await work()
        finally:
            lock.release()

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """Call something that blocks."""
        return function(*args)

    async def choose(
        self, blocking: Callable[..., T], awaiting: Callable[..., Awaitable[T]], *args: Any
    ) -> T:
        """Call the sync function."""
        return blocking(*args)

    async def credentials(self, source: CredentialSource, within: Limit) -> Credentials:
        """The credentials to sign with."""
        return source.current()

    def exchange(self, transport: Transport, within: Limit, *parcel: Any) -> Coroutine[Any, Any, Reply]:
        """Send a parcel over one of this process's connections."""
        return exchange(transport.blocking, within, *parcel)


def explain_wait(seconds: float) -> EndpointError:
    """The error of a caller whose turn did not come."""
    return EndpointError(
        f"another request to the service did not finish within {seconds:g} seconds",
        hint="check the endpoint, the region and the network",
    )


class BlockingStream:
    """A connection that the calling thread waits for."""

    def __init__(self, connected: socket.socket, read_timeout: float) -> None:
        self._socket = connected
        self._watch = make_poll(connected)
        self._read_timeout = self._timeout = read_timeout
        self._limit = Limit(read_timeout)
        connected.settimeout(read_timeout)

    def begin(self, limit: Limit) -> bool:
        """Wait no longer than the limit's deadline from now on; False if the other side has closed the connection.

        Anything that arrives between requests can only be the end.
        """
        self._limit = limit
        if self._timeout != self._read_timeout:
            self._set_timeout(self._read_timeout)
        return not self._watch.poll(0)

    def _heed_deadline(self) -> None:
        left = self._limit.deadline - monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        if left < self._timeout:
            self._set_timeout(left)

    def _set_timeout(self, seconds: float) -> None:
        self._timeout = seconds
        self._socket.settimeout(seconds)

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""
        if self._limit.deadline - monotonic() < self._timeout:
            self._heed_deadline()
        self._socket.sendall(data)

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""
        if self._limit.deadline - monotonic() < self._timeout:
            self._heed_deadline()
        return self._socket.recv(CHUNK)

    async def receive_within(self, seconds: float) -> bytes | None:
        """The same; None if nothing arrived within that many seconds."""
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
        """Receive until the memory is full; False if the other side has closed before."""
        receive = self._socket.recv_into
        while view:
            self._heed_deadline()
            arrived = receive(view)
            if not arrived:
                return False
            view = view[arrived:]
        return True

    def close(self) -> None:
        """Close it at once."""
        self._socket.close()


class BlockingWaiter:
    """A thread in the line for a connection."""

    def __init__(self) -> None:
        self.handed: list[Any] = []
        self._lock = threading.Lock()
        self._lock.acquire()

    async def wait(self, limit: Limit) -> bool:
        """Wait for `wake`; False if it did not come before the deadline."""
        return self._lock.acquire(timeout=max(0.0, limit.left))

    def wake(self) -> None:
        """Let the thread go on."""
        self._lock.release()


class _Dialler:
    async def look_up(self, host: str, port: int) -> Sequence[Address]:
        name: Any = host.encode("ascii")  # text would load the codec for international names
        return socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)

    async def dial(self, plain: socket.socket, address: Any, seconds: float) -> None:
        plain.settimeout(seconds)
        plain.connect(address)

    def bare_stream(self, plain: socket.socket, limit: Limit) -> BlockingStream:
        stream = BlockingStream(plain, max(limit.left, 0.001))
        stream.begin(limit)
        return stream

    async def finish(self, plain: socket.socket, target: Target, limit: Limit) -> BlockingStream:
        if target.tls is not None:
            plain.settimeout(max(limit.left, 0.001))
            plain = target.tls.wrap_socket(plain, server_hostname=target.host)
        return BlockingStream(plain, target.read_timeout)


async def connect_blocking(target: Target, within: Limit) -> BlockingStream:
    """A connection, opened while the calling thread waits; looking up the host's name has no time limit."""
    return await open_connection(target, _Dialler(), Limit(min(target.connect_timeout, within.left)))

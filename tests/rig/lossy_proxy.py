"""An unreliable network between a client and a real server on the loopback interface.

The proxy reads whole requests and draws a fate for each: passed on, lost on the way, executed with its reply lost, cut
short, garbled or replaced, delayed, or answered by the proxy itself. A seed determines the series of fates; which
request meets which fate depends on the threads. No request meets more than `MOST_IN_A_ROW` faults in a row, so that a
patient client succeeds.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO
from urllib.parse import urlsplit
from zlib import crc32

__all__ = ["Fate", "LossyProxy", "lossy"]

MOST_IN_A_ROW = 5
PATIENCE_SECONDS = 30.0
LONGEST_DELAY = 0.01


class Fate(Enum):
    """What happens to a request."""

    PASSED = "passed on"
    SLOW = "passed on after a while"
    LAST = "passed on, and the connection closed after the reply"
    LOST = "never arrives, the connection is closed"
    RESET = "never arrives, the connection is reset"
    REPLY_LOST = "executed, the connection is closed before the reply"
    REPLY_RESET = "executed, the connection is reset before the reply"
    REPLY_CUT = "executed, the connection is closed in the middle of the reply"
    REPLY_GARBLED = "executed, the reply has a wrong checksum"
    FAILED_BEFORE = "not executed, answered with a 500"
    FAILED_AFTER = "executed, a 500 instead of the reply"
    THROTTLED = "not executed, answered with throttling"
    LATE = "executed only after the connection is closed"


KIND = frozenset({Fate.PASSED, Fate.SLOW, Fate.LAST})
"""Fates with which the client gets its reply."""

UNKIND = [fate for fate in Fate if fate not in KIND and fate is not Fate.LATE]


@dataclass(frozen=True)
class _Request:
    head: bytes
    body: bytes

    @property
    def headers(self) -> Mapping[str, str]:
        pairs = (line.partition(":") for line in self.head.decode("latin-1").split("\r\n")[1:] if line)
        return {name: value.strip() for name, _, value in pairs}


class LossyProxy:
    """Lets a ``rate`` of the requests fail. Requests whose body contains ``late`` may also arrive late."""

    def __init__(self, server: str, seed: object, rate: float = 0.4, late: bytes | None = None) -> None:
        target = urlsplit(server)
        assert target.hostname is not None
        self._upstream = (target.hostname, target.port or 80)
        self._late = late
        self._rate = rate
        self._random = random.Random(str(seed))
        self._lock = threading.Lock()
        self._in_a_row: Counter[bytes] = Counter()
        self.fates: Counter[Fate] = Counter()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._start(self._accept)

    def settle(self) -> None:
        """Wait until no request is under way, including late ones; the clients must have finished."""
        self._listening.shutdown(socket.SHUT_RDWR)
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive(), "a request is still under way"

    def close(self) -> None:
        """Release the port."""
        self._listening.close()

    # --- connections ---

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):  # shut down
            while True:
                connection, _ = self._listening.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._open.add(connection)
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        upstream = http.client.HTTPConnection(*self._upstream, timeout=PATIENCE_SECONDS)
        with suppress(OSError), connection.makefile("rb") as stream:
            while (request := _read(stream)) is not None:
                if not self._treat(connection, upstream, request):
                    break
        upstream.close()
        with self._lock:
            self._open.discard(connection)
        connection.close()

    # --- fates ---

    def _draw(self, request: _Request) -> Fate:
        with self._lock:
            fate = self._random.choice([Fate.PASSED, Fate.PASSED, Fate.SLOW, Fate.LAST])
            if self._random.random() < self._rate and self._in_a_row[request.body] < MOST_IN_A_ROW:
                late = self._late is not None and self._late in request.body
                fate = self._random.choice([*UNKIND, *[Fate.LATE] * len(UNKIND)] if late else UNKIND)
            if fate in KIND:
                del self._in_a_row[request.body]
            else:
                self._in_a_row[request.body] += 1
            self.fates[fate] += 1
            return fate

    def _chance(self) -> float:
        with self._lock:
            return self._random.random()

    def _treat(
        self, connection: socket.socket, upstream: http.client.HTTPConnection, request: _Request
    ) -> bool:
        """Carry out the request's fate; return whether the connection stays open."""
        fate = self._draw(request)
        if fate is Fate.SLOW:
            threading.Event().wait(self._chance() * LONGEST_DELAY)
        if fate is Fate.LATE:
            self._start(self._afterwards, request)
        elif fate is Fate.THROTTLED:
            connection.sendall(_answer(400, "ThrottlingException"))
        elif fate is Fate.FAILED_BEFORE:
            connection.sendall(_answer(500, "InternalServerError"))
        elif fate not in (Fate.LOST, Fate.RESET):
            status, reply = _forward(upstream, request)
            self._reply(connection, fate, status, reply)
        if fate in (Fate.RESET, Fate.REPLY_RESET):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stays_open = (
            Fate.PASSED,
            Fate.SLOW,
            Fate.THROTTLED,
            Fate.FAILED_BEFORE,
            Fate.FAILED_AFTER,
            Fate.REPLY_GARBLED,
        )
        return fate in stays_open

    def _reply(self, connection: socket.socket, fate: Fate, status: int, reply: bytes) -> None:
        if fate is Fate.FAILED_AFTER:
            connection.sendall(_answer(500, "InternalServerError"))
        elif fate is Fate.REPLY_GARBLED:
            connection.sendall(_message(status, reply, checksum=crc32(reply) ^ 1))
        elif fate is Fate.REPLY_CUT:
            whole = _message(status, reply)
            connection.sendall(whole[: 1 + int(self._chance() * (len(whole) - 1))])
        elif fate in KIND:
            connection.sendall(_message(status, reply))

    def _afterwards(self, request: _Request) -> None:
        threading.Event().wait(self._chance() * 5 * LONGEST_DELAY)
        upstream = http.client.HTTPConnection(*self._upstream, timeout=PATIENCE_SECONDS)
        _forward(upstream, request)
        upstream.close()


@contextmanager
def lossy(server: str, seed: object, rate: float = 0.4, late: bytes | None = None) -> Iterator[LossyProxy]:
    """Put a proxy in front of the server while the block runs."""
    proxy = LossyProxy(server, seed, rate, late)
    try:
        yield proxy
        proxy.settle()
    finally:
        proxy.close()


# --- messages ---------------------------------------------------------------------------------------------


def _read(stream: BinaryIO) -> _Request | None:
    """The next request; None if there is none or it is incomplete."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return None
        head += line
    request = _Request(head, b"")
    size = int({name.lower(): value for name, value in request.headers.items()}["content-length"])
    body = stream.read(size)
    return _Request(head, body) if len(body) == size else None


def _forward(upstream: http.client.HTTPConnection, request: _Request) -> tuple[int, bytes]:
    upstream.request("POST", "/", request.body, dict(request.headers))
    reply = upstream.getresponse()
    return reply.status, reply.read()


def _message(status: int, body: bytes, checksum: int | None = None) -> bytes:
    head = (
        f"HTTP/1.1 {status} Said\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {len(body)}\r\n"
        f"x-amz-crc32: {crc32(body) if checksum is None else checksum}\r\n\r\n"
    )
    return head.encode("ascii") + body


def _answer(status: int, code: str) -> bytes:
    return _message(
        status, json.dumps({"__type": f"com.amazonaws.dynamodb#{code}", "message": "no"}).encode()
    )

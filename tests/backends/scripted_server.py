"""A server on the loopback interface that does to each request what the test says, down to the byte.

It reads requests properly and answers by script: any bytes at all, in any pieces, at any time, and then the connection
is kept, closed or reset. What no well-behaved server would do is played here. Every request is recorded as it
arrived. A request that the script does not foresee, and a step that no request reached, fail the test.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

__all__ = [
    "CLOSE",
    "RESET",
    "Asked",
    "ScriptedServer",
    "Step",
    "http",
    "refuses",
    "says",
    "serve_script",
    "silence",
]

PATIENCE_SECONDS = 20.0
"""How long a test waits for something that must happen: only a test that fails waits so long."""


@dataclass(frozen=True)
class Asked:
    """A request as it arrived, and on which connection (they are counted from 1)."""

    head: bytes
    body: bytes
    connection: int

    @property
    def headers(self) -> Mapping[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines if line)
        return {name.lower(): value.strip() for name, _, value in pairs}

    @property
    def operation(self) -> str:
        return self.headers["x-amz-target"].rpartition(".")[2]

    @property
    def payload(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Step:
    """What happens to one request: the parts are sent one by one (an event among them is waited for), then the end."""

    parts: tuple[bytes | threading.Event, ...] = ()
    end: Literal["keep", "close", "reset"] = "keep"


CLOSE = Step(end="close")
RESET = Step(end="reset")


def silence() -> Step:
    """No answer as long as the server lives."""
    return Step((threading.Event(),), end="close")


def http(status: int, headers: Mapping[str, object], body: bytes = b"") -> bytes:
    """A reply with just these headers."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode("latin-1") + body


def says(
    payload: Any,
    *,
    status: int = 200,
    headers: Mapping[str, object] | None = None,
    end: Literal["keep", "close", "reset"] = "keep",
    gate: threading.Event | None = None,
) -> Step:
    """A reply as DynamoDB makes them; with a gate, once that is open."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    complete = {
        "Content-Type": "application/x-amz-json-1.0",
        "Content-Length": len(body),
        "x-amz-crc32": crc32(body),
        "x-amzn-RequestId": "REQUEST-1",
        **(headers or {}),
    }
    reply = http(status, complete, body)
    return Step((reply,) if gate is None else (gate, reply), end)


def refuses(
    code: str,
    message: str = "no",
    *,
    status: int = 400,
    headers: Mapping[str, object] | None = None,
    **more: Any,
) -> Step:
    """An error as DynamoDB answers it."""
    payload = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message, **more}
    return says(payload, status=status, headers=headers)


class ScriptedServer:
    """The server. ``answer`` takes the script's place where the order of requests is not the test's to know."""

    def __init__(
        self, *steps: Step, answer: Callable[[Asked], Step] | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[Asked] = []
        self._steps = deque(steps)
        self._answer = answer
        self._tls = tls
        self._changed = threading.Condition()
        self._connections = 0
        self._ended = 0
        self._done = 0
        self._unforeseen: list[Asked] = []
        self._gates: list[threading.Event] = []
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listening.getsockname()[1]
        self._start(self._accept)

    # --- what a test asks ---

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def operations(self) -> list[str]:
        return [asked.operation for asked in self.requests]

    @property
    def connections(self) -> int:
        """How many connections were made so far."""
        return self._connections

    def then(self, *steps: Step) -> None:
        """Lengthen the script."""
        self._steps.extend(steps)

    def wait_for_requests(self, count: int) -> None:
        """Until so many requests have arrived."""
        self._wait(lambda: len(self.requests) >= count)

    def wait_for_steps(self, count: int) -> None:
        """Until so many steps that keep their connection have been played."""
        self._wait(lambda: self._done >= count)

    def wait_for_ends(self, count: int) -> None:
        """Until so many connections have ended, by either side."""
        self._wait(lambda: self._ended >= count)

    def _wait(self, happened: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(happened, PATIENCE_SECONDS), "the server waited in vain"

    def assert_played(self) -> None:
        """The script was played to its end, and nothing else was asked."""
        assert not self._unforeseen, f"not in the script: {self._unforeseen}"
        assert not self._steps, f"never played: {list(self._steps)}"

    def stop_listening(self) -> None:
        """From now on connections are refused; those there are go on."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()

    def stop(self) -> None:
        self.stop_listening()
        with self._changed:
            gates, connections = list(self._gates), list(self._open)
        for gate in gates:
            gate.set()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()

    # --- what its threads do ---

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._connections += 1
            number = self._connections
            self._start(lambda connection=connection, number=number: self._serve(connection, number))  # type: ignore[misc]

    def _serve(self, connection: socket.socket, number: int) -> None:
        with self._changed:
            self._open.add(connection)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            speaking = connection
            if self._tls is not None:
                speaking = self._tls.wrap_socket(connection, server_side=True)
            self._converse(speaking, number)
            speaking.close()
        except OSError:
            pass  # the client went away, which is its right
        finally:
            connection.close()
            with self._changed:
                self._open.discard(connection)
                self._ended += 1
                self._changed.notify_all()

    def _converse(self, connection: socket.socket, number: int) -> None:
        reader = connection.makefile("rb")
        with reader:
            while (asked := _read_request(reader, number)) is not None:
                step = self._record(asked)
                for part in step.parts:
                    if isinstance(part, bytes):
                        connection.sendall(part)
                    else:
                        part.wait(PATIENCE_SECONDS)
                if step.end == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if step.end != "keep":
                    return
                with self._changed:
                    self._done += 1
                    self._changed.notify_all()

    def _record(self, asked: Asked) -> Step:
        with self._changed:
            self.requests.append(asked)
            if self._answer is not None:
                step = self._answer(asked)
            elif self._steps:
                step = self._steps.popleft()
            else:
                self._unforeseen.append(asked)
                step = refuses("UnforeseenException", "this is not in the script")
            self._gates += [part for part in step.parts if isinstance(part, threading.Event)]
            self._changed.notify_all()
            return step


def _read_request(reader: Any, number: int) -> Asked | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline()
        if not line:
            return None
        head += line
    asked = Asked(head, b"", number)
    length = int(asked.headers.get("content-length", "0"))
    body = reader.read(length)
    return Asked(head, body, number) if len(body) == length else None


@contextmanager
def serve_script(
    *steps: Step, answer: Callable[[Asked], Step] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedServer]:
    """A server for the block; at its end the script must have been played."""
    server = ScriptedServer(*steps, answer=answer, tls=tls)
    try:
        yield server
        server.assert_played()
    finally:
        server.stop()

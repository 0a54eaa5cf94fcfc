"""A server on the loopback interface that answers each request with exactly the bytes that the test specifies.

It reads requests properly and answers by script: any bytes, in any pieces, at any time; then it keeps, closes or resets
the connection. It can misbehave in ways that no real server would. It records every request as it arrived. A request
beyond the end of the script, and a step that no request reached, fail the test.
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
    "ReceivedRequest",
    "ScriptedServer",
    "Step",
    "http",
    "refuse_with",
    "reply_with",
    "serve_script",
    "silence",
]

PATIENCE_SECONDS = 20.0
"""How long a test waits for something that must happen; only a failing test waits that long."""


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as it arrived, and the number of its connection, counted from 1."""

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
    """The answer to one request: the server sends the parts one by one, waits for events among them, and then ends."""

    parts: tuple[bytes | threading.Event, ...] = ()
    end: Literal["keep", "close", "reset"] = "keep"


CLOSE = Step(end="close")
RESET = Step(end="reset")


def silence() -> Step:
    """Send no answer while the server runs."""
    return Step((threading.Event(),), end="close")


def http(status: int, headers: Mapping[str, object], body: bytes = b"") -> bytes:
    """A reply with these headers only."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Reason\r\n{lines}\r\n".encode("latin-1") + body


def reply_with(
    payload: Any,
    *,
    status: int = 200,
    headers: Mapping[str, object] | None = None,
    end: Literal["keep", "close", "reset"] = "keep",
    gate: threading.Event | None = None,
) -> Step:
    """A reply as DynamoDB sends it; with a gate, the server waits for that first."""
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


def refuse_with(
    code: str,
    message: str = "no",
    *,
    status: int = 400,
    headers: Mapping[str, object] | None = None,
    **more: Any,
) -> Step:
    """An error reply as DynamoDB sends it."""
    payload = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message, **more}
    return reply_with(payload, status=status, headers=headers)


class ScriptedServer:
    """The server. ``answer`` replaces the script where the test cannot know the order of the requests."""

    def __init__(
        self,
        *steps: Step,
        answer: Callable[[ReceivedRequest], Step] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[ReceivedRequest] = []
        self._steps = deque(steps)
        self._answer = answer
        self._tls = tls
        self._changed = threading.Condition()
        self._connections = 0
        self._ended = 0
        self._done = 0
        self._unforeseen: list[ReceivedRequest] = []
        self._gates: list[threading.Event] = []
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listening.getsockname()[1]
        self._start(self._accept)

    # --- for tests ---

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    @property
    def operations(self) -> list[str]:
        return [received.operation for received in self.requests]

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self._connections

    def then(self, *steps: Step) -> None:
        """Add steps to the script."""
        self._steps.extend(steps)

    def wait_for_requests(self, count: int) -> None:
        """Wait until ``count`` requests have arrived."""
        self._wait(lambda: len(self.requests) >= count)

    def wait_for_steps(self, count: int) -> None:
        """Wait until the server has finished ``count`` steps that keep their connection."""
        self._wait(lambda: self._done >= count)

    def wait_for_ends(self, count: int) -> None:
        """Wait until ``count`` connections have been closed, by either side."""
        self._wait(lambda: self._ended >= count)

    def _wait(self, happened: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(happened, PATIENCE_SECONDS), "this did not happen in time"

    def assert_finished(self) -> None:
        """Check that the server used every step of the script and received no other request."""
        assert not self._unforeseen, f"not in the script: {self._unforeseen}"
        assert not self._steps, f"steps that no request reached: {list(self._steps)}"

    def stop_listening(self) -> None:
        """Refuse new connections from now on; existing ones stay open."""
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

    # --- threads ---

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
            pass  # the client closed the connection, as it may
        finally:
            connection.close()
            with self._changed:
                self._open.discard(connection)
                self._ended += 1
                self._changed.notify_all()

    def _converse(self, connection: socket.socket, number: int) -> None:
        reader = connection.makefile("rb")
        with reader:
            while (received := _read_request(reader, number)) is not None:
                step = self._record(received)
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

    def _record(self, received: ReceivedRequest) -> Step:
        with self._changed:
            self.requests.append(received)
            if self._answer is not None:
                step = self._answer(received)
            elif self._steps:
                step = self._steps.popleft()
            else:
                self._unforeseen.append(received)
                step = refuse_with("UnforeseenException", "this is not in the script")
            self._gates += [part for part in step.parts if isinstance(part, threading.Event)]
            self._changed.notify_all()
            return step


def _read_request(reader: Any, number: int) -> ReceivedRequest | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline()
        if not line:
            return None
        head += line
    received = ReceivedRequest(head, b"", number)
    length = int(received.headers.get("content-length", "0"))
    body = reader.read(length)
    return ReceivedRequest(head, body, number) if len(body) == length else None


@contextmanager
def serve_script(
    *steps: Step, answer: Callable[[ReceivedRequest], Step] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedServer]:
    """Run a server for the block; at the end of the block, check that it used the whole script."""
    server = ScriptedServer(*steps, answer=answer, tls=tls)
    try:
        yield server
        server.assert_finished()
    finally:
        server.stop()

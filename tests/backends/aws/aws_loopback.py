"""A server on the loopback interface that stands in for AWS's endpoints for containers, instances and roles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Loopback:
    """The server's URL, the requests that it received, and an event that ends the wait of unanswered requests."""

    url: str
    requests: list[ReceivedRequest] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def authority(self) -> str:
        return self.url.removeprefix("http://")


@contextmanager
def loopback(answer: Callable[[ReceivedRequest], Answer | None]) -> Iterator[Loopback]:
    """Serve answers while the block runs; None leaves a request unanswered until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = ReceivedRequest(self.command, self.path, headers, body)
            server.requests.append(received)
            given = answer(received)
            if given is None:
                server.stopping.wait()
                return
            self.send_response(given.status)
            for name, value in given.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(given.body)))
            self.end_headers()
            self.wfile.write(given.body)

        do_PUT = do_POST = do_GET  # noqa: N815 - the names that the server calls

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        server = Loopback(f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            listening.shutdown()
            thread.join()


def free_port_url() -> str:
    """An address where no process listens."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as listening:
        return f"http://127.0.0.1:{listening.server_port}"

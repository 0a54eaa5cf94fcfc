"""Helpers for tests of web applications: a counter, databases, requests as a server makes them, and real servers.

Tests cause contention on purpose: `bump` changes the counter in another transaction, between a handler's read and its
commit.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias
from uuid import uuid4

import uvicorn
from httpx import ASGITransport, AsyncClient, Response
from rig.servers import ENVIRONMENT, start_server
from rig.wrapper import Wrapper
from werkzeug.serving import make_server

from holdall import AsyncDatabase, Database, Key, Model
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import Request
from holdall.core.port import Backend, Send

__all__ = [
    "STORES",
    "Call",
    "Counter",
    "Counting",
    "add_one",
    "send_answer",
    "ask_app",
    "run_awaiting",
    "bump",
    "count_of",
    "database",
    "open_counter",
    "serve_asgi",
    "serve_wsgi",
]

P = ParamSpec("P")
Message: TypeAlias = MutableMapping[str, Any]
App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


class Counter(Model):
    """The item that requests increment."""

    name: Key[str]
    n: int = 0


def run_awaiting(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Decorate an async test to run on its own event loop."""

    @wraps(test)
    def run_it(*args: P.args, **keywords: P.kwargs) -> None:
        async def main() -> None:
            await test(*args, **keywords)

        asyncio.run(main())

    return run_it


# --- databases --------------------------------------------------------------------------------------------


class Counting(Wrapper):
    """A store that counts the requests it receives."""

    def __init__(self) -> None:
        super().__init__(EmbeddedBackend(None))
        self.requests = 0

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        self.requests += 1
        return await send(self.inner, request)


@contextmanager
def open_counter(backend: Backend | None = None) -> Iterator[Database]:
    """Open a database in memory, or on the given backend, with a counter ``c`` at 0."""
    with Database("memory:") if backend is None else Database(backend=backend) as db:
        db.run(lambda tx: tx.create(Counter, name="c"))
        yield db


@contextmanager
def database(store: str, folder: Path) -> Iterator[Database]:
    """Open a database on one of the stores, with a counter ``c`` at 0."""
    if store == "memory":
        db = Database("memory:")
    elif store == "file":
        db = Database(f"embedded:{folder / 'app.db'}", durability="normal")
    else:
        db = Database(
            f"dynamodb://web-{uuid4().hex}",
            endpoint=start_server(store),
            region=ENVIRONMENT["AWS_REGION"],
            manage_table=True,
            credentials=lambda: (
                ENVIRONMENT["AWS_ACCESS_KEY_ID"],
                ENVIRONMENT["AWS_SECRET_ACCESS_KEY"],
                None,
                None,
            ),
        )
    with db:
        db.run(lambda tx: tx.create(Counter, name="c"))
        yield db


def bump(db: Database) -> None:
    """Add 100 to the counter in a separate transaction, as another process would."""
    with db.transaction() as tx:
        tx.get_one(Counter, "c").n += 100


async def add_one(tx: Any) -> Counter:
    """Increment the counter: read it and write it."""
    counter: Counter = await tx.get_one(Counter, "c")
    counter.n += 1
    return counter


def count_of(db: Database | AsyncDatabase) -> int:
    """The stored value of the counter."""
    return (db if isinstance(db, Database) else db.sync).get_one(Counter, "c").n


# --- ASGI requests ----------------------------------------------------------------------------------------


@dataclass
class Call:
    """One request as a server makes it, message by message; ``sent`` has the application's messages.

    ``watch`` is called with each message before it is sent. With ``gone``, the client disconnects after its body.
    """

    method: str = "POST"
    chunks: list[bytes] = field(default_factory=lambda: [b""])
    watch: Callable[[Message], Any] = lambda message: None
    gone: bool = False
    scope: dict[str, Any] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)

    async def to(self, app: App) -> Call:
        """Send it to an application; return itself."""
        self.scope |= {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": self.method,
            "path": "/",
            "query_string": b"",
            "headers": [],
        }
        self._waiting = list(self.chunks)
        await app(self.scope, self._receive, self._send)
        return self

    async def _receive(self) -> Message:
        if not self._waiting:
            if not self.gone:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        body = self._waiting.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(self._waiting)}

    async def _send(self, message: Message) -> None:
        self.watch(message)
        for _ in range(2 if message["type"].endswith("start") else 1):
            await asyncio.sleep(0)  # like a server that waits for its client
        self.sent.append(message)

    @property
    def status(self) -> int | None:
        """The status, if a response has begun."""
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The headers of the response."""
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        """The whole body of the response."""
        return b"".join(message["body"] for message in self.sent[1:])


async def send_answer(send: Any, status: int = 200, *chunks: bytes) -> None:
    """Send a response."""
    await send({"type": "http.response.start", "status": status, "headers": []})
    for chunk in chunks[:-1]:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": chunks[-1] if chunks else b""})


def ask_app(app: Any, method: str, url: str, *, raising: bool = False, **options: Any) -> Response:
    """Send a request to an ASGI application in this process; its errors are responses with 500, or ``raising``."""

    async def main() -> Response:
        transport = ASGITransport(app=app, raise_app_exceptions=raising)
        async with AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.request(method, url, **options)

    return asyncio.run(main())


# --- real servers -----------------------------------------------------------------------------------------


@contextmanager
def serve_asgi(app: Any) -> Iterator[str]:
    """Serve an ASGI application with uvicorn in a thread; yield its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="critical", lifespan="off", http="h11", ws="none", loop="asyncio")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def serve_wsgi(app: Any) -> Iterator[str]:
    """Serve a WSGI application with werkzeug's server, one thread per request; yield its URL."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    server.log = lambda *args: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


STORES = ["memory", "file", "ministack"]

"""An ASGI application as a WSGI application: `holdall.web.create_app` inside Flask or Django.

The application runs on an event loop in a separate thread, one per process. The server's thread does what blocks: it
reads the request's body when the application asks for more of it, and passes on what the application sends. Each waits
for the other, so at most one chunk is in transit in either direction.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from holdall.errors import InvalidRequestError
from holdall.web.asgi_attempt import ASGIApp
from holdall.web.inbox import DISCONNECT, Message

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_CHUNK = 65_536
_BODY = "http.response.body"
_HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
"""Headers about the connection, which a WSGI application must not send."""


def adapt_asgi(app: ASGIApp) -> WSGIApplication:
    """An ASGI application, such as that of `holdall.web.create_app`, as a WSGI application.

    It runs on an event loop in a separate thread, which all adapted applications of a process share; processes that a
    server forks get their own. Bodies are streamed in both directions. When the client disconnects, the server closes
    the response, and the application's task is cancelled. ``lifespan`` events and websockets are not supported.
    """

    def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        root = decode(environ.get("SCRIPT_NAME", ""))
        path = root + decode(environ.get("PATH_INFO", ""))
        exchange = Exchange(app, make_scope(environ, path, root), environ)
        start_response(f"{exchange.status} {find_phrase(exchange.status)}", exchange.headers)
        return exchange

    return serve


def decode(text: str) -> str:
    """A part of a path, as text: WSGI passes its bytes decoded as Latin-1."""
    return text.encode("latin-1").decode(errors="replace")


def find_phrase(status: int) -> str:
    """The reason phrase of a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def make_scope(environ: WSGIEnvironment, path: str, root: str) -> dict[str, Any]:
    """An ASGI scope for a request; ``path`` starts with ``root``, where the application is mounted."""
    headers = {name[5:]: value for name, value in environ.items() if name.startswith("HTTP_")}
    headers |= {name: environ[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if environ.get(name)}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": environ.get("SERVER_PROTOCOL", "HTTP/1.1").partition("/")[2],
        "method": environ["REQUEST_METHOD"],
        "scheme": environ.get("wsgi.url_scheme", "http"),
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": root,
        "query_string": environ.get("QUERY_STRING", "").encode("latin-1"),
        "headers": [
            (name.replace("_", "-").lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in headers.items()
        ],
        "client": (environ.get("REMOTE_ADDR", ""), int(environ.get("REMOTE_PORT") or 0)),
        "server": (environ.get("SERVER_NAME", ""), int(environ.get("SERVER_PORT") or 0)),
    }


class _Event(NamedTuple):
    """What the application asks of the server's thread: to send a message, or more of the body.

    ``done`` gets the reply. Without it, the application has ended, with or without an error.
    """

    done: asyncio.Future[Any] | None
    message: Message | None = None
    error: BaseException | None = None


class Exchange:
    """One request: the application's task on the loop, and the iterable from which the server sends the response.

    It starts when it is created, in the server's thread, and has ``status`` and ``headers`` from then on. An error that
    the application raises before its response is raised there.
    """

    def __init__(self, app: ASGIApp, scope: dict[str, Any], environ: WSGIEnvironment) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self._body = _Body(environ)
        self._has_content = scope["method"] != "HEAD"
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._loop = _find_loop()
        self._pending: set[asyncio.Future[Any]] = set()  # this and the next three are used only on the loop
        self._is_over = False
        self._is_abandoned = False
        self._task: asyncio.Task[None] | None = None
        self._chunks = self._receive_chunks()
        self._is_complete = False
        self._loop.call_soon_threadsafe(self._begin, app, scope)
        try:
            self._first = next(self._chunks, b"")
        except BaseException:
            self.close()
            raise

    # --- in the server's thread ---------------------------------------------------------------------------

    def __iter__(self) -> Iterator[bytes]:
        yield self._first
        yield from self._chunks

    def close(self) -> None:
        """End the application if it has not sent its whole response; calling it again is harmless."""
        if not self._is_complete:
            self._is_complete = True
            self._loop.call_soon_threadsafe(self._abandon)

    def _receive_chunks(self) -> Iterator[bytes]:
        """Do what the application asks for, until its response is complete."""
        while not self._is_complete:
            done, message, error = self._events.get()
            if done is None:
                self._is_complete = True
                if error is None:
                    error = InvalidRequestError(
                        "the ASGI application ended before it had sent its whole response"
                    )
                raise error
            if message is None:
                self._reply(done, self._body.read())
                continue
            if message["type"] == _BODY:
                self._is_complete = not message.get("more_body", False)
                self._reply(done, None)  # the application makes the next chunk while this one is sent
                yield message.get("body", b"") if self._has_content else b""
            else:
                self.status = message["status"]
                found = [
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in message.get("headers", ())
                ]
                self.headers = [each for each in found if each[0].lower() not in _HOP_BY_HOP]
                self._reply(done, None)

    def _reply(self, done: asyncio.Future[Any], result: Any) -> None:
        self._loop.call_soon_threadsafe(_resolve, done, result)

    # --- on the loop --------------------------------------------------------------------------------------

    def _begin(self, app: ASGIApp, scope: dict[str, Any]) -> None:
        self._task = self._loop.create_task(self._run(app, scope))

    async def _run(self, app: ASGIApp, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        except asyncio.CancelledError:
            self._events.put(_Event(None))
        except BaseException as error:  # raised in the server's thread; it must not end the loop
            self._events.put(_Event(None, error=error))
            if self._is_over and not self._is_abandoned:
                logging.getLogger("holdall.web").error(
                    "an ASGI application failed after it had sent its response", exc_info=error
                )
        else:
            self._events.put(_Event(None))
        finally:
            self._end()

    async def _receive(self) -> Message:
        if self._is_over or self._body.is_broken:
            return {"type": DISCONNECT}
        if self._body.is_read:  # only a disconnect, or the end, can follow
            return await self._wait(None)  # type: ignore[no-any-return]
        return await self._wait(_Event(self._loop.create_future()))  # type: ignore[no-any-return]

    async def _send(self, message: Message) -> None:
        if self._is_over:
            raise OSError("the client has disconnected")
        is_last = message["type"] == _BODY and not message.get("more_body", False)
        found = await self._wait(_Event(self._loop.create_future(), message))
        if found is not None:
            raise OSError("the client has disconnected")
        if is_last:
            self._end()

    async def _wait(self, event: _Event | None) -> Any:
        done = self._loop.create_future() if event is None else event.done
        assert done is not None
        self._pending.add(done)
        if event is not None:
            self._events.put(event)
        try:
            return await done
        finally:
            self._pending.discard(done)

    def _end(self) -> None:
        """From now on, the application receives that its client has disconnected."""
        self._is_over = True
        for done in self._pending:
            _resolve(done, {"type": DISCONNECT})

    def _abandon(self) -> None:
        self._is_abandoned = True
        self._end()
        if self._task is not None:
            self._task.cancel()


class _Body:
    """The body of a request, read in the server's thread.

    ``is_read``: nothing of it is left. ``is_broken``: it ended too soon, because the client has disconnected.
    """

    def __init__(self, environ: WSGIEnvironment) -> None:
        self._stream = environ["wsgi.input"]
        length = environ.get("CONTENT_LENGTH")
        # without a length, a body ends only if the server marks its end
        self._left = int(length) if length else None if environ.get("wsgi.input_terminated") else 0
        self.is_read = False
        self.is_broken = False

    def read(self) -> Message:
        """The next message. A body that ends too soon counts as a disconnect: a part must not pass for the whole."""
        size = _CHUNK if self._left is None else min(_CHUNK, self._left)
        try:
            data = self._stream.read(size) if size and not self.is_read else b""
        except OSError:
            data = b""
            self.is_broken = True
        if self._left is not None:
            self._left -= len(data)
        self.is_broken = self.is_broken or (not data and bool(self._left))
        self.is_read = not data or self._left == 0
        if self.is_broken:
            return {"type": DISCONNECT}
        return {"type": "http.request", "body": data, "more_body": not self.is_read}


def _resolve(done: asyncio.Future[Any], result: Any) -> None:
    if not done.done():
        done.set_result(result)


_lock = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []


def _find_loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process, started when it is first needed."""
    with _lock:
        if not _loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="holdall-web", daemon=True).start()
            _loops.append(loop)
        return _loops[0]


def _forget_loop() -> None:
    """Start afresh in a forked child: it does not have the loop's thread, and the parent may have held the lock."""
    global _lock, _loops
    _lock = threading.Lock()
    _left.extend(_loops)  # the loop still counts as running, so it must never be collected or closed
    _loops = []


_left: list[asyncio.AbstractEventLoop] = []

os.register_at_fork(after_in_child=_forget_loop)

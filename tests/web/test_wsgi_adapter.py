"""ASGI applications inside WSGI, Flask and Django: streams in both directions, disconnects, errors, forks."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_rig
import pytest
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from flask import Flask
from httpx import Client, TransportError
from serving_rig import open_place
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from web_rig import serve_asgi, serve_wsgi
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from holdall.errors import InvalidRequestError
from holdall.web.django import mount
from holdall.web.wsgi import adapt_asgi

CHUNK = 65_536


class Application:
    """A small Starlette application that records what happened in it."""

    def __init__(self) -> None:
        self.chunks_made = 0
        self.ended = threading.Event()
        self.read: list[int] = []
        self.app = Starlette(
            routes=[
                Route("/echo/{name:path}", self.echo, methods=["GET", "PUT"]),
                Route("/count", self.count, methods=["POST"]),
                Route("/stream", self.stream),
                Route("/late", self.late),
                Route("/fail", self.fail),
                Route("/break", self.break_off),
                Route("/nothing", self.do_nothing),
            ]
        )

    async def echo(self, request: Request) -> Response:
        found = {
            "method": request.method,
            "name": request.path_params["name"],
            "path": request.scope["path"],
            "root": request.scope["root_path"],
            "url": str(request.url_for("stream")).partition("//")[2].partition("/")[2],
            "query": dict(request.query_params),
            "header": request.headers.get("x-header"),
            "type": request.headers.get("content-type"),
            "body": (await request.body()).decode(),
        }
        return JSONResponse(found, headers={"x-path": request.scope["raw_path"].decode()})

    async def count(self, request: Request) -> Response:
        try:
            async for chunk in request.stream():
                self.read.append(len(chunk))
        except ClientDisconnect:
            self.ended.set()
            raise
        return PlainTextResponse(str(sum(self.read)))

    async def stream(self, request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            try:
                for _ in range(int(request.query_params["n"])):
                    self.chunks_made += 1
                    yield bytes(CHUNK)
            finally:
                self.ended.set()

        return StreamingResponse(chunks())

    async def late(self, request: Request) -> Response:
        return PlainTextResponse("hello", background=BackgroundTask(self.ended.set))

    async def fail(self, request: Request) -> Response:
        raise LookupError("broken")

    async def break_off(self, request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"some"
            raise LookupError("broken")

        return StreamingResponse(chunks(), headers={"content-length": "100"})

    async def do_nothing(self, request: Request) -> Response:
        return Response(status_code=204)


@pytest.fixture
def application() -> Application:
    return Application()


def plain(application: Application) -> Any:
    return serve_wsgi(DispatcherMiddleware(get_wsgi_application(), {"/files": adapt_asgi(application.app)}))


def flask(application: Application) -> Any:
    app = Flask("app")
    app.wsgi_app = DispatcherMiddleware(  # type: ignore[method-assign]
        app.wsgi_app, {"/files": adapt_asgi(application.app)}
    )
    return serve_wsgi(app)


def django(application: Application) -> Any:
    django_rig.urlpatterns[:] = [mount("files", application.app)]
    return serve_wsgi(get_wsgi_application())


def django_async(application: Application) -> Any:
    django_rig.urlpatterns[:] = [mount("/files/", application.app)]
    return serve_asgi(get_asgi_application())


def beside_django(application: Application) -> Any:
    return serve_asgi(
        Starlette(routes=[Mount("/files", application.app), Mount("/", get_asgi_application())])
    )


@pytest.fixture(params=[flask, django, django_async, beside_django])
def url(request: pytest.FixtureRequest, application: Application) -> Iterator[str]:
    with request.param(application) as found:
        yield f"{found}/files"
    django_rig.urlpatterns.clear()


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(base_url=url, trust_env=False) as found:
        yield found


def test_a_request_arrives_whole_and_its_response_comes_back(
    client: Client, application: Application
) -> None:
    sent = {"headers": {"x-header": "é".encode("latin-1"), "content-type": "text/x"}, "content": "söme"}
    reply = client.put("/echo/ä b/c?q=1&q2=%20", **sent)  # type: ignore[arg-type]
    assert reply.json() == {
        "method": "PUT",
        "name": "ä b/c",
        "path": "/files/echo/ä b/c",
        "root": "/files",
        "url": "files/stream",
        "query": {"q": "1", "q2": " "},
        "header": "é",
        "type": "text/x",
        "body": "söme",
    }
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-path"] == "/files/echo/%C3%A4%20b/c"
    head = client.head("/echo/x")
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 0
    empty = client.get("/nothing")
    assert (empty.status_code, empty.headers.get("content-type")) == (204, None)
    assert client.get("/nowhere").status_code == 404
    assert client.get("/late").text == "hello"
    assert application.ended.wait(10), "the background task did not run"
    assert len(client.get("/stream?n=40").content) == 40 * CHUNK


def test_an_upload_is_read_in_chunks(client: Client, application: Application) -> None:
    body = bytes(1_000_000)
    assert client.post("/count", content=body).text == "1000000"
    assert max(application.read) <= 4 * CHUNK


@pytest.mark.parametrize("serve", [plain, django])
def test_an_error_before_the_response_is_a_500_and_one_during_it_breaks_the_connection(
    application: Application, serve: Callable[[Application], Any]
) -> None:
    with serve(application) as url, Client(base_url=f"{url}/files", trust_env=False) as client:
        assert client.get("/fail").status_code == 500
        with pytest.raises(TransportError):
            client.get("/break")
        assert client.get("/nothing").status_code == 204
    django_rig.urlpatterns.clear()


@pytest.mark.parametrize("serve", [plain, django, django_async])
def test_the_application_stops_when_the_client_disconnects(
    application: Application, serve: Callable[[Application], Any]
) -> None:
    with serve(application) as found:
        address = urlsplit(found)
        with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
            connection.sendall(b"GET /files/stream?n=100000 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(10)
        assert application.ended.wait(30), "the application did not stop"
    assert 0 < application.chunks_made < 10_000
    django_rig.urlpatterns.clear()


def test_a_body_that_breaks_off_is_not_taken_for_complete(application: Application) -> None:
    with plain(application) as found:
        address = urlsplit(found)
        with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
            connection.sendall(
                b"POST /files/count HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf of it"
            )
            connection.shutdown(socket.SHUT_WR)
            assert application.ended.wait(30)


# --- without a server -------------------------------------------------------------------------------------


def make_environ(
    path: str, method: str = "GET", query: str = "", body: Any = None, **more: Any
) -> dict[str, Any]:
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "x",
        "SERVER_PORT": "80",
        "wsgi.input": body or io.BytesIO(),
        "wsgi.url_scheme": "http",
        **more,
    }


def call(app: Any, *args: Any, **more: Any) -> tuple[str, Any]:
    started: list[str] = []

    def start_response(status: str, headers: Any, exc_info: Any = None, /) -> Any:
        started.append(status)

    chunks = adapt_asgi(app)(make_environ(*args, **more), start_response)
    return started[0], chunks


def test_an_application_does_not_run_far_ahead_of_its_client(application: Application) -> None:
    _, chunks = call(application.app, "/stream", query="n=1000")
    iterator = iter(chunks)
    for _ in range(3):
        next(iterator)
    assert application.chunks_made <= 5
    chunks.close()
    chunks.close()
    assert application.ended.wait(10)
    assert application.chunks_made <= 5


def test_a_body_without_a_length_is_read_if_the_server_marks_its_end(application: Application) -> None:
    body = io.BytesIO(bytes(100_000))
    status, chunks = call(application.app, "/count", "POST", body=body, **{"wsgi.input_terminated": True})
    assert (status, b"".join(chunks)) == ("200 OK", b"100000")
    application.read.clear()
    assert b"".join(call(application.app, "/count", "POST", body=io.BytesIO(b"next request"))[1]) == b"0"


def test_an_application_without_a_response_is_an_error() -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "http.request"

    async def exit_process(scope: Any, receive: Any, send: Any) -> None:
        raise SystemExit(3)

    async def cancel(scope: Any, receive: Any, send: Any) -> None:
        raise asyncio.CancelledError

    for app in (silent, cancel):
        with pytest.raises(InvalidRequestError, match="before it had sent its whole response"):
            call(app, "/")
    with pytest.raises(SystemExit):
        call(exit_process, "/")
    assert b"".join(call(PlainTextResponse("still here"), "/")[1]) == b"still here"


def test_an_error_after_the_response_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await PlainTextResponse("hello")(scope, receive, send)
        assert (await receive())["type"] == "http.disconnect"
        with pytest.raises(OSError, match="disconnected"):
            await send({"type": "http.response.body"})
        asyncio.get_running_loop().call_soon(ended.set)
        raise LookupError("too late")

    assert b"".join(call(app, "/")[1]) == b"hello"
    assert ended.wait(10)
    assert "an ASGI application failed after it had sent its response" in caplog.text
    assert "too late" in caplog.text


def test_a_task_that_waits_for_a_disconnect_gets_one_when_the_response_ends() -> None:
    """Frameworks wait for a disconnect while they send."""
    received: list[str] = []
    ended = threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()

        async def listen() -> None:
            received.append((await receive())["type"])
            ended.set()

        task = asyncio.ensure_future(listen())
        await PlainTextResponse("hello")(scope, receive, send)
        await task

    assert b"".join(call(app, "/")[1]) == b"hello"
    assert ended.wait(10)
    assert received == ["http.disconnect"]


@pytest.mark.torture
def test_a_forked_process_has_its_own_event_loop() -> None:
    app = PlainTextResponse("hello")
    assert b"".join(call(app, "/")[1]) == b"hello"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(b"".join(call(app, "/")[1]).decode()).encode())
        os._exit(0)
    os.close(writing)
    assert os.read(reading, 100) == b'"hello"'
    os.waitpid(child, 0)
    os.close(reading)
    assert b"".join(call(app, "/")[1]) == b"hello"


# --- the application that serves files --------------------------------------------------------------------


def serve_in_flask(app: Any) -> Any:
    flask = Flask("app")
    flask.wsgi_app = DispatcherMiddleware(flask.wsgi_app, {"/attachments": adapt_asgi(app)})  # type: ignore[method-assign]
    return serve_wsgi(flask)


def serve_in_django(app: Any) -> Any:
    django_rig.urlpatterns[:] = [mount("attachments", app)]
    return serve_wsgi(get_wsgi_application())


def serve_in_django_async(app: Any) -> Any:
    django_rig.urlpatterns[:] = [mount("attachments", app)]
    return serve_asgi(get_asgi_application())


@pytest.mark.parametrize("serve", [serve_in_flask, serve_in_django, serve_in_django_async])
def test_a_client_uploads_and_downloads_a_file(serve: Callable[[Any], Any], tmp_path: Path) -> None:
    data = os.urandom(300_000)
    digest = b64encode(md5(data).digest()).decode()
    stated = {"filename": "a.bin", "byte_size": len(data), "checksum": digest, "content_type": "image/png"}
    with (
        open_place(tmp_path) as place,
        serve(place.app) as url,
        Client(base_url=url, trust_env=False) as client,
    ):
        direct = client.post("/attachments/direct_uploads", json={"blob": stated}).json()
        upload = direct["direct_upload"]
        assert client.put(upload["url"], headers=upload["headers"], content=data).status_code == 204
        blob = place.db.blobs.find(direct["id"])
        assert client.get(place.proxy_url(blob)).content == data
        redirected = client.get(place.url(blob), follow_redirects=True)
        assert redirected.content == data
        part = client.get(place.proxy_url(blob), headers={"range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, data[10:20])
        head = client.head(place.proxy_url(blob))
        assert (head.headers["content-length"], head.content) == ("300000", b"")
        missing = client.get("/attachments/blobs/proxy/wrong/a.bin")
        assert missing.status_code == 404
        assert missing.headers["content-type"] == "application/problem+json"
    django_rig.urlpatterns.clear()

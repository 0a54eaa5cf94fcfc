"""Hundreds of clients at once, some of them stuck: the event loop keeps running, and memory use stays small."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from httpx import ASGITransport, AsyncClient
from PIL import Image
from rig.recorder import Recorder
from serving_rig import SECRET, Place, open_place
from web_rig import run_awaiting, serve_asgi

from holdall import Database
from holdall.attachments import Blob, Representation, Variant
from holdall.backends.disk import DiskService
from holdall.core.objects import PutObject
from holdall.files.piece import NEAR
from holdall.web import create_app

CROWD = 200
STUCK = 20
UPLOADS = 10
EACH = 64 * 1024


class MeteredApp:
    """Wraps an application, and counts the bytes that it has passed to the server but that have not been sent yet."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.begun = threading.Semaphore(0)
        self.held: dict[object, int] = {}
        self.most = self.largest = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        mark = object()

        async def watch(message: Any) -> None:
            body = message.get("body", b"")
            self.held[mark] = len(body)
            self.largest = max(self.largest, len(body))
            self.most = max(self.most, sum(self.held.values()))
            if body:
                self.begun.release()
            await send(message)  # returns when the server has room again
            self.held[mark] = 0

        try:
            await self._app(scope, receive, watch)
        finally:
            self.held.pop(mark, None)


@contextmanager
def open_stuck_clients(metered: MeteredApp, url: str, path: str) -> Iterator[None]:
    """Clients that request a file, read nothing, and stay connected."""
    host, port = url.removeprefix("http://").split(":")
    lines = [socket.create_connection((host, int(port))) for _ in range(STUCK)]
    for line in lines:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    for _ in lines:
        metered.begun.acquire()
    try:
        yield
    finally:
        for line in lines:
            line.close()


async def ask(url: str, method: str, path: str, headers: str = "", body: bytes = b"") -> tuple[int, bytes]:
    """Send a request on its own connection, with a minimal client, because there are hundreds."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    writer.write(
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}{length}\r\n".encode() + body
    )
    head, _, content = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), content


@run_awaiting
async def serve_crowd(place: Place, url: str, film: Blob, data: bytes, small: Representation) -> None:
    """Request 200 ranges, uploads and a transform at once; check that each finishes with the right result."""

    async def download(number: int) -> None:
        start = number * 20_000
        end = start + EACH
        found = await ask(url, "GET", place.proxy_url(film), f"Range: bytes={start}-{end - 1}\r\n")
        assert found == (206, data[start:end])

    async def upload(number: int) -> None:
        body = bytes([number]) * 1_000_000
        signed = await place.db.aio.files.upload_url(f"up/{number}", size=len(body))
        assert await ask(url, "PUT", signed.url, body=body) == (204, b"")

    async def transform() -> None:
        status, content = await ask(url, "GET", small.url(proxied=True))
        assert (status, Image.open(io.BytesIO(content)).size) == (200, (40, 30))

    await asyncio.gather(transform(), *map(upload, range(UPLOADS)), *map(download, range(CROWD)))


def test_a_crowd_is_served_while_other_clients_are_stuck_and_memory_use_stays_small(tmp_path: Path) -> None:
    data, drawn = os.urandom(CROWD * 20_000 + EACH), io.BytesIO()
    Image.effect_noise((800, 600), 90).save(drawn, "PNG")
    with open_place(tmp_path, f"embedded:{tmp_path / 'app.db'}") as place:
        film, large = place.store(data, "film.bin"), place.store(bytes(32 * 1024**2), "large.bin")
        picture = place.store(drawn.getvalue(), "picture.png")
        small = Representation(place.db._context.settings, picture, Variant(resize_to_limit=(40, 40)))
        metered = MeteredApp(place.app)
        with serve_asgi(metered) as url, open_stuck_clients(metered, url, place.proxy_url(large)):
            serve_crowd(place, url, film, data, small)
            assert len(metered.held) == STUCK, (
                "the stuck clients are still connected while the others have finished"
            )
        assert metered.largest <= NEAR
        assert metered.most <= STUCK * NEAR + CROWD * EACH
        assert [each.size for each in place.db.files.list("up/")] == [1_000_000] * UPLOADS


def test_a_blocking_hook_does_not_delay_other_requests(tmp_path: Path) -> None:
    began, end = threading.Event(), threading.Event()

    def authorize(request: Any, asked: Any) -> bool:
        began.set()
        return end.wait(30)

    @run_awaiting
    async def ask_others(app: Any, url: str) -> None:
        async with AsyncClient(transport=ASGITransport(app=app), base_url="http://x") as client:
            waiting = asyncio.create_task(client.get(url))
            await asyncio.to_thread(began.wait)
            others = await asyncio.gather(*(client.get(f"/attachments/blobs/x/{each}") for each in range(5)))
            assert [each.status_code for each in others] == [404] * 5
            assert not waiting.done()
            end.set()
            assert (await waiting).status_code == 200

    with open_place(tmp_path) as place:
        ask_others(create_app(place.db, authorize=authorize), place.proxy_url(place.store()))


def test_nothing_is_read_ahead_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    """A client requests a huge range and never takes the second piece: no third piece is read, and none is large."""
    service = Recorder(DiskService(tmp_path))
    with Database("memory:", files=service, secret=SECRET) as db:
        place = Place(db, tmp_path, create_app(db))
        url = place.proxy_url(place.store(bytes(16 * 1024**2), "large.bin"))
        service.requests.clear()
        sent: list[int] = []

        @run_awaiting
        async def ask_slowly() -> None:
            full = asyncio.Event()

            async def send(message: Any) -> None:
                if message["type"] == "http.response.body":
                    sent.append(len(message["body"]))
                    if len(sent) == 2:
                        full.set()
                        await asyncio.Event().wait()

            scope = {"type": "http", "method": "GET", "path": url, "query_string": b"", "root_path": ""}
            scope |= {"headers": [(b"range", b"bytes=0-16000000")]}
            task = asyncio.create_task(place.app(scope, asyncio.Event().wait, send))
            await full.wait()
            for _ in range(100):  # let any further reads run
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

        ask_slowly()
        assert sent == [NEAR, NEAR]
        assert [request.size for request in service.requests] == [NEAR, NEAR]


def test_a_picture_requested_by_many_clients_at_once_is_made_once(tmp_path: Path) -> None:
    service = Recorder(DiskService(tmp_path))
    with Database("memory:", files=service, secret=SECRET) as db:
        data = io.BytesIO()
        Image.new("RGB", (64, 64)).save(data, "PNG")
        blob = db.blobs.create_and_upload(data.getvalue(), filename="a.png")
        small = Representation(db._context.settings, blob, Variant(resize_to_limit=(8, 8)))
        service.requests.clear()

        @run_awaiting
        async def ask_all() -> None:
            async with AsyncClient(transport=ASGITransport(create_app(db)), base_url="http://x") as client:
                replies = await asyncio.gather(*(client.get(small.url(proxied=True)) for _ in range(30)))
            assert {reply.status_code for reply in replies} == {200}
            assert len({reply.content for reply in replies}) == 1

        ask_all()
        assert len(service.list_sent(PutObject)) == 1

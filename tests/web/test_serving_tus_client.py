"""tus-js-client, from npm, uploads to a real server: uploads that break off and resume, and a killed server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from math import inf
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
from rig.browser import browser_package
from rig.torture import Child
from tus_server import SECRET

from holdall import Database, Key, Model, has_one_attached

MEBIBYTE = 1024**2
DATA = Random(17).randbytes(20 * MEBIBYTE)
BROKEN_AT = 12 * MEBIBYTE


class Film(Model):
    """A model with an attachment."""

    name: Key[str]
    file = has_one_attached()


class Tunnel:
    """A proxy from clients to a server whose port may change.

    The first connection that sends many bytes stalls until it is released, and then closes.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.stalled = threading.Event()
        self.released = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._connect, args=[client], daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as server:
            back = threading.Thread(target=self._pass_on, args=[server, client], daemon=True)
            back.start()
            self._pass_on(client, server, most=BROKEN_AT)
            back.join()

    def _pass_on(self, source: socket.socket, target: socket.socket, most: float = inf) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
                passed += len(data)
                if passed >= most and not self.stalled.is_set():
                    self.stalled.set()
                    self.released.wait()
                    break
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Place:
    """A server's directory, the file to upload, and the client's package."""

    def __init__(self, directory: Path, package: Path) -> None:
        self.directory = directory
        self.file = directory / "film.mp4"
        self.file.write_bytes(DATA)
        self._package = package

    @contextmanager
    def client(self, endpoint: str, *url: str) -> Iterator[subprocess.Popen[str]]:
        """Run the client."""
        process = subprocess.Popen(
            [
                "node",
                str(Path(__file__).with_name("tus_client.cjs")),
                str(self._package),
                endpoint,
                str(self.file),
                *url,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"]},
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def check(self, result: dict[str, Any], name: str) -> None:
        """Check that the uploaded file can be attached and has the right bytes."""
        with Database(
            f"embedded:{self.directory / 'app.db'}", files=f"file:{self.directory / 'files'}", secret=SECRET
        ) as db:
            with db.transaction() as tx:
                tx.create(Film, name=name).file = result["signedId"]
            blob = db.get_one(Film, name, include=["file"]).file.blob
            assert blob is not None
            assert (str(blob.filename), blob.byte_size) == ("film.mp4", len(DATA))
            assert db.blobs.download(blob) == DATA


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("tus"), browser_package("tus-js-client"))


def finish(client: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for a client to end; return its result, the last line of its output."""
    output, errors = client.communicate(timeout=60)
    assert client.returncode == 0, errors
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def read_url(client: subprocess.Popen[str]) -> str:
    """The URL of the upload that a client has created."""
    assert client.stdout is not None
    return client.stdout.readline().strip()


def wait_for(port: int, url: str, offset: int) -> None:
    """Poll a server until it has received so many bytes."""
    connection = HTTPConnection("127.0.0.1", port)
    for _ in range(5000):
        connection.request("HEAD", urlsplit(url).path, headers={"Tus-Resumable": "1.0.0"})
        response = connection.getresponse()
        response.read()
        if int(response.headers["Upload-Offset"]) >= offset:
            connection.close()
            return
    raise AssertionError("the server has not received the bytes")


def test_a_broken_upload_is_resumed_by_its_client_or_by_another(place: Place) -> None:
    with Child("tus_server.py", place.directory) as server:
        port = int(server.line())
        tunnel = Tunnel(port)
        with place.client(f"{tunnel.url}/uploads") as client:
            assert tunnel.stalled.wait(60)
            tunnel.released.set()
            result = finish(client)
        assert (result["sent"][0], result["sent"][-1] >= 8 * MEBIBYTE) == (0, True)
        place.check(result, "its client")
        tunnel.close()

        tunnel = Tunnel(port)
        with place.client(f"{tunnel.url}/uploads") as client:
            url = read_url(client)
            assert tunnel.stalled.wait(60)
        tunnel.released.set()
        wait_for(port, url, BROKEN_AT - 65536)  # all bytes that arrived, minus the requests' headers
        with place.client(f"{tunnel.url}/uploads", url) as client:
            result = finish(client)
        assert BROKEN_AT - 65536 < result["sent"][0] < BROKEN_AT + 65536
        place.check(result, "another client")
        tunnel.close()


@pytest.mark.torture
def test_an_upload_continues_after_its_server_was_killed(place: Place) -> None:
    programs = Child("tus_server.py", place.directory), Child("tus_server.py", place.directory)
    with programs[0] as server, programs[1] as successor:
        port = int(server.line())
        tunnel = Tunnel(port)
        with place.client(f"{tunnel.url}/uploads") as client:
            url = read_url(client)
            assert tunnel.stalled.wait(60)
            wait_for(port, url, 8 * MEBIBYTE)
            server.kill()
            tunnel.port = int(successor.line())
            tunnel.released.set()
            result = finish(client)
        assert result["sent"] == [0, 8 * MEBIBYTE]  # the client sends the part in progress again
        place.check(result, "another server")
        tunnel.close()

"""Files through `create_app` (a row read for each request, bytes on disk), against Starlette's static files."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from benchmarks.harness import Figure, time_pair
from benchmarks.proxy_server import open_database
from holdall.attachments import Blob
from holdall.attachments.blob.address import url_of

BAR = 0.7
LARGE = 100_000_000
SMALL = 10_000
FILES = 50
LINES = 8
"""The number of connections that request small files at the same time."""


def figures(workshop: Path) -> Iterator[Figure]:
    """The ratio of the throughputs, for a large file and for small ones."""
    folder = workshop / "proxy"
    folder.mkdir()
    sizes = [LARGE, *[SMALL] * FILES]
    for number, size in enumerate(sizes):
        (folder / f"{number}.bin").write_bytes(os.urandom(size))
    with open_database(folder) as db:
        blobs = [db.blobs.create_and_upload(folder / f"{number}.bin") for number in range(len(sizes))]
        ours = [url_of(db._context.settings, blob, proxied=True) for blob in blobs]
    theirs = [f"/static/{number}.bin" for number in range(len(sizes))]
    with start_server(folder) as place:
        check_same(place, folder, [*zip(ours, theirs, strict=True)], blobs)
        yield _figure("100 MB", place, ours[:1], theirs[:1], 15, LARGE)
        yield _figure("10 KB", place, ours[1:], theirs[1:], 30, SMALL)


def _figure(
    name: str, place: tuple[str, int], ours: list[str], theirs: list[str], pairs: int, size: int
) -> Figure:
    lines = [Line(place) for _ in range(min(LINES, len(ours)))]
    found = time_pair(
        lambda: None,
        lambda _: fetch_all(lines, ours),
        lambda _: fetch_all(lines, theirs),
        clock=time.perf_counter,
        pairs=pairs,
    )
    for line in lines:
        line.close()
    count, total = len(ours), len(ours) * size
    if size == LARGE:
        note = f"{total / found.ours / 1e6:,.0f} MB/s against {total / found.theirs / 1e6:,.0f} MB/s"
    else:
        note = f"{count / found.ours:,.0f} requests/s against {count / found.theirs:,.0f} requests/s"
    return Figure("proxy_throughput", (name,), 1 / found.ratio, BAR, "≥", note=note)


def fetch_all(lines: list[Line], paths: list[str]) -> None:
    """Fetch files, one at a time on each connection."""
    for start in range(0, len(paths), len(lines)):
        batch = paths[start : start + len(lines)]
        for line, path in zip(lines, batch, strict=False):
            line.ask(path)
        for line, _ in zip(lines, batch, strict=False):
            line.take()


class Line:
    """A persistent connection of a client that needs almost no CPU."""

    def __init__(self, place: tuple[str, int]) -> None:
        self._socket = socket.create_connection(place)
        self._room = memoryview(bytearray(1 << 20))

    def ask(self, path: str) -> None:
        """Send a request."""
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    def take(self, keep: Callable[[memoryview], object] = lambda piece: None) -> None:
        """Read the reply."""
        have = 0
        while (end := bytes(self._room[:have]).find(b"\r\n\r\n")) < 0:
            have += self._receive(self._room[have:])
        head = bytes(self._room[:end]).lower()
        assert head.startswith(b"http/1.1 200 "), head
        left = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]) - (have - end - 4)
        keep(self._room[end + 4 : have])
        while left:
            count = self._receive(self._room[: min(left, len(self._room))])
            keep(self._room[:count])
            left -= count

    def _receive(self, room: memoryview) -> int:
        count = self._socket.recv_into(room)
        assert count, "the server closed the connection"
        return count

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def check_same(place: tuple[str, int], folder: Path, paths: list[tuple[str, str]], blobs: list[Blob]) -> None:
    """Check that both sides send the same bytes."""
    line = Line(place)
    for number, pair in enumerate(paths):
        for path in pair:
            pieces: list[bytes] = []
            line.ask(quote(path))
            line.take(lambda piece, pieces=pieces: pieces.append(bytes(piece)))  # type: ignore[misc]
            body = b"".join(pieces)
            assert len(body) == blobs[number].byte_size
            assert body == (folder / f"{number}.bin").read_bytes(), path
    line.close()


@contextmanager
def start_server(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the server in another process until the block ends; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-m", "benchmarks.proxy_server", str(folder), str(listening.fileno())]
        process = subprocess.Popen(command, pass_fds=[listening.fileno()])
        try:
            yield listening.getsockname()
        finally:
            process.terminate()
            process.wait()

"""A local server that answers S3's calls as fast as it can: it sends known objects and discards those it receives.

``python -m benchmarks.s3_server`` prints its port and serves until its standard input ends. Every connection has a
thread, which spends most of its time in the kernel.
"""

from __future__ import annotations

import mmap
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.s3_client import BUCKET, LARGE, SMALL, content

__all__ = ["serve_bucket"]

HERE = Path(__file__).parent

_BLOCK = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length: ?(\d+)\r\n", re.IGNORECASE)
_RANGE = re.compile(rb"\r\nrange: ?bytes=(\d+)-(\d*)\r\n", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect: ?100-continue\r\n", re.IGNORECASE)
_ETAG = '"0123456789abcdef0123456789abcdef"'


@contextmanager
def serve_bucket() -> Iterator[str]:
    """Run the server in another process until the block ends; yield its URL."""
    command = [sys.executable, "-m", "benchmarks.s3_server"]
    with subprocess.Popen(
        command, cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"


def _head(status: str, headers: dict[str, object]) -> bytes:
    common = {
        "x-amz-id-2": "eftixk72aD6Ap51TnqcoF8eFidJG9Z/2mkiDFu8yU9AS1ed4OpIszj7UDNEHGran",
        "x-amz-request-id": "318BC8BC143432E5",
        "Date": "Sat, 15 Nov 2025 05:40:00 GMT",
        "Server": "AmazonS3",
        **headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in common.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode()


class _Objects:
    """The two objects; the large one is a file in memory, so that the kernel can send it without copying."""

    def __init__(self) -> None:
        self.small = content(SMALL)
        self.large = os.memfd_create("large")
        os.truncate(self.large, LARGE)
        with mmap.mmap(self.large, LARGE) as view:
            view[:] = content(LARGE)


def _converse(connected: socket.socket, objects: _Objects) -> None:
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    scratch = memoryview(bytearray(1024 * 1024))
    data = b""
    while True:
        while (end := data.find(b"\r\n\r\n") + 4) < 4:
            arrived = connected.recv(_BLOCK)
            if not arrived:
                return
            data += arrived
        head, data = data[: end - 2], data[end:]
        length = _LENGTH.search(head)
        left = int(length[1]) if length is not None else 0
        if left and not data and _EXPECT.search(head):
            connected.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while left > len(data):
            left -= len(data)
            data = b""
            arrived_now = connected.recv_into(scratch[: min(left, len(scratch))])
            if not arrived_now:
                return
            left -= arrived_now
        data = data[left:]
        _answer(connected, objects, head)


def _answer(connected: socket.socket, objects: _Objects, head: bytes) -> None:
    method, target, _ = head.split(b" ", 2)
    path, _, query = target.partition(b"?")
    if method == b"PUT":
        connected.sendall(_head("200 OK", {"ETag": _ETAG, "Content-Length": 0}))
    elif method == b"POST":
        document = (
            f"<InitiateMultipartUploadResult><Bucket>{BUCKET}</Bucket><Key>large</Key><UploadId>u1</UploadId>"
            "</InitiateMultipartUploadResult>"
            if b"uploads" in query
            else f"<CompleteMultipartUploadResult><Key>large</Key><ETag>{_ETAG}</ETag></CompleteMultipartUploadResult>"
        ).encode()
        connected.sendall(
            _head("200 OK", {"Content-Type": "application/xml", "Content-Length": len(document)})
        )
        connected.sendall(document)
    else:
        _send_object(connected, objects, method, path.endswith(b"/large"), _RANGE.search(head))


def _send_object(
    connected: socket.socket, objects: _Objects, method: bytes, large: bool, wanted: re.Match[bytes] | None
) -> None:
    size = LARGE if large else SMALL
    start, end = 0, size - 1
    headers: dict[str, object] = {
        "Last-Modified": "Sat, 15 Nov 2025 05:39:00 GMT",
        "ETag": _ETAG,
        "Accept-Ranges": "bytes",
        "Content-Type": "binary/octet-stream",
    }
    status = "200 OK"
    if wanted is not None:
        start = int(wanted[1])
        end = min(int(wanted[2] or end), end)
        status = "206 Partial Content"
        headers["Content-Range"] = f"bytes {start}-{end}/{size}"
    headers["Content-Length"] = end - start + 1
    reply = _head(status, headers)
    if method == b"HEAD":
        connected.sendall(reply)
    elif not large:
        connected.sendall(reply + objects.small[start : end + 1])
    else:
        connected.sendall(reply)
        while start <= end:
            start += os.sendfile(connected.fileno(), objects.large, start, end + 1 - start)


def _serve_one(connected: socket.socket, objects: _Objects) -> None:
    with connected:
        try:
            _converse(connected, objects)
        except ConnectionError:
            return  # the client may close the connection


def _serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    objects = _Objects()
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            connected, _ = listener.accept()
            threading.Thread(target=_serve_one, args=(connected, objects), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    _serve()

"""HTTP/1.1 messages: a request as bytes, and a reply read strictly from a stream.

Colourless: reading awaits nothing but the stream it is given. A reply with a Content-Length, which is what the
services send, is read by hand; anything else (chunked, interim replies, a body until the end of the connection) is
read by h11. Whatever is not proper HTTP raises `MalformedReply`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from holdall.core.frozen import dataclass

__all__ = ["BrokenOff", "MalformedReply", "Reply", "Stream", "read_reply", "request_bytes"]

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
MAX_INTERIM = 32
_WITHOUT_BODY = (204, 304)

_STATUS = rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r\n"
_HEADER = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n"
_HEAD = re.compile(_STATUS + b"((?:" + _HEADER + b")*)")  # in one go, as every reply pays for it


class Stream(Protocol):
    """One connection, in either colour."""

    async def send(self, data: bytes) -> None:
        """Send all of it."""

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""


class MalformedReply(Exception):
    """What came back is no reply: the connection is not to be used again."""


class BrokenOff(MalformedReply):
    """The connection was closed before the reply was complete."""

    def __init__(self) -> None:
        super().__init__("the connection was closed before the reply was complete")


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply. ``reusable`` says whether the connection is fit for another request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    reusable: bool


def request_bytes(method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """A request in one piece."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (
        f"{method} {target} HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body
    )


async def read_reply(stream: Stream, method: str) -> Reply:
    """The reply to one request; `MalformedReply` when it is none, or breaks off."""
    data = await _more(stream, b"")
    while (end := data.find(b"\r\n\r\n")) < 0:
        if len(data) > MAX_HEAD:
            raise MalformedReply("the head of the reply does not end")
        data = await _more(stream, data)
    if end > MAX_HEAD:
        raise MalformedReply("the head of the reply is too long")
    version, status, headers = _head(data[: end + 2])
    length = headers.get("content-length")
    by_length = length is not None and "transfer-encoding" not in headers
    if not by_length or status < 200 or status in _WITHOUT_BODY or method == "HEAD":
        return await _read_by_h11(stream, method, data)
    assert length is not None
    if not length.isascii() or not length.isdigit() or len(length) > 19 or int(length) > MAX_BODY:
        raise MalformedReply(f"a reply of length {length[:40]!r}")
    size = int(length)
    start = end + 4
    if len(data) - start < size:
        data = await _at_least(stream, data, start + size)
    surplus = len(data) > start + size
    reusable = version == 1 and not surplus and headers.get("connection", "").lower() != "close"
    return Reply(status, headers, data[start : start + size], reusable)


async def _more(stream: Stream, data: bytes) -> bytes:
    arrived = await stream.receive()
    if not arrived:
        raise BrokenOff
    return data + arrived if data else arrived


async def _at_least(stream: Stream, data: bytes, size: int) -> bytes:
    parts = [data]
    have = len(data)
    while have < size:
        part = await _more(stream, b"")
        parts.append(part)
        have += len(part)
    return b"".join(parts)


def _head(data: bytes) -> tuple[int, int, dict[str, str]]:
    matched = _HEAD.match(data)
    if matched is None:
        raise MalformedReply(f"a reply that begins {data[:40]!r}")
    if matched.end() < len(data):
        raise MalformedReply(f"a header {data[matched.end() :][:40]!r}")
    headers: dict[str, str] = {}
    for line in matched[3].decode("latin-1").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if name in headers:
            if name in ("content-length", "transfer-encoding", "x-amz-crc32"):
                raise MalformedReply(f"two headers {name}")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return int(matched[1]), int(matched[2]), headers


async def _read_by_h11(stream: Stream, method: str, data: bytes) -> Reply:
    import h11

    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "service")]))
    connection.send(h11.EndOfMessage())
    status, headers, body = 0, {}, bytearray()
    interim, ended = 0, False
    try:
        connection.receive_data(data)
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                arrived = await stream.receive()
                ended = not arrived
                connection.receive_data(arrived)
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode("ascii"): text.decode("latin-1") for name, text in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_BODY:
                    raise MalformedReply("a reply over the size we take")
            elif isinstance(event, h11.EndOfMessage):
                break
            elif isinstance(event, h11.InformationalResponse):
                interim += 1
                if interim > MAX_INTERIM:
                    raise MalformedReply("interim replies without end")
            else:
                raise BrokenOff
    except h11.RemoteProtocolError as error:
        if ended:
            raise BrokenOff from error
        raise MalformedReply(str(error)) from error
    reusable = connection.their_state is h11.DONE and not connection.trailing_data[0]
    return Reply(status, headers, bytes(body), reusable)

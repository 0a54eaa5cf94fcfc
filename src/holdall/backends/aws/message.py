"""HTTP/1.1 messages: a request as bytes, and a reply read strictly from a stream.

Sync and async code share it: reading awaits only its stream. A reply with a Content-Length or without a body, which is
what the services send, is read by hand; anything else (chunked, interim replies, a body until the end of the
connection) is read by h11. Whatever is not proper HTTP raises `MalformedReply`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias, cast

from holdall.core.frozen import dataclass

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
LARGE = 128 * 1024
"""From this size on, a body is received in place if the stream can do that, instead of being joined from pieces."""
MAX_INTERIM = 32
_WITHOUT_BODY = (204, 304)

_STATUS = re.compile(r"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_HEADER = re.compile(r"^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):([^\x00-\x08\x0a-\x1f\x7f]*)\r\n", re.MULTILINE)


class Stream(Protocol):
    """One connection, sync or async."""

    async def send(self, data: bytes) -> None:
        """Send all of it."""

    async def receive(self) -> bytes:
        """Some bytes that arrived; empty when the other side has closed."""


Fill: TypeAlias = Callable[[memoryview], Awaitable[bool]]
"""Receives until the memory is full; False if the other side has closed before."""


class MalformedReply(Exception):
    """The bytes received are not a reply: the connection must not be used again."""


class BrokenOff(MalformedReply):
    """The connection was closed before the reply was complete."""

    def __init__(self) -> None:
        super().__init__("the connection was closed before the reply was complete")


class Room:
    """Memory into which large bodies are received, one at a time: allocating memory costs more than receiving them.

    A body in it is a view, valid until the next one is received.
    """

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = bytearray()

    def take(self, size: int) -> memoryview:
        """A view of that many bytes."""
        if len(self._memory) < size:
            self._memory = bytearray(size)
        return memoryview(self._memory)[:size]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply. ``reusable`` says whether the connection can take another request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    reusable: bool


def request_head(method: str, target: str, headers: Mapping[str, str], length: int, more: str = "") -> bytes:
    """The bytes before a body of this length; ``more`` are header lines."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    return f"{method} {target} HTTP/1.1\r\n{lines}{more}content-length: {length}\r\n\r\n".encode("latin-1")


async def read_reply(
    stream: Stream,
    method: str,
    limit: int = MAX_BODY,
    data: bytes = b"",
    fill: Fill | None = None,
    room: Room | None = None,
) -> Reply:
    """The reply to one request; `MalformedReply` if it is not a reply, is incomplete or has a body over the limit.

    ``data`` has arrived before; with ``fill`` a large body is received in place, into ``room`` if given.
    """
    data = data or await stream.receive()
    while (end := data.find(b"\r\n\r\n")) < 0:
        if len(data) > MAX_HEAD:
            raise MalformedReply("its head does not end")
        if not data or not (more := await stream.receive()):
            raise BrokenOff
        data += more
    if end > MAX_HEAD:
        raise MalformedReply("its head is too long")
    version, status, headers = parse_head(data[: end + 2])
    length = headers.get("content-length")
    if status >= 200 and (method == "HEAD" or status in _WITHOUT_BODY):
        size = 0
    elif status < 200 or length is None or "transfer-encoding" in headers:
        return await _read_by_h11(stream, method, data, limit)
    elif not length.isascii() or not length.isdigit() or len(length) > 19 or int(length) > limit:
        raise MalformedReply(f"its content-length is {length[:40]!r}")
    else:
        size = int(length)
    start = end + 4
    if len(data) - start < size:
        if fill is not None and size >= LARGE:
            body = await _fill_body(fill, data[start:], size, room if status < 300 else None)
            keeps = headers.get("connection", "").lower() != "close"
            return Reply(status, headers, body, version == 1 and keeps)
        data = await _receive_rest(stream, data, start + size)
    reusable = (
        version == 1
        and len(data) == start + size  # otherwise there is a surplus
        and headers.get("connection", "").lower() != "close"
    )
    return Reply(status, headers, data[start : start + size], reusable)


async def _fill_body(fill: Fill, first: bytes, size: int, room: Room | None) -> bytes:
    """A body of which a part has arrived, received without another copy: a BytesIO hands out its own memory."""
    if room is not None:
        body = room.take(size)
        body[: len(first)] = first
        if not await fill(body[len(first) :]):
            raise BrokenOff
        return cast("bytes", body)  # a view works like bytes for the caller who provided the room
    from io import BytesIO

    place = BytesIO()
    place.seek(size - 1)
    place.write(b"\0")
    with place.getbuffer() as view:
        view[: len(first)] = first
        if not await fill(view[len(first) :]):
            raise BrokenOff
    return place.getvalue()


async def _receive_rest(stream: Stream, data: bytes, size: int) -> bytes:
    """The data, once it has that many bytes."""
    parts = [data]
    have = len(data)
    while have < size:
        if not (part := await stream.receive()):
            raise BrokenOff
        parts.append(part)
        have += len(part)
    return b"".join(parts)


def parse_head(data: bytes) -> tuple[int, int, dict[str, str]]:
    """The version (1.x), the status and the headers of a head up to its empty line; names in lower case."""
    text = data.decode("latin-1")
    status = _STATUS.match(text)
    if status is None:
        raise MalformedReply(f"it begins with {data[:40]!r}")
    lines = _HEADER.findall(text, status.end())
    if len(lines) < text.count("\n") - 1:
        raise _explain_line(text[status.end() :])
    headers = {name.lower(): value.strip(" \t") for name, value in lines}
    if len(headers) < len(lines):
        headers = _join_repeated(lines)
    return int(status[1]), int(status[2]), headers


def _explain_line(lines: str) -> MalformedReply:
    wrong = next(line for line in lines.split("\n") if not _HEADER.fullmatch(f"{line}\n"))
    return MalformedReply(f"it has the header line {wrong[:40].encode('latin-1')!r}")


def _join_repeated(lines: list[tuple[str, str]]) -> dict[str, str]:
    """Headers, some of which come more than once."""
    headers: dict[str, str] = {}
    for name, value in lines:
        name, value = name.lower(), value.strip(" \t")
        if name in headers:
            if name in ("content-length", "transfer-encoding", "x-amz-crc32"):
                raise MalformedReply(f"it has two headers {name}")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


async def _read_by_h11(stream: Stream, method: str, data: bytes, limit: int) -> Reply:
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
                if len(body) > limit:
                    raise MalformedReply(f"it has more than {limit:,} bytes")
            elif isinstance(event, h11.EndOfMessage):
                break
            elif isinstance(event, h11.InformationalResponse):
                interim += 1
                if interim > MAX_INTERIM:
                    raise MalformedReply("it consists of interim replies without end")
            else:
                raise BrokenOff
    except h11.RemoteProtocolError as error:
        if ended:
            raise BrokenOff from error
        raise MalformedReply(str(error)) from error
    reusable = connection.their_state is h11.DONE and not connection.trailing_data[0]
    return Reply(status, headers, bytes(body), reusable)

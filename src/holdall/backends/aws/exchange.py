"""One request and its reply over a kept connection, with exact knowledge of what may have been sent.

Sync and async code share it: it awaits only its stream. A failure before anything was sent is `Unsent`; every later one
is `Broken`: the request may have taken effect. A connection whose reply was not read to its end is closed.

A large body can be announced (``Expect: 100-continue``): then it is sent only when the server asks for it, or has not
answered for a while. A server that refuses a request by its head does not get the body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import (
    MAX_BODY,
    MAX_HEAD,
    BrokenOff,
    Fill,
    MalformedReply,
    Reply,
    Room,
    Stream,
    parse_head,
    read_reply,
)

if TYPE_CHECKING:
    from holdall.backends.aws.transport import Lane

TOGETHER = 32 * 1024
"""Up to this size, a body is sent together with its head: a copy costs less than another packet."""

SLICE = 1024 * 1024
"""How much is sent at once: each piece may take as long as a connection may be idle, within the deadline."""

ANNOUNCED = 1024 * 1024
"""From this size on, a body is announced before it is sent."""

PATIENCE_SECONDS = 1.0
"""How long to wait for the server's reaction to an announced body."""


class Broken(Exception):
    """The connection failed after a part of the request was sent: it may have been carried out."""


class Garbled(Broken):
    """The answer is not an HTTP reply; the request may still have been carried out."""


class Carrier(Stream, Protocol):
    """A connection that can be kept, and can carry large bodies."""

    def begin(self, limit: Limit) -> bool:
        """Wait no longer than the limit's deadline from now on; False if the other side has closed the connection."""

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""

    async def receive_within(self, seconds: float) -> bytes | None:
        """Some bytes that arrived; None if nothing did within that many seconds."""

    async def fill(self, view: memoryview) -> bool:
        """Receive until the memory is full; False if the other side has closed before."""

    def close(self) -> None:
        """Close it at once."""


S = TypeVar("S", bound=Carrier)


class Manners:
    """Whether large bodies are announced to the server; False once it has not reacted to that."""

    __slots__ = ("announces",)

    def __init__(self) -> None:
        self.announces = True


async def exchange(
    lane: Lane[S],
    within: Limit,
    method: str,
    head: bytes,
    body: bytes,
    manners: Manners | None = None,
    limit: int = MAX_BODY,
    room: Room | None = None,
) -> Reply:
    """Send one request and read its reply, of up to ``limit`` bytes.

    With ``manners`` the bodies may be large: they are sent and received in pieces, each of which extends the deadline
    by the time that it may take, and the request's body is announced. The reply's may be received into a ``room``.
    """
    stream, born = lane.take(within) or await lane.acquire(within)
    done = False
    try:
        within.has_left = True
        if manners is None:
            await stream.send(head + body)
            reply = await read_reply(stream, method, limit)
            done = reply.reusable
        else:
            reply, done = await _transfer(stream, within, method, head, body, manners, limit, room)
        return reply
    except (OSError, BrokenOff) as error:
        raise Broken(str(error) or type(error).__name__) from error
    except MalformedReply as error:
        raise Garbled(str(error)) from error
    finally:
        if done:
            lane.release(stream, born)
        else:  # also after a cancellation: the next request must never read this one's late reply
            lane.drop(stream)


async def _transfer(
    stream: Carrier,
    within: Limit,
    method: str,
    head: bytes,
    body: bytes,
    manners: Manners,
    limit: int,
    room: Room | None,
) -> tuple[Reply, bool]:
    """The reply, and whether the connection may be kept."""

    async def fill(view: memoryview) -> bool:
        within.allow(len(view))
        return await stream.fill(view)

    if len(body) <= TOGETHER:
        await stream.send(head + body if body else head)
        reply = await read_reply(stream, method, limit, b"", fill, room)
        return reply, reply.reusable
    arrived = b""
    if len(body) >= ANNOUNCED and manners.announces:
        await stream.send(head[:-2] + b"expect: 100-continue\r\n\r\n")
        wanted, arrived = await _await_demand(stream, manners)
        if not wanted:
            reply = await read_reply(stream, method, limit, arrived, fill)
            if reply.status < 300:
                raise MalformedReply("it reports success before the body was sent")
            return reply, False
    else:
        await stream.send(head)
    within.allow(len(body))
    reply = await _send_body(stream, method, body, limit, arrived, fill)
    return reply, reply.reusable


async def _await_demand(stream: Carrier, manners: Manners) -> tuple[bool, bytes]:
    """Whether the server wants the body, and what has arrived of the reply."""
    arrived = await stream.receive_within(PATIENCE_SECONDS)
    if arrived is None:
        manners.announces = False  # waiting each time costs more than sometimes sending in vain
        return True, b""
    while True:
        while (end := arrived.find(b"\r\n\r\n")) < 0:
            more = await stream.receive()
            if not more:
                raise BrokenOff
            arrived += more
            if len(arrived) > MAX_HEAD:
                raise MalformedReply("its head does not end")
        _, status, _ = parse_head(arrived[: end + 2])
        if status >= 200:
            return False, arrived
        arrived = arrived[end + 4 :]
        if status == 100:
            return True, arrived


async def _send_body(
    stream: Carrier, method: str, body: bytes, limit: int, arrived: bytes, fill: Fill
) -> Reply:
    """The reply, once the body is sent. A server that stops listening may have answered why."""
    view = memoryview(body)
    try:
        for start in range(0, len(body), SLICE):
            await stream.send(view[start : start + SLICE])
    except OSError as error:
        try:
            reply = await read_reply(stream, method, limit, arrived)
        except (OSError, MalformedReply):
            raise error from None
        if reply.status < 300:
            raise error  # a success cannot be about a body that was not sent
        return Reply(reply.status, reply.headers, reply.body, False)
    return await read_reply(stream, method, limit, arrived, fill)

"""Requests and replies whose bodies may be large: sent from where they are, received where they stay.

Colourless, over the lanes of `transport`, with the same honesty: `Unsent` before anything has left, `Broken` after. A
large body can be announced (``Expect: 100-continue``): then it is sent only when the other side wants it, or has not
said anything about it for a while. Who refuses a request by its head does not get the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import (
    MAX_HEAD,
    BrokenOff,
    Fill,
    MalformedReply,
    Reply,
    Room,
    parse_head,
    read_reply,
    request_head,
)
from holdall.backends.aws.transport import Broken, Garbled, Kept, Lane

__all__ = ["Manners", "transfer"]

TOGETHER = 32 * 1024
"""Up to this size a body goes with its head: a copy costs less than another packet."""

SLICE = 1024 * 1024
"""How much is sent at once: each piece may take as long as a connection may be idle, within the deadline."""

PATIENCE_SECONDS = 1.0
"""How long an announced body waits to be asked for."""


class Carrier(Kept, Protocol):
    """A stream for large bodies."""

    async def send(self, data: bytes | memoryview) -> None:
        """Send all of it."""

    async def receive_within(self, seconds: float) -> bytes | None:
        """Some bytes that arrived; None when nothing did in so many seconds."""

    async def fill(self, view: memoryview) -> bool:
        """Receive until the memory is full; False when the other side has closed before."""


S = TypeVar("S", bound=Carrier)


class Manners:
    """Whether bodies are announced to the other side; not any more once it did not react to that."""

    __slots__ = ("announces",)

    def __init__(self) -> None:
        self.announces = True


async def transfer(
    lane: Lane[S],
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    within: Limit,
    *,
    limit: int,
    manners: Manners | None = None,
    room: Room | None = None,
) -> Reply:
    """Send one request and read its reply, of up to ``limit`` bytes; with manners, the body is announced.

    A large body, in either direction, extends the deadline by the time that it may take.
    The reply to a request without a body, or with a small one, may be received into a ``room``.
    """
    announced = bool(body) and manners is not None and manners.announces
    if announced:
        headers = {**headers, "expect": "100-continue"}
    if lane.relay is not None:
        prefix, more = lane.relay
        target, headers = prefix + target, {**headers, **more}
    head = request_head(method, target, headers, len(body))
    stream, born = await lane.acquire(within)
    done = False

    async def fill(view: memoryview) -> bool:
        within.allow(len(view))
        return await stream.fill(view)

    try:
        stream.begin(within)
        within.has_left = True
        if len(body) <= TOGETHER and not announced:
            await stream.send(head + body if body else head)
            reply = await read_reply(stream, method, limit, b"", fill, room)
            done = reply.reusable
            return reply
        await stream.send(head)
        wanted, arrived = await _wanted(stream, manners) if announced else (True, b"")
        if wanted:
            within.allow(len(body))
            reply = await _send_body(stream, method, body, limit, arrived, fill)
        else:
            reply = await read_reply(stream, method, limit, arrived, fill)
            if reply.status < 300:
                raise MalformedReply("a reply to a body that was not sent yet")
        done = wanted and reply.reusable
        return reply
    except (OSError, BrokenOff) as error:
        raise Broken(str(error) or type(error).__name__) from error
    except MalformedReply as error:
        raise Garbled(str(error)) from error
    finally:
        if done:
            lane.release(stream, born)
        else:  # also when we are cancelled: a late reply must never meet the next request
            lane.drop(stream)


async def _wanted(stream: Carrier, manners: Manners | None) -> tuple[bool, bytes]:
    """Whether the body is to be sent, and what has arrived of the reply."""
    arrived = await stream.receive_within(PATIENCE_SECONDS)
    if arrived is None:
        assert manners is not None
        manners.announces = False  # waiting each time would be worse than sending in vain now and then
        return True, b""
    while True:
        while (end := arrived.find(b"\r\n\r\n")) < 0:
            more = await stream.receive()
            if not more:
                raise BrokenOff
            arrived += more
            if len(arrived) > MAX_HEAD:
                raise MalformedReply("the head of the reply does not end")
        _, status, _ = parse_head(arrived[: end + 2])
        if status >= 200:
            return False, arrived
        arrived = arrived[end + 4 :]
        if status == 100:
            return True, arrived


async def _send_body(
    stream: Carrier, method: str, body: bytes, limit: int, arrived: bytes, fill: Fill
) -> Reply:
    """The reply, once the body is sent. Who stops listening may have said why."""
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
            raise error  # about a body that it cannot have
        return Reply(reply.status, reply.headers, reply.body, False)
    return await read_reply(stream, method, limit, arrived, fill)

"""Large bodies: announced with Expect, received into one buffer, and never mistaken for complete when cut short."""

from __future__ import annotations

import asyncio
import shutil
import socket
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest
from rig.colour import finish
from s3_rig import (
    ASK_FOR_BODY,
    ETAG,
    IGNORE_ANNOUNCEMENT,
    BucketServer,
    bucket,
    client,
    make_error_reply,
    make_object_reply,
    make_reply,
)
from scripted_server import CLOSE, ReceivedRequest, Step, http, silence
from test_wire_tls import make_certificate
from wire_rig import COLOURS, Colour, lane_of, request, target_of

from holdall.backends.aws import exchange as exchange_module
from holdall.backends.aws.awaiting import AwaitingStream
from holdall.backends.aws.connection import tls_context
from holdall.backends.aws.exchange import Broken, Garbled, Manners
from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.message import Reply, Room
from holdall.backends.aws.transport import Transport
from holdall.core.objects import GetObject, PutObject, Upload, UploadPart
from holdall.errors import AccessDeniedError, ServiceUnavailableError

T = TypeVar("T")

MEGABYTE = 1024 * 1024
LIMIT = 100 * MEGABYTE
SIZES = (0, 1, 32 * 1024, 32 * 1024 + 1, 128 * 1024 - 1, 128 * 1024, 256 * 1024 + 1, 3 * MEGABYTE + 7)


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    given: Colour = request.param
    return given


def some_bytes(size: int) -> bytes:
    block = bytes((place + place // 251) % 256 for place in range(65_521))
    return (block * (size // len(block) + 1))[:size]


class Caller:
    """Exchanges with one server over one transport."""

    def __init__(self, colour: Colour, server: BucketServer, **options: Any) -> None:
        self.transport = Transport(target_of(server.url, **options))
        self.manners = Manners()
        self._colour = colour

    async def __call__(
        self,
        body: bytes = b"",
        method: str = "PUT",
        *,
        announced: bool = False,
        limit: int = LIMIT,
        room: Room | None = None,
    ) -> Reply:
        manners = self.manners
        if not announced:
            manners = Manners()
            manners.announces = False
        lane, within = lane_of(self._colour, self.transport), Limit(60.0)
        return await request(
            lane, within, body, method=method, target="/a", manners=manners, limit=limit, room=room
        )

    def finish(self, flow: Coroutine[Any, Any, T]) -> T:
        try:
            return finish(self._colour, flow)
        finally:
            self.transport.close()


def answer_with(body: bytes) -> Step:
    return Step((http(200, {"Content-Length": len(body)}, body),))


# --- bodies of requests and replies ---


@pytest.mark.parametrize("announced", [False, True])
def test_bodies_of_every_size_arrive_and_come_back(colour: Colour, announced: bool) -> None:
    def answer(received: ReceivedRequest) -> Step:
        unread = received.headers.get("expect") == "100-continue" and not received.body
        return (
            ASK_FOR_BODY
            if unread and received.headers["content-length"] != "0"
            else answer_with(received.body)
        )

    async def flow() -> None:
        for size in SIZES:
            body = some_bytes(size)
            assert (await call(body, announced=announced)).body == body

    with bucket(answer=answer) as server:
        call = Caller(colour, server)
        call.finish(flow())
    assert server.connections == 1


@pytest.mark.parametrize("cuts", [(10, 200, 300_000), (-1,), (-MEGABYTE,), (-MEGABYTE + 1, -MEGABYTE // 2)])
def test_a_body_in_pieces_is_assembled(colour: Colour, cuts: tuple[int, ...]) -> None:
    body = some_bytes(MEGABYTE)
    reply = http(200, {"Content-Length": len(body)}, body)
    edges = [0, *(cut % len(reply) for cut in cuts), len(reply)]
    pieces = tuple(reply[start:end] for start, end in pairwise(edges))
    with bucket(Step(pieces), answer_with(b"next")) as server:
        call = Caller(colour, server)

        async def flow() -> list[bytes]:
            return [(await call(method="GET")).body, (await call(method="GET")).body]

        assert call.finish(flow()) == [body, b"next"]
    assert server.connections == 1


def test_bodies_are_received_into_one_buffer_one_after_the_other(colour: Colour) -> None:
    sizes = (MEGABYTE, 300_000, 10, 2 * MEGABYTE, 200_000)
    failure = http(500, {"Content-Length": 200_000}, some_bytes(200_000))
    short = http(200, {"Content-Length": 300_000}, b"x" * 299_999)
    steps = [
        *(answer_with(some_bytes(size)) for size in sizes),
        Step((failure,)),
        Step((short,), end="close"),
    ]
    with bucket(*steps) as server:
        call, room = Caller(colour, server), Room()

        async def flow() -> None:
            for size in sizes:
                assert (await call(method="GET", room=room)).body == some_bytes(size)
            last = room.take(10)
            assert last == some_bytes(10), "the body was received into the room"
            failed = await call(method="GET", room=room)
            assert (failed.body, type(failed.body)) == (some_bytes(200_000), bytes), (
                "an error has its own bytes"
            )
            with pytest.raises(Broken):
                await call(method="GET", room=room)

        call.finish(flow())


def test_a_connection_with_surplus_bytes_after_a_large_body_is_not_used_again(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    reply = http(200, {"Content-Length": len(body)}, body)
    with bucket(Step((reply + b"surplus",)), answer_with(b"next")) as server:
        call = Caller(colour, server)

        async def flow() -> list[bytes]:
            first = await call(method="GET")
            server.wait_for_steps(1)
            return [first.body, (await call(method="GET")).body]

        assert call.finish(flow()) == [body, b"next"]
    assert server.connections == 2


def test_a_large_body_that_is_cut_short_is_an_error(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    short = http(200, {"Content-Length": len(body)}, body[:-1])
    with bucket(Step((short,), end="close"), answer_with(b"next")) as server:
        call = Caller(colour, server)

        async def flow() -> bytes:
            with pytest.raises(Broken):
                await call(method="GET")
            return (await call(method="GET")).body

        assert call.finish(flow()) == b"next"
    assert server.connections == 2


def test_a_large_body_that_stops_arriving_times_out(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    short = http(200, {"Content-Length": len(body)}, body[: MEGABYTE // 2])
    with bucket(Step((short, threading.Event()))) as server:
        call = Caller(colour, server, read_timeout=0.2)
        with pytest.raises(Broken, match="timed out"):
            call.finish(call(method="GET"))


def test_an_async_read_waits_for_a_body_while_bytes_arrive() -> None:
    async def flow() -> tuple[bytes, bool]:
        stream = AwaitingStream(read_timeout=0.0)  # it times out if one turn of the loop brings no byte
        stream.begin(Limit(60.0))
        place = bytearray(6)
        filling = asyncio.ensure_future(stream.fill(memoryview(place)))
        for byte in b"abcdef":
            await asyncio.sleep(0)
            stream.get_buffer(1)[:1] = bytes([byte])
            stream.buffer_updated(1)
        return bytes(place), await filling

    assert asyncio.run(flow()) == (b"abcdef", True)


def test_an_async_read_does_not_wait_for_a_body_that_stops_arriving() -> None:
    async def flow() -> None:
        stream = AwaitingStream(read_timeout=0.0)
        stream.begin(Limit(60.0))
        filling = asyncio.ensure_future(stream.fill(memoryview(bytearray(6))))
        await asyncio.sleep(0)
        stream.get_buffer(1)[:1] = b"a"
        stream.buffer_updated(1)
        with pytest.raises(TimeoutError):
            await filling

    asyncio.run(flow())


def test_a_body_with_a_length_over_the_limit_is_not_read(colour: Colour) -> None:
    with bucket(answer_with(b"x" * 11), answer_with(b"x" * 10)) as server:
        call = Caller(colour, server)

        async def flow() -> bytes:
            with pytest.raises(Garbled):
                await call(method="GET", limit=10)
            return (await call(method="GET", limit=10)).body

        assert call.finish(flow()) == b"x" * 10


def test_a_chunked_body_over_the_limit_is_not_read(colour: Colour) -> None:
    chunks = b"".join(b"5\r\nxxxxx\r\n" for _ in range(3)) + b"0\r\n\r\n"
    step = Step((http(200, {"Transfer-Encoding": "chunked"}, chunks),))
    with bucket(step, step) as server:
        call = Caller(colour, server)

        async def flow() -> bytes:
            with pytest.raises(Garbled):
                await call(method="GET", limit=14)
            return (await call(method="GET", limit=15)).body

        assert call.finish(flow()) == b"x" * 15


def test_a_reply_without_a_body_keeps_the_connection(colour: Colour) -> None:
    steps = [
        Step((http(200, {"Content-Length": 500}),)),
        Step((http(204, {}),)),
        Step((http(304, {"Content-Length": 500}),)),
    ]
    with bucket(*steps) as server:
        call = Caller(colour, server)

        async def flow() -> list[int]:
            return [(await call(method=method)).status for method in ("HEAD", "DELETE", "GET")]

        assert call.finish(flow()) == [200, 204, 304]
    assert server.connections == 1


# --- announced bodies ---


def test_a_server_that_refuses_the_head_does_not_get_the_body(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    with bucket(make_error_reply("AccessDenied", 403), ASK_FOR_BODY, make_reply()) as server:
        call = Caller(colour, server)

        async def flow() -> list[int]:
            return [(await call(body, announced=True)).status for _ in range(2)]

        assert call.finish(flow()) == [403, 200]
    refused, accepted = server.requests
    assert (refused.body, accepted.body) == (b"", body)
    assert server.connections == 2, "a connection with an unsent body must not be used again"


def test_a_success_before_the_body_was_sent_is_malformed(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    with bucket(make_reply()) as server:
        call = Caller(colour, server)
        with pytest.raises(Garbled, match="before the body was sent"):
            call.finish(call(body, announced=True))
    assert server.requests[0].body == b""


def test_other_interim_replies_are_ignored(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    hints = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    with bucket(Step((hints, b"HTTP/1.1 100 Continue\r\n\r\n")), make_reply()) as server:
        call = Caller(colour, server)
        assert call.finish(call(body, announced=True)).status == 200
    assert server.requests[0].body == body


def test_a_server_without_a_continue_gets_the_body_and_no_further_announcements(
    colour: Colour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange_module, "PATIENCE_SECONDS", 0.01)
    body = some_bytes(MEGABYTE)
    with bucket(IGNORE_ANNOUNCEMENT, make_reply(), make_reply()) as server:
        call = Caller(colour, server)

        async def flow() -> list[int]:
            return [(await call(body, announced=True)).status for _ in range(2)]

        assert call.finish(flow()) == [200, 200]
    assert [received.body for received in server.requests] == [body, body]
    assert [received.headers.get("expect") for received in server.requests] == ["100-continue", None]
    assert server.connections == 1


def test_a_late_continue_is_not_taken_for_the_reply(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_module, "PATIENCE_SECONDS", 0.01)
    body = some_bytes(MEGABYTE)
    late = Step((b"HTTP/1.1 100 Continue\r\n\r\n" + http(200, {"Content-Length": 4}, b"late"),))
    with bucket(IGNORE_ANNOUNCEMENT, late) as server:
        call = Caller(colour, server)
        assert call.finish(call(body, announced=True)).body == b"late"
    assert len(server.requests) == 1


def test_a_connection_that_breaks_before_the_continue_is_an_error(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    with bucket(
        CLOSE, Step((b"HTTP/1.1 100",), end="close"), Step((b"nonsense\r\n\r\n",), end="close")
    ) as server:
        call = Caller(colour, server)

        async def flow() -> None:
            for kind in (Broken, Broken, Garbled):
                with pytest.raises(kind):
                    await call(body, announced=True)

        call.finish(flow())


def test_a_refusal_during_the_body_is_read(colour: Colour) -> None:
    """The server refuses in the middle of the body and closes the connection."""
    body = some_bytes(16 * MEGABYTE)
    refusal = http(400, {"Content-Length": 2, "Connection": "close"}, b"no")
    with hang_up(refusal) as url:
        transport = Transport(target_of(url))

        async def flow() -> Reply:
            lane = lane_of(colour, transport)
            return await request(lane, Limit(60.0), body, method="PUT", manners=Manners())

        try:
            reply = finish(colour, flow())
        except Broken:
            reply = None  # the reset may arrive before the refusal: then the exchange is broken
        finally:
            transport.close()
    assert reply is None or (reply.status, reply.body, reply.reusable) == (400, b"no", False)


@contextmanager
def hang_up(reply: bytes) -> Iterator[str]:
    """Run a server that reads the head of one request, answers, and stops reading."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(reply)
                connection.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


# --- the service ---


def test_a_large_part_is_announced_and_a_small_one_is_not(colour: Colour) -> None:
    upload = Upload("a", "u1")
    with bucket(ASK_FOR_BODY, make_reply(), make_reply()) as server, client(colour, server) as ours:

        async def flow() -> None:
            await ours.send(UploadPart("", upload, 1, some_bytes(MEGABYTE)))
            await ours.send(UploadPart("", upload, 2, some_bytes(MEGABYTE - 1)))

        ours.finish(flow)
    assert [received.headers.get("expect") for received in server.requests] == ["100-continue", None]


def test_a_put_that_is_refused_by_its_head_raises_the_error(colour: Colour) -> None:
    with (
        bucket(make_error_reply("AccessDenied", 403)) as server,
        client(colour, server) as ours,
        pytest.raises(AccessDeniedError, match="about AccessDenied"),
    ):
        ours.ask(PutObject("", "a", some_bytes(MEGABYTE)))
    assert server.requests[0].body == b""


def test_a_server_that_refuses_announcements_gets_the_body_at_once(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    steps = [Step((http(417, {"Content-Length": 0}),)), make_reply(), make_reply()]
    with bucket(*steps) as server, client(colour, server) as ours:

        async def flow() -> None:
            for _ in range(2):
                assert (await ours.send(PutObject("", "a", body))).etag == ETAG

        ours.finish(flow)
    assert [received.headers.get("expect") for received in server.requests] == ["100-continue", None, None]
    assert ours.pace.sleeps == []


def test_a_download_that_is_cut_short_is_repeated(colour: Colour) -> None:
    body = some_bytes(MEGABYTE)
    whole = make_object_reply(body).parts[0]
    assert isinstance(whole, bytes)
    with (
        bucket(Step((whole[:-1],), end="close"), make_object_reply(body)) as server,
        client(colour, server) as ours,
    ):
        assert ours.ask(GetObject("", "a")).body == body
    assert len(server.requests) == 2


def test_a_get_from_a_silent_server_times_out(
    colour: Colour,
) -> None:
    with (
        bucket(silence()) as server,
        client(colour, server, read_timeout=0.05, limits=Limits(max_attempts=1)) as ours,
        pytest.raises(ServiceUnavailableError, match="timed out"),
    ):
        ours.ask(GetObject("", "a"))


# --- over TLS ---


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl, which makes the certificates, is not installed"
)
def test_large_bodies_are_sent_over_tls_too(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = make_certificate(tmp_path, "IP:127.0.0.1")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(own.file))
    body = some_bytes(2 * MEGABYTE + 3)
    steps = [ASK_FOR_BODY, make_reply(), make_object_reply(body), make_error_reply("AccessDenied", 403)]
    with (
        bucket(*steps, tls=own.server_side()) as server,
        client(colour, server, tls=tls_context()) as ours,
    ):

        async def flow() -> bytes:
            await ours.send(PutObject("", "a", body))
            got = (await ours.send(GetObject("", "a"))).body
            with pytest.raises(AccessDeniedError):
                await ours.send(PutObject("", "a", body))
            return got

        assert ours.finish(flow) == body
    put, get, refused = server.requests
    assert (put.body, get.body, refused.body) == (body, b"", b"")
    assert put.connection == get.connection

"""One request and one reply over kept connections: which connections are reused, and how a failure is reported."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from rig.colour import finish
from scripted_server import CLOSE, RESET, ScriptedServer, Step, http, reply_with, serve_script, silence
from wire_rig import COLOURS, Colour, lane_of, request, target_of

from holdall.backends.aws import transport
from holdall.backends.aws.connection import Unsent
from holdall.backends.aws.exchange import Broken
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import Reply
from holdall.backends.aws.transport import Transport

HEADERS = {"host": "service", "x-amz-target": "DynamoDB_20120810.GetItem"}


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


class Caller:
    """Sends POST requests to a server over one transport and, if async, in one event loop."""

    def __init__(self, colour: Colour, used: Transport) -> None:
        self._colour = colour
        self._transport = used

    async def post(self, body: bytes = b"{}", headers: Mapping[str, str] = HEADERS, **options: Any) -> Reply:
        return await request(lane_of(self._colour, self._transport), Limit(60.0), body, headers, **options)

    async def settle(self) -> None:
        """Let the event loop process the events of its sockets."""
        if self._colour == "awaiting":
            for _ in range(3):
                await asyncio.sleep(0)


class Calling:
    """The fixture `with_caller`: runs a flow with a `Caller` as its argument."""

    def __init__(self, colour: Colour) -> None:
        self._colour = colour
        self._transports: list[Transport] = []

    def __call__(self, server: ScriptedServer | str, flow: Any, *, read_timeout: float = 20.0) -> Any:
        url = server if isinstance(server, str) else server.url
        used = Transport(target_of(url, read_timeout=read_timeout))
        self._transports.append(used)
        return finish(self._colour, flow(Caller(self._colour, used)))

    def close(self) -> None:
        for used in self._transports:
            used.close()


@pytest.fixture
def with_caller(colour: Colour) -> Iterator[Calling]:
    calling = Calling(colour)
    yield calling
    calling.close()


async def two_posts(caller: Caller) -> list[bytes]:
    return [(await caller.post()).body, (await caller.post()).body]


async def one_post(caller: Caller) -> Reply:
    return await caller.post()


# --- keeping connections ---


def test_a_connection_is_kept_for_the_next_request(with_caller: Calling) -> None:
    with serve_script(reply_with({"n": 1}), reply_with({"n": 2})) as server:
        assert with_caller(server, two_posts) == [b'{"n": 1}', b'{"n": 2}']
    assert [received.connection for received in server.requests] == [1, 1]


def test_the_request_arrives_unchanged(with_caller: Calling) -> None:
    async def flow(caller: Caller) -> None:
        await caller.post(b'{"name":"\xc3\xa9"}')

    with serve_script(reply_with({})) as server:
        with_caller(server, flow)
    (received,) = server.requests
    assert received.head == (
        b"POST / HTTP/1.1\r\nhost: service\r\nx-amz-target: DynamoDB_20120810.GetItem\r\ncontent-length: 13\r\n\r\n"
    )
    assert received.body == b'{"name":"\xc3\xa9"}'


def test_a_connection_that_the_server_has_closed_is_replaced_without_an_error(with_caller: Calling) -> None:
    async def flow(caller: Caller) -> list[bytes]:
        first = await caller.post()
        server.wait_for_ends(1)
        await caller.settle()
        return [first.body, (await caller.post()).body]

    with serve_script(reply_with(b"1", end="close"), reply_with(b"2")) as server:
        assert with_caller(server, flow) == [b"1", b"2"]
    assert [received.connection for received in server.requests] == [1, 2]


def test_a_closed_connection_is_noticed_even_before_the_event_loop_can_see_it(
    with_caller: Calling,
) -> None:
    async def flow(caller: Caller) -> list[bytes]:
        first = await caller.post()
        server.wait_for_ends(1)  # this blocks the event loop
        return [first.body, (await caller.post()).body]

    with serve_script(reply_with(b"1", end="close"), reply_with(b"2")) as server:
        assert with_caller(server, flow) == [b"1", b"2"]


def test_a_connection_that_the_server_has_reset_is_replaced_without_an_error(with_caller: Calling) -> None:
    async def flow(caller: Caller) -> list[bytes]:
        first = await caller.post()
        server.wait_for_ends(1)
        await caller.settle()
        return [first.body, (await caller.post()).body]

    with serve_script(reply_with(b"1", end="reset"), reply_with(b"2")) as server:
        assert with_caller(server, flow) == [b"1", b"2"]


@pytest.mark.parametrize("limit", ["MAX_AGE_SECONDS", "MAX_IDLE_SECONDS"])
def test_a_connection_past_its_maximum_age_or_idle_time_is_replaced(
    with_caller: Calling, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, limit, 0.0)
    with serve_script(reply_with(b"1"), reply_with(b"2")) as server:
        assert with_caller(server, two_posts) == [b"1", b"2"]
        server.wait_for_ends(1)
    assert [received.connection for received in server.requests] == [1, 2]


def test_idle_connections_beyond_the_limit_are_closed(
    colour: Colour, with_caller: Calling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_IDLE", 2)
    gate = threading.Event()

    def open_when_all_are_there(count: int) -> None:
        server.wait_for_requests(count)
        gate.set()

    async def post_blocking(caller: Caller) -> None:
        threads = [threading.Thread(target=lambda: finish("blocking", one_post(caller))) for _ in range(5)]
        for thread in threads:
            thread.start()
        open_when_all_are_there(5)
        for thread in threads:
            thread.join()

    async def post_awaiting(caller: Caller) -> None:
        posts = [asyncio.ensure_future(caller.post()) for _ in range(5)]
        await asyncio.to_thread(open_when_all_are_there, 5)
        await asyncio.gather(*posts)
        await asyncio.to_thread(server.wait_for_ends, 3)

    with serve_script(*(reply_with(b"x", gate=gate) for _ in range(5))) as server:
        with_caller(server, post_blocking if colour == "blocking" else post_awaiting)
        server.wait_for_ends(3)
        assert server.connections == 5


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(http(200, {"Content-Length": 1, "Connection": "close"}, b"1"), id="Connection: close"),
        pytest.param(http(200, {"Content-Length": 1, "Connection": "Close"}, b"1"), id="Connection: Close"),
        pytest.param(http(200, {"Content-Length": 1}, b"1").replace(b"HTTP/1.1", b"HTTP/1.0"), id="HTTP/1.0"),
        pytest.param(http(200, {"Content-Length": 1}, b"1surplus"), id="too many bytes"),
        pytest.param(
            http(200, {"Content-Length": 1}, b"1") + http(200, {"Content-Length": 1}, b"2"),
            id="two replies at once",
        ),
        pytest.param(
            http(200, {"Transfer-Encoding": "chunked"}, b"1\r\n1\r\n0\r\n\r\nsurplus"),
            id="chunks and surplus",
        ),
    ],
)
def test_a_connection_that_the_server_closes_or_sends_surplus_on_is_not_used_again(
    with_caller: Calling, reply: bytes
) -> None:
    with serve_script(Step((reply,)), reply_with(b"own")) as server:
        assert with_caller(server, two_posts) == [b"1", b"own"]
    assert [received.connection for received in server.requests] == [1, 2]


def test_an_unrequested_reply_never_answers_the_next_request(with_caller: Calling) -> None:
    late = threading.Event()

    async def flow(caller: Caller) -> list[bytes]:
        first = await caller.post()
        late.set()
        server.wait_for_steps(1)
        await caller.settle()
        return [first.body, (await caller.post()).body]

    unrequested = http(200, {"Content-Length": 5}, b"wrong")
    with serve_script(
        Step((http(200, {"Content-Length": 1}, b"1"), late, unrequested)), reply_with(b"own")
    ) as server:
        assert with_caller(server, flow) == [b"1", b"own"]


# --- kinds of replies ---


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((http(200, {"Content-Length": 5}, b"whole"),), id="in one piece"),
        pytest.param(
            tuple(bytes([byte]) for byte in http(200, {"Content-Length": 5}, b"whole")), id="byte by byte"
        ),
        pytest.param(
            (http(200, {"Transfer-Encoding": "chunked"}, b"2\r\nwh\r\n3\r\nole\r\n0\r\n\r\n"),), id="chunked"
        ),
        pytest.param(
            (
                http(200, {"Transfer-Encoding": "chunked"}),
                b"2\r\nw",
                b"h\r\n3;x=y\r\nole\r",
                b"\n0\r\nTrailer: t\r\n\r\n",
            ),
            id="chunked in pieces",
        ),
        pytest.param(
            (http(100, {}), http(100, {"X": 1}), http(200, {"Content-Length": 5}, b"whole")),
            id="after interim replies",
        ),
        pytest.param(
            (http(100, {}) + http(200, {"Content-Length": 5}, b"whole"),), id="interim in one piece"
        ),
    ],
)
def test_a_reply_is_read_completely_in_any_form_and_the_connection_is_kept(
    with_caller: Calling, parts: tuple[bytes, ...]
) -> None:
    with serve_script(Step(parts), reply_with(b"2")) as server:
        assert with_caller(server, two_posts) == [b"whole", b"2"]
    assert [received.connection for received in server.requests] == [1, 1]


def test_a_reply_may_end_with_the_connection(with_caller: Calling) -> None:
    with serve_script(Step((http(200, {"X": 1}, b"to the end"),), end="close")) as server:
        assert with_caller(server, one_post).body == b"to the end"


def test_a_large_reply_and_a_large_request_arrive_completely(with_caller: Calling) -> None:
    body = bytes(range(256)) * 20_000

    async def flow(caller: Caller) -> bytes:
        return (await caller.post(body)).body

    with serve_script(reply_with(body[::-1])) as server:
        assert with_caller(server, flow) == body[::-1]
    assert server.requests[0].body == body


# --- failures before anything was sent ---


def test_after_a_refused_connection_nothing_was_sent(with_caller: Calling) -> None:
    with socket.socket() as reserved:  # bound but not listening, so no other process can listen there
        reserved.bind(("127.0.0.1", 0))
        with pytest.raises(Unsent, match=f"Errno {errno.ECONNREFUSED}"):
            with_caller(f"http://127.0.0.1:{reserved.getsockname()[1]}", one_post)


def test_after_a_failed_lookup_of_the_host_nothing_was_sent(
    with_caller: Calling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*args: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Unsent, match="Name or service not known"):
        with_caller("http://no-such-host.invalid:8000", one_post)


def test_for_an_invalid_host_name_nothing_is_sent(with_caller: Calling) -> None:
    with pytest.raises(Unsent):
        with_caller(f"http://{'a' * 64}.invalid:8000", one_post)


def test_a_connection_that_is_never_accepted_times_out_and_nothing_was_sent(colour: Colour) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        with socket.create_connection(address), socket.socket() as second:
            second.setblocking(False)
            second.connect_ex(address)  # the queue is full: further connections are never accepted
            used = Transport(target_of(f"http://127.0.0.1:{address[1]}", connect_timeout=0.05))
            with pytest.raises(Unsent):
                finish(colour, one_post(Caller(colour, used)))


# --- failures after something was sent ---


CUT = http(200, {"Content-Length": 100}, b"only this")


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(CLOSE, id="closed before any byte"),
        pytest.param(RESET, id="reset"),
        pytest.param(Step((CUT,), end="close"), id="body cut short"),
        pytest.param(Step((CUT,), end="reset"), id="reset in the body"),
        pytest.param(Step((CUT[:20],), end="close"), id="head cut short"),
        pytest.param(
            Step((http(200, {"Transfer-Encoding": "chunked"}, b"5\r\nab"),), end="close"),
            id="chunk cut short",
        ),
        pytest.param(
            Step((http(200, {"Transfer-Encoding": "chunked"}, b"2\r\nab\r\n"),), end="close"),
            id="no last chunk",
        ),
        pytest.param(Step((http(100, {}),), end="close"), id="only an interim reply"),
        pytest.param(Step((b"SSH-2.0-OpenSSH_9.9\r\n\r\n",)), id="another protocol"),
        pytest.param(Step((b"\x00\xff" * 40 + b"\r\n\r\n",)), id="garbage"),
        pytest.param(Step((b"HTTP/2 200 OK\r\nContent-Length: 0\r\n\r\n",)), id="another version"),
        pytest.param(Step((b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",)), id="a status of four digits"),
        pytest.param(Step((http(200, {"Content-Length": "-1"}),)), id="a negative length"),
        pytest.param(Step((http(200, {"Content-Length": "+1"}, b"1"),)), id="a signed length"),
        pytest.param(Step((http(200, {"Content-Length": "1_0"}, b"1" * 10),)), id="an underscored length"),
        pytest.param(Step((http(200, {"Content-Length": "9" * 30}, b"1"),)), id="an endless length"),
        pytest.param(Step((http(200, {"Content-Length": "9" * 5000}, b"1"),)), id="a length of 5,000 digits"),
        pytest.param(
            Step((b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",)), id="two lengths"
        ),
        pytest.param(
            Step((b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n12345",)),
            id="an unknown encoding",
        ),
        pytest.param(
            Step((b"HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 0\r\n\r\n",)), id="a line without a colon"
        ),
        pytest.param(
            Step((b"HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 0\r\n\r\n",)), id="a space in a name"
        ),
        pytest.param(
            Step((b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n",)), id="a folded header"
        ),
        pytest.param(Step((b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 0\r\n\r\n",)), id="a bare line feed"),
        pytest.param(
            Step((http(200, {"Transfer-Encoding": "chunked"}, b"zz\r\nab\r\n0\r\n\r\n"),)),
            id="a chunk without a size",
        ),
    ],
)
def test_after_a_malformed_reply_the_connection_is_never_used_again(with_caller: Calling, step: Step) -> None:
    async def flow(caller: Caller) -> bytes:
        with pytest.raises(Broken):
            await caller.post()
        return (await caller.post()).body

    with serve_script(step, reply_with(b"own")) as server:
        assert with_caller(server, flow) == b"own"
    assert [received.connection for received in server.requests] == [1, 2]


def test_an_endless_head_is_not_read_forever(with_caller: Calling) -> None:
    endless = Step((b"HTTP/1.1 200 OK\r\n", *[b"X: " + b"y" * 10_000 + b"\r\n"] * 20), end="close")

    async def flow(caller: Caller) -> bytes:
        with pytest.raises(Broken, match="its head does not end"):
            await caller.post()
        return (await caller.post()).body

    with serve_script(endless, reply_with(b"own")) as server:
        assert with_caller(server, flow) == b"own"


def test_a_body_over_the_limit_is_refused(with_caller: Calling) -> None:
    async def flow(caller: Caller) -> bytes:
        for _ in range(3):
            with pytest.raises(Broken):
                await caller.post(limit=10)
        return (await caller.post(limit=10)).body

    chunk = b"b\r\n12345678901\r\n0\r\n\r\n"
    with serve_script(
        Step((http(200, {"Content-Length": 11}, b"12345678901"),)),
        Step((http(200, {"Transfer-Encoding": "chunked"}, chunk),)),
        Step((http(200, {"X": 1}, b"12345678901"),), end="close"),
        reply_with(b"0123456789"),
    ) as server:
        assert with_caller(server, flow) == b"0123456789"


@pytest.mark.parametrize(
    "received", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", http(200, {"Content-Length": 9}, b"some")]
)
def test_an_incomplete_reply_times_out_and_its_connection_is_closed(
    with_caller: Calling, received: bytes
) -> None:
    async def flow(caller: Caller) -> bytes:
        with pytest.raises(Broken, match="timed out"):
            await caller.post()
        return (await caller.post()).body

    with serve_script(Step((received, *silence().parts)), reply_with(b"own")) as server:
        assert with_caller(server, flow, read_timeout=0.5) == b"own"
    assert [received.connection for received in server.requests] == [1, 2]

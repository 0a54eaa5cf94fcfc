"""The parser of replies: for any bytes, it returns a reply or raises MalformedReply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdall.backends.aws.courier import Failure
from holdall.backends.aws.message import MAX_HEAD, MalformedReply, Reply, read_reply, request_head
from holdall.backends.dynamodb.failure import explain_failure
from holdall.core.port import run
from holdall.errors import HoldallError


class Pieces:
    """A stream that returns these pieces and then ends."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]
        self._ends = 0

    async def send(self, data: bytes) -> None:
        raise AssertionError("reading does not send")

    async def receive(self) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        self._ends += 1
        assert self._ends < 5, "the parser does not stop reading at the end"
        return b""


def read(pieces: Sequence[bytes], method: str = "POST") -> Reply:
    return run(read_reply(Pieces(pieces), method))


def split(data: bytes, places: Sequence[int]) -> list[bytes]:
    cuts = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(cuts)]


PLACES = st.lists(st.integers(0, 10_000), max_size=8)
NAME = st.text("abcdefghijklmnopqrstuvwxyzABC-", min_size=1, max_size=12).filter(
    lambda name: (
        name.lower() not in ("content-length", "transfer-encoding", "connection", "upgrade", "keep-alive")
    )
)
TEXT = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20)
HEADERS = st.dictionaries(NAME.map(str.lower), TEXT, max_size=5)
STATUS = st.integers(200, 599).filter(lambda status: status not in (204, 304))
BODY = st.binary(max_size=300)


def head(status: int, headers: dict[str, Any]) -> bytes:
    lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    return f"HTTP/1.1 {status} Some Reason\r\n{lines}\r\n".encode("latin-1")


@st.composite
def measured_replies(draw: st.DrawFn) -> tuple[bytes, int, dict[str, str], bytes]:
    """A reply with a Content-Length, and its expected status, headers and body."""
    status, headers, body = draw(STATUS), draw(HEADERS), draw(BODY)
    return head(status, {**headers, "Content-Length": len(body)}) + body, status, headers, body


@st.composite
def chunked_replies(draw: st.DrawFn) -> tuple[bytes, int, dict[str, str], bytes]:
    """A chunked reply, perhaps after interim replies, and its expected status, headers and body."""
    status, headers = draw(STATUS), draw(HEADERS)
    chunks = draw(st.lists(st.binary(min_size=1, max_size=50), max_size=5))
    interim = draw(st.lists(st.sampled_from([100, 102, 103]), max_size=3))
    data = b"".join(head(early, {"x": "y"}) for early in interim)
    data += head(status, {**headers, "Transfer-Encoding": "chunked"})
    data += b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks) + b"0\r\n\r\n"
    return data, status, headers, b"".join(chunks)


PROPER = st.one_of(measured_replies(), chunked_replies())


@given(PROPER, PLACES)
def test_a_valid_reply_reads_the_same_however_it_is_split(
    reply: tuple[bytes, int, dict[str, str], bytes], places: list[int]
) -> None:
    data, status, headers, body = reply
    found = read(split(data, places))
    assert (found.status, found.body, found.reusable) == (status, body, True)
    assert {name: found.headers[name] for name in headers} == headers


@given(PROPER, st.integers(1, 10_000), PLACES)
def test_a_reply_that_is_cut_short_anywhere_is_malformed(
    reply: tuple[bytes, int, dict[str, str], bytes], missing: int, places: list[int]
) -> None:
    data = reply[0]
    whole = data[: -(missing % len(data) or len(data))]
    with pytest.raises(MalformedReply):
        read(split(whole, places))


@given(PROPER, st.binary(min_size=1, max_size=50))
def test_a_reply_with_surplus_bytes_is_read_but_its_connection_is_not_reusable(
    reply: tuple[bytes, int, dict[str, str], bytes], surplus: bytes
) -> None:
    found = read([reply[0] + surplus])
    assert (found.body, found.reusable) == (reply[3], False)


FRAGMENTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 204 No\r\n",
        b"HTTP/1.1 304 Not\r\n",
        b"HTTP/1.1 500 \r\n",
        b"Content-Length: 0\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: " + b"9" * 4400 + b"\r\n",
        b"Content-Length: \xb2\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Connection: close\r\n",
        b"Connection: keep-alive\r\n",
        b"x-amz-crc32: 1\r\n",
        b"\r\n",
        b"\n",
        b"\r",
        b"5\r\nabcde\r\n",
        b"ffffffffffffffffff\r\n",
        b"-1\r\n",
        b"0\r\n\r\n",
        b"abcde",
        b"\x00",
        b"\xff",
        b": x\r\n",
        b" folded\r\n",
    ]
)
ANYTHING = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(FRAGMENTS, st.binary(max_size=5)), max_size=12).map(b"".join),
    st.lists(FRAGMENTS, max_size=12).map(lambda parts: b"HTTP/1.1 200 OK\r\n" + b"".join(parts)),
)


@st.composite
def damaged_replies(draw: st.DrawFn) -> bytes:
    """A valid reply with a few bytes changed, removed or inserted."""
    data = bytearray(draw(PROPER)[0])
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


@given(st.one_of(ANYTHING, damaged_replies()), PLACES, st.sampled_from(["POST", "GET", "HEAD", "PUT"]))
@example(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", [], "POST")
@example(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", [], "GET")
@example(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000 + b"\r\n", [], "POST")
def test_any_bytes_are_a_reply_or_malformed(data: bytes, places: list[int], method: str) -> None:
    try:
        reply = read(split(data, places), method)
    except MalformedReply:
        return
    assert 200 <= reply.status < 600
    assert isinstance(reply.body, bytes)


@given(damaged_replies(), PLACES)
def test_h11_reads_every_reply_that_we_accept_as_we_do(data: bytes, places: list[int]) -> None:
    try:
        ours = read(split(data, places))
    except MalformedReply:
        return
    theirs = read_by_h11(data)
    assert theirs is not None
    assert (ours.status, ours.body) == theirs


def read_by_h11(data: bytes) -> tuple[int, bytes] | None:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "service")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    status, body = 0, b""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return status, body
        elif event is h11.NEED_DATA:
            connection.receive_data(b"")
        elif not isinstance(event, h11.InformationalResponse):
            return None


@pytest.mark.parametrize("status", [204, 304])
def test_a_reply_whose_status_has_no_body_is_complete_without_one(status: int) -> None:
    for headers in ({}, {"ETag": "x"}, {"Content-Length": 5}):
        assert read([head(status, headers)]).body == b""


def test_a_reply_to_head_has_no_body_whatever_its_length() -> None:
    reply = read([head(200, {"Content-Length": 500})], "HEAD")
    assert (reply.body, reply.headers["content-length"], reply.reusable) == (b"", "500", True)


@pytest.mark.parametrize("pieces", [1, 7, 3000])
def test_a_head_over_the_limit_is_refused_however_it_is_split(pieces: int) -> None:
    data = head(200, {"x": "y" * (MAX_HEAD + 1000), "Content-Length": 0})
    size = -(-len(data) // pieces)
    with pytest.raises(MalformedReply):
        read([data[start : start + size] for start in range(0, len(data), size)])


def test_endless_interim_replies_are_not_read_forever() -> None:
    class Endless:
        """Returns interim replies without end."""

        def __init__(self) -> None:
            self.given = 0

        async def send(self, data: bytes) -> None:
            raise AssertionError("reading does not send")

        async def receive(self) -> bytes:
            self.given += 1
            assert self.given < 10_000, "the parser reads interim replies forever"
            return head(100, {}) * 20

    with pytest.raises(MalformedReply):
        run(read_reply(Endless(), "POST"))


@given(
    st.sampled_from(["POST", "PUT"]),
    st.text("abcdefghijklmnop/-_~%0123456789", max_size=20),
    HEADERS,
    BODY,
)
def test_h11_reads_our_requests_as_we_made_them(
    method: str, target: str, headers: dict[str, str], body: bytes
) -> None:
    given_headers = {"host": "service", **headers}
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(request_head(method, f"/{target}", given_headers, len(body)) + body)
    request = connection.next_event()
    assert isinstance(request, h11.Request)
    assert (request.method, request.target) == (method.encode(), f"/{target}".encode())
    found = {name.decode(): text.decode() for name, text in request.headers}
    assert found == {**given_headers, "content-length": str(len(body))}
    content = b""
    while isinstance(event := connection.next_event(), h11.Data):
        content += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert content == body


# --- errors of the service ---


CODES = st.sampled_from(
    [
        "TransactionCanceledException",
        "ConditionalCheckFailedException",
        "ValidationException",
        "InvalidSignatureException",
        "ThrottlingException",
        "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
        "",
    ]
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=10)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ERRORS = st.fixed_dictionaries(
    {},
    optional={
        "__type": st.one_of(CODES, JSON),
        "message": JSON,
        "Message": JSON,
        "Item": JSON,
        "CancellationReasons": st.one_of(
            JSON,
            st.lists(
                st.one_of(
                    JSON, st.fixed_dictionaries({}, optional={"Code": JSON, "Message": JSON, "Item": JSON})
                ),
                max_size=3,
            ),
        ),
    },
)


@given(st.one_of(ERRORS, JSON).map(lambda payload: json.dumps(payload).encode()) | st.binary(), STATUS)
def test_any_error_of_the_service_is_translated_into_ours(body: bytes, status: int) -> None:
    failure = explain_failure(Reply(status, {}, body, True), "GetItem", {"TableName": "things"})
    assert isinstance(failure, Failure)
    assert isinstance(failure.error, HoldallError)
    assert str(failure.error)

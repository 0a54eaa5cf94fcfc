"""Endpoints of containers and instances: requests bypass proxies and time out, and errors never quote replies."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aws_loopback import Answer, ReceivedRequest, free_port_url, loopback
from aws_secrecy import SECRET, assert_shows_no_secret

from holdall.backends.aws.address import Address, parse_address
from holdall.backends.aws.metadata import Unanswered, answer, answer_in_tries


@contextmanager
def send_raw(reply: bytes) -> Iterator[Address]:
    """Run a listener that sends these bytes on the first connection and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield Address("http", "127.0.0.1", listening.getsockname()[1], "/")
        thread.join()


def test_the_body_of_a_200_is_returned() -> None:
    with loopback(lambda received: Answer(body=b"hello")) as server:
        assert answer("GET", parse_address(f"{server.url}/a?b=c"), {"X-Y": "z"}, 5) == b"hello"
    assert (server.requests[0].method, server.requests[0].target) == ("GET", "/a?b=c")
    assert server.requests[0].headers["x-y"] == "z"
    assert server.requests[0].headers["host"] == server.authority


def test_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(variable, free_port_url())
    with loopback(lambda received: Answer(body=b"direct")) as server:
        assert answer("GET", parse_address(server.url), {}, 5) == b"direct"


def test_redirects_are_not_followed() -> None:
    with (
        loopback(lambda received: Answer(body=b"elsewhere")) as other,
        loopback(lambda received: Answer(302, headers={"location": other.url})) as server,
        pytest.raises(Unanswered, match="answered 302"),
    ):
        answer("GET", parse_address(server.url), {}, 5)
    assert other.requests == []


@pytest.mark.parametrize(("status", "passing"), [(400, False), (404, False), (429, True), (500, True)])
def test_the_error_of_another_status_does_not_show_the_body(status: int, passing: bool) -> None:
    with (
        loopback(lambda received: Answer(status, SECRET.encode())) as server,
        pytest.raises(Unanswered, match=f"answered {status}") as trouble,
    ):
        answer("GET", parse_address(server.url), {}, 5)
    assert trouble.value.passing is passing
    assert_shows_no_secret(trouble.value)


def test_a_request_without_a_reply_times_out() -> None:
    with (
        loopback(lambda received: None) as server,
        pytest.raises(Unanswered, match=r"within 0\.05 s") as trouble,
    ):
        answer("GET", parse_address(server.url), {}, 0.05)
    assert trouble.value.passing


def test_an_address_where_no_process_listens_cannot_be_reached() -> None:
    with pytest.raises(Unanswered, match="cannot be reached"):
        answer("GET", parse_address(free_port_url()), {}, 5)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        SECRET.encode() + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + SECRET.encode(),
        b"HTTP/1.1 200 OK\r\nContent-Length: " + SECRET.encode() + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + SECRET.encode(),
        b"HTTP/1.1 200 OK\r\n" + b"X: " + SECRET.encode() * 4000 + b"\r\n\r\n",
    ],
    ids=["nothing", "not HTTP", "cut off", "invalid length", "bad chunks", "endless header"],
)
def test_a_malformed_reply_is_not_quoted(reply: bytes) -> None:
    with send_raw(reply) as address, pytest.raises(Unanswered) as trouble:
        answer("GET", address, {}, 5)
    assert_shows_no_secret(trouble.value)


def test_a_reply_over_the_limit_is_refused() -> None:
    with (
        loopback(lambda received: Answer(body=b"x" * 70_000)) as server,
        pytest.raises(Unanswered, match="more than 64 KB"),
    ):
        answer("GET", parse_address(server.url), {}, 5)


def test_a_request_is_repeated_after_a_server_error() -> None:
    answers = iter([Answer(500), Answer(503), Answer(body=b"at last")])

    def take_turns(received: ReceivedRequest) -> Answer:
        return next(answers)

    with loopback(take_turns) as server:
        assert answer_in_tries(3, "GET", parse_address(server.url), {}, 5) == b"at last"


def test_a_request_is_not_repeated_after_a_client_error() -> None:
    with loopback(lambda received: Answer(404)) as server, pytest.raises(Unanswered, match="404"):
        answer_in_tries(3, "GET", parse_address(server.url), {}, 5)
    assert len(server.requests) == 1


def test_a_request_is_not_repeated_beyond_the_number_of_tries() -> None:
    with loopback(lambda received: Answer(500)) as server, pytest.raises(Unanswered, match="500"):
        answer_in_tries(2, "GET", parse_address(server.url), {}, 5)
    assert len(server.requests) == 2

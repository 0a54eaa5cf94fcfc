"""The limits of calls: a deadline that a slow server cannot extend, and a number of connections."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from rig.colour import finish
from scripted_server import ReceivedRequest, ScriptedServer, Step, http, reply_with, serve_script, silence
from wire_rig import COLOURS, GET, KEYS, PUT, Colour, describe_things, lane_of, request, send, target_of

from holdall import Database
from holdall.backends.aws.connection import Unsent
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.aws.exchange import Manners
from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.transport import Transport
from holdall.backends.dynamodb.backend import DynamoBackend
from holdall.backends.s3 import S3Service
from holdall.core.frozen import replace
from holdall.core.objects import GetObject
from holdall.core.requests import GetItem
from holdall.errors import OutcomeUnknown, ServiceUnavailableError


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest) -> Colour:
    found: Colour = request.param
    return found


def backend_of(url: str, **limits: Any) -> DynamoBackend:
    endpoint = resolve_endpoint("dynamodb", endpoint=url, environment=KEYS)
    return DynamoBackend(endpoint, find_credentials(environment=KEYS), limits=Limits(**limits))


def service_of(url: str, **limits: Any) -> S3Service:
    endpoint = resolve_endpoint("s3", endpoint=url, environment=KEYS)
    return S3Service("things", endpoint, find_credentials(environment=KEYS), limits=Limits(**limits))


# --- the deadline ---


class DrippingServer(ScriptedServer):
    """Sends replies to all requests but DescribeTable one byte at a time, for several seconds."""

    def __init__(self, reply: bytes) -> None:
        self._dried = threading.Event()
        super().__init__(answer=lambda received: self._answer_or_drip(received, reply))

    def _answer_or_drip(self, received: ReceivedRequest, reply: bytes) -> Step:
        if b"DescribeTable" in received.head:
            return describe_things()
        return Step((*self._drops(reply),), end="close")

    def _drops(self, reply: bytes) -> Iterator[bytes | threading.Event]:
        class Drop(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                return dried.wait(0.02)

        dried = self._dried
        for start in range(len(reply)):
            yield reply[start : start + 1]
            yield Drop()

    def stop(self) -> None:
        self._dried.set()
        super().stop()


@contextmanager
def start_dripping(reply: bytes) -> Iterator[DrippingServer]:
    server = DrippingServer(reply)
    try:
        yield server
    finally:
        server.stop()


LONG = http(200, {"Content-Length": 2, "X-Filler": "x" * 200}, b"{}")


def test_a_server_that_drips_bytes_cannot_extend_a_read(colour: Colour) -> None:
    with start_dripping(LONG) as server, pytest.raises(ServiceUnavailableError, match="timed out"):
        send(colour, backend_of(server.url, total_timeout=0.5), GET)


def test_a_write_to_a_server_that_drips_bytes_times_out_with_an_unknown_outcome(
    colour: Colour,
) -> None:
    with start_dripping(LONG) as server, pytest.raises(OutcomeUnknown, match="timed out"):
        send(colour, backend_of(server.url, total_timeout=0.5), PUT)


@pytest.mark.parametrize(
    "reply",
    [LONG, http(200, {"Content-Length": 200_000}, b"x" * 300)],
    ids=["in the head", "in a large body, received into its own buffer"],
)
def test_a_server_that_drips_bytes_cannot_extend_a_read_of_an_object(
    colour: Colour, reply: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdall.backends.aws.limit.SLOWEST", 10**9)
    with start_dripping(reply) as server, pytest.raises(ServiceUnavailableError, match="timed out"):
        send(colour, service_of(server.url, total_timeout=1.5), GetObject("default", "a"))


@pytest.mark.parametrize(("sent", "received"), [(200_000, 0), (0, 200_000)])
def test_a_large_body_extends_the_deadline_by_its_time_at_the_slowest_rate(
    colour: Colour, sent: int, received: int
) -> None:
    with serve_script(Step((http(200, {"Content-Length": received}, b"x" * received),))) as server:
        transport = Transport(target_of(server.url))
        within = Limit(60.0)

        async def flow() -> None:
            lane = lane_of(colour, transport)
            await request(lane, within, b"x" * sent, method="PUT", manners=Manners())

        finish(colour, flow())
        transport.close()
    assert within.left > 60.0


def test_max_attempts_limits_the_number_of_attempts(colour: Colour) -> None:
    trouble = reply_with({"__type": "InternalServerError"}, status=500)
    with (
        serve_script(describe_things(), *[trouble] * 3) as server,
        pytest.raises(ServiceUnavailableError),
    ):
        send(colour, backend_of(server.url, max_attempts=3), GET)


def test_the_settings_reach_the_service_from_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in KEYS.items():
        monkeypatch.setenv(name, text)
    trouble = reply_with({"__type": "InternalServerError"}, status=500)
    with serve_script(describe_things(), *[trouble] * 2) as server:
        url = f"dynamodb://things?endpoint={server.url}&max_attempts=2&connect_timeout=3.5"
        with Database(url) as db, pytest.raises(ServiceUnavailableError):
            db.send(GET)
    with serve_script(*[trouble] * 2) as server:
        files = f"s3://things?endpoint={server.url}&max_attempts=2"
        with Database("memory:", files=files, max_attempts=5) as db, pytest.raises(ServiceUnavailableError):
            db.files.get("a")


# --- the number of connections ---


def key(number: int) -> dict[str, dict[str, str]]:
    return {"pk": {"S": f"k{number}"}}


def echo(received: ReceivedRequest) -> Step:
    return (
        describe_things()
        if received.operation == "DescribeTable"
        else reply_with({"Item": received.payload["Key"]})
    )


def ask_all(colour: Colour, backend: DynamoBackend, numbers: range) -> list[Any]:
    """Send all requests at once, and return their replies."""
    requests = [GetItem("things", key(number)) for number in numbers]
    if colour == "blocking":
        with ThreadPoolExecutor(len(requests)) as threads:
            return list(threads.map(backend.send_blocking, requests))

    async def main() -> list[Any]:
        replies: list[Any] = await asyncio.gather(*map(backend.send_awaiting, requests))
        return replies

    return asyncio.run(main())


def test_concurrent_calls_share_at_most_max_connections(colour: Colour) -> None:
    with serve_script(answer=echo) as server:
        backend = backend_of(server.url, max_connections=3)
        replies = ask_all(colour, backend, range(60))
        backend.close()
    assert [reply.item for reply in replies] == [key(number) for number in range(60)]
    assert server.connections <= 3


def test_waiting_calls_replace_broken_connections(colour: Colour) -> None:
    def answer(received: ReceivedRequest) -> Step:
        step = echo(received)
        return step if received.operation == "DescribeTable" else Step(step.parts, end="close")

    with serve_script(answer=answer) as server:
        backend = backend_of(server.url, max_connections=2)
        assert len(ask_all(colour, backend, range(20))) == 20
        backend.close()


def test_the_call_that_has_waited_longest_gets_the_next_connection() -> None:
    gate = threading.Event()

    def answer(received: ReceivedRequest) -> Step:
        step = echo(received)
        return Step((gate, *step.parts)) if b"k0" in received.body else step

    async def main() -> None:
        backend = backend_of(server.url, max_connections=1)
        await backend.send_awaiting(GetItem("things", key(99)))
        asking = [asyncio.ensure_future(backend.send_awaiting(GetItem("things", key(n)))) for n in range(6)]
        await asyncio.to_thread(server.wait_for_requests, 3)
        asking[2].cancel()  # a cancelled call must not delay the others
        gate.set()
        await asyncio.gather(*asking, return_exceptions=True)
        backend.close()

    with serve_script(answer=answer) as server:
        asyncio.run(main())
    assert [received.payload["Key"] for received in server.requests[2:]] == [key(n) for n in (0, 1, 3, 4, 5)]
    assert server.connections == 1


def test_a_call_that_waits_for_a_connection_until_the_deadline_has_sent_nothing(colour: Colour) -> None:
    with serve_script() as server:
        transport = Transport(replace(target_of(server.url), max_connections=1))

        async def flow() -> None:
            lane = lane_of(colour, transport)
            held, _ = await lane.acquire(Limit(60.0))
            with pytest.raises(Unsent, match="all 1 connections were in use") as refusal:
                await request(lane, Limit(0.05))
            assert "max_connections" in refusal.value.hint
            lane.drop(held)
            another, _ = await lane.acquire(Limit(60.0))  # a connection is free again
            lane.drop(another)

        finish(colour, flow())
        transport.close()


OUT_OF_DESCRIPTORS = """
import asyncio, os, resource, socket, sys, threading
from holdall import Database
from holdall.core import GetItem

url, colour = sys.argv[1:]
get = GetItem("things", {"pk": {"S": "a"}})
db = Database(f"dynamodb://things?endpoint={url}", max_attempts=2)
held = []

def use_up():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    try:
        while True:
            held.append(socket.socket())
    except OSError:
        pass

def end(error):
    print(type(error).__name__, error, flush=True)
    os._exit(0)

def ask():
    try:
        db.send(get)
    except Exception as error:
        end(error)

async def ask_awaiting():
    try:
        await db.aio.send(get)
    except Exception as error:
        end(error)

async def main():
    await db.aio.send(get)
    use_up()
    await asyncio.gather(ask_awaiting(), ask_awaiting())

if colour == "awaiting":
    asyncio.run(main())
else:
    ask()
    use_up()
    for _ in range(2):  # one uses the kept connection, which gets no reply; the other needs a new connection
        threading.Thread(target=ask).start()
"""


def test_a_process_without_free_file_descriptors_gets_our_error(colour: Colour) -> None:
    environment = {**KEYS, "AWS_REGION": "us-east-1", "PYTHONPATH": ":".join(sys.path)}
    with serve_script(describe_things(), reply_with({}), silence()) as server:
        done = subprocess.run(
            [sys.executable, "-c", OUT_OF_DESCRIPTORS, server.url, colour],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout.startswith("EndpointError"), (done.stdout, done.stderr)
    assert "this process has no file descriptors left\nhint: raise the limit" in done.stdout

"""Our own client for tests: real connections, sync and async, and a clock that advances only in sleeps."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from rig.colour import COLOURS, Colour, finish
from scripted_server import Step, reply_with

from holdall.backends.aws.awaiting import AwaitingPace
from holdall.backends.aws.blocking import BlockingPace
from holdall.backends.aws.connection import Target
from holdall.backends.aws.credentials import CredentialSource, find_credentials
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.exchange import exchange
from holdall.backends.aws.limit import Limit, Limits
from holdall.backends.aws.message import Reply, request_head
from holdall.backends.aws.transport import Lane, Transport
from holdall.backends.dynamodb.backend import LIMITS
from holdall.backends.dynamodb.delivery import Delivery
from holdall.backends.dynamodb.flow import DynamoFlow
from holdall.core.expressions import NotExists, Plus, Set, Update, path, value
from holdall.core.requests import GetItem, PutItem, Request, UpdateItem
from holdall.core.settings import SingleWrites
from holdall.core.stamp import stamped

__all__ = [
    "CHANGE",
    "COLOURS",
    "CREATE",
    "GET",
    "KEY",
    "KEYS",
    "PUT",
    "Client",
    "Colour",
    "client",
    "describe_things",
    "lane_of",
    "request",
    "send",
    "target_of",
    "TimedClient",
]

T = TypeVar("T")
R = TypeVar("R")

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"}
KEY = {"pk": {"S": "a"}}
GET = GetItem("things", KEY)
PUT = PutItem("things", KEY)
CREATE = stamped(PutItem("things", KEY, NotExists(path("pk"))), "our-stamp")
CHANGE = stamped(
    UpdateItem("things", KEY, Update((Set(path("n"), Plus(path("n"), value(1))),)), NotExists(path("done"))),
    "our-stamp",
)


def target_of(
    url: str, *, tls: ssl.SSLContext | None = None, connect_timeout: float = 20.0, read_timeout: float = 20.0
) -> Target:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return Target(parts.hostname, parts.port, tls, connect_timeout, read_timeout)


async def request(
    lane: Lane[Any],
    within: Limit,
    body: bytes = b"{}",
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
    target: str = "/",
    **options: Any,
) -> Reply:
    """One exchange with a server, unsigned."""
    head = request_head(method, target, headers or {"host": "h"}, len(body))
    return await exchange(lane, within, method, head, body, **options)


def lane_of(colour: Colour, transport: Transport) -> Lane[Any]:
    return transport.blocking if colour == "blocking" else transport.find_lane(asyncio.get_running_loop())


class Timed:
    """A clock that starts at 0 and advances with each sleep, and by ``lasting`` with each exchange."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.lasting = 0.0
        self.chance = 1.0
        self.sleeps: list[float] = []
        self.sends: list[float] = []

    def now(self) -> float:
        return self.seconds

    def random(self) -> float:
        return self.chance

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.seconds += seconds

    def note_send(self) -> None:
        self.sends.append(self.seconds)
        self.seconds += self.lasting


class TimedBlockingPace(Timed, BlockingPace):
    def __init__(self) -> None:
        Timed.__init__(self)
        BlockingPace.__init__(self)

    def exchange(self, *args: Any) -> Any:
        self.note_send()
        return super().exchange(*args)


class TimedAwaitingPace(Timed, AwaitingPace):
    def __init__(self) -> None:
        Timed.__init__(self)
        AwaitingPace.__init__(self)

    def exchange(self, *args: Any) -> Any:
        self.note_send()
        return super().exchange(*args)


def make_pace(colour: Colour) -> TimedBlockingPace | TimedAwaitingPace:
    return TimedBlockingPace() if colour == "blocking" else TimedAwaitingPace()


class TimedClient:
    """A backend with a clock of its own instead of the real one."""

    def __init__(self, colour: Colour, flow: Any) -> None:
        self.colour = colour
        self.pace = make_pace(colour)
        self._flow = flow

    async def send(self, request: Request[R]) -> R:
        """Return the reply, inside a flow of this colour."""
        reply: R = await self._flow.answer(self.pace, request)
        return reply

    def ask(self, request: Request[R]) -> R:
        """Return the reply, outside a flow."""
        return finish(self.colour, self.send(request))

    def finish(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a flow and return its result."""
        return finish(self.colour, flow())


class Client(TimedClient):
    """DynamoDB's client, with a clock of its own."""

    def __init__(
        self,
        colour: Colour,
        url: str,
        *,
        source: CredentialSource | None = None,
        single_writes: SingleWrites = "auto",
        tls: ssl.SSLContext | None = None,
        read_timeout: float = 20.0,
        limits: Limits = LIMITS,
    ) -> None:
        target = target_of(url, tls=tls, read_timeout=read_timeout)
        scheme = "http" if tls is None else "https"
        self.transport = Transport(target)
        endpoint = Endpoint(scheme, target.host, target.port, "us-east-1")
        source = source or find_credentials(environment=KEYS)
        delivery = Delivery(endpoint, source, self.transport, limits)
        super().__init__(colour, DynamoFlow(delivery, single_writes))


def send(colour: Colour, backend: Any, request: Any) -> Any:
    """Send one request, close the backend, and return the reply."""
    try:
        if colour == "blocking":
            return backend.send_blocking(request)
        return asyncio.run(backend.send_awaiting(request))
    finally:
        backend.close()


@contextmanager
def client(colour: Colour, url: str, **options: Any) -> Iterator[Client]:
    opened = Client(colour, url, **options)
    try:
        yield opened
    finally:
        opened.transport.close()


def describe_things(name: str = "things", **options: Any) -> Step:
    """A reply to DescribeTable for a table with the key ``pk``."""
    table = {
        "TableName": name,
        "TableStatus": "ACTIVE",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    }
    return reply_with({"Table": table}, **options)

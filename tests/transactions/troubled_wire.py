"""The DynamoDB backend on a network that treats each message as the test says, with a real server behind it.

Only the exchange of single messages is replaced; the rest is the backend's own code. Pauses before a repetition take no
time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from rig.servers import ENVIRONMENT, start_server

from holdall.backends.aws.awaiting import AwaitingPace
from holdall.backends.aws.blocking import BlockingPace
from holdall.backends.aws.connection import Target
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.exchange import Broken
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import Reply
from holdall.backends.aws.transport import Transport
from holdall.backends.dynamodb.backend import LIMITS
from holdall.backends.dynamodb.delivery import Delivery
from holdall.backends.dynamodb.flow import DynamoFlow
from holdall.core.port import run
from holdall.core.requests import Request
from holdall.core.settings import SingleWrites

__all__ = [
    "HAPPENED",
    "SERVER",
    "UNCERTAIN",
    "Fate",
    "TroubledNetwork",
    "TroubledBackend",
    "open_troubled_backend",
]

R = TypeVar("R")
SERVER = "ministack"


class Fate(Enum):
    """What happens to one message."""

    LOST = "never arrives"
    LATE = "arrives when the client no longer waits for it"
    REPLY_LOST = "is carried out, and its reply lost"
    FAILED_BEFORE = "is not carried out, and answered with a 500"
    FAILED_AFTER = "is carried out, and answered with a 500"
    THROTTLED = "is not carried out, and answered with a throttling error"
    CONFLICT = "is not carried out, because of another transaction"
    STRANGE = "is carried out, and answered with a reply that makes no sense"
    TWICE = "is delivered twice, and answered with the second answer"


UNCERTAIN = frozenset({Fate.LOST, Fate.REPLY_LOST, Fate.FAILED_BEFORE, Fate.FAILED_AFTER})
"""Fates after which the sender does not know whether the request was carried out."""

HAPPENED = frozenset({Fate.REPLY_LOST, Fate.FAILED_AFTER, Fate.STRANGE})


class TroubledNetwork:
    """A network that applies the ``coming`` fates to writes, and to the reads that check whether a write happened.

    ``sent`` counts the writes; ``meanwhile`` is called between the first of them and the next message. Delayed messages
    wait in ``late``; calling one delivers it, in the blocking colour.
    """

    def __init__(self) -> None:
        self.coming: deque[Fate] = deque()
        self.sent: Counter[str] = Counter()
        self.meanwhile: Callable[[], None] | None = None
        self.late: list[Callable[[], Any]] = []
        self._in_doubt = False

    async def exchange(
        self,
        send: Callable[..., Any],
        transport: Transport,
        within: Limit,
        *parcel: Any,
    ) -> Reply:
        operation = (
            parcel[1].partition(b"\r\nx-amz-target: DynamoDB_20120810.")[2].partition(b"\r\n")[0].decode()
        )
        if self.sent.total() == 1 and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        writes = operation in ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
        if not writes and not self._in_doubt:
            reply: Reply = await send(transport, within, *parcel)
            return reply
        fate = self.coming.popleft() if self.coming else None
        if writes:
            self.sent[operation] += 1
            self._in_doubt = fate in UNCERTAIN
        if fate is Fate.TWICE:
            await send(transport, within, *parcel)
            return cast("Reply", await send(transport, within, *parcel))
        if fate is None or fate in HAPPENED:
            reply = await send(transport, within, *parcel)
        if fate is Fate.LATE:
            self.late.append(lambda: run(send(transport, Limit(60.0), *parcel)))
        if fate in (Fate.LOST, Fate.LATE, Fate.REPLY_LOST):
            raise Broken("the connection was closed")
        if fate is None:
            return reply
        return _REPLIES[fate]


def _make_refusal(status: int, code: str) -> Reply:
    body = f'{{"__type": "com.amazonaws.dynamodb.v20120810#{code}", "message": "on purpose"}}'
    return Reply(status, {}, body.encode(), True)


_REPLIES = {
    Fate.FAILED_BEFORE: _make_refusal(500, "InternalServerError"),
    Fate.FAILED_AFTER: _make_refusal(500, "InternalServerError"),
    Fate.THROTTLED: _make_refusal(400, "ThrottlingException"),
    Fate.CONFLICT: _make_refusal(400, "TransactionConflictException"),
    Fate.STRANGE: Reply(200, {}, b'{"ConsumedCapacity": 7}', True),
}


class _NoPauses:
    """Pauses that take no time."""

    async def sleep(self, seconds: float) -> None:
        pass


class _BlockingPace(_NoPauses, BlockingPace):
    network: TroubledNetwork

    def exchange(self, *args: Any) -> Any:
        return self.network.exchange(super().exchange, *args)


class _AwaitingPace(_NoPauses, AwaitingPace):
    network: TroubledNetwork

    def exchange(self, *args: Any) -> Any:
        return self.network.exchange(super().exchange, *args)


class TroubledBackend:
    """A backend that reaches a server's tables over the troubled network."""

    def __init__(self, url: str, single_writes: SingleWrites = "auto") -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.network = TroubledNetwork()
        self._transport = Transport(Target(parts.hostname, parts.port, None, 20.0, 20.0))
        self._blocking = _BlockingPace()
        self._awaiting = _AwaitingPace()
        self._blocking.network = self._awaiting.network = self.network
        endpoint = Endpoint("http", parts.hostname, parts.port, ENVIRONMENT["AWS_REGION"])
        delivery = Delivery(endpoint, find_credentials(environment=ENVIRONMENT), self._transport, LIMITS)
        self._flow = DynamoFlow(delivery, single_writes)

    def send_blocking(self, request: Request[R]) -> R:
        reply: R = run(self._flow.answer(self._blocking, request))
        return reply

    async def send_awaiting(self, request: Request[R]) -> R:
        reply: R = await self._flow.answer(self._awaiting, request)
        return reply

    def close(self) -> None:
        self._transport.close()


@contextmanager
def open_troubled_backend(single_writes: SingleWrites = "auto") -> Iterator[TroubledBackend]:
    """Open a backend; until the test sets fates, its network delivers everything."""
    backend = TroubledBackend(start_server(SERVER), single_writes)
    try:
        yield backend
    finally:
        backend.close()

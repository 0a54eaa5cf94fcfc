"""The DynamoDB backend over our own wire."""

from __future__ import annotations

from typing import TypeVar, cast

from holdall.backends.aws.connection import target_of
from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.endpoint import Endpoint
from holdall.backends.aws.limit import Limits
from holdall.backends.aws.transport import Transport
from holdall.backends.dynamodb.answering import Answering
from holdall.backends.dynamodb.delivery import Delivery
from holdall.backends.dynamodb.wire import AwaitingWire, BlockingWire, Wire
from holdall.core.port import run
from holdall.core.requests import Request
from holdall.core.settings import SingleWrites
from holdall.errors import StoreClosedError

__all__ = ["LIMITS", "DynamoBackend"]

LIMITS = Limits(connect_timeout=5.0, read_timeout=30.0, total_timeout=60.0)
"""The limits without settings."""

R = TypeVar("R")


class DynamoBackend:
    """Tables of one DynamoDB endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        source: CredentialSource,
        *,
        single_writes: SingleWrites = "auto",
        limits: Limits = LIMITS,
    ) -> None:
        self._transport = Transport(target_of(endpoint.scheme, endpoint.host, endpoint.port, limits))
        self._blocking = BlockingWire(self._transport)
        self._awaiting = AwaitingWire(self._transport)
        self._answering: Answering[Wire] = Answering(
            Delivery(endpoint, source, limits), single_writes, limits.total_timeout
        )
        self._closed = False

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request; the calling thread waits."""
        self._check_open()
        return cast("R", run(self._answering.answer(self._blocking, request)))

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request; the event loop goes on."""
        self._check_open()
        return cast("R", await self._answering.answer(self._awaiting, request))

    def close(self) -> None:
        """Close the kept connections."""
        self._closed = True
        self._transport.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the database is closed", hint="open it again")

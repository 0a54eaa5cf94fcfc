"""Each colour's way to the service: a pace, and connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import Reply
from holdall.backends.aws.pace import AwaitingPace, BlockingPace, Pace
from holdall.backends.aws.signer import Credentials
from holdall.backends.aws.transport import Transport, exchange

__all__ = ["AwaitingPace", "AwaitingWire", "BlockingPace", "BlockingWire", "Pace", "Wire"]


class Wire(Pace, Protocol):
    """One colour's way to the service."""

    async def exchange(self, headers: Mapping[str, str], body: bytes, within: Limit) -> Reply:
        """Post a body to the endpoint; `Unsent` or `Broken` when no reply came."""

    async def credentials(self, source: CredentialSource, within: Limit) -> Credentials:
        """The credentials to sign with."""


class BlockingWire(BlockingPace):
    """Connections of this process."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport

    async def exchange(self, headers: Mapping[str, str], body: bytes, within: Limit) -> Reply:
        """Post a body to the endpoint."""
        return await exchange(self._transport.blocking, "POST", "/", headers, body, within)


class AwaitingWire(AwaitingPace):
    """Connections of the running event loop."""

    def __init__(self, transport: Transport) -> None:
        super().__init__()
        self._transport = transport

    async def exchange(self, headers: Mapping[str, str], body: bytes, within: Limit) -> Reply:
        """Post a body to the endpoint."""
        return await exchange(self._transport.awaiting, "POST", "/", headers, body, within)

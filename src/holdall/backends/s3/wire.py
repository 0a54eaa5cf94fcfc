"""Each colour's way to the service: a pace, and connections to wherever the bucket turns out to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from holdall.backends.aws.credentials import CredentialSource
from holdall.backends.aws.limit import Limit
from holdall.backends.aws.message import Reply, Room
from holdall.backends.aws.pace import AwaitingPace, BlockingPace, Pace
from holdall.backends.aws.signer import Credentials
from holdall.backends.aws.transfer import Manners, transfer
from holdall.backends.aws.transport import Transport
from holdall.backends.s3.claims import Claims

__all__ = ["AwaitingWire", "BlockingWire", "Wire"]


class Wire(Pace, Protocol):
    """One colour's way to the service."""

    async def exchange(
        self,
        transport: Transport,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        limit: int,
        manners: Manners | None,
        within: Limit,
        room: Room | None = None,
    ) -> Reply:
        """Send a request; `Unsent` or `Broken` when no reply came."""

    async def credentials(self, source: CredentialSource, within: Limit) -> Credentials:
        """The credentials to sign with."""

    async def claim(self, claims: Claims, key: str, id: str) -> bool:
        """Whether the key is claimed by the id."""

    async def release(self, claims: Claims, key: str) -> None:
        """Let others claim the key."""


class BlockingWire(BlockingPace):
    """Connections of this process."""

    async def exchange(
        self,
        transport: Transport,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        limit: int,
        manners: Manners | None,
        within: Limit,
        room: Room | None = None,
    ) -> Reply:
        """Send a request."""
        return await transfer(
            transport.blocking,
            method,
            target,
            headers,
            body,
            within,
            limit=limit,
            manners=manners,
            room=room,
        )

    async def claim(self, claims: Claims, key: str, id: str) -> bool:
        """Whether the key is claimed by the id."""
        return claims.claim_blocking(key, id)

    async def release(self, claims: Claims, key: str) -> None:
        """Let others claim the key."""
        claims.release_blocking(key)


class AwaitingWire(AwaitingPace):
    """Connections of the running event loop."""

    async def exchange(
        self,
        transport: Transport,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        limit: int,
        manners: Manners | None,
        within: Limit,
        room: Room | None = None,
    ) -> Reply:
        """Send a request."""
        return await transfer(
            transport.awaiting,
            method,
            target,
            headers,
            body,
            within,
            limit=limit,
            manners=manners,
            room=room,
        )

    async def claim(self, claims: Claims, key: str, id: str) -> bool:
        """Whether the key is claimed by the id."""
        return await claims.claim_awaiting(key, id)

    async def release(self, claims: Claims, key: str) -> None:
        """Let others claim the key."""
        await claims.release_awaiting(key)

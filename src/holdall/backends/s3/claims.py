"""Who may create a key, written down elsewhere: for servers that would replace what is there without a word.

The composer gives such an object; with it a put that must not replace anything claims its key first. A claim is good as
long as the object: it ends when the object is deleted through this service, or when the put came to nothing for sure.
Two limits stay, since the server itself refuses nothing: a plain put at the same moment may be replaced, and a creation
that died after its claim leaves the key taken until the claims say otherwise.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["Claims"]


class Claims(Protocol):
    """Claims of keys, in both colours. Keys are those that callers know, without the service's prefix."""

    def claim_blocking(self, key: str, id: str) -> bool:
        """Whether the key is claimed by the id, now or already before; False when another id has it."""

    async def claim_awaiting(self, key: str, id: str) -> bool:
        """The same; the event loop goes on."""

    def release_blocking(self, key: str) -> None:
        """The object is deleted: whoever comes next may claim the key."""

    async def release_awaiting(self, key: str) -> None:
        """The same; the event loop goes on."""

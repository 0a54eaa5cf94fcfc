"""A turn in the line for a connection, in the blocking colour; `holdall.backends.aws.awaiting_limit` has the other."""

from __future__ import annotations

import threading
from typing import Protocol

from holdall.backends.aws.limit import Limit

__all__ = ["BlockingTurn", "Turn"]


class Turn(Protocol):
    """One place in a line."""

    async def wait(self, limit: Limit) -> bool:
        """Wait until the turn has come; False when it has not before the deadline."""

    def come(self) -> None:
        """It is our turn."""


class BlockingTurn:
    """A turn that the calling thread waits for."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    async def wait(self, limit: Limit) -> bool:
        """Wait until the turn has come; False when it has not before the deadline."""
        return self._lock.acquire(timeout=max(0.0, limit.left))

    def come(self) -> None:
        """It is our turn."""
        self._lock.release()

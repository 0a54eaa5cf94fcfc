"""A turn in the line for a connection, for blocking code; `awaiting_limit` has the other."""

from __future__ import annotations

import threading
from typing import Protocol

from holdall.backends.aws.limit import Limit

__all__ = ["BlockingTurn", "Turn"]


class Turn(Protocol):
    """One place in a line."""

    async def wait(self, limit: Limit) -> bool:
        """Wait for the turn; False if it did not come before the deadline."""

    def come(self) -> None:
        """Begin the turn: wake the waiting caller."""


class BlockingTurn:
    """A thread's turn."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    async def wait(self, limit: Limit) -> bool:
        """Wait for the turn; False if it did not come before the deadline."""
        return self._lock.acquire(timeout=max(0.0, limit.left))

    def come(self) -> None:
        """Begin the turn: wake the waiting caller."""
        self._lock.release()

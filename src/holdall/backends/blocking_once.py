"""Finding something out once for all threads: `holdall.core.context.Once` in the blocking colour.

**Fork.** A flight of another thread does not arrive in a child: there it is forgotten, with the lock it may hold.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from holdall.backends.finding import Finding, Flight

__all__ = ["BlockingOnce"]

T = TypeVar("T")


class BlockingOnce:
    """One flight at a time; the other threads wait for it."""

    def __init__(self, finding: Finding) -> None:
        self._finding = finding
        self._lock = threading.Lock()
        self._flight: Flight[threading.Event] | None = None
        _instances.add(self)

    async def get(self, flow: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The finding, or what the flow finds."""
        while True:
            if (known := self._finding.outcome) is not None:
                return cast("T", known.result())
            flight, ours = self._boarded()
            if ours:
                try:
                    await flight.fly(flow())
                finally:
                    self._land(flight)
            else:
                flight.ended.wait()
            if flight.outcome is not None:
                return cast("T", flight.outcome.result())

    def forget(self) -> None:
        """Let the next to ask find out anew."""
        self._finding.forget()

    def _boarded(self) -> tuple[Flight[threading.Event], bool]:
        """The flight to wait for, and whether it is ours to fly."""
        with self._lock:
            flight = self._flight
            if flight is not None and flight.generation == self._finding.generation:
                return flight, False
            self._flight = Flight(threading.Event(), self._finding.generation)
            return self._flight, True

    def _land(self, flight: Flight[threading.Event]) -> None:
        self._finding.keep(flight)
        with self._lock:
            if self._flight is flight:
                self._flight = None
        flight.ended.set()

    def after_fork(self) -> None:
        """Begin anew in a child."""
        self._lock = threading.Lock()
        self._flight = None


_instances: weakref.WeakSet[BlockingOnce] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for instance in list(_instances):
        instance.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

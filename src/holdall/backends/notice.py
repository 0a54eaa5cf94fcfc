"""Notice of a cancellation: the caller of a write was cancelled, and what is under way must end soon.

A send cannot simply be cancelled: a write that has left may happen, and its caller must learn of that. So
`holdall.backends.awaiting_port.see_through` keeps the cancellation to itself and rings a notice instead. Whatever waits
for the network below has joined the notice of its context, and shortens its wait.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol
from weakref import WeakSet

__all__ = ["GRACE_SECONDS", "Notice", "current_notice"]

GRACE_SECONDS = 2.0
"""How long a request that has left may still wait for its reply once its caller was cancelled."""


class Listener(Protocol):
    """What hears of a notice."""

    def ring(self) -> None:
        """End soon."""


class Notice:
    """The notice of one piece of work, passed on to the work inside it. Listeners leave it when they are forgotten."""

    __slots__ = ("__weakref__", "_listeners", "is_given")

    def __init__(self, outer: Notice | None) -> None:
        self.is_given: bool = outer is not None and outer.is_given
        self._listeners: WeakSet[Listener] | None = None
        if outer is not None:
            outer.join(self)

    def join(self, listener: Listener) -> None:
        """Have the listener hear of the notice, if it is yet to be given."""
        if self._listeners is None:
            self._listeners = WeakSet()
        self._listeners.add(listener)

    def ring(self) -> None:
        """Give the notice, once."""
        if not self.is_given:
            self.is_given = True
            for listener in tuple(self._listeners or ()):
                listener.ring()

    def end(self) -> None:
        """The work has ended: tasks that it left behind have nothing to do with its caller any more."""
        self.is_given = False
        self._listeners = None


current_notice: ContextVar[Notice | None] = ContextVar("holdall_notice", default=None)
"""The notice of the work that the running task is part of."""

"""Notice of a cancellation: a write's caller was cancelled, and the running work must end soon.

A send cannot simply be cancelled: a write that was sent may happen, and its caller must learn whether it did. So
`holdall.backends.port.awaiting.see_through` holds the cancellation back and rings a notice instead. Calls that wait for
the network have joined the notice of their context, and shorten their wait.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol
from weakref import ref

GRACE_SECONDS = 2.0
"""How many seconds a request that was sent may still wait for its reply after its caller was cancelled."""


class Listener(Protocol):
    """What a notice calls."""

    def ring(self) -> None:
        """End soon."""


class Notice:
    """The notice of one piece of work, passed on to the work inside it. It holds listeners weakly."""

    __slots__ = ("__weakref__", "_listeners", "is_given")

    def __init__(self, outer: Notice | None) -> None:
        self.is_given: bool = outer is not None and outer.is_given
        self._listeners: set[ref[Listener]] = set()
        if outer is not None:
            outer.join(self)

    def join(self, listener: Listener) -> None:
        """Call the listener when the notice is given, unless it was given already."""
        self._listeners.add(ref(listener, self._listeners.discard))

    def ring(self) -> None:
        """Give the notice, once."""
        if not self.is_given:
            self.is_given = True
            for listener in [known() for known in tuple(self._listeners)]:
                if listener is not None:
                    listener.ring()

    def end(self) -> None:
        """End the work: its caller's cancellation no longer concerns tasks that it left behind."""
        self.is_given = False
        self._listeners = set()


current_notice: ContextVar[Notice | None] = ContextVar("holdall_notice", default=None)
"""The notice of the work that the running task is part of."""

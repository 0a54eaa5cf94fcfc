"""Jobs as a transaction sees them: something that accepts arguments, and the handle of what was enqueued.

Pure. What a job is, and how it is stored, is not known here: a participant adds it.
"""

from __future__ import annotations

from typing import Protocol, TypeVarTuple

Ts = TypeVarTuple("Ts")


class Enqueueable(Protocol[*Ts]):
    """A declared job."""

    @property
    def name(self) -> str:
        """What it is stored under."""

    def accepts(self, *arguments: *Ts) -> None:
        """Raise when it cannot be called with these arguments."""


class Enqueued:
    """A job that a transaction leaves behind.

    ``added`` is None before the commit; then whether there is a new job: not when one with the same key is there
    already.
    """

    __slots__ = ("added", "id", "key", "name", "queue")

    def __init__(self, id: str, name: str, queue: str, key: str | None) -> None:
        self.id = id
        self.name = name
        self.queue = queue
        self.key = key
        self.added: bool | None = None

    def __repr__(self) -> str:
        return f"<enqueued {self.name} {self.id}>"

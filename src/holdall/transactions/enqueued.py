"""Jobs as a transaction sees them: something that accepts arguments, and the handle of an enqueued job.

Pure. This module does not know what a job is or how it is stored: a participant adds it to the commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVarTuple

from holdall.core.context import Context, Hook
from holdall.core.internal import internal
from holdall.tables.commit.change import Participant

if TYPE_CHECKING:
    from datetime import timedelta

Ts = TypeVarTuple("Ts")


class Enqueueable(Protocol[*Ts]):
    """A declared job."""

    @property
    def name(self) -> str:
        """The name that it is stored under."""

    def accepts(self, *arguments: *Ts) -> None:
        """Raise if it cannot be called with these arguments."""


class Enqueued:
    """A job that a transaction enqueued."""

    __slots__ = ("added", "id", "key", "name", "queue")

    id: str
    """The job's id."""
    name: str
    """The job's name."""
    queue: str
    """The queue that it was put into."""
    key: str | None
    """The key that it was enqueued with, if any."""
    added: bool | None
    """None before the commit. Then True if the job was added, False if one with the same key was already waiting."""

    @internal
    def __init__(self, id: str, name: str, queue: str, key: str | None) -> None:
        self.id = id
        self.name = name
        self.queue = queue
        self.key = key
        self.added = None

    def __repr__(self) -> str:
        return f"<enqueued {self.name} {self.id}>"


class PlanJob(Protocol):
    """The function that carries out ``tx.enqueue``."""

    def __call__(
        self,
        context: Context,
        participants: Sequence[Participant],
        job: Enqueueable[*tuple[Any, ...]] | str,
        arguments: Sequence[object],
        *,
        key: str | None,
        delay: float | timedelta | None,
        queue: str | None,
    ) -> tuple[Enqueued, Participant | None]:
        """Return the job's handle and, for a transaction's first job, the participant that must join it."""


PLAN_JOB: Hook[PlanJob] = Hook("plan_job")

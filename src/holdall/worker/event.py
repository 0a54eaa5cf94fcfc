"""What a worker reports: an event for each step in a job's life, and counts of these events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from holdall.core.telemetry import error_type

logger = logging.getLogger("holdall.worker")

EventKind: TypeAlias = Literal[
    "started", "succeeded", "failed", "dead", "dropped", "superseded", "lost", "released"
]
"""``failed``: it will be tried again. ``dead``: given up. ``dropped``: an item in its arguments no longer exists.
``superseded``: another job with its key will do its work. ``lost``: the worker lost its lease. ``released``: returned
to its queue unfinished."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One step in a job's life. ``seconds`` is how long the attempt took, ``error`` the exception that ended it."""

    kind: EventKind
    name: str
    id: str
    queue: str
    attempt: int
    seconds: float = 0.0
    error: BaseException | None = None


Hook: TypeAlias = Callable[[JobEvent], Any]


@dataclass(slots=True)
class WorkerMetrics:
    """What a worker has done so far.

    ``running`` is how many jobs it is running now, ``polls`` how often it has polled a shard of a queue, ``collisions``
    how often another worker took a job first. ``seconds`` is the time spent in the jobs' functions.
    """

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    dropped: int = 0
    superseded: int = 0
    lost: int = 0
    released: int = 0
    running: int = 0
    polls: int = 0
    collisions: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, float]:
        """The counts by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Reporter:
    """Counts events, logs them, and calls the hooks. A hook that fails is logged, and does not affect the job."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self.metrics = WorkerMetrics()
        self._hooks = tuple(hooks)

    def report(self, event: JobEvent) -> None:
        """Count, log and pass on an event."""
        metrics = self.metrics
        setattr(metrics, event.kind, getattr(metrics, event.kind) + 1)
        metrics.seconds += event.seconds
        self._log(event)
        for hook in self._hooks:
            try:
                hook(event)
            except Exception as error:  # noqa: BLE001 - a hook's failure is not the job's
                what = error_type(error)
                logger.error("a hook failed on the event %s of the job %s: %s", event.kind, event.name, what)

    def _log(self, event: JobEvent) -> None:
        """Log names, counts and kinds of errors, never a job's arguments."""
        level = _LEVELS[event.kind]
        if not logger.isEnabledFor(level):
            return
        why = "" if event.error is None else f", {error_type(event.error)}"
        logger.log(
            level,
            "job %s %s %s, attempt %d, %.3f s%s",
            *(event.name, event.id, event.kind, event.attempt, event.seconds, why),
        )


_LEVELS = {
    "started": logging.DEBUG,
    "succeeded": logging.INFO,
    "failed": logging.WARNING,
    "dead": logging.ERROR,
    "dropped": logging.WARNING,
    "superseded": logging.INFO,
    "lost": logging.WARNING,
    "released": logging.INFO,
}

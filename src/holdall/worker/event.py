"""What a worker reports: an event for each step in a job's life, and counts of them."""

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
"""``failed``: to be tried again. ``dead``: given up. ``dropped``: what it was about is gone. ``superseded``: another
with its key will do its work. ``lost``: the worker's hold on it is over. ``released``: given back unfinished."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One step in a job's life. ``seconds`` is how long the attempt took, ``error`` what it ended with."""

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

    ``running`` is how many jobs it has in its hands now, ``polls`` how often it has asked a shard, ``collisions`` how
    often another worker was faster. ``seconds`` is the time spent in jobs' functions.
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
    """Counts events, logs them, and calls the hooks; a hook that fails is logged, and does no harm to the job."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self.metrics = WorkerMetrics()
        self._hooks = tuple(hooks)

    def report(self, event: JobEvent) -> None:
        """Something happened to a job."""
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
        """Names, counts and kinds of errors: never what a job is about."""
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

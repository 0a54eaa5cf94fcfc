"""The options of a worker, as both colours take them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from holdall.jobs.declaration import Job
from holdall.worker.event import Hook

__all__ = ["WorkerArguments"]


class WorkerArguments(TypedDict, total=False):
    """The keyword arguments of ``db.worker``."""

    queues: Iterable[str]
    concurrency: int
    lease: float
    poll_interval: float
    grace: float
    processes: int | None
    hooks: Sequence[Hook]
    jobs: Iterable[Job[*tuple[Any, ...]]] | None

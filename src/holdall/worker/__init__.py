"""The worker: the program that takes jobs from their queues and runs them.

``db.worker()`` creates one; ``holdall worker`` runs one from the command line. It is an asyncio program on
`AsyncDatabase`; jobs that are plain functions run in threads, and those declared with ``process=True`` in processes.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.worker.event import JobEvent, WorkerMetrics
    from holdall.worker.thread import WorkerThread
    from holdall.worker.worker import Worker, WorkerArguments

__all__ = ["JobEvent", "Worker", "WorkerArguments", "WorkerMetrics", "WorkerThread"]

_HOMES = {
    "JobEvent": ".event",
    "Worker": ".worker",
    "WorkerArguments": ".worker",
    "WorkerMetrics": ".event",
    "WorkerThread": ".thread",
}

__getattr__ = fetch_names(__name__, _HOMES)

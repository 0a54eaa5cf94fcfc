"""Jobs: work that a transaction leaves for later. A job is written with the transaction, and runs at least once.

The rules and flows of jobs live here; the program that runs them is `holdall.worker`. Names are loaded when first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdall.jobs.api import AsyncJobs, Jobs
    from holdall.jobs.attempt import RunningJob, current_job
    from holdall.jobs.declaration import Job, declared_jobs, job
    from holdall.jobs.flow import JobCounts
    from holdall.jobs.record import JobRecord, Lease

__all__ = [
    "AsyncJobs",
    "Job",
    "JobCounts",
    "JobRecord",
    "Jobs",
    "Lease",
    "RunningJob",
    "current_job",
    "declared_jobs",
    "job",
]

_HOMES = {
    "AsyncJobs": "api",
    "Job": "declaration",
    "JobCounts": "flow",
    "JobRecord": "record",
    "Jobs": "api",
    "Lease": "record",
    "RunningJob": "attempt",
    "current_job": "attempt",
    "declared_jobs": "declaration",
    "job": "declaration",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.jobs' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"holdall.jobs.{home}"), name)
    globals()[name] = found
    return found

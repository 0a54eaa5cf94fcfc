"""Jobs: work that a transaction leaves for later. A job is written with the transaction, and runs at least once.

The rules and flows of jobs live here; the program that runs them is `holdall.worker`. Names are loaded when first used.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.jobs.api import AsyncJobs, Jobs
    from holdall.jobs.attempt import RunningJob, current_job
    from holdall.jobs.declaration import Job, declared_jobs, job
    from holdall.jobs.listing import JobCounts, JobPage
    from holdall.jobs.record import JobRecord, JobState, Lease

__all__ = [
    "AsyncJobs",
    "Job",
    "JobCounts",
    "JobPage",
    "JobRecord",
    "JobState",
    "Jobs",
    "Lease",
    "RunningJob",
    "current_job",
    "declared_jobs",
    "job",
]

_HOMES = {
    "AsyncJobs": ".api",
    "Job": ".declaration",
    "JobCounts": ".listing",
    "JobPage": ".listing",
    "JobRecord": ".record",
    "JobState": ".record",
    "Jobs": ".api",
    "Lease": ".record",
    "RunningJob": ".attempt",
    "current_job": ".attempt",
    "declared_jobs": ".declaration",
    "job": ".declaration",
}

__getattr__ = fetch_names(__name__, _HOMES)

"""Errors of jobs and of the workers that run them."""

from __future__ import annotations

from holdall.errors.core import ConfigurationError, HoldallError, InvalidRequestError

__all__ = [
    "JobDefinitionError",
    "InvalidJobArgumentsError",
    "JobNotFoundError",
    "MalformedJobError",
    "JobBusyError",
    "JobTimeoutError",
    "JobProcessError",
    "LeaseLostError",
    "NoJobError",
]


class JobDefinitionError(ConfigurationError, TypeError):
    """A job cannot work as it is declared."""

    code = "job-definition"


class InvalidJobArgumentsError(InvalidRequestError):
    """An argument cannot be stored with a job: only JSON values, keys and items can."""

    code = "invalid-job-arguments"


class JobNotFoundError(HoldallError, LookupError):
    """There is no job with this id; jobs are deleted when they succeed."""

    code = "job-not-found"


class MalformedJobError(HoldallError, ValueError):
    """An item is stored under a job's key but cannot be read as a job, so it cannot be run."""

    code = "malformed-job"


class JobBusyError(HoldallError):
    """The job is running, or another process has just changed it, so it was left alone."""

    code = "job-busy"
    retryable = True


class JobTimeoutError(HoldallError, TimeoutError):
    """A job took longer than its ``timeout``."""

    code = "job-timeout"


class JobProcessError(HoldallError):
    """A job with ``process=True`` failed in its child process, or the process died; the message has its last output."""

    code = "job-process"


class LeaseLostError(HoldallError):
    """A worker was delayed for longer than its lease on a job lasts, and can no longer finish the job."""

    code = "lease-lost"


class NoJobError(HoldallError, LookupError):
    """``current_job()`` was called outside a job."""

    code = "no-job"

"""What every file service must do, as checks that run sync and async.

A check is a flow that sends requests to a service and asserts. Each module of this package has one subject. Checks name
capabilities, never vendors; each uses keys with its own prefix and leaves nothing behind.
"""

from __future__ import annotations

from holdall.testing.file_contract import (
    completion,
    concurrency,
    copies,
    creation,
    deletion,
    digests,
    headers,
    keys,
    listing,
    objects,
    refusals,
    replacement,
    tags,
    uploads,
    urls,
)
from holdall.testing.file_contract.check import Calls, ServiceCapability, ServiceCheck, run_service_check

__all__ = ["Calls", "ServiceCapability", "ServiceCheck", "run_service_check", "service_checks"]

_SUBJECTS = (
    objects,
    headers,
    digests,
    creation,
    replacement,
    deletion,
    tags,
    listing,
    keys,
    copies,
    uploads,
    completion,
    urls,
    refusals,
    concurrency,
)


def service_checks() -> list[ServiceCheck]:
    """The whole contract of file services, in a fixed order."""
    return [
        found for subject in _SUBJECTS for found in vars(subject).values() if isinstance(found, ServiceCheck)
    ]

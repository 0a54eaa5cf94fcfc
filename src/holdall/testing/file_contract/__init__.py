"""What any service for files must do, as checks that run in both colours.

A check is a flow: it awaits the service it is given and asserts. The modules of this package hold one subject each.
Checks name capabilities, never vendors; they use keys with a prefix of their own and leave nothing behind.
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
from holdall.testing.file_contract.check import Colour, ServiceCapability, ServiceCheck, run_service_check

__all__ = ["Colour", "ServiceCapability", "ServiceCheck", "run_service_check", "service_checks"]

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
    """The whole contract of services, in a fixed order."""
    return [
        found for subject in _SUBJECTS for found in vars(subject).values() if isinstance(found, ServiceCheck)
    ]

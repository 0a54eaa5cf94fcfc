"""Shipped for tests: the contract every backend keeps, and faults on purpose.

- `contract` makes a pytest test out of a backend of yours: every check, in both colours.
- `service_contract` does so for a service that keeps files.
- `FaultyBackend` puts throttling, failures, lost replies and stale reads between your code and a real backend.
- With this package installed, pytest has the fixture ``holdall_memory``: a fresh `holdall.Database` in memory. Each
  test knows the jobs and handlers of your program and of its own file; pytest forgets those that the test declares.

The contracts themselves need no pytest: `checks` and `service_checks` list them, `run_check` and `run_service_check`
run one check. Each name is fetched when first used, because pytest loads this package in every project that has
Holdall installed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdall.testing.faults import Fault, FaultyBackend
    from holdall.testing.file_contract import (
        ServiceCapability,
        ServiceCheck,
        run_service_check,
        service_checks,
    )
    from holdall.testing.suite import contract, service_contract
    from holdall.testing.table_contract import Capability, Check, checks, run_check

__all__ = [
    "Capability",
    "Check",
    "Fault",
    "FaultyBackend",
    "ServiceCapability",
    "ServiceCheck",
    "checks",
    "contract",
    "run_check",
    "run_service_check",
    "service_checks",
    "service_contract",
]

_HOMES = {
    "Capability": "holdall.testing.table_contract.check",
    "Check": "holdall.testing.table_contract.check",
    "Fault": "holdall.testing.faults",
    "FaultyBackend": "holdall.testing.faults",
    "ServiceCapability": "holdall.testing.file_contract.check",
    "ServiceCheck": "holdall.testing.file_contract.check",
    "checks": "holdall.testing.table_contract",
    "contract": "holdall.testing.suite",
    "run_check": "holdall.testing.table_contract.check",
    "run_service_check": "holdall.testing.file_contract.check",
    "service_checks": "holdall.testing.file_contract",
    "service_contract": "holdall.testing.suite",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.testing' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(home), name)
    globals()[name] = found
    return found

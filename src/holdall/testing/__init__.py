"""For your tests: databases in memory, faults on purpose, a clock that you move, and the contract of backends.

With Holdall installed, pytest has these fixtures; the guide to testing shows them at work:

- ``holdall_db`` is a new `holdall.Database` in memory, with a secret and with files in memory, closed after the test.
  ``async_holdall_db`` is its async twin, on the same store.
- ``holdall_faults`` is the `FaultyBackend` between ``holdall_db`` and its store.
- ``holdall_clock`` is a `Clock`: time stands still during the test, and the test moves it.
- ``holdall_settings`` returns the settings that ``holdall_db`` is opened with; override it to change some.

Each test knows the jobs and handlers of your program and of its own file; pytest forgets those that the test declares.

`contract` makes a pytest test out of a backend that you wrote: every check, sync and async. `service_contract` does so
for a service that keeps files. Both work without pytest, too: `checks` and `service_checks` list the checks,
`run_check` and `run_service_check` run one. Each name is loaded when it is first used, because pytest loads this
package in every project that has Holdall installed.
"""

from __future__ import annotations

from holdall.lazy import fetch_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdall.testing.clock import Clock
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
    "Clock",
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
    "Clock": "holdall.testing.clock",
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

__getattr__ = fetch_names(__name__, _HOMES)

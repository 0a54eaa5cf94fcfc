"""Shipped for tests: the contract every backend keeps, and faults on purpose.

- `contract` makes a pytest test out of a backend of yours: every check, in both colours.
- `FaultyBackend` puts throttling, failures, lost replies and stale reads between your code and a real backend.
- With this package installed, pytest has the fixture ``holdall_memory``: a fresh `holdall.Database` in memory.

The contract itself needs no pytest: `checks` lists it and `run_check` runs one check. Each name is fetched when first
used, because pytest loads this package in every project that has Holdall installed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdall.testing.faults import Fault, FaultyBackend
    from holdall.testing.suite import contract
    from holdall.testing.table_contract import Capability, Check, checks, run_check

__all__ = ["Capability", "Check", "Fault", "FaultyBackend", "checks", "contract", "run_check"]

_HOMES = {
    "Capability": "holdall.testing.table_contract.check",
    "Check": "holdall.testing.table_contract.check",
    "Fault": "holdall.testing.faults",
    "FaultyBackend": "holdall.testing.faults",
    "checks": "holdall.testing.table_contract",
    "contract": "holdall.testing.suite",
    "run_check": "holdall.testing.table_contract.check",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'holdall.testing' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(home), name)
    globals()[name] = found
    return found

"""Shipped for tests: the contract every backend keeps, and faults on purpose.

- `contract` makes a pytest test out of a backend of yours: every check, in both colours.
- `FaultyBackend` puts throttling, failures, lost replies and stale reads between your code and a real backend.
- With this package installed, pytest has the fixture ``holdall_memory``: a fresh `holdall.Database` in memory.

The contract itself needs no pytest: `checks` lists it and `run_check` runs one check.
"""

from __future__ import annotations

from holdall.testing.contract import Capability, Check, checks, run_check
from holdall.testing.faults import Fault, FaultyBackend
from holdall.testing.suite import contract

__all__ = ["Capability", "Check", "Fault", "FaultyBackend", "checks", "contract", "run_check"]

"""What every table backend must do, as checks that run sync and async.

A check is a flow that sends requests to a store and asserts. Each module of this package has one subject. Checks name
capabilities, never vendors; each uses new tables and deletes them.
"""

from __future__ import annotations

from holdall.testing.table_contract import (
    batches,
    conditions,
    indexes,
    items,
    limits,
    queries,
    scans,
    tables,
    transactions,
    updates,
)
from holdall.testing.table_contract.check import Calls, Capability, Check, run_check

__all__ = ["Capability", "Check", "Calls", "checks", "run_check"]

_SUBJECTS = (
    tables,
    items,
    conditions,
    updates,
    transactions,
    batches,
    queries,
    scans,
    indexes,
    limits,
)


def checks() -> list[Check]:
    """The whole contract, in a fixed order."""
    return [found for subject in _SUBJECTS for found in vars(subject).values() if isinstance(found, Check)]

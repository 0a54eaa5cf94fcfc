"""What any backend for tables must do, as checks that run in both colours.

A check is a flow: it awaits the store it is given and asserts. The modules of this package hold one subject
each. Checks name capabilities, never vendors; they use tables with names of their own and leave none behind.
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
from holdall.testing.table_contract.check import Capability, Check, Colour, run_check

__all__ = ["Capability", "Check", "Colour", "checks", "run_check"]

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

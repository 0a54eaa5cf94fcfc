"""What DynamoDB bills, in capacity units.

Pure. Reads count 4 KB blocks, halved when eventually consistent and doubled in a transaction; writes count
1 KB blocks of the larger of the item before and after, doubled in a transaction.
"""

from __future__ import annotations


def read_units(size: int, *, consistent: bool = False, transactional: bool = False) -> float:
    """The units for reading ``size`` bytes: one item, or the sum of a page."""
    blocks = -(-size // 4096) or 1
    return blocks * (2.0 if transactional else 1.0 if consistent else 0.5)


def write_units(before: int, after: int, *, transactional: bool = False) -> float:
    """The units for a write that takes an item from one size to another; 0 is a missing item."""
    blocks = -(-max(before, after) // 1024) or 1
    return blocks * (2.0 if transactional else 1.0)

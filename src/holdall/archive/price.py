"""What archiving costs and saves: a dated table of prices, and formulas. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

from holdall.core.frozen import dataclass

POINTER_BYTES = 250
"""Roughly how many bytes a pointer takes, besides the attributes that stay."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in US dollars, as of ``date``, in ``region``: storage per GB and month, requests each.

    Construct it with your own numbers for another region or date.
    """

    date: str = "2026-08-20"
    region: str = "us-east-1"
    table_storage: float = 0.25
    table_write: float = 0.625e-6
    table_read: float = 0.125e-6
    object_storage: float = 0.023
    object_put: float = 0.005e-3
    object_get: float = 0.0004e-3

    def estimate(
        self, item_bytes: int, object_bytes: int, left_bytes: int, copies: int = 0, together: int = 1
    ) -> Estimate:
        """Estimate what archiving an item costs once, and saves each month.

        ``left_bytes`` stay in the table; ``copies`` is how many indexes also hold the whole item.
        ``together`` is how many items share an object, and the request that stores it.
        """
        units = ceil(item_bytes / 1024) * (1 + copies)
        put, read = self.object_put / together, self.table_read * ceil(item_bytes / 4096) / 2
        once = put + self.table_write * units + read
        monthly = (item_bytes - left_bytes) * (1 + copies) * self.table_storage / 1e9
        return Estimate(once, monthly - object_bytes * self.object_storage / 1e9)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What archiving costs once, and what it saves each month, in dollars."""

    once: float
    monthly: float

    @property
    def payback_months(self) -> float:
        """The number of months after which archiving has paid for itself; infinity if it never does."""
        return self.once / self.monthly if self.monthly > 0 else inf

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.once + other.once, self.monthly + other.monthly)


BOUNDS: Sequence[float] = (3, 6, 12, 24, 36, inf)
"""The upper bounds of a histogram of payback times, in months."""


def classify(months: float) -> int:
    """The class of a payback time in the histogram; the last one is for items that pay back too late, or never."""
    return next(position for position, bound in enumerate(BOUNDS) if months <= bound)

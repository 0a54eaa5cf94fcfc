"""Capacity units: 4 KB blocks read, 1 KB blocks written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.core.measure import read_units, write_units


@pytest.mark.parametrize(
    ("size", "blocks"),
    [(0, 1), (1, 1), (4096, 1), (4097, 2), (8192, 2), (8193, 3), (409_600, 100)],
)
def test_a_read_counts_blocks_of_four_kilobytes(size: int, blocks: int) -> None:
    assert read_units(size) == blocks / 2
    assert read_units(size, consistent=True) == blocks
    assert read_units(size, transactional=True) == blocks * 2
    assert read_units(size, consistent=True, transactional=True) == blocks * 2


@pytest.mark.parametrize(
    ("before", "after", "blocks"),
    [
        (0, 0, 1),
        (0, 1, 1),
        (0, 1024, 1),
        (0, 1025, 2),
        (1025, 0, 2),
        (1, 4096, 4),
        (4097, 1, 5),
        (0, 409_600, 400),
    ],
)
def test_a_write_counts_kilobytes_of_the_larger_item(before: int, after: int, blocks: int) -> None:
    assert write_units(before, after) == blocks
    assert write_units(before, after, transactional=True) == blocks * 2


@given(st.integers(0, 500_000), st.integers(0, 500_000))
def test_more_bytes_never_cost_less(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert read_units(low) <= read_units(high)
    assert write_units(low, 0) <= write_units(high, 0)
    assert write_units(one, other) == write_units(other, one) == write_units(0, high)

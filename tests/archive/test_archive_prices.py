"""What archiving costs and saves, compared with figures calculated by hand."""

from __future__ import annotations

from math import inf

import pytest

from holdall.archive import Estimate, Prices
from holdall.archive.price import classify

PER_MILLION = [  # bytes of an item, dollars once, dollars saved each month, months until it pays off
    (256, 5.69, -0.001, inf),
    (400, 5.69, 0.033, 170),
    (1024, 5.69, 0.183, 31),
    (2048, 6.31, 0.428, 15),
    (4096, 7.56, 0.919, 8.2),
    (10 * 1024, 11.4, 2.39, 4.8),
    (32 * 1024, 25.5, 7.79, 3.3),
    (100 * 1024, 69.1, 24.5, 2.8),
    (400 * 1024, 261, 98.1, 2.7),
]


@pytest.mark.parametrize(("size", "once", "monthly", "payback"), PER_MILLION)
def test_the_costs_and_savings_of_a_million_items_follow_the_formula(
    size: int, once: float, monthly: float, payback: float
) -> None:
    found = Prices().estimate(size, round(0.45 * size), 250)
    assert found.once * 1e6 == pytest.approx(once, rel=0.005)
    assert found.monthly * 1e6 == pytest.approx(monthly, rel=0.01, abs=0.0006)
    assert found.payback_months == pytest.approx(payback, rel=0.03)


def test_an_index_of_whole_items_costs_and_saves_like_the_table() -> None:
    alone, indexed = Prices().estimate(8192, 3000, 250), Prices().estimate(8192, 3000, 250, copies=1)
    assert indexed.once - alone.once == pytest.approx(8 * 0.625e-6)
    assert indexed.monthly - alone.monthly == pytest.approx((8192 - 250) * 0.25e-9)


@pytest.mark.parametrize(("months", "place"), [(0.5, 0), (3, 0), (3.1, 1), (36, 4), (37, 5), (inf, 5)])
def test_a_payback_belongs_to_the_class_of_its_upper_bound(months: float, place: int) -> None:
    assert classify(months) == place


def test_estimates_can_be_added() -> None:
    assert Estimate(1.0, 2.0) + Estimate(3.0, -1.0) == Estimate(4.0, 1.0)

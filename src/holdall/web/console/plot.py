"""Plots: from numbers to the places of their marks in an SVG picture. Pure; the templates draw them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

MONTHS = 36
WIDTH, HEIGHT = 360, 120


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram: its label and number, and where its rectangle is."""

    label: str
    number: int
    x: float
    y: float
    width: float
    height: float


def place_bars(numbers: Mapping[str, int]) -> list[Bar]:
    """Return the bars of a histogram; the highest one fills the height."""
    most, step = max([*numbers.values(), 1]), WIDTH / max(len(numbers), 1)
    return [
        Bar(
            label,
            number,
            position * step + step * 0.15,
            HEIGHT * (1 - number / most),
            step * 0.7,
            HEIGHT * number / most,
        )
        for position, (label, number) in enumerate(numbers.items())
    ]


@dataclass(frozen=True, slots=True)
class Line:
    """Money over months: the points of a line, the height of zero, and the month of the break-even."""

    points: str
    zero: float
    break_even: float | None
    last: float


def place_line(once: float, monthly: float) -> Line:
    """Return the line of what archiving has saved after each month, with what it costs once."""
    values = [monthly * month - once for month in range(MONTHS + 1)]
    low, high = min(0.0, *values), max(0.0, *values)
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return HEIGHT * (high - value) / span

    points = " ".join(
        f"{WIDTH * month / MONTHS:.1f},{place(value):.1f}" for month, value in enumerate(values)
    )
    pays = once / monthly if monthly > 0 else float("inf")
    return Line(points, place(0.0), pays if isfinite(pays) and pays <= MONTHS else None, values[-1])


def share_out(numbers: Sequence[float]) -> list[float]:
    """Return each number's share of their sum, from 0 to 1."""
    total = sum(numbers)
    return [number / total if total else 0.0 for number in numbers]

"""Shared by all benchmarks: figures with their bars, and ratios measured in paired, alternating slices.

A benchmark is a module of this package with a function ``figures(workshop)`` that yields each `Figure` as soon
as it is known. ``workshop`` is a directory for its files, shared by all benchmarks of one run and removed at
the end. The module's first docstring line states what it measures; `benchmarks/README.md` has a row for it.
"""

from __future__ import annotations

import gc
import pkgutil
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Literal, TypeVar

__all__ = ["Figure", "Paired", "benchmarks", "check_readme", "summary", "time_pair"]

W = TypeVar("W")

Clock = Callable[[], float]

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number and the bar that it must meet."""

    benchmark: str
    details: tuple[str, ...]
    value: float
    bar: float
    sense: Literal["≤", "≥"] = "≤"
    unit: str = "×"
    note: str = ""
    stretch: float | None = None

    @property
    def met(self) -> bool:
        """Whether the bar is met; NaN never meets it."""
        return self._meets(self.bar)

    def __str__(self) -> str:
        verdict = "ok" if self.met else "SHORT"
        value = f"{self.value:,.2f}{self.unit}"
        parts = (self.benchmark, *self.details, value, f"({self._bars()})", verdict, self.note)
        return "  ".join(filter(None, parts))

    def _bars(self) -> str:
        bar = f"bar {self.sense} {self.bar:,.2f}{self.unit}"
        if self.stretch is None:
            return bar
        reached = "reached" if self._meets(self.stretch) else "not reached"
        return f"{bar}; stretch {self.stretch:,.2f}{self.unit} {reached}"

    def _meets(self, bar: float) -> bool:
        return self.value <= bar if self.sense == "≤" else self.value >= bar


@dataclass(frozen=True, slots=True)
class Paired:
    """Holdall against a peer: the median of the slices' ratios, and each side's median seconds per slice."""

    ratio: float
    ours: float
    theirs: float

    def each(self, count: int) -> str:
        """Return both sides' time for one of ``count`` operations of a slice, as text."""
        return f"{self.ours / count * 1e6:,.1f} µs against {self.theirs / count * 1e6:,.1f} µs"


def time_pair(
    prepare: Callable[[], W],
    ours: Callable[[W], object],
    theirs: Callable[[W], object],
    *,
    clock: Clock = time.process_time,
    pairs: int = 30,
    warmups: int = 2,
) -> Paired:
    """Time both on the same work, slice by slice; the side that goes first alternates.

    A temporary slowdown of the machine then affects both sides of a ratio, or few of the ratios, which the median
    ignores. ``prepare`` makes the work of a slice and is not timed. Slices should take some tens of milliseconds.
    """
    gc.collect()
    gc.freeze()  # so that neither side's time includes the garbage collection of the set-up
    try:
        taken = [_slice(prepare(), ours, theirs, clock, turn % 2 == 1) for turn in range(warmups + pairs)]
    finally:
        gc.unfreeze()
    return from_slices(taken[warmups:])


def from_slices(taken: list[tuple[float, float]]) -> Paired:
    """Return the result of slices that were timed already, each (ours, theirs) in seconds."""
    return Paired(
        median(ours / theirs for ours, theirs in taken),
        median(ours for ours, _ in taken),
        median(theirs for _, theirs in taken),
    )


def _slice(
    work: W, ours: Callable[[W], object], theirs: Callable[[W], object], clock: Clock, theirs_first: bool
) -> tuple[float, float]:
    if theirs_first:
        second = _time(theirs, work, clock)
        return _time(ours, work, clock), second
    return _time(ours, work, clock), _time(theirs, work, clock)


def _time(act: Callable[[W], object], work: W, clock: Clock) -> float:
    start = clock()
    act(work)
    return clock() - start


# --- listing benchmarks ---------------------------------------------------------------------------------


def benchmarks() -> dict[str, ModuleType]:
    """Every benchmark by name."""
    names = sorted(info.name for info in pkgutil.iter_modules([str(HERE)]) if info.name != "__main__")
    modules = {name: import_module(f"benchmarks.{name}") for name in names}
    return {name: module for name, module in modules.items() if hasattr(module, "figures")}


def summary(module: ModuleType) -> str:
    """Return the first line of a benchmark's docstring."""
    first = (module.__doc__ or "").strip().partition("\n")[0]
    assert first, f"{module.__name__} has no docstring line"
    return first


def check_readme(names: Iterable[str]) -> None:
    """Check that every benchmark has a row in the README, and every row a benchmark."""
    described = re.findall(r"^\| `(\w+)` \|", (HERE / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(described) == sorted(names), (
        f"benchmarks/README.md describes {', '.join(sorted(described)) or 'nothing'}; "
        f"the benchmarks are {', '.join(sorted(names))}"
    )

"""Sticky picks of a version by key per second, from a loaded alias with two arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.harness import Figure
from holdall.artifacts.alias.alias import Alias

BAR = 100_000
COUNT = 20_000
SLICES = 20
WARMUPS = 2
WEIGHT = 20


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure, with 20 % of the keys on a canary."""
    resolve = _make_resolver()
    keys = [f"user-{number}" for number in range(COUNT)]
    found = Counter(map(resolve, keys))
    assert abs(found["2"] / COUNT - WEIGHT / 100) < 0.02, "the canary did not get its share"
    seconds = median([_seconds(resolve, keys) for _ in range(WARMUPS + SLICES)][WARMUPS:])
    note = f"{seconds / COUNT * 1e6:.2f} µs each"
    yield Figure("alias_resolve", ("by key", "two arms"), COUNT / seconds, BAR, "≥", " picks/s", note=note)


def _make_resolver() -> Callable[[str], str]:
    """Return the function that a program calls for each of its requests."""
    alias = Alias.new("my-app", "prod", version=1, secondary_version=2, secondary_version_weight=WEIGHT)
    return lambda key: alias.resolve(key=key)


def _seconds(resolve: Callable[[str], str], keys: list[str]) -> float:
    start = process_time()
    for key in keys:
        resolve(key)
    return process_time() - start

"""A copy of 20,000 items from one embedded database to another, and a second pass that finds nothing to copy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Figure
from holdall import Database, Key, Model

ITEMS = 20_000
BAR = 5_000


class Visit(Model):
    """An item of about 200 bytes."""

    number: Key[int]
    name: str
    page: str
    seconds: float


def figures(workshop: Path) -> Iterator[Figure]:
    """Items per second of CPU in the first and the second pass; as notes, by wall time and with verification."""
    with Database(f"embedded:{workshop / 'copied'}.db", durability="normal") as source:
        source.bulk(Visit).put_all(
            Visit(number=number, name=f"visitor {number}", page="/a/page" * 15, seconds=number / 7)
            for number in range(ITEMS)
        )
        with (
            Database(f"embedded:{workshop / 'copy'}.db") as target,
            Database(f"embedded:{workshop / 'verified'}.db") as verified,
        ):
            for name in ("first pass", "second pass"):
                rate, wall = _copy(source, target, verify=False)
                more, _ = _copy(source, verified, verify=True)
                note = f"{wall:,.0f} items/s by wall time; with verification {more:,.0f} items/s of CPU"
                details = (f"{ITEMS:,} items", name, "durability full")
                yield Figure("copy_embedded", details, rate, BAR, "≥", " items/s", note)


def _copy(source: Database, target: Database, *, verify: bool) -> tuple[float, float]:
    """Return items per second of CPU, and by wall time."""
    start, wall = time.process_time(), time.perf_counter()
    report = source.copy_to(target, manifest=f"{target.path}.manifest", verify=verify, files=False)
    spent = ITEMS / (time.process_time() - start), ITEMS / (time.perf_counter() - wall)
    assert report.is_complete
    return spent

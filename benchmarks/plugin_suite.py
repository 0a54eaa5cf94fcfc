"""The time that the fixture ``holdall_db`` adds to each test of a user's suite."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.harness import Figure
from benchmarks.startup import startup_environment

TESTS = 100
ROUNDS = 5
BAR = 5.0

_SUITE = """
import pytest
from holdall import Key, Model

class Order(Model):
    number: Key[str]
    quantity: int = 1

@pytest.mark.parametrize("number", range({tests}))
def test_it({fixture}number):
    {body}
"""
_BODIES = {
    "opened": ("holdall_db, ", "holdall_db.table"),
    "a write and a read": (
        "holdall_db, ",
        'holdall_db.run(lambda tx: tx.create(Order, number="1")); assert holdall_db.get(Order, "1")',
    ),
}
_NOTHING = ("", "Order(number=str(number))")


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure for tests that only open the database, and one for tests that write and read an item."""
    taken: dict[str, list[float]] = {name: [] for name in ("nothing", *_BODIES)}
    for _ in range(1 + ROUNDS):
        for name, (fixture, body) in {"nothing": _NOTHING, **_BODIES}.items():
            taken[name].append(_seconds(workshop, fixture, body))
    without = min(taken["nothing"][1:])  # a busy machine can only add time
    for name in _BODIES:
        each = (min(taken[name][1:]) - without) / TESTS * 1e3
        yield Figure("plugin_suite", (f"{TESTS} tests", name), each, BAR, unit=" ms each")


def _seconds(workshop: Path, fixture: str, body: str) -> float:
    """Return the CPU time of pytest for a suite."""
    folder = workshop / "suite"
    folder.mkdir(exist_ok=True)
    (folder / "test_suite.py").write_text(_SUITE.format(tests=TESTS, fixture=fixture, body=body))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        "test_suite.py",
    ]
    before = getrusage(RUSAGE_CHILDREN)
    environment = startup_environment(workshop) | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

"""The time that importing Holdall takes in a new interpreter, against importing boto3."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from benchmarks import peers
from benchmarks.harness import Figure, from_slices
from benchmarks.startup import startup_environment

PAIRS = 15
WARMUPS = 1
BARS = {
    "import holdall": 1 / 3,
    "from holdall import Database": 0.8,
    "from holdall import Database, Model": 0.8,
}

_THEIRS = "import boto3"
_NOTHING = "pass"


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per way of importing Holdall."""
    rounds = [_round(turn, workshop) for turn in range(WARMUPS + PAIRS)][WARMUPS:]
    # Start-up is the same in every round; its median varies less than the value of one round.
    start_ours = median(taken["ours", _NOTHING] for taken in rounds)
    start_theirs = median(taken["theirs", _NOTHING] for taken in rounds)
    for statement, bar in BARS.items():
        result = from_slices(
            [
                (taken["ours", statement] - start_ours, taken["theirs", _THEIRS] - start_theirs)
                for taken in rounds
            ]
        )
        note = f"{result.ours * 1e3:.1f} ms against {result.theirs * 1e3:.1f} ms"
        yield Figure("import_time", (statement,), result.ratio, bar, note=note)


def _round(turn: int, directory: Path) -> dict[tuple[str, str], float]:
    """Time every import once, in rotating order, each in a new interpreter."""
    theirs = str(peers.interpreter())
    runs = [("ours", statement) for statement in (_NOTHING, *BARS)]
    runs += [("theirs", statement) for statement in (_NOTHING, _THEIRS)]
    runs = runs if turn % 2 else runs[::-1]
    return {
        (side, statement): _seconds(sys.executable if side == "ours" else theirs, statement, directory)
        for side, statement in runs
    }


def _seconds(interpreter: str, statement: str, directory: Path) -> float:
    """Return the CPU time of an interpreter that runs one statement outside the repository's directory."""
    environment = startup_environment(directory)
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([interpreter, "-c", statement], check=True, cwd=directory, env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

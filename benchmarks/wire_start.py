"""The time from the start of a process to its first read over the wire, without the interpreter's own start-up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks import peers
from benchmarks.canned_server import serve_canned
from benchmarks.harness import Figure
from benchmarks.startup import startup_environment
from benchmarks.wire_client import REGION
from benchmarks.wire_items import TABLE, key_document
from benchmarks.wire_race import wire_environment

BAR = 60.0
STRETCH = 30.0
ROUNDS = 11
WARMUPS = 1

_STAMP = "import time; print(time.monotonic())"  # parent and child share this clock
_OURS = """\
from holdall import Database
from holdall.core import GetItem
db = Database("dynamodb://{table}?endpoint={endpoint}&region={region}")
assert db.send(GetItem("{table}", {key})).item
"""
_THEIRS = """\
import boto3
client = boto3.client("dynamodb", region_name="{region}", endpoint_url="{endpoint}")
assert client.get_item(TableName="{table}", Key={key})["Item"]
"""


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure, in milliseconds of wall time."""
    with serve_canned() as endpoint:
        place = {"table": TABLE, "endpoint": endpoint, "region": REGION, "key": key_document(0)}
        theirs = str(peers.interpreter())
        programs = {
            "start": (sys.executable, ""),
            "ours": (sys.executable, _OURS.format(**place)),
            "their start": (theirs, ""),
            "theirs": (theirs, _THEIRS.format(**place)),
        }
        rounds = [_round(programs, turn, workshop) for turn in range(WARMUPS + ROUNDS)][WARMUPS:]
    # Start-up is the same in every round; its median varies less than the value of one round.
    taken = {name: median(times[name] for times in rounds) * 1e3 for name in programs}
    note = (
        f"boto3's client {taken['theirs'] - taken['their start']:.0f} ms; interpreter {taken['start']:.0f} ms"
    )
    yield Figure(
        "wire_start",
        ("first GetItem",),
        taken["ours"] - taken["start"],
        BAR,
        unit=" ms",
        stretch=STRETCH,
        note=note,
    )


def _round(programs: dict[str, tuple[str, str]], turn: int, directory: Path) -> dict[str, float]:
    names = list(programs) if turn % 2 else list(programs)[::-1]
    return {name: _seconds(*programs[name], directory) for name in names}


def _seconds(interpreter: str, program: str, directory: Path) -> float:
    """Return the time from starting an interpreter to the end of its program, outside the repository's directory."""
    environment = wire_environment(startup_environment(directory))
    start = time.monotonic()
    done = subprocess.run(
        [interpreter, "-c", program + _STAMP],
        check=True,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(done.stdout) - start

"""Which data is synced before a write is acknowledged, and what happens when the disk refuses a system call."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from acknowledging_writer import LINES
from rig.store_audit import audit, scan_table
from rig.torture import ROUNDS, SEED, SEEDED, Child, run_script, strace_missing, trace_command

from holdall import Database
from holdall.core import decode_item

pytestmark = pytest.mark.torture

SYNC = re.compile(r" (?:fsync|fdatasync)\(\d+<[^>]*-wal>")
LOG_WRITE = re.compile(r" (?:write|writev|pwrite64|pwritev|pwritev2)\(\d+<[^>]*-wal>")
ACK = re.compile(r' write\(1<[^>]*>, "(?:ack|open)')


@pytest.fixture(autouse=True)
def require_strace() -> None:
    reason = strace_missing()
    if reason is not None:
        pytest.skip(reason)


def system_calls(tmp_path: Path, durability: str) -> list[list[str]]:
    """Return the system calls before the acknowledgement of each of twenty puts."""
    trace = tmp_path / "trace"
    calls = "trace=write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync"
    printed = run_script(
        "acknowledging_writer.py",
        tmp_path / "store.db",
        durability,
        0,
        20,
        prefix=trace_command(trace, calls),
    )
    assert printed == ["open", *(f"ack {number}" for number in range(20))]
    lines = trace.read_text().splitlines()
    acks = [place for place, line in enumerate(lines) if ACK.search(line)]
    assert len(acks) == 21, "the trace does not show every acknowledgement"
    return [lines[before:after] for before, after in pairwise(acks)]


def test_with_full_durability_every_write_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    for number, calls in enumerate(system_calls(tmp_path, "full")):
        writes = [place for place, call in enumerate(calls) if LOG_WRITE.search(call)]
        assert writes, f"put {number} wrote nothing to the log"
        after = calls[writes[-1] :]
        assert any(SYNC.search(call) for call in after), f"put {number} was acknowledged before its sync"


def test_with_normal_durability_a_write_is_acknowledged_without_a_sync(tmp_path: Path) -> None:
    for calls in system_calls(tmp_path, "normal"):
        assert any(LOG_WRITE.search(call) for call in calls)
        assert not any(SYNC.search(call) for call in calls)


REFUSALS = [("pwrite64", "ENOSPC"), ("pwrite64", "EIO"), ("fdatasync", "EIO"), ("ftruncate", "EIO")]
DURABILITIES = ("full", "normal")


@pytest.mark.parametrize(
    ("call", "error", "durability"),
    [
        (*refusal, durability)
        for place, refusal in enumerate(REFUSALS)
        for durability in (DURABILITIES if ROUNDS > 1 else (DURABILITIES[place % 2],))
    ],
)
def test_when_the_disk_refuses_a_call_the_errors_state_the_outcomes_correctly(
    tmp_path: Path, call: str, error: str, durability: str
) -> None:
    file = tmp_path / "store.db"
    run_script("acknowledging_writer.py", file, durability, 0, 3)
    times = calls_made(tmp_path, file, durability)[call]
    choice = random.Random(f"{SEED} {call} {error} {durability}")
    expected = set(range(3)) | set(range(50, 55))
    for round, when in enumerate(choice.sample(range(1, times + 1), min(times, ROUNDS // 2 or 1))):
        first = 100 * (round + 1)
        inject = f"inject={call}:error={error}:when={when}"
        prefix = trace_command(tmp_path / "trace", f"trace={call}", inject)
        with Child("acknowledging_writer.py", file, durability, first, 5, prefix=prefix) as child:
            printed = child.end()
            context = f"{error} at {call} {when}: {printed} {SEEDED}\n{child.account()}"
        outcomes = {int(line.split()[1]): line.split() for line in printed if line != "open"}
        stored = numbers(file)
        for number, outcome in outcomes.items():
            if outcome[0] == "ack":
                assert number in stored, f"{number} was acknowledged and is lost; {context}"
            elif outcome[2] != "OutcomeUnknown":
                assert number not in stored, f"{number} was refused and is stored; {context}"
        assert "sqlite3." not in context.splitlines()[-1], f"an error of SQLite was raised; {context}"
        assert expected <= stored, f"earlier items are lost; {context}"
        expected = stored
        audit(file, context)


def calls_made(tmp_path: Path, file: Path, durability: str) -> Counter[str]:
    """Count the system calls of a run like the later ones, by their names."""
    trace = tmp_path / "trace"
    prefix = trace_command(trace, "trace=pwrite64,fdatasync,ftruncate")
    run_script("acknowledging_writer.py", file, durability, 50, 5, prefix=prefix)
    return Counter(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.MULTILINE))


def numbers(file: Path) -> set[int]:
    with Database(f"embedded:{file}") as db:
        return {int(decode_item(item)["number"]) for item in scan_table(db, LINES.name)}

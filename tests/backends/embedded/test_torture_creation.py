"""Creation of a store: processes killed while they create it, and processes that create it at the same time."""

from __future__ import annotations

import contextlib
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from fresh_opener import MADE
from rig.store_audit import audit, scan_table
from rig.torture import ROUNDS, SEED, SEEDED, Child, strace_missing, trace_command

from holdall import Database
from holdall.core import CreateTable, PutItem
from holdall.errors import TableExistsError

pytestmark = pytest.mark.torture

CALLS = ("pwrite64", "fdatasync", "ftruncate", "unlink")
"""The system calls by which SQLite changes files."""


def check_usable(path: Path, context: str) -> None:
    """Check that the next process can open and use the store."""
    with Database(f"embedded:{path}") as db:
        with contextlib.suppress(TableExistsError):  # the dead process may have created it
            db.send(CreateTable(MADE))
        db.send(PutItem(MADE.name, {"by": {"S": "successor"}}))
        assert {"by": {"S": "successor"}} in scan_table(db, MADE.name), context
    audit(path, context)


def test_a_store_whose_creator_was_killed_at_a_random_moment_can_be_opened(tmp_path: Path) -> None:
    choice = random.Random(SEED)
    for round in range(2 * ROUNDS):
        with Child("fresh_opener.py") as child:
            assert child.line() == "ready"
            for number in range(choice.randrange(1, 5)):  # the process is killed during the last of them
                path = tmp_path / f"{round}-{number}.db"
                child.write_line(str(path))
            while not path.exists() and child.alive:
                pass
            for _ in range(choice.randrange(20_000)):  # at most about as long as the rest of a creation
                pass
            child.kill()
        check_usable(path, f"in round {round} {SEEDED}")


def test_a_store_whose_creator_was_killed_at_any_system_call_can_be_opened(tmp_path: Path) -> None:
    reason = strace_missing()
    if reason is not None:
        pytest.skip(reason)
    points = kill_points(tmp_path)
    assert len(points) > 20, "the trace shows too few system calls for a creation"
    chosen = random.Random(SEED).sample(points, min(len(points), 2 * ROUNDS))
    for call, when in chosen:
        path = tmp_path / f"{call}-{when}.db"
        inject = f"inject={call}:signal=SIGKILL:when={when}"
        with Child(
            "fresh_opener.py", prefix=trace_command(tmp_path / "trace", f"trace={call}", inject)
        ) as child:
            child.write_line(str(path))
            assert "done" not in child.end(), f"the process was not killed at {call} {when}"
            assert child.returncode == -9, child.account()
        check_usable(path, f"killed at {call} {when} {SEEDED}")


def kill_points(tmp_path: Path) -> list[tuple[str, int]]:
    """List every system call of a creation that changes a file: its name, and its number among those of that name."""
    trace = tmp_path / "whole-trace"
    with Child("fresh_opener.py", prefix=trace_command(trace, f"trace={','.join(CALLS)}")) as child:
        child.write_line(str(tmp_path / "whole.db"))
        child.finish()
    calls = Counter(re.findall(rf"^\d+ +({'|'.join(CALLS)})\(", trace.read_text(), re.MULTILINE))
    return [(call, when) for call, times in calls.items() for when in range(1, times + 1)]


def test_processes_that_open_a_new_store_at_once_all_succeed(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(Child("fresh_opener.py")) for _ in range(4)]
        assert [child.line() for child in children] == ["ready"] * 4
        for round in range(15 * ROUNDS):
            path = tmp_path / f"{round}.db"
            for child in children:
                child.write_line(str(path))
            assert [child.line() for child in children] == ["done"] * 4
            with Database(f"embedded:{path}") as db:
                assert len(scan_table(db, MADE.name)) == 4, f"an item is missing in round {round} {SEEDED}"
        for child in children:
            child.finish()


def test_opening_a_store_while_other_processes_close_it_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(Child("fresh_opener.py")) for _ in range(3)]
        for child in children:
            for _ in range(25 * ROUNDS):
                child.write_line(str(path))
        for child in children:
            assert child.finish() == ["ready", *["done"] * (25 * ROUNDS)]
    audit(path, SEEDED)

"""Processes that die in the middle of a commit with a participant: the store has both owner and row, or neither.

The uploaded file is garbage or in use, and a later sweep decides which by reading the store.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from rig.store_audit import audit
from rig.torture import ROUNDS, SEED, SEEDED, Child, run_script

pytestmark = pytest.mark.torture

SCRIPT = "dying_committer.py"
STEPS = [
    "before the upload",
    "in the upload",
    "after the upload",
    "before the write",
    "after the write",
    "before settling",
    "after settling",
    "in the handler",
]
WRITTEN = STEPS.index("after the write")
UPLOADED = STEPS.index("after the upload")
SETTLED = STEPS.index("after settling")
BEACH, PENDING = "summer-beach", "summer-beach.pending"


@pytest.mark.parametrize(("colour", "how", "code"), [("blocking", "kill", -9), ("awaiting", "exit", 3)])
def test_a_process_that_dies_at_any_step_leaves_owner_and_row_or_neither_and_a_sweep_finds_garbage(
    tmp_path: Path, colour: str, how: str, code: int
) -> None:
    assert run_script(SCRIPT, "die", colour, how, tmp_path, *STEPS) == [str(code)] * len(STEPS)
    directories = [tmp_path / str(number) for number in range(len(STEPS))]
    reports = run_script(SCRIPT, "sweep", *directories)
    for number, (directory, line) in enumerate(zip(directories, reports, strict=True)):
        found = json.loads(line)
        check_consistency(found["before"])
        check_leftovers(number, found)
        assert found["after"] == {**found["before"], "files": {BEACH: "picture"} if number >= WRITTEN else {}}
        audit(directory / "store.db", f"killed {STEPS[number]}")


def check_consistency(state: dict[str, Any]) -> None:
    """Check that every owner has its number of rows, and every row its file."""
    counts: dict[str, int] = {}
    for album, name, file in state["rows"]:
        counts[album] = counts.get(album, 0) + 1
        assert file in state["files"], f"the file of {album} {name} is gone {SEEDED}"
    assert state["owners"] == counts, SEEDED


def check_leftovers(step: int, found: dict[str, Any]) -> None:
    """Check what a process that died at a step left, and the result of the sweep."""
    written = step >= WRITTEN
    assert found["before"]["owners"] == ({"summer": 1} if written else {})
    files = found["before"]["files"]
    if step == 0:
        assert files == {}
    else:
        assert files[BEACH] == ("picture" if step >= UPLOADED else "pic")
        assert (PENDING in files) == (step < SETTLED)
    assert found["garbage"] == ([BEACH] if step and not written else [])
    assert found["settled"] == ([BEACH] if WRITTEN <= step < SETTLED else [])


def test_a_process_that_is_not_killed_leaves_nothing_to_sweep(tmp_path: Path) -> None:
    assert run_script(SCRIPT, "die", "blocking", "kill", tmp_path, "never") == ["0"]
    (line,) = run_script(SCRIPT, "sweep", tmp_path / "0")
    found = json.loads(line)
    assert found["before"] == found["after"]
    assert found["before"]["files"] == {BEACH: "picture"}
    assert found["garbage"] == found["settled"] == []


def test_processes_killed_at_random_lose_no_pictures_and_leave_only_garbage(tmp_path: Path) -> None:
    choice = random.Random(f"{SEED} commits")
    done: dict[str, int] = {"ada": -1, "bob": -1}
    for round in range((ROUNDS + 1) // 2):
        children = {
            name: Child(SCRIPT, "work", colour, name, tmp_path)
            for name, colour in (("ada", "blocking"), ("bob", "awaiting"))
        }
        try:
            for name in choice.sample(sorted(children), 2):
                lines = [children[name].line() for _ in range(choice.randrange(1, 40))]
                done[name] = int([*lines, *children[name].kill()][-1])
        finally:
            for child in children.values():
                child.__exit__(None, None, None)
        (line,) = run_script(SCRIPT, "sweep", tmp_path)
        found = json.loads(line)
        message = f"after round {round} {SEEDED}"
        check_consistency(found["before"])
        for name, last in done.items():
            numbers = [int(row[1]) for row in found["before"]["rows"] if row[0] == name]
            assert numbers in (list(range(last + 1)), list(range(last + 2))), message
        assert len(found["garbage"]) + len(found["settled"]) <= 2, message
        files = {file: f"{album} {int(name)}" for album, name, file in found["after"]["rows"]}
        assert found["after"]["files"] == files, message
        audit(tmp_path / "store.db", message)

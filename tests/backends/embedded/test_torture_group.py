"""Processes killed while writes of several tasks share a commit: no acknowledged write is lost, no pair is torn."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from grouped_writer import HALVES, TASKS
from rig.store_audit import audit, scan_table
from rig.torture import ROUNDS, SEED, SEEDED, Child

from holdall import Database
from holdall.core import CreateTable, decode_item

pytestmark = pytest.mark.torture


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_acknowledged_writes_that_share_a_commit_survive_a_kill_and_no_pair_is_torn(
    tmp_path: Path, durability: str
) -> None:
    path = tmp_path / "store.db"
    choice = random.Random(f"{SEED} {durability}")
    with Database(f"embedded:{path}") as db:
        db.send(CreateTable(HALVES))
    halves: dict[str, int] = {}
    for round in range(ROUNDS):
        first = max(halves.values(), default=0) + 1
        with Child("grouped_writer.py", path, durability, first) as child:
            assert child.line() == "open"
            lines = [child.line() for _ in range(choice.randrange(1, 400))] + child.kill()
        acknowledged = {int(task): int(number) for _, task, number in map(str.split, lines)}
        before = halves
        with Database(f"embedded:{path}") as db:
            halves = {
                str(row["half"]): int(row["number"]) for row in map(decode_item, scan_table(db, HALVES.name))
            }
        for task in range(TASKS):
            stored, other = halves.get(f"{task}a"), halves.get(f"{task}b")
            assert stored == other, f"a torn pair: {stored} and {other} {SEEDED}"
            known = acknowledged.get(task, before.get(f"{task}a"))
            under_way = acknowledged[task] + 1 if task in acknowledged else first
            assert stored in (known, under_way), (
                f"task {task}: acknowledged {known}, stored {stored} {SEEDED}"
            )
        audit(path, f"after round {round} {SEEDED}")

"""A process adds an index while other processes write: the index is complete and has no stale entries."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from pathlib import Path

import pytest
from numbered_writer import NUMBERS, PAIRS
from rig.store_audit import audit, scan_table
from rig.torture import ROUNDS, SEED, SEEDED, Child, run_script

from holdall import Database
from holdall.core import CreateTable, DescribeTable

pytestmark = pytest.mark.torture


def test_an_index_added_during_writes_agrees_with_the_items(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    choice = random.Random(SEED)
    with Database(f"embedded:{file}") as db:
        db.send(CreateTable(replace(NUMBERS, indexes=())))
        db.send(CreateTable(PAIRS))
    names = [f"by_bucket_{round}" for round in range(min(ROUNDS // 2, 20) or 1)]
    for name in names:
        with contextlib.ExitStack() as stack:
            writers = [
                stack.enter_context(Child("numbered_writer.py", file, "normal", writer, choice.random()))
                for writer in ("ada", "bob")
            ]
            for writer in writers:
                for _ in range(choice.randrange(50, 200)):
                    writer.line()
            assert run_script("index_adder.py", file, name) == ["added"]
            for writer in writers:
                # A pipe holds some 2,000 lines; later lines are about writes after the index was added.
                for _ in range(choice.randrange(2500, 3000)):
                    writer.line()
            for writer in writers:
                writer.kill()
        audit(file, f"after adding {name} {SEEDED}")
    with Database(f"embedded:{file}") as db:
        assert [*db.send(DescribeTable(NUMBERS.name)).index_status] == names
        assert len(scan_table(db, NUMBERS.name, names[0])) > 0

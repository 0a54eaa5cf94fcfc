"""Many writers increment one counter at once: the total is exact."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from counter_worker import COUNTERS, STYLES, current
from rig.store_audit import audit
from rig.torture import ROUNDS, SEEDED, Child

from holdall import Database
from holdall.core import CreateTable

pytestmark = pytest.mark.torture

TIMES = 50 * ROUNDS


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("store", ["memory", "file"])
def test_counting_in_one_process_is_exact(tmp_path: Path, store: str, style: str) -> None:
    url = "memory:" if store == "memory" else f"embedded:{tmp_path}/store.db"
    with Database(url, durability="normal") as db:
        db.send(CreateTable(COUNTERS))
        STYLES[style](db, TIMES)
        assert current(db) == TIMES, SEEDED


@pytest.mark.parametrize(
    "styles",
    [["adding"] * 3, ["comparing"] * 3, ["transactions"] * 3, ["threads"] * 3, ["tasks"] * 3, [*STYLES]],
    ids=["adding", "comparing", "transactions", "threads", "tasks", "mixed"],
)
def test_counting_in_several_processes_is_exact(tmp_path: Path, styles: list[str]) -> None:
    file = tmp_path / "store.db"
    with Database(f"embedded:{file}") as db:
        db.send(CreateTable(COUNTERS))
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(Child("counter_worker.py", file, style, TIMES)) for style in styles]
        assert [child.line() for child in children] == ["ready"] * len(children)
        for child in children:
            child.write_line("start")
        for child in children:
            child.finish()
    with Database(f"embedded:{file}") as db:
        assert current(db) == TIMES * len(styles), SEEDED
    audit(file, SEEDED)

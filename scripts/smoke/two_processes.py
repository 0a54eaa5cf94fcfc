"""Two processes and their parent count in one file at the same time, and no count is lost."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from holdall import Database
from holdall.core import (
    Add,
    CreateTable,
    GetItem,
    KeyAttribute,
    TableSchema,
    Update,
    UpdateItem,
    decode_item,
    path,
    value,
)

ROUNDS = 100
KEY = {"name": {"S": "shared"}}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"embedded:{Path(folder, 'smoke.db')}"
        with Database(url) as db:
            db.send(CreateTable(TableSchema("counters", KeyAttribute("name"))))
            others = [subprocess.Popen([sys.executable, __file__, url]) for _ in range(2)]
            count(db)  # this process counts too
            assert [other.wait(timeout=60) for other in others] == [0, 0], "a process failed"
            item = db.send(GetItem("counters", KEY, consistent=True)).item
            assert item is not None
            assert decode_item(item)["n"] == 3 * ROUNDS, decode_item(item)
    print(f"two processes and their parent counted to {3 * ROUNDS}")


def count(db: Database) -> None:
    step = UpdateItem("counters", KEY, Update((Add(path("n"), value(1)),)))
    for _ in range(ROUNDS):
        db.send(step)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Database(sys.argv[1]) as shared:
            count(shared)
    else:
        main()

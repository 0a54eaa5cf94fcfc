"""A process that opens stores which may not exist yet.

``fresh_opener.py`` reads paths, one per line. For each it opens the file, creates the table Made if it is missing, puts
its own item there, closes the file, and prints ``done``.
"""

from __future__ import annotations

import contextlib
import os
import sys

from holdall import Database
from holdall.core import CreateTable, KeyAttribute, PutItem, TableSchema
from holdall.errors import TableExistsError

MADE = TableSchema("Made", KeyAttribute("by"))


def open_store(path: str) -> None:
    with Database(f"embedded:{path}") as db:
        with contextlib.suppress(TableExistsError):  # another process was first
            db.send(CreateTable(MADE))
        db.send(PutItem(MADE.name, {"by": {"S": str(os.getpid())}}))


if __name__ == "__main__":
    os.write(1, b"ready\n")
    for line in sys.stdin:
        open_store(line.rstrip("\n"))
        os.write(1, b"done\n")

"""A process that opens stores which may not exist yet.

``fresh_opener.py`` reads paths, one a line, and answers each with ``done`` once it has opened the file, seen to it
that it has a table Made, put its own item there, and closed it.
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

"""A process that puts items one by one and prints the outcome of each.

``acknowledging_writer.py PATH DURABILITY FIRST COUNT`` prints ``ack N`` after the reply, or ``err N ERROR``.
"""

from __future__ import annotations

import contextlib
import os
import sys

from holdall import Database
from holdall.core import CreateTable, IndexSchema, KeyAttribute, PutItem, TableSchema, encode_item
from holdall.errors import HoldallError, TableExistsError

LINES = TableSchema(
    "Lines", KeyAttribute("number", "N"), indexes=(IndexSchema("by_half", KeyAttribute("half")),)
)


def main(file: str, durability: str, first: str, count: str) -> None:
    with Database(f"embedded:{file}?durability={durability}") as db:
        with contextlib.suppress(TableExistsError):
            db.send(CreateTable(LINES))
        os.write(1, b"open\n")
        for number in range(int(first), int(first) + int(count)):
            item = encode_item({"number": number, "half": "ab"[number % 2], "text": "x" * 900})
            try:
                db.send(PutItem(LINES.name, item))
            except HoldallError as error:
                os.write(1, f"err {number} {type(error).__name__}\n".encode())
            else:
                os.write(1, f"ack {number}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])

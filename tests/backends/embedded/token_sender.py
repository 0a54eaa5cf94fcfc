"""A process that sends one transaction with a client token: an increment and a receipt.

``token_sender.py PATH DURABILITY TOKEN`` prints ``go`` when the store is open and ``ack`` after the reply.
"""

from __future__ import annotations

import os
import sys

from holdall import Database
from holdall.core import (
    Add,
    KeyAttribute,
    PutItem,
    TableSchema,
    TransactWrite,
    Update,
    UpdateItem,
    path,
    value,
)

COUNTERS = TableSchema("Counters", KeyAttribute("name"))


def increment(token: str, name: str = "total", by: int = 1) -> TransactWrite:
    """Add to the counter and put a receipt; every process builds the same transaction."""
    add = Update((Add(path("count"), value(by)), Add(path("tags"), value({"b", "a", "c"}))))
    counted = UpdateItem(COUNTERS.name, {"name": {"S": name}}, add)
    receipt = PutItem(COUNTERS.name, {"name": {"S": f"receipt {token}"}})
    return TransactWrite((counted, receipt), token)


def main(file: str, durability: str, token: str) -> None:
    with Database(f"embedded:{file}?durability={durability}") as db:
        os.write(1, b"go\n")
        db.send(increment(token))
        os.write(1, b"ack\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A process that writes until it is killed, and prints each operation before and after it sends it.

``numbered_writer.py PATH DURABILITY NAME SEED``. Each line is ``try`` or ``ack`` and an operation as JSON:
``["put", n, bucket]``, ``["move", n, bucket]``, ``["delete", n]`` on the writer's own partition of table Numbers,
or ``["pair", n]``, a transaction that puts the same number into two items of table Pairs.
It prints ``ack`` only after ``send`` has returned.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any
from uuid import uuid4

from holdall import Database
from holdall.core import (
    DeleteItem,
    IndexSchema,
    KeyAttribute,
    KeyCondition,
    Projection,
    PutItem,
    Query,
    Request,
    Set,
    TableSchema,
    TransactWrite,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)

Operation = list[str | int]

BUCKETS = ("red", "green", "blue")
NUMBERS = TableSchema(
    "Numbers",
    KeyAttribute("writer"),
    KeyAttribute("number", "N"),
    indexes=(
        IndexSchema("by_bucket", KeyAttribute("bucket"), KeyAttribute("number", "N")),
        IndexSchema("odd_ones", KeyAttribute("odd"), projection=Projection("KEYS_ONLY")),
    ),
)
PAIRS = TableSchema("Pairs", KeyAttribute("half"))


def make_request(writer: str, operation: Operation) -> Request[Any]:
    """Make the request of an operation."""
    kind, number, *rest = operation
    key = encode_item({"writer": writer, "number": number})
    if kind == "put":
        assert isinstance(number, int)
        odd = {"odd": "yes"} if number % 2 else {}
        weight = "x" * (number * 37 % 3000)
        return PutItem(NUMBERS.name, {**key, **encode_item({"bucket": rest[0], "weight": weight, **odd})})
    if kind == "move":
        return UpdateItem(NUMBERS.name, key, Update((Set(path("bucket"), value(rest[0])),)))
    if kind == "delete":
        return DeleteItem(NUMBERS.name, key)
    halves = tuple(
        PutItem(PAIRS.name, encode_item({"half": f"{writer}-{side}", "number": number})) for side in "ab"
    )
    return TransactWrite(halves, str(uuid4()))


def choose(choice: random.Random, live: list[int], fresh: int) -> Operation:
    """Choose the next operation."""
    kind = choice.choice(("put", "put", "move", "delete", "pair"))
    if kind == "put" or not live:
        return ["put", fresh, choice.choice(BUCKETS)]
    if kind == "move":
        return ["move", choice.choice(live), choice.choice(BUCKETS)]
    if kind == "delete":
        return ["delete", choice.choice(live)]
    return ["pair", fresh]


def print_line(word: str, operation: Operation) -> None:
    """Print one line in one system call, so that no line is left in a buffer when the process is killed."""
    os.write(1, f"{word} {json.dumps(operation)}\n".encode())


def main(file: str, durability: str, writer: str, seed: str) -> None:
    choice = random.Random(seed)
    with Database(f"embedded:{file}?durability={durability}") as db:
        mine = KeyCondition("writer", {"S": writer})
        stored = (
            item for page in db.pages(Query(NUMBERS.name, mine, consistent=True)) for item in page.items
        )
        live = [int(decode_item(item)["number"]) for item in stored]
        fresh = choice.randrange(1, 10**6) * 1000
        while True:
            fresh += 1
            operation = choose(choice, live, fresh)
            print_line("try", operation)
            db.send(make_request(writer, operation))
            print_line("ack", operation)
            if operation[0] == "put":
                live.append(fresh)
            elif operation[0] == "delete":
                live.remove(int(operation[1]))


if __name__ == "__main__":
    main(*sys.argv[1:])

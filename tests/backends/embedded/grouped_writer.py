"""A process whose tasks write at the same time, so that their writes share commits; it prints each acknowledged write.

``grouped_writer.py PATH DURABILITY FIRST``: task T writes the numbers from FIRST on, each as a pair of items in one
transaction, and prints ``ack T N`` after the reply.
"""

from __future__ import annotations

import asyncio
import os
import sys

from holdall import AsyncDatabase
from holdall.core import KeyAttribute, PutItem, TableSchema, TransactWrite, encode_item

HALVES = TableSchema("Halves", KeyAttribute("half"))
TASKS = 12


async def main(file: str, durability: str, first: str) -> None:
    async with AsyncDatabase(f"embedded:{file}?durability={durability}") as db:
        os.write(1, b"open\n")
        await asyncio.gather(*(write(db, task, int(first)) for task in range(TASKS)))


async def write(db: AsyncDatabase, task: int, number: int) -> None:
    while True:
        puts = [
            PutItem(HALVES.name, encode_item({"half": f"{task}{side}", "number": number})) for side in "ab"
        ]
        await db.send(TransactWrite(tuple(puts), db.port.new_id()))
        os.write(1, f"ack {task} {number}\n".encode())
        number += 1


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

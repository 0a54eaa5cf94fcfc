"""Async code on one file: many tasks at once lose no update, and sync code reads the same store."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from holdall import AsyncDatabase
from holdall.core import (
    Add,
    CreateTable,
    GetItem,
    KeyAttribute,
    KeyCondition,
    PutItem,
    Query,
    TableSchema,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)

TASKS = 50


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncDatabase(f"embedded:{Path(folder, 'smoke.db')}") as db:
            await db.send(
                CreateTable(TableSchema("things", KeyAttribute("group"), KeyAttribute("number", "N")))
            )
            await asyncio.gather(*(write_and_count(db, number) for number in range(TASKS)))
            everything = Query("things", KeyCondition("group", {"S": "tasks"}), limit=7)
            numbers = [
                decode_item(item)["number"] async for page in db.pages(everything) for item in page.items
            ]
            assert numbers == list(range(TASKS)), numbers
            key = encode_item({"group": "count", "number": 0})
            seen = db.sync.send(GetItem("things", key)).item
            assert seen is not None
            assert decode_item(seen)["total"] == TASKS
    print(f"{TASKS} tasks wrote items and a counter, which were read back in pages")


async def write_and_count(db: AsyncDatabase, number: int) -> None:
    await db.send(PutItem("things", encode_item({"group": "tasks", "number": number})))
    total = UpdateItem(
        "things", encode_item({"group": "count", "number": 0}), Update((Add(path("total"), value(1)),))
    )
    await db.send(total)


if __name__ == "__main__":
    asyncio.run(main())

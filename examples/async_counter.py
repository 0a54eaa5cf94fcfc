"""An async counter: a hundred tasks at once and sync code call the same function, and no count is lost.

Run it: python examples/async_counter.py
"""

from __future__ import annotations

import asyncio

from holdall import AsyncDatabase, Database
from holdall.core import (
    Add,
    CreateTable,
    KeyAttribute,
    Port,
    TableSchema,
    Update,
    UpdateItem,
    awaiting,
    blocking,
    decode_item,
    encode_item,
    path,
    value,
)


async def count(port: Port, name: str, *, by: int = 1) -> int:
    """Increment the counter and return the new number."""
    step = Update((Add(path("n"), value(by)),))
    reply = await port.send(UpdateItem("counters", encode_item({"name": name}), step, returns="new"))
    assert reply.item is not None
    return int(decode_item(reply.item)["n"])


class Counters:
    """Counters for sync code."""

    def __init__(self, db: Database) -> None:
        self._context = db.port

    count = blocking(count)


class AsyncCounters:
    """The same counters for async code: they call the same function, so the same rules apply."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._context = db.port

    count = awaiting(count)


async def main() -> None:
    async with AsyncDatabase("memory:") as db:
        await db.send(CreateTable(TableSchema("counters", KeyAttribute("name"))))
        counters = AsyncCounters(db)

        numbers = await asyncio.gather(*(counters.count("visits") for _ in range(100)))
        assert sorted(numbers) == list(range(1, 101))  # every task got a different number
        print(f"a hundred tasks counted to {max(numbers)}")

        again = Counters(db.sync).count("visits", by=10)
        assert again == 110
        print(f"sync code on the same store counted to {again}")


if __name__ == "__main__":
    asyncio.run(main())

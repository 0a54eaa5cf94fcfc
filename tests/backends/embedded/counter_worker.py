"""Several styles of incrementing a shared counter, and a process for each: ``counter_worker.py PATH STYLE TIMES``.

Every style raises the counter by exactly ``times``, however many processes do so at the same time.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from holdall import AsyncDatabase, Database
from holdall.core import (
    Add,
    Compare,
    Condition,
    GetItem,
    KeyAttribute,
    NotExists,
    PutItem,
    TableSchema,
    TransactWrite,
    Update,
    UpdateItem,
    decode_item,
    encode_item,
    path,
    value,
)
from holdall.errors import ConditionFailedError

COUNTERS = TableSchema("Counters", KeyAttribute("name"))
KEY = {"name": {"S": "total"}}
ADD_ONE = UpdateItem(COUNTERS.name, KEY, Update((Add(path("count"), value(1)),)))


def by_adding(db: Database, times: int) -> None:
    for _ in range(times):
        db.send(ADD_ONE)


def by_transactions(db: Database, times: int) -> None:
    for _ in range(times):
        db.send(TransactWrite((ADD_ONE,), str(uuid4())))


def by_comparing(db: Database, times: int) -> None:
    """Read, then write on the condition that no other process has written; repeat until that succeeds."""
    done = 0
    while done < times:
        count = current(db)
        unchanged: Condition = (
            Compare("=", path("count"), value(count)) if count else NotExists(path("count"))
        )
        try:
            db.send(PutItem(COUNTERS.name, {**KEY, **encode_item({"count": count + 1})}, condition=unchanged))
        except ConditionFailedError:
            continue
        done += 1


def current(db: Database) -> int:
    item = db.send(GetItem(COUNTERS.name, KEY, consistent=True)).item
    return 0 if item is None else int(decode_item(item)["count"])


def by_threads(db: Database, times: int) -> None:
    styles = (by_adding, by_transactions, by_comparing, by_adding)
    with ThreadPoolExecutor(len(styles)) as pool:
        shares = ((times + place) // len(styles) for place in range(len(styles)))
        futures = [pool.submit(style, db, share) for style, share in zip(styles, shares, strict=True)]
    for future in futures:
        future.result()


async def with_tasks(db: AsyncDatabase, times: int) -> None:
    """Send all writes at once, together with reads, which run on the event loop itself."""
    adding = (db.send(ADD_ONE) for _ in range(times))
    reading = (db.send(GetItem(COUNTERS.name, KEY)) for _ in range(times))
    await asyncio.gather(*adding, *reading)


def by_tasks(db: Database, times: int) -> None:
    asyncio.run(with_tasks(db.aio, times))


def by_everything(db: Database, times: int) -> None:
    """Use threads and tasks of one process on one store."""
    half = times // 2
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(by_threads, db, half), pool.submit(by_tasks, db, times - half)]
    for future in futures:
        future.result()


STYLES: dict[str, Callable[[Database, int], None]] = {
    "adding": by_adding,
    "transactions": by_transactions,
    "comparing": by_comparing,
    "threads": by_threads,
    "tasks": by_tasks,
    "everything": by_everything,
}


def main(file: str, style: str, times: str) -> None:
    with Database(f"embedded:{file}", durability="normal") as db:
        os.write(1, b"ready\n")
        sys.stdin.readline()
        STYLES[style](db, int(times))


if __name__ == "__main__":
    main(*sys.argv[1:])

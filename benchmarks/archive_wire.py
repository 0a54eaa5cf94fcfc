"""Archiving items and reading them back: CPU against boto3, requests, memory, and the round trips of a read."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks import canned_server, s3_server
from benchmarks.archive_ours import Order
from benchmarks.harness import Figure
from benchmarks.model_items import COUNT, TABLE, documents, values
from benchmarks.relay import open_relay
from benchmarks.wire_race import Worker, one_processor, race
from holdall import AsyncDatabase, Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.core.objects import DescribeService
from holdall.core.requests import BatchWrite, PutItem

OURS, THEIRS = "archive_ours:client", "archive_peers:boto3"
HERE = Path(__file__).parent
FEW, MANY = 10_000, 100_000
ROUNDS = 3
DELAY = 0.05
COLD = 50
"""How many of the items are archived."""


def figures(workshop: Path) -> Iterator[Figure]:
    """CPU and requests of a run over the wire; its memory; the requests and round trips of reads."""
    with one_processor(), canned_server.serve_canned() as table, s3_server.serve_bucket() as bucket:
        endpoints = f"{table} {bucket}"
        with Worker(OURS, endpoints) as ours, Worker(THEIRS, endpoints) as theirs:
            result = race(ours, theirs, "archive")
            details = ("an item", "CPU", "against boto3")
            yield Figure("archive_wire", details, result.ratio, 1 / 5, note=result.each(COUNT))
        with (
            open_relay(table) as rows,
            open_relay(bucket) as bytes_,
            Worker(OURS, f"{rows.url} {bytes_.url}") as ours,
        ):
            ours.run("archive", 1)  # including requests that a process makes only once
            rows.take_methods()
            bytes_.take_methods()
            start = perf_counter()
            ours.run("archive", ROUNDS)
            seconds = perf_counter() - start
            count = len(rows.take_methods()) + len(bytes_.take_methods())
            pages = 5  # the table's description, a page, its checkpoint, and deleting the checkpoints
            note = f"{ROUNDS * COUNT / seconds:,.0f} items/s, one after another"
            yield Figure(
                "archive_wire",
                ("an item", "requests, with those for a page"),
                count / ROUNDS / COUNT,
                2 + pages / COUNT,
                unit="",
                note=note,
            )
    few, many = (_measure(workshop / f"archive-{count}.db", count) for count in (FEW, MANY))
    note = f"{many:,} blocks against {few:,}"
    details = (f"{MANY:,} items", "memory", f"against {FEW:,}")
    yield Figure("archive_wire", details, many / few, 1.1, note=note)
    yield from asyncio.run(_read())


def _measure(file: Path, count: int) -> int:
    """Return the peak number of memory blocks of a process that archives ``count`` orders."""
    with Database(f"embedded:{file}", durability="normal") as db:
        db.table.create()
        for start in range(0, count, COUNT):
            orders = [PutItem(TABLE, order) for order in documents(start)]
            for at in range(0, COUNT, BatchWrite.most):
                db.send(BatchWrite(tuple(orders[at : at + BatchWrite.most])))
    command = [sys.executable, "-m", "benchmarks.archive_memory", str(file)]
    output = subprocess.run(
        command, cwd=HERE.parent, check=True, capture_output=True, text=True
    ).stdout.split()
    assert int(output[0]) == count, output
    return int(output[1])


class _DelayingBackend:
    """A backend that delays its replies and counts the requests."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.count = 0
        self.delay = 0.0

    def send_blocking(self, request: Any) -> Any:
        return self._inner.send_blocking(request)

    async def send_awaiting(self, request: Any) -> Any:
        if not isinstance(request, DescribeService):
            self.count += 1
            await asyncio.sleep(self.delay)
        return await self._inner.send_awaiting(request)

    def close(self) -> None:
        self._inner.close()


async def _read() -> list[Figure]:
    table, service = _DelayingBackend(EmbeddedBackend(None)), _DelayingBackend(MemoryService())
    async with AsyncDatabase("memory:", backend=table, files=service) as db:
        async with db.transaction() as tx:
            for number in range(COUNT):
                tx.create(Order, **values(number))
        key = Order.key(customer=values(0)["customer"], number=values(0)["number"])

        async def count_get() -> int:
            before = table.count + service.count
            assert (await db.get_one(key)).quantity == 1
            return table.count + service.count - before

        hot = await count_get()
        await db.archive.run(Order, max_items=COLD, segments=1)
        cold = await count_get()
        table.delay = service.delay = DELAY
        start = perf_counter()
        rows = await db.query(Order, customer=values(0)["customer"]).all()
        trips = (perf_counter() - start) / DELAY
        assert [row.quantity for row in rows] == [values(number)["quantity"] for number in range(COUNT)]
    return [
        Figure("archive_wire", ("a cold get", "additional requests"), cold - hot, 1, unit=""),
        Figure(
            "archive_wire",
            (f"a query of {COUNT} items, {COLD} of them cold", "round trips, by time"),
            trips,
            2.9,
            unit="",
        ),
    ]

"""One worker on the embedded engine: small jobs per second, and requests per shard and poll interval when idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import holdall
from benchmarks.harness import Figure
from holdall import AsyncDatabase, Database
from holdall.jobs import Job

JOBS = 5_000
PER_TRANSACTION = 50
INTERVAL = 0.1
INTERVALS = 30
SHARDS = 16

_done: list[int] = []


@holdall.job("benchmark-awaited")
async def run_awaited(number: int) -> None:
    """A small job on the event loop."""
    _done.append(number)


@holdall.job("benchmark-called")
def run_called(number: int) -> None:
    """A small job in a thread."""
    _done.append(number)


def figures(workshop: Path) -> Iterator[Figure]:
    """Jobs per second of both kinds, then an idle worker's requests."""
    for job, kind in ((run_awaited, "async jobs"), (run_called, "plain functions, in threads")):
        with Database(f"embedded:{workshop / job.name}.db", durability="normal") as db:
            yield Figure("job_worker", (kind, "durability normal"), _rate(db, job), 1_000, "≥", " jobs/s")
    yield Figure("job_worker", ("idle", "requests per shard and interval"), asyncio.run(_idle()), 1, unit="")


def _rate(db: Database, job: Job[int]) -> float:
    for start in range(0, JOBS, PER_TRANSACTION):
        with db.transaction() as tx:
            for number in range(start, start + PER_TRANSACTION):
                tx.enqueue(job, number)
    _done.clear()
    begun = time.perf_counter()
    db.worker().drain()
    taken = time.perf_counter() - begun
    assert sorted(_done) == list(range(JOBS)), "not every job ran exactly once"
    assert not db.jobs.list(), "not every job was deleted"
    return JOBS / taken


async def _idle() -> float:
    async with AsyncDatabase("memory:") as db:
        begun = time.monotonic()
        async with db.worker(poll_interval=INTERVAL) as worker:
            await asyncio.sleep(INTERVAL * INTERVALS)
            # the first request to a shard starts its first interval
            intervals = 1 + (time.monotonic() - begun) / INTERVAL
            return worker.metrics.polls / SHARDS / intervals

"""The cost of an idle worker: at most one request per shard and poll interval, for each queue."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from jobs_torture_rig import leftovers, until
from rig.wrapper import Wrapper

import holdall
from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.port import Send, run
from holdall.core.requests import DescribeTable, DescribeTtl, Query, Request
from holdall.jobs.lease import take
from holdall.jobs.record import SHARDS

pytestmark = pytest.mark.torture


QUEUES = ("urgent", "default")
INTERVAL = 0.2
ROUNDS_SEEN = 4


class RecordingBackend(Wrapper):
    """A backend that records each request with its time, while ``sent`` is a list."""

    sent: list[tuple[float, Request[Any]]] | None = None

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if self.sent is not None:
            self.sent.append((time.monotonic(), request))
        return await send(self.inner, request)


@pytest.fixture
def store() -> Iterator[RecordingBackend]:
    store = RecordingBackend(EmbeddedBackend(None))
    yield store
    store.close()


@holdall.job("idle-job")
def idle_job() -> None:
    """Do nothing."""


def watch(store: RecordingBackend, db: Database) -> list[tuple[float, Request[Any]]]:
    """Run a worker until it has queried each shard several times; return its requests."""
    store.sent = []
    with db.worker(queues=QUEUES, jobs=[idle_job], poll_interval=INTERVAL) as worker:
        wanted = ROUNDS_SEEN * len(SHARDS) * len(QUEUES)
        until(lambda: worker.metrics.polls >= wanted, "all shards were queried several times", pause=0.05)
    sent, store.sent = store.sent, None
    assert worker.metrics.started == 0
    return sent


def assert_at_most_one_per_shard_and_interval(sent: list[tuple[float, Request[Any]]]) -> None:
    queried: dict[str, list[float]] = defaultdict(list)
    for at, request in sent:
        if isinstance(request, DescribeTable | DescribeTtl):
            continue  # sent once, to learn about the table
        assert isinstance(request, Query), "an idle worker sends only queries"
        queried[str(request.key.equals["S"])].append(at)
    assert len(queried) == len(SHARDS) * len(QUEUES)
    for shard, times in queried.items():
        intervals = (times[-1] - times[0]) / INTERVAL
        assert len(times) - 1 <= intervals, f"{shard} was queried {len(times)} times in {intervals} intervals"
        assert len(times) > 1, f"{shard} was queried once"


def test_an_idle_worker_sends_at_most_one_request_per_shard_and_interval(store: RecordingBackend) -> None:
    with Database(backend=store) as db:
        db.table.create()
        assert_at_most_one_per_shard_and_interval(watch(store, db))


def test_jobs_that_cannot_be_taken_cost_an_idle_worker_nothing(store: RecordingBackend) -> None:
    with Database(backend=store) as db:
        db.table.create()
        for queue in QUEUES:
            for _ in range(20):
                db.jobs.enqueue(idle_job, queue=queue)
        for record in leftovers(db).jobs:
            assert run(take(db._context, record, "token", 3600)) is not None, "another worker has it"
        for _ in range(20):
            db.jobs.enqueue(idle_job, delay=3600)
            db.jobs.enqueue("idle-unknown")
        assert_at_most_one_per_shard_and_interval(watch(store, db))

"""Jobs that a worker does not know: it leaves them to other workers and does not read them again at every poll."""

from __future__ import annotations

import threading

import pytest
from rig.jobs import Rig, everywhere, in_memory

import holdall
from holdall.core.requests import Query

ran = threading.Event()


@holdall.job("strangers-known")
def run_known() -> None:
    ran.set()


@pytest.fixture(autouse=True)
def _start_afresh() -> None:
    ran.clear()


@everywhere
async def test_unknown_jobs_are_read_once_and_not_at_every_poll(db: Rig) -> None:
    db.clock.shard = "a"
    for _ in range(20):
        await db.enqueue("strangers-unknown")
    db.clock.forward(60)

    def list_polls() -> list[Query]:
        queries = [request for request in db.recorder.requests if isinstance(request, Query)]
        return [query for query in queries if query.key.equals["S"].endswith("#a")]

    async with db.run_worker(jobs=[run_known]):
        await db.until(lambda: len(list_polls()) >= 4)
        assert [query.start_after is None for query in list_polls()[:4]] == [True, False, False, False]
        await db.enqueue(run_known)
        await db.until(ran.is_set)
    assert len(await db.list_waiting()) == 20


@in_memory
async def test_a_job_that_a_slow_clock_inserts_among_unknown_ones_is_found(
    db: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdall.worker.feed._PASSED", 0.2)
    db.clock.shard = "a"
    for _ in range(3):
        await db.enqueue("strangers-unknown")
        db.clock.forward(60)
    async with db.run_worker(jobs=[run_known]) as worker:
        await db.until(lambda: worker.metrics.polls > 32)
        db.clock.forward(-150)
        await db.enqueue(run_known)
        db.clock.forward(150)
        await db.until(ran.is_set)


@in_memory
async def test_new_unknown_jobs_are_not_skipped(db: Rig) -> None:
    db.clock.shard = "a"
    await db.enqueue("strangers-unknown")
    async with db.run_worker(jobs=[run_known]) as worker:
        await db.until(lambda: worker.metrics.polls > 48)
    queries = [request for request in db.recorder.requests if isinstance(request, Query)]
    assert all(query.start_after is None for query in queries)

"""Heartbeats that are lost, or whose replies are: the worker keeps the job, runs it once and ends it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import Any

import pytest
from jobs_torture_rig import leftovers
from rig.wrapper import Wrapper

import holdall
from holdall import AsyncTransaction, Database, Key, Model, Transaction
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.port import Backend, Send
from holdall.core.requests import Request, UpdateItem
from holdall.errors import OutcomeUnknown

pytestmark = pytest.mark.torture


LEASE = 3.0
UNANSWERED = 2


class LossyBackend(Wrapper):
    """A backend that reports an unknown outcome for the first heartbeats of each job."""

    def __init__(self, inner: Backend, arrives: bool) -> None:
        super().__init__(inner)
        self.arrives = arrives
        self.beats: Counter[str] = Counter()

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        is_unanswered = self._is_unanswered(request)
        reply = await send(self.inner, request) if self.arrives or not is_unanswered else None
        if is_unanswered:
            raise OutcomeUnknown("the reply was lost on purpose")
        return reply

    def _is_unanswered(self, request: Request[Any]) -> bool:
        text = repr(request)
        if not isinstance(request, UpdateItem) or "job_lease" not in text or "job_attempts" in text:
            return False
        job = repr(request.key)
        self.beats[job] += 1
        return self.beats[job] <= UNANSWERED


class _Line:
    store: LossyBackend

    def is_bad(self) -> bool:
        """Whether some job still lacks a heartbeat with an unknown outcome."""
        return len(self.store.beats) < len(JOBS) or min(self.store.beats.values()) < UNANSWERED


line = _Line()


class Tally(Model):
    """How often a job has taken effect."""

    name: Key[str]
    count: int = 0


runs: Counter[tuple[str, int]] = Counter()
lock = threading.Lock()


def note() -> None:
    with lock:
        runs[holdall.current_job().name, holdall.current_job().attempt] += 1


@holdall.job("heartbeats-called")
def block() -> None:
    note()
    while line.is_bad():
        time.sleep(0.005)


@holdall.job("heartbeats-awaited")
async def await_line() -> None:
    note()
    while line.is_bad():
        await asyncio.sleep(0.005)


@holdall.job("heartbeats-failing", retries=0)
def block_and_fail() -> None:
    block()
    raise ValueError("it does not work")


@holdall.job("heartbeats-transactional", transactional=True)
def transactional(tx: Transaction) -> None:
    note()
    while line.is_bad():
        time.sleep(0.005)
    tally: Any = tx.get(Tally, "called", create_if_missing=True)
    tally.count += 1


@holdall.job("heartbeats-transactional-awaited", transactional=True)
async def transactional_awaited(tx: AsyncTransaction) -> None:
    await await_line()
    tally: Any = await tx.get(Tally, "awaited", create_if_missing=True)
    tally.count += 1


JOBS: Any = (block, await_line, block_and_fail, transactional, transactional_awaited)


@pytest.mark.parametrize("arrives", [True, False], ids=["the reply is lost", "the request is lost"])
def test_lost_heartbeats_take_no_job_from_its_worker(arrives: bool) -> None:
    line.store = LossyBackend(EmbeddedBackend(None), arrives)
    runs.clear()
    with Database(backend=line.store) as db:
        with db.transaction() as tx:
            for job in JOBS:
                tx.enqueue(job)
        metrics = db.worker(jobs=JOBS, lease=LEASE).drain()
        assert runs == {(job.name, 1): 1 for job in JOBS}
        assert (metrics.succeeded, metrics.dead) == (len(JOBS) - 1, 1)
        assert (metrics.failed, metrics.lost) == (0, 0)
        assert [(record.name, record.state) for record in leftovers(db).jobs] == [
            (block_and_fail.name, "dead")
        ]
        tallies = [db.get(Tally, name) for name in ("called", "awaited")]
        assert [tally is not None and tally.count for tally in tallies] == [1, 1]

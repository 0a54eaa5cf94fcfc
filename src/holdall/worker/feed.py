"""The feed: which job to try next.

A shard of a queue that was empty is polled again after the poll interval; one that had jobs, as soon as those are used
up. An idle worker therefore sends at most one request per shard and interval, and a busy one hardly more requests than
it runs jobs. A job of a lower queue is offered only if no higher queue has a job or a shard that is due to be polled.

If the oldest jobs of a shard are unknown to this worker, it skips them: its next query starts after them. They are read
again after a while, because a process whose clock is slow may have put jobs among them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any

from holdall.core.context import Context
from holdall.core.requests import Page
from holdall.core.values import Item
from holdall.errors import HoldallError, MalformedJobError
from holdall.jobs.lease import MARGIN, Sightings, fetch_due
from holdall.jobs.quarantine import read_jobs
from holdall.jobs.record import SHARDS, JobRecord, locate_job, shard_of
from holdall.tables.flow import discover
from holdall.worker.event import JobEvent, Reporter

logger = logging.getLogger("holdall.worker")

_due_at = attrgetter("due_at")
_LONGEST_PAUSE = 10.0
_NEVER = float("inf")
_PASSED = 60.0
"""Seconds for which jobs that this worker cannot run are skipped."""


class _Shard:
    """One shard, and when to poll it next; ``rung`` if a job was put into it since the last poll.

    ``passed`` is the last of the jobs that are skipped until ``passed_until``.
    """

    __slots__ = ("due_at", "passed", "passed_until", "queue", "rung", "shard")

    def __init__(self, queue: str, shard: str) -> None:
        self.queue = queue
        self.shard = shard
        self.due_at = 0.0
        self.rung = False
        self.passed: JobRecord | None = None
        self.passed_until = 0.0


class Feed:
    """Offers candidates, one by one, to any number of lanes.

    ``is_ours`` returns whether this worker can run a job at all. With ``once`` each shard is polled until it is empty,
    and then the feed ends.
    """

    def __init__(
        self,
        context: Context,
        queues: Sequence[str],
        is_ours: Callable[[JobRecord], bool],
        *,
        interval: float,
        page: int,
        running: Collection[str],
        reporter: Reporter,
        once: bool,
    ) -> None:
        self._context = context
        self._is_ours = is_ours
        self._interval = interval
        self._page = page
        self._running = running
        self._reporter = reporter
        self._once = once
        self._sightings = Sightings(brief=once)
        self._shards = {queue: _shuffle([_Shard(queue, shard) for shard in SHARDS]) for queue in queues}
        self._waiting: dict[str, deque[JobRecord]] = {queue: deque() for queue in queues}
        self._highest = self._waiting[queues[0]]
        self._lock = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stopped = False
        self._crowded = False
        self._given: set[str] = set()  # ids being tried, which still look free until they are taken
        self._tried: set[str] = set()  # ids tried since a page was requested, which may show them as free

    def stop(self) -> None:
        """Offer no more candidates."""
        self._stopped = True
        self._changed.set()

    def wake(self, queue: str, shard: str) -> None:
        """Poll a shard next, because a job was put into it."""
        for each in self._shards.get(queue, ()):
            if each.shard == shard:
                each.due_at = 0.0
                each.rung = True
                self._changed.set()

    def note_tried(self, record: JobRecord, *, by_others: bool = False) -> None:
        """Note that a candidate was taken, or was taken ``by_others``; then jobs are tried in another order."""
        self._given.discard(record.id)
        self._tried.add(record.id)
        self._crowded = by_others

    def note_failed(self, record: JobRecord) -> None:
        """Poll a candidate's shard again, because it is unknown whether the candidate was taken."""
        self._given.discard(record.id)
        self.wake(record.queue, shard_of(record.id))

    async def next(self) -> JobRecord | None:
        """The next candidate, as soon as there is one; None once the feed has ended."""
        if self._highest and not self._stopped:
            return self._give(self._highest)  # nothing has a higher priority, so the lock is not needed
        async with self._lock:
            while not self._stopped:
                found = await self._find()
                if found is not None:
                    return found
                if self._stopped or not await self._wait():
                    break
            return None

    async def _find(self) -> JobRecord | None:
        """A candidate of the highest queue that has one, after polling the shards that are due."""
        begun = time.monotonic()  # a shard that becomes due after this must not keep lower queues waiting
        for queue, waiting in self._waiting.items():
            while not waiting and not self._stopped:
                shard = min(self._shards[queue], key=_due_at)
                if shard.due_at > begun:
                    break
                await self._ask(shard)
            if waiting:
                return self._give(waiting)
        return None

    def _give(self, waiting: deque[JobRecord]) -> JobRecord:
        record = waiting.popleft()
        self._given.add(record.id)
        return record

    async def _wait(self) -> bool:
        """Wait until a shard is due; return false if none ever will be."""
        due_at = min(min(map(_due_at, shards)) for shards in self._shards.values())
        if due_at == _NEVER:
            return False
        self._changed.clear()
        pause = due_at - time.monotonic()
        if pause > 0:
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                pass
        return True

    async def _ask(self, shard: _Shard) -> None:
        """Fill the waiting list of a queue from one of its shards."""
        found: list[JobRecord] = []
        after = await self._choose_start(shard)
        passing = True
        shard.rung = False
        while not found:
            self._tried.clear()
            page = await self._fetch_page(shard, after)
            records, malformed = await read_jobs(self._context, page.items)
            for record in malformed:
                error = MalformedJobError(record.error or "")
                self._reporter.report(JobEvent("dead", record.name, record.id, record.queue, 0, error=error))
            if passing:
                passing = self._pass_over(shard, records)
            found = [record for record in records if self._can_be_taken(record)]
            after = page.last_key
            if after is None:
                break
        now = time.monotonic()
        if found or shard.rung:
            shard.due_at = now
            self._waiting[shard.queue].extend(_shuffle(found) if self._crowded else found)
        else:
            shard.due_at = _NEVER if self._once else now + self._interval * random.uniform(1.0, 1.1)

    async def _choose_start(self, shard: _Shard) -> Item | None:
        """Where to start reading a shard: after the skipped jobs, or at its beginning."""
        now = time.monotonic()
        if now >= shard.passed_until:
            shard.passed = None
            shard.passed_until = now + _PASSED
        passed = shard.passed
        if passed is None or not self._is_settled(passed):  # the clock was set back
            return None
        return locate_job(await discover(self._context), passed).attributes

    def _pass_over(self, shard: _Shard, records: Sequence[JobRecord]) -> bool:
        """Skip the first jobs that this worker cannot run; return whether those were all."""
        for record in records:
            if self._is_ours(record) or not self._is_settled(record):
                return False
            shard.passed = record
        return True

    def _is_settled(self, record: JobRecord) -> bool:
        """Whether a job was due so long ago that hardly any job can still be added before it."""
        return record.due < self._context.port.now() - MARGIN

    async def _fetch_page(self, shard: _Shard, after: Item | None) -> Page:
        """Fetch a page, however long it takes; a service that is down for a while does not end the worker."""
        failures = 0
        while True:
            try:
                self._reporter.metrics.polls += 1
                return await fetch_due(
                    self._context, shard.queue, shard.shard, self._page, after, consistent=self._once
                )
            except HoldallError as error:
                if not error.retryable or self._stopped:
                    raise
                pause = min(_LONGEST_PAUSE, 0.1 * 2.0**failures) * random.uniform(0.5, 1.0)
                failures = min(failures + 1, 20)
                logger.warning("a queue could not be polled (%s); next try in %.1f s", error.code, pause)
                await self._context.port.sleep(pause)

    def _can_be_taken(self, record: JobRecord) -> bool:
        if record.id in self._running or record.id in self._given or record.id in self._tried:
            return False
        if not self._is_ours(record):
            return False
        if record.lease is None:
            return True
        return self._sightings.is_over(record, time.monotonic(), self._context.port.now())


def _shuffle(things: list[Any]) -> list[Any]:
    random.shuffle(things)
    return things

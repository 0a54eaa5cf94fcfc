"""A worker's hands: the jobs that it is running, and the heartbeat that extends their leases.

A lease is extended when a third of it is over. If that fails until the lease is over by this process's monotonic clock,
the job counts as lost, whether or not another worker has taken it: this worker may no longer end it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from holdall.core.context import Context
from holdall.core.telemetry import error_type
from holdall.errors import LeaseLostError
from holdall.jobs.attempt import RunningJob
from holdall.jobs.lease import extend
from holdall.jobs.record import JobRecord

logger = logging.getLogger("holdall.worker")


class Hand:
    """One job that this worker holds. ``lost`` is done once the worker no longer holds it."""

    __slots__ = ("beaten", "lost", "quiet", "running")

    def __init__(self, record: JobRecord, context: Context, database: Callable[[], Any]) -> None:
        self.running = RunningJob(record, context, database)
        self.beaten = time.monotonic()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.quiet = asyncio.Lock()  # held while its lease must not change

    def lose(self) -> None:
        """Note that this worker no longer holds the job."""
        self.running.lost = True
        if not self.lost.done():
            self.lost.set_result(None)


class Hands(dict[str, Hand]):
    """All jobs that this worker holds, by id."""

    def __init__(self, context: Context, lease: float) -> None:
        super().__init__()
        self._context = context
        self._lease = lease
        self._beats: set[asyncio.Task[None]] = set()

    def drop(self, hand: Hand) -> None:
        """Let go of a job, but not of a later attempt at it, which another lane may already run."""
        if self.get(hand.running.id) is hand:
            del self[hand.running.id]

    def is_over(self, hand: Hand) -> bool:
        """Whether a lease is over by this process's monotonic clock, so that another worker may have taken the job."""
        return time.monotonic() - hand.beaten >= self._lease

    async def keep_leases(self) -> None:
        """Extend leases until cancelled; a slow extension does not delay the others."""
        while True:
            await asyncio.sleep(self._lease / 6)
            now = time.monotonic()
            for hand in self.values():
                if now - hand.beaten >= self._lease / 3 and not hand.quiet.locked():
                    task = asyncio.create_task(self._beat(hand))
                    self._beats.add(task)
                    task.add_done_callback(self._beats.discard)

    async def _beat(self, hand: Hand) -> None:
        async with hand.quiet:
            if self.get(hand.running.id) is not hand or hand.lost.done():
                return  # it ended meanwhile
            try:
                await self.extend_lease(hand)
            except LeaseLostError:
                hand.lose()
            except Exception as error:  # noqa: BLE001 - the other leases must be extended in any case
                name = hand.running.name
                logger.warning("the lease on a job %s could not be extended (%s)", name, error_type(error))
                if self.is_over(hand):
                    hand.lose()

    async def extend_lease(self, hand: Hand) -> None:
        """Extend a lease, whatever the outcome of the last extension; `LeaseLostError` if another worker holds it."""
        running = hand.running
        begun = time.monotonic()
        token = self._context.port.new_id()
        known = tuple(running.tokens)
        running.tokens.add(token)
        running.record = await extend(self._context, running.record, token, known)
        running.tokens = {token}
        hand.beaten = begun

"""A worker's hands: the jobs it is running, and the heart that keeps their leases.

A lease is prolonged when a third of it is over. If that fails for so long that the lease is over by our own steady
clock, the job counts as lost, whether or not anybody has taken it: it is no longer ours to end.
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
    """One job in our hands. ``lost`` is done once it is no longer ours."""

    __slots__ = ("beaten", "lost", "quiet", "running")

    def __init__(self, record: JobRecord, context: Context, database: Callable[[], Any]) -> None:
        self.running = RunningJob(record, context, database)
        self.beaten = time.monotonic()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.quiet = asyncio.Lock()  # held while its lease must not change

    def lose(self) -> None:
        """It is no longer ours."""
        self.running.lost = True
        if not self.lost.done():
            self.lost.set_result(None)


class Hands(dict[str, Hand]):
    """All jobs in our hands, by id."""

    def __init__(self, context: Context, lease: float) -> None:
        super().__init__()
        self._context = context
        self._lease = lease
        self._beats: set[asyncio.Task[None]] = set()

    def drop(self, hand: Hand) -> None:
        """Let go of a job; not of a later attempt at it, which may be in another lane's hands by now."""
        if self.get(hand.running.id) is hand:
            del self[hand.running.id]

    def is_over(self, hand: Hand) -> bool:
        """Whether a lease is over by this worker's steady clock, so that another worker may have taken the job."""
        return time.monotonic() - hand.beaten >= self._lease

    async def keep_leases(self) -> None:
        """Prolong leases for ever; one that takes long keeps no other waiting."""
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
            except Exception as error:  # noqa: BLE001 - whatever it is, others' leases are to be prolonged
                name = hand.running.name
                logger.warning("the lease on a job %s could not be extended (%s)", name, error_type(error))
                if self.is_over(hand):
                    hand.lose()

    async def extend_lease(self, hand: Hand) -> None:
        """Prolong a lease, whatever the fate of the last attempt at that; `LeaseLostError` when it is not ours."""
        running = hand.running
        begun = time.monotonic()
        token = self._context.port.new_id()
        known = tuple(running.tokens)
        running.tokens.add(token)
        running.record = await extend(self._context, running.record, token, known)
        running.tokens = {token}
        hand.beaten = begun

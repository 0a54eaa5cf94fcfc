"""Lists that expire during transactions, and a clock that moves only when a test advances it.

The lists are leases: each stores the moment of its end, by which `list_lives` distinguishes its lives. Readers and
writers judge expiry by their own clocks, so a commit that is in flight at that moment may still succeed.
`PunctualBackend`, between the transactions and the store, refuses exactly those writes, so the rest must be
serializable without exceptions. Expired items stay in the store until `sweep_expired` deletes them, as DynamoDB does
some time later.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from list_lives import life_key
from rig.wrapper import Wrapper
from serial_workload import KEYS, Lists

import holdall
from holdall import Database, Key, Model, ModelKey
from holdall.core import Compare, DeleteItem, path, value
from holdall.core.port import Backend, Send
from holdall.core.requests import PutItem, Request, TransactWrite
from holdall.errors import ConditionFailedError, ConflictError

__all__ = ["Clock", "Lease", "Leases", "PunctualBackend", "use_clock", "sweep_expired"]


LASTS = 40
"""Seconds from the creation of a list to its end."""


class Lease(Model, ttl="ends"):
    """A list that grows until it expires."""

    name: Key[str]
    values: list[int] = holdall.field(default_factory=list)
    ends: int


class Clock:
    """A clock for all databases of a test; it stands still between `tick`s.

    It is a day ahead, so that no item expires by the store's own clock. ``reached`` has the monotonic time just before
    the clock reached each second.
    """

    def __init__(self) -> None:
        self.seconds = int(time.time()) + 86_400
        self.reached: dict[int, int] = {}
        self._read_at: ContextVar[int] = ContextVar("looked", default=0)
        self._lock = threading.Lock()
        self._waiting = False
        self._writing = 0

    def now(self) -> datetime:
        self._read_at.set(self.seconds)
        return datetime.fromtimestamp(self._read_at.get(), UTC)

    def tick(self, seconds: int) -> bool:
        """Advance, unless a write is in progress; then no other write can begin before the next call."""
        with self._lock:
            self._waiting = self._writing > 0
            if self._waiting:
                return False
            before = time.monotonic_ns()
            self.reached.update((self.seconds + step, before) for step in range(1, seconds + 1))
            self.seconds += seconds
            return True

    def begin_write(self, ends: list[int]) -> None:
        """Refuse a write that was planned before the last tick, or that stores an item that has already expired."""
        with self._lock:
            if self._waiting or self._read_at.get() != self.seconds or any(it <= self.seconds for it in ends):
                raise ConflictError("the clock has advanced since this write was planned")
            self._writing += 1

    def end_write(self) -> None:
        with self._lock:
            self._writing -= 1


class PunctualBackend(Wrapper):
    """A backend that refuses writes that were planned before the last tick, or while the next one waits.

    It also refuses to store items that have already expired, so each life of a list ends later than the one before.
    """

    def __init__(self, backend: Backend, clock: Clock) -> None:
        super().__init__(backend)
        self._clock = clock

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if not request.writes:
            return await send(self.inner, request)
        self._clock.begin_write(_list_expiries(request))
        try:
            return await send(self.inner, request)
        finally:
            self._clock.end_write()


def _list_expiries(request: Request[Any]) -> list[int]:
    """Return the expiries of the items that a request puts."""
    actions = request.actions if isinstance(request, TransactWrite) else (request,)
    return [
        int(action.item["_ttl"]["N"])
        for action in actions
        if isinstance(action, PutItem) and "_ttl" in action.item
    ]


def use_clock(db: Database, clock: Clock) -> None:
    """Make the database use this clock."""
    db.port.now = clock.now  # type: ignore[method-assign]


class Leases(Lists):
    """The lists, each named by its life."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def key(self, name: str) -> ModelKey[Any]:
        return Lease.key(name)

    def get_initial_values(self) -> bool | dict[str, Any]:
        return {"ends": self.clock.seconds + LASTS}

    def key_of(self, name: str, item: Any) -> str:
        return life_key(name, item.ends)

    def read_other_fields(self, item: Any) -> None:
        """A lease has no other fields to read."""


def sweep_expired(db: Database, clock: Clock, table: str = "holdall") -> None:
    """Delete expired items."""
    for name in KEYS:
        partition, sort = Lease.key(name).encoded
        over = Compare("<=", path("_ttl"), value(clock.seconds))
        try:
            db.send(DeleteItem(table, {"pk": {"S": str(partition)}, "sk": {"S": str(sort)}}, over))
        except ConditionFailedError:
            continue

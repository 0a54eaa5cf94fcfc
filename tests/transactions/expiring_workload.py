"""Lists that expire while transactions are under way, and a clock that only moves when it is told to.

The lists are leases: each ends at the moment that is stored with it, which is how `list_lives` knows its lives apart.
Each reader and writer judges expiry by its own clock, so it is as exact as clocks are: a commit that is on its way
when the moment comes may still go through. `Punctual` stands between the transactions and the store and refuses just
those writes, so that what remains has to be serializable without exceptions. Expired items stay in the store until
`swept` deletes them, as DynamoDB does some time later.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TypeVar

from list_lives import life_key
from serial_workload import KEYS, Lists

import holdall
from holdall import Database, Key, Model, ModelKey
from holdall.core import Compare, DeleteItem, path, value
from holdall.core.port import Backend
from holdall.core.requests import PutItem, Request, TransactWrite
from holdall.errors import ConditionFailedError, ConflictError

__all__ = ["Clock", "Lease", "Leases", "Punctual", "keep_time", "swept"]

R = TypeVar("R")

LASTS = 40
"""Seconds of the clock from the making of a list to its end."""


class Lease(Model, ttl="ends"):
    """A list that grows until it ends."""

    name: Key[str]
    values: list[int] = holdall.field(default_factory=list)
    ends: int


class Clock:
    """A clock for all databases of a test; it stands still between `tick`s.

    It is a day ahead, so that nothing expires by the store's own clock. ``reached`` says when, by the monotonic clock,
    each moment was about to come.
    """

    def __init__(self) -> None:
        self.seconds = int(time.time()) + 86_400
        self.reached: dict[int, int] = {}
        self._looked: ContextVar[int] = ContextVar("looked", default=0)
        self._lock = threading.Lock()
        self._waiting = False
        self._writing = 0

    def now(self) -> datetime:
        self._looked.set(self.seconds)
        return datetime.fromtimestamp(self._looked.get(), UTC)

    def tick(self, seconds: int) -> bool:
        """Move on, unless a write is under way; then no other begins until this was called again."""
        with self._lock:
            self._waiting = self._writing > 0
            if self._waiting:
                return False
            about_to = time.monotonic_ns()
            self.reached.update((self.seconds + step, about_to) for step in range(1, seconds + 1))
            self.seconds += seconds
            return True

    def begin_write(self, ends: list[int]) -> None:
        """Refuse a write that was planned before the last tick or makes what is already over."""
        with self._lock:
            if self._waiting or self._looked.get() != self.seconds or any(it <= self.seconds for it in ends):
                raise ConflictError("the clock has moved on since this was planned")
            self._writing += 1

    def end_write(self) -> None:
        with self._lock:
            self._writing -= 1


class Punctual:
    """A backend that refuses writes which were planned before the last tick, or would meet the next.

    It also refuses to store what is already over, so that each life of a list ends later than the one before.
    """

    def __init__(self, backend: Backend, clock: Clock) -> None:
        self._backend = backend
        self._clock = clock

    def send_blocking(self, request: Request[R]) -> R:
        if not request.writes:
            return self._backend.send_blocking(request)
        self._clock.begin_write(_ends(request))
        try:
            return self._backend.send_blocking(request)
        finally:
            self._clock.end_write()

    async def send_awaiting(self, request: Request[R]) -> R:
        if not request.writes:
            return await self._backend.send_awaiting(request)
        self._clock.begin_write(_ends(request))
        try:
            return await self._backend.send_awaiting(request)
        finally:
            self._clock.end_write()

    def close(self) -> None:
        self._backend.close()


def _ends(request: Request[Any]) -> list[int]:
    """The moments at which the items that are put will end."""
    actions = request.actions if isinstance(request, TransactWrite) else (request,)
    return [
        int(action.item["_ttl"]["N"])
        for action in actions
        if isinstance(action, PutItem) and "_ttl" in action.item
    ]


def keep_time(db: Database, clock: Clock) -> None:
    """Have the database go by that clock."""
    db.port.now = clock.now  # type: ignore[method-assign]


class Leases(Lists):
    """The lists, each under the name of its life."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def key(self, name: str) -> ModelKey[Any]:
        return Lease.key(name)

    def blank(self) -> bool | dict[str, Any]:
        return {"ends": self.clock.seconds + LASTS}

    def key_of(self, name: str, item: Any) -> str:
        return life_key(name, item.ends)

    def look(self, item: Any) -> None:
        """There is nothing else in it."""


def swept(db: Database, clock: Clock, table: str = "holdall") -> None:
    """Delete what has expired."""
    for name in KEYS:
        partition, sort = Lease.key(name).encoded
        over = Compare("<=", path("_ttl"), value(clock.seconds))
        try:
            db.send(DeleteItem(table, {"pk": {"S": str(partition)}, "sk": {"S": str(sort)}}, over))
        except ConditionFailedError:
            continue

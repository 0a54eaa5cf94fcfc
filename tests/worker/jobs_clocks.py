"""Wrong clocks: databases in one process, each with its own time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rig.wrapper import Wrapper

from holdall import Database
from holdall.backends.port.world import World

__all__ = ["Clocks", "Timed"]


class Timed(Wrapper):
    """A backend, and how far the clock of its users is ahead."""

    ahead = timedelta()

    def close(self) -> None:
        """Leave the inner backend open, because other databases use it."""


def _now(world: World) -> datetime:
    """The time by the clock of a port's backend, even if that backend is wrapped."""
    backend: Any = vars(world)["_backend"]
    while not isinstance(backend, Timed):
        backend = vars(backend).get("_backend")
        if backend is None:
            return datetime.now(UTC)
    return datetime.now(UTC) + backend.ahead


class Clocks:
    """Databases on one store, each with a clock that can be set."""

    def __init__(self, right: Database) -> None:
        self.right = right

    def database(self, ahead: timedelta) -> Database:
        """Another database on the same store, whose clock is ahead by the given time."""
        store = Timed(self.right._backend)
        store.ahead = ahead
        return Database(backend=store)

    @staticmethod
    def set(db: Database, ahead: timedelta) -> None:
        """Set the clock of a database to another time."""
        store = db._backend
        assert isinstance(store, Timed)
        store.ahead = ahead


@contextmanager
def clocks_of(right: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clocks]:
    with monkeypatch.context() as patched:
        patched.setattr(World, "now", _now)
        yield Clocks(right)

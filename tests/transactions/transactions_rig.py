"""Helpers of the transaction tests: bodies for both colours, and a store that records every request.

A body is a flow (``async def body(tx)``) that awaits `resolve` for each call, so that it is written once for both
colours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any, TypeAlias, TypeVar

from rig.colour import COLOURS, Colour
from rig.recorder import Recorder

from holdall import Database, Key, Model, SortKey, field
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.port import Backend, run
from holdall.core.requests import CreateTable, Request, SetTtl

__all__ = [
    "COLOURS",
    "QUICK",
    "Body",
    "Colour",
    "Driver",
    "Person",
    "Seat",
    "Thing",
    "RecordedStore",
    "open_driver",
    "is_commit",
    "resolve",
    "open_database",
]

R = TypeVar("R")
Body: TypeAlias = Callable[[Any], Coroutine[Any, Any, Any]]

QUICK: dict[str, Any] = {"initial_backoff": 0.0}
"""Retries without pauses."""


class Thing(Model):
    """A few fields under a name."""

    name: Key[str]
    n: int = 0
    m: int = 0
    words: list[str] = field(default_factory=list)


class Seat(Model):
    """A model with several items in a partition."""

    room: Key[str]
    number: SortKey[int]
    taken: bool = False


class Person(Model):
    """A person with a unique address."""

    name: Key[str]
    mail: str | None = field(default=None, unique=True)


async def resolve(result: Any) -> Any:
    """Return the result of a call of either colour."""
    return await result if isawaitable(result) else result


class Driver:
    """A database that runs bodies in one colour."""

    def __init__(self, colour: Colour, db: Database) -> None:
        self.colour = colour
        self.db = db

    def run(self, body: Body, **options: Any) -> Any:
        """Run the body with ``db.run``."""
        options = {**QUICK, **options}
        if self.colour == "blocking":
            return self.db.run(lambda tx: run(body(tx)), **options)
        return asyncio.run(self.db.aio.run(body, **options))

    def run_block(self, body: Body, **options: Any) -> Any:
        """Run the body in a ``with`` block."""
        if self.colour == "blocking":
            with self.db.transaction(**options) as tx:
                return run(body(tx))

        async def block() -> Any:
            async with self.db.aio.transaction(**options) as tx:
                return await body(tx)

        return asyncio.run(block())


@contextmanager
def open_database(backend: Backend | None = None) -> Iterator[Database]:
    """Open a database in memory or on a backend, with an existing table, so that later requests do not create it."""
    with Database(backend=backend) if backend is not None else Database("memory:") as db:
        db.get(Thing, "any key: the first use creates the table")
        yield db


@contextmanager
def open_driver(colour: Colour, backend: Backend | None = None) -> Iterator[Driver]:
    """Open a driver of this colour on a database in memory, or on a backend."""
    with open_database(backend) as db:
        yield Driver(colour, db)


class RecordedStore(Recorder):
    """A recorder in front of a store: in memory, or the given one."""

    def __init__(self, inner: Backend | None = None) -> None:
        super().__init__(inner or EmbeddedBackend(None))

    @property
    def writes(self) -> list[Request[Any]]:
        """The transactions' writes so far."""
        return [request for request in self.requests if is_commit(request)]


def is_commit(request: Request[Any]) -> bool:
    """Whether the request is a transaction's write."""
    return request.writes and not isinstance(request, CreateTable | SetTtl)

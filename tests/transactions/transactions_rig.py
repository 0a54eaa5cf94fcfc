"""What the tests of transactions share: bodies in both colours, a store of which every request can be met, and waits.

A body is a flow (``async def body(tx)``) that asks for what it needs with `now`, so that it is written once for both
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
    "Watched",
    "open_driver",
    "is_commit",
    "now",
    "open_database",
]

R = TypeVar("R")
Body: TypeAlias = Callable[[Any], Coroutine[Any, Any, Any]]

QUICK: dict[str, Any] = {"initial_backoff": 0.0}
"""Retries without a pause between them."""


class Thing(Model):
    """Numbers under a name."""

    name: Key[str]
    n: int = 0
    m: int = 0
    words: list[str] = field(default_factory=list)


class Seat(Model):
    """One of many in a partition."""

    room: Key[str]
    number: SortKey[int]
    taken: bool = False


class Person(Model):
    """A person with a unique address."""

    name: Key[str]
    mail: str | None = field(default=None, unique=True)


async def now(result: Any) -> Any:
    """What a call of either colour gives."""
    return await result if isawaitable(result) else result


class Driver:
    """A database, and one colour to run bodies in."""

    def __init__(self, colour: Colour, db: Database) -> None:
        self.colour = colour
        self.db = db

    def run(self, body: Body, **options: Any) -> Any:
        """What ``db.run`` makes of the body."""
        options = {**QUICK, **options}
        if self.colour == "blocking":
            return self.db.run(lambda tx: run(body(tx)), **options)
        return asyncio.run(self.db.aio.run(body, **options))

    def once(self, body: Body, **options: Any) -> Any:
        """The body in a ``with`` block."""
        if self.colour == "blocking":
            with self.db.transaction(**options) as tx:
                return run(body(tx))

        async def block() -> Any:
            async with self.db.aio.transaction(**options) as tx:
                return await body(tx)

        return asyncio.run(block())


@contextmanager
def open_database(backend: Backend | None = None) -> Iterator[Database]:
    """A database in memory, or on that backend, whose table is there already: no request is for making it."""
    with Database(backend=backend) if backend is not None else Database("memory:") as db:
        db.get(Thing, "nobody")
        yield db


@contextmanager
def open_driver(colour: Colour, backend: Backend | None = None) -> Iterator[Driver]:
    """A driver of that colour on a database in memory, or on that backend."""
    with open_database(backend) as db:
        yield Driver(colour, db)


class Watched(Recorder):
    """A recorder of a store in memory, or of that one."""

    def __init__(self, inner: Backend | None = None) -> None:
        super().__init__(inner or EmbeddedBackend(None))

    @property
    def writes(self) -> list[Request[Any]]:
        """The writes of transactions so far."""
        return [request for request in self.requests if is_commit(request)]


def is_commit(request: Request[Any]) -> bool:
    """Whether a request is a transaction's write."""
    return request.writes and not isinstance(request, CreateTable | SetTtl)

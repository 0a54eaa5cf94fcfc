"""Where the tests of queries run: every store, both colours, one database per store for all of them.

A test is written once, as ``async def test(db)``. ``@everywhere`` runs it in memory in both colours, and on a server of
`rig.servers`, by turns; ``@in_memory`` only there; ``@on_servers`` on each server, in one colour. ``db`` is an
`AsyncDatabase`, or a `Database` dressed like one: such a test never suspends, and is finished in one step.

Tables and their indexes are made once and shared, because a server takes its time to add an index. So whatever a test
stores is under a partition of its own (`fresh`). Between the database and the store stands a `Watch`, which keeps what
was sent with what came back, and lets a test do something in between.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any, TypeVar, cast

import pytest
from hypothesis import settings
from rig.colour import AsyncView, Test, Way, elsewhere, here_and_elsewhere, in_turn, run_in
from rig.recorder import Recorder
from rig.servers import ENVIRONMENT, GIVEN, NAMES, sign_in, start_server
from rig.slots import create_with_slots
from rig.torture import TORTURE

from holdall import AsyncDatabase, Database, Model, ModelKey
from holdall.backends.configuration import open_backend
from holdall.core import GetItem, Item, Page, Query, Request, run
from holdall.core.numbers import number_text
from holdall.core.port import Backend
from holdall.core.settings import SettingArguments

__all__ = [
    "SECRET",
    "TORTURE",
    "Db",
    "Watch",
    "Way",
    "database",
    "everywhere",
    "examples",
    "expect_failure",
    "finish",
    "fresh",
    "arrange",
    "in_memory",
    "on_servers",
    "raw",
    "raw_key",
    "table_of",
    "watch_of",
]

R = TypeVar("R")
E = TypeVar("E", bound=BaseException)
Db = AsyncDatabase

SECRET = "a-long-random-text-that-nobody-knows"
_numbers = count()


def fresh(name: str = "") -> str:
    """A text that no other test has, for a partition of one's own."""
    return f"{name}{next(_numbers)}"


# --- what is sent ---------------------------------------------------------------------------------------


class Watch(Recorder):
    """A recorder; ``before_write`` is called, once, just before the next write reaches the store."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.before_write: Callable[[], None] | None = None
        self.before = self._meet

    def _meet(self, request: Request[Any]) -> None:
        if request.writes and (act := self.before_write) is not None:
            self.before_write = None
            act()

    def pages(self) -> list[tuple[Query, Page]]:
        """The queries since `forget`, with their pages."""
        return [(request, reply) for request, reply in self.exchanges if isinstance(request, Query)]

    def kinds(self) -> list[str]:
        """What kinds of requests there were."""
        return [type(request).__name__ for request, _ in self.exchanges]


# --- databases ------------------------------------------------------------------------------------------


@cache
def _open_store(store: str) -> tuple[Database, Watch]:
    """The database on a store, with the watch at its door; they last as long as the process."""
    url, credentials, settings = _address(store)
    backend, *_ = open_backend(url, None, None, credentials, settings)
    watch = Watch(backend)
    db = Database(url, backend=watch, **settings)
    atexit.register(db.close)
    if store == "DynamoDB Local":
        create_with_slots(backend, db.table.name)
    return db, watch


def _address(store: str) -> tuple[str, Callable[[], Any] | None, SettingArguments]:
    if store == "memory":
        return "memory:", None, SettingArguments(secret=SECRET)
    from uuid import uuid4

    unique = uuid4().hex
    settings = SettingArguments(
        endpoint=start_server(store),
        region=None if store == GIVEN else ENVIRONMENT["AWS_REGION"],
        manage_table=True,
        table_prefix=f"queries-{unique}-",
        secret=SECRET,
    )
    return f"dynamodb://queries-{unique}", None if store == GIVEN else sign_in, settings


@cache
def _runner() -> asyncio.Runner:
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


def database(way: Way) -> Db:
    """The database of a way."""
    db, _ = _open_store(way.store)
    return db.aio if way.colour == "awaiting" else cast("Db", AsyncView(db))


def finish(way: Way, flow: Coroutine[Any, Any, R]) -> R:
    """Run something in the colour of a way."""
    return run(flow) if way.colour == "blocking" else _runner().run(flow)


def watch_of(db: Db) -> Watch:
    """The watch at the door of a database's store."""
    backend: Any = db._backend
    assert isinstance(backend, Watch)
    return backend


# --- raw items ------------------------------------------------------------------------------------------


async def arrange(db: Db, *items: Model) -> None:
    """Have these items stored; requests are counted from here on."""
    for start in range(0, len(items), 100):
        async with db.transaction() as tx:
            for item in items[start : start + 100]:
                tx.create(item)
    watch_of(db).forget()


async def raw(db: Db, key: ModelKey[Any]) -> dict[str, Any]:
    """The item under a key as it is stored, without what marks its last write; it is there."""
    reply = await db.send(GetItem(table_of(db, key.model), raw_key(key), consistent=True))
    watch_of(db).exchanges.pop()
    assert reply.item is not None
    return {name: dict(value) for name, value in reply.item.items() if name != "_w"}


def raw_key(key: ModelKey[Any]) -> Item:
    """A key as it is stored: in the one table, or in the model's own."""
    names = ("pk", "sk") if key.schema.table is None else ("_id", "_sk")
    return {
        name: {"S": part} if isinstance(part, str) else {"N": number_text(part)}
        for name, part in zip(names, key.encoded, strict=True)
        if part is not None
    }


def table_of(db: Db, model: type[Model]) -> str:
    """The table that a model's items are in."""
    settings, own = db._context.settings, model._schema.table
    return settings.table_name if own is None else f"{settings.table_prefix}{own}"


# --- where a test runs ----------------------------------------------------------------------------------


def _on(ways: Callable[[str], list[Way]]) -> Callable[[Test], Callable[..., None]]:
    return run_in(ways, _open_tidy, lambda colour, flow: finish(Way("", colour), flow))


@contextmanager
def _open_tidy(way: Way) -> Iterator[Db]:
    db = database(way)
    with _tidy(watch_of(db)):
        yield db


@contextmanager
def _tidy(watch: Watch) -> Iterator[None]:
    watch.forget()
    try:
        yield
    finally:
        watch.forget()
        watch.before_write = None


@contextmanager
def expect_failure(error: type[E]) -> Iterator[pytest.ExceptionInfo[E]]:
    """The transaction inside fails with this error."""
    with pytest.raises(error) as caught:
        yield caught


def examples(count: int) -> settings:
    """So many examples of a property; many more under torture."""
    return settings(max_examples=count * 40 if TORTURE else count)


everywhere = _on(lambda name: [Way(*way) for way in here_and_elsewhere(NAMES, name)])
in_memory = _on(lambda name: [Way("memory", colour) for colour in in_turn(name)])
on_servers = _on(lambda name: [Way(*way) for server in NAMES for way in elsewhere([server], name)])

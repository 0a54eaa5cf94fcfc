"""Where the tests of queries run: every store, both colours, one database per store for all of them.

A test is written once, as ``async def test(db)``. ``@everywhere`` runs it in memory and on a server of `rig.servers`,
in colours that change from test to test; ``@in_memory`` runs it only in memory; ``@on_servers`` on each server, in one
colour. ``db`` is an `AsyncDatabase`, or a `Database` with the same interface: such a test never suspends.

The tests share tables and indexes, because adding an index takes a server some time. So each test stores its items in
partitions of its own (`fresh`). A `Watch` between the database and the store records requests and replies, and lets a
test run code in between.
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
from holdall.core import GetItem, Item, Page, Query, Request, SetTtl, TtlDescription, run
from holdall.core.numbers import number_text
from holdall.core.port import Backend, Send
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

SECRET = "a-long-random-secret-for-the-tests"
_numbers = count()


def fresh(name: str = "") -> str:
    """Return a unique text, for a partition that no other test uses."""
    return f"{name}{next(_numbers)}"


# --- requests ---------------------------------------------------------------------------------------------


class Watch(Recorder):
    """A recorder; ``before_write`` is called, once, just before the next write reaches the store.

    It does not pass on `SetTtl`, so that no server deletes an expired item while a test looks at it.
    """

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.before_write: Callable[[], None] | None = None
        self.before = self._run_before_write

    def _run_before_write(self, request: Request[Any]) -> None:
        if request.writes and (act := self.before_write) is not None:
            self.before_write = None
            act()

    async def _answer(self, send: Send, request: Request[Any]) -> Any:
        if isinstance(request, SetTtl):
            return TtlDescription(request.attribute)
        return await super()._answer(send, request)

    def pages(self) -> list[tuple[Query, Page]]:
        """Return the queries since `forget`, with their pages."""
        return [(request, reply) for request, reply in self.exchanges if isinstance(request, Query)]

    def kinds(self) -> list[str]:
        """Return the types of the requests since `forget`."""
        return [type(request).__name__ for request, _ in self.exchanges]


# --- databases --------------------------------------------------------------------------------------------


@cache
def _open_store(store: str) -> tuple[Database, Watch]:
    """Open the database of a store, with a watch in between; both stay open until the process ends."""
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
    """Return the database for a store and colour."""
    db, _ = _open_store(way.store)
    return db.aio if way.colour == "awaiting" else cast("Db", AsyncView(db))


def finish(way: Way, flow: Coroutine[Any, Any, R]) -> R:
    """Run a coroutine in the colour of a way."""
    return run(flow) if way.colour == "blocking" else _runner().run(flow)


def watch_of(db: Db) -> Watch:
    """Return the watch between a database and its store."""
    backend: Any = db._backend
    assert isinstance(backend, Watch)
    return backend


# --- raw items --------------------------------------------------------------------------------------------


async def arrange(db: Db, *items: Model) -> None:
    """Store these items, and forget the requests so far."""
    for start in range(0, len(items), 100):
        async with db.transaction() as tx:
            for item in items[start : start + 100]:
                tx.create(item)
    watch_of(db).forget()


async def raw(db: Db, key: ModelKey[Any]) -> dict[str, Any]:
    """Return an existing item as it is stored, without the stamp of its last write."""
    reply = await db.send(GetItem(table_of(db, key.model), raw_key(key), consistent=True))
    watch_of(db).exchanges.pop()
    assert reply.item is not None
    return {name: dict(value) for name, value in reply.item.items() if name != "_w"}


def raw_key(key: ModelKey[Any]) -> Item:
    """Return a key as it is stored: in the shared table, or in the model's own."""
    names = ("pk", "sk") if key.schema.table is None else ("_id", "_sk")
    return {
        name: {"S": part} if isinstance(part, str) else {"N": number_text(part)}
        for name, part in zip(names, key.encoded, strict=True)
        if part is not None
    }


def table_of(db: Db, model: type[Model]) -> str:
    """Return the name of the table that contains a model's items."""
    settings, own = db._context.settings, model._schema.table
    return settings.table_name if own is None else f"{settings.table_prefix}{own}"


# --- where a test runs ------------------------------------------------------------------------------------


def _on(ways: Callable[[str], list[Way]]) -> Callable[[Test], Callable[..., None]]:
    return run_in(ways, _open_clean, lambda colour, flow: finish(Way("", colour), flow))


@contextmanager
def _open_clean(way: Way) -> Iterator[Db]:
    db = database(way)
    with _reset_watch(watch_of(db)):
        yield db


@contextmanager
def _reset_watch(watch: Watch) -> Iterator[None]:
    watch.forget()
    try:
        yield
    finally:
        watch.forget()
        watch.before_write = None


@contextmanager
def expect_failure(error: type[E]) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect the block to fail with this error."""
    with pytest.raises(error) as caught:
        yield caught


def examples(count: int) -> settings:
    """Set the number of Hypothesis examples; under torture, there are many more."""
    return settings(max_examples=count * 40 if TORTURE else count)


everywhere = _on(lambda name: [Way(*way) for way in here_and_elsewhere(NAMES, name)])
in_memory = _on(lambda name: [Way("memory", colour) for colour in in_turn(name)])
on_servers = _on(lambda name: [Way(*way) for server in NAMES for way in elsewhere([server], name)])

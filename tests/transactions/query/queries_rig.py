"""Where the tests of queries run: every store, both colours, one database per store for all of them.

A test is written once, as ``async def test(db)``; ``@everywhere`` runs it in memory and on each server of
`rig.servers`, ``@in_memory`` only there, both in both colours. ``db`` is an `AsyncDatabase`, or a `Database` dressed
like one: such a test never suspends, and is finished in one step.

Tables and their indexes are made once and shared, because a server takes its time to add an index. So whatever a test
stores is under a partition of its own (`fresh`). Between the database and the store stands a `Watch`, which keeps what
was sent with what came back, and lets a test do something in between.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from inspect import Parameter, Signature, iscoroutine, signature
from itertools import count
from typing import Any, Literal, NamedTuple, TypeVar, cast

import pytest
from hypothesis import settings
from rig.servers import ENVIRONMENT, GIVEN, NAMES, started

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
    "failing",
    "finish",
    "fresh",
    "given",
    "in_memory",
    "on_servers",
    "raw",
    "raw_key",
    "table_of",
    "watch_of",
]

R = TypeVar("R")
E = TypeVar("E", bound=BaseException)
Colour = Literal["blocking", "awaiting"]
Db = AsyncDatabase

TORTURE = bool(os.environ.get("HOLDALL_TORTURE"))
SECRET = "a-long-random-text-that-nobody-knows"
_COLOURS: list[Colour] = ["blocking", "awaiting"]
_numbers = count()


def fresh(name: str = "") -> str:
    """A text that no other test has, for a partition of one's own."""
    return f"{name}{next(_numbers)}"


# --- what is sent ---------------------------------------------------------------------------------------


class Watch:
    """A backend around a backend: keeps what was sent and what came back.

    ``before_write`` is called, once, just before the next transaction or single write reaches the store.
    """

    def __init__(self, backend: Backend) -> None:
        self.seen: list[tuple[Request[Any], Any]] = []
        self.before_write: Callable[[], None] | None = None
        self._backend = backend

    def send_blocking(self, request: Request[R]) -> R:
        self._meet(request)
        reply = self._backend.send_blocking(request)
        self.seen.append((request, reply))
        return reply

    async def send_awaiting(self, request: Request[R]) -> R:
        self._meet(request)
        reply = await self._backend.send_awaiting(request)
        self.seen.append((request, reply))
        return reply

    def _meet(self, request: Request[Any]) -> None:
        if request.writes and (act := self.before_write) is not None:
            self.before_write = None
            act()

    def forget(self) -> None:
        """Count from here."""
        self.seen.clear()

    def pages(self) -> list[tuple[Query, Page]]:
        """The queries since `forget`, with their pages."""
        return [(request, reply) for request, reply in self.seen if isinstance(request, Query)]

    def kinds(self) -> list[str]:
        """What kinds of requests there were."""
        return [type(request).__name__ for request, _ in self.seen]

    def close(self) -> None:
        self._backend.close()


# --- databases ------------------------------------------------------------------------------------------


@cache
def _opened(store: str) -> tuple[Database, Watch]:
    """The database on a store, with the watch at its door; they last as long as the process."""
    url, credentials, settings = _address(store)
    backend, *_ = open_backend(url, None, None, credentials, settings)
    watch = Watch(backend)
    db = Database(url, backend=watch, **settings)
    atexit.register(db.close)
    return db, watch


def _address(store: str) -> tuple[str, Callable[[], Any] | None, SettingArguments]:
    if store == "memory":
        return "memory:", None, SettingArguments(secret=SECRET)
    from uuid import uuid4

    unique = uuid4().hex
    settings = SettingArguments(
        endpoint=started(store),
        region=None if store == GIVEN else ENVIRONMENT["AWS_REGION"],
        manage_table=True,
        table_prefix=f"queries-{unique}-",
        secret=SECRET,
    )
    return f"dynamodb://queries-{unique}", None if store == GIVEN else _credentials, settings


def _credentials() -> tuple[str, str, None, None]:
    return ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], None, None


@cache
def _runner() -> asyncio.Runner:
    runner = asyncio.Runner()
    atexit.register(runner.close)
    return runner


class Way(NamedTuple):
    """A store, and the colour to use it in."""

    store: str
    colour: Colour

    def __str__(self) -> str:
        return f"{self.store}, {self.colour}"


def database(way: Way) -> Db:
    """The database of a way."""
    db, _ = _opened(way.store)
    return db.aio if way.colour == "awaiting" else cast("Db", Dressed(db))


def finish(way: Way, flow: Coroutine[Any, Any, R]) -> R:
    """Run something in the colour of a way."""
    if way.colour == "blocking":
        return run(flow)
    return _runner().run(flow)


def watch_of(db: Db) -> Watch:
    """The watch at the door of a database's store."""
    backend: Any = db._backend
    assert isinstance(backend, Watch)
    return backend


class Dressed:
    """A database, transaction or query of the blocking colour, whose methods that do I/O are dressed as ``async``."""

    _AWAITED = frozenset(
        ["get", "get_one", "get_all", "send", "page", "first", "one", "all", "count", "exists", "migrate"]
    )

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in self._AWAITED:
            return _awaited(found)
        if name in ("query", "scan", "transaction"):
            return lambda *args, **options: Dressed(found(*args, **options))
        return found

    async def run(self, function: Any, *args: Any, **options: Any) -> Any:
        def body(tx: Any, *args: Any) -> Any:
            result = function(Dressed(tx), *args)
            return run(result) if iscoroutine(result) else result

        return self._inner.run(body, *args, **options)

    async def __aenter__(self) -> Dressed:
        self._inner.__enter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._inner.__exit__(*error)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for row in self._inner:
            yield row


def _awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*args: Any, **options: Any) -> Any:
        return method(*args, **options)

    return call


# --- raw items ------------------------------------------------------------------------------------------


async def given(db: Db, *items: Model) -> None:
    """Have these items stored; requests are counted from here on."""
    for start in range(0, len(items), 100):
        async with db.transaction() as tx:
            for item in items[start : start + 100]:
                tx.create(item)
    watch_of(db).forget()


async def raw(db: Db, key: ModelKey[Any]) -> dict[str, Any]:
    """The item under a key as it is stored, without what marks its last write; it is there."""
    reply = await db.send(GetItem(table_of(db, key.model), raw_key(key), consistent=True))
    watch_of(db).seen.pop()
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

Test = Callable[..., Coroutine[Any, Any, None]]


def _on(stores: list[str]) -> Callable[[Test], Callable[..., None]]:
    ways = [Way(store, colour) for store in stores for colour in _COLOURS]

    def decorate(test: Test) -> Callable[..., None]:
        @wraps(test)
        def run_it(way: Way, **arguments: Any) -> None:
            db = database(way)
            with _tidy(watch_of(db)):
                finish(way, test(db, **arguments))

        others = [p for name, p in signature(test).parameters.items() if name != "db"]
        first = Parameter("way", Parameter.POSITIONAL_OR_KEYWORD)
        del run_it.__wrapped__
        run_it.__signature__ = Signature([first, *others])  # type: ignore[attr-defined]
        marked: Callable[..., None] = pytest.mark.parametrize("way", ways, ids=str)(run_it)
        return marked

    return decorate


@contextmanager
def _tidy(watch: Watch) -> Iterator[None]:
    watch.forget()
    try:
        yield
    finally:
        watch.forget()
        watch.before_write = None


@contextmanager
def failing(error: type[E]) -> Iterator[pytest.ExceptionInfo[E]]:
    """The transaction inside fails with this error."""
    with pytest.raises(error) as caught:
        yield caught


def examples(count: int) -> settings:
    """So many examples of a property; many more under torture."""
    return settings(max_examples=count * 40 if TORTURE else count)


everywhere = _on(["memory", *NAMES])
in_memory = _on(["memory"])
on_servers = _on(list(NAMES))

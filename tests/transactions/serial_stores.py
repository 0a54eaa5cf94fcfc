"""Fresh stores of every kind for tests of transactions, to be used in both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import uuid4

import pytest
from rig.colour import COLOURS, elsewhere
from rig.servers import ENVIRONMENT, GIVEN, NAMES, sign_in, start_server

from holdall import Database
from holdall.backends.configuration import open_backend
from holdall.core.port import Backend, run
from holdall.core.settings import SettingArguments

__all__ = ["CONCURRENT", "STORES", "Colour", "Store", "Way", "everywhere", "fresh_store"]

Colour: TypeAlias = Literal["threads", "tasks"]
T = TypeVar("T")

STORES = ["memory", "file", *NAMES]

CONCURRENT: dict[str, Colour] = {"blocking": "threads", "awaiting": "tasks"}
"""The names of the colours in tests with many concurrent workers."""


class Store:
    """A fresh store: tests can wrap its ``backend``; the database ``plain`` uses it directly."""

    def __init__(self, kind: str, url: str, table: str, settings: SettingArguments) -> None:
        self.kind, self.url, self.table, self.settings = kind, url, table, settings
        self.backend = self.open_backend()
        self.plain = self.open_database(self.backend)

    def open_backend(self, **settings: Any) -> Backend:
        """Open another backend of the same store, with other settings."""
        credentials = sign_in if self.kind in NAMES and self.kind != GIVEN else None
        merged: Any = {**self.settings, **settings}
        return open_backend(self.url, None, None, credentials, merged)[0]

    def open_database(self, backend: Backend) -> Database:
        """Open a database that reaches the store through a backend."""
        return Database(self.url, backend=backend, **self.settings)


@contextmanager
def fresh_store(kind: str, directory: Path) -> Iterator[Store]:
    """Create a store with an empty shared table, for the block."""
    unique = uuid4().hex
    if kind == "memory":
        store = Store(kind, "memory:", "holdall", {})
    elif kind == "file":
        store = Store(kind, f"embedded:{directory}/{unique}.db", "holdall", {"durability": "normal"})
    else:
        table = f"holdall-serial-{unique}"
        settings: SettingArguments = {
            "endpoint": start_server(kind),
            "manage_table": True,
            "table_prefix": f"{unique}-",
        }
        if kind != GIVEN:
            settings["region"] = ENVIRONMENT["AWS_REGION"]
        store = Store(kind, f"dynamodb://{table}", table, settings)
    with store.plain:
        store.plain.table.create()
        yield store
        if kind in NAMES:
            store.plain.table.delete()


# --- one test for both colours ----------------------------------------------------------------------------


class Way:
    """A database in one colour with awaitable methods, so that one test can run in both colours."""

    def __init__(self, db: Database, colour: Colour) -> None:
        self.db = db
        self._twin = None if colour == "threads" else db.aio
        self.port = db.port if self._twin is None else self._twin.port

    async def run(self, body: Callable[[Any], Coroutine[Any, Any, T]], **options: Any) -> T:
        """Run a flow in a transaction. A nested run is an independent transaction."""
        if self._twin is not None:
            return await self._twin.run(lambda tx: body(AwaitableTransaction(tx)), **options)
        return self.db.run(lambda tx: run(body(AwaitableTransaction(tx))), **options)


class AwaitableTransaction:
    """A transaction whose reads can be awaited in either colour."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    async def get(self, *target: Any, **keywords: Any) -> Any:
        found = self._tx.get(*target, **keywords)
        return await found if isinstance(found, Awaitable) else found

    async def query(self, model: type[Any], **keywords: Any) -> list[Any]:
        found = self._tx.query(model, **keywords).all()
        return list(await found) if isinstance(found, Awaitable) else list(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


def everywhere(test: Callable[[Way], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in memory in both colours, and on each other store in one colour, which changes from test to test."""

    ways = [("memory", colour) for colour in COLOURS]
    ways += [way for store in STORES[1:] for way in elsewhere([store], test.__name__, store)]

    @pytest.mark.parametrize(("kind", "colour"), [(kind, CONCURRENT[colour]) for kind, colour in ways])
    def call(kind: str, colour: Colour, tmp_path: Path) -> None:
        with fresh_store(kind, tmp_path) as store:
            flow = test(Way(store.plain, colour))
            if colour == "threads":
                run(flow)
            else:
                asyncio.run(flow)

    call.__name__ = call.__qualname__ = test.__name__
    return call

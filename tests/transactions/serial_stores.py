"""Fresh stores of every kind for tests of transactions, and both colours to use them in."""

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

__all__ = ["NAMED", "STORES", "Colour", "Store", "Way", "everywhere", "fresh_store"]

Colour: TypeAlias = Literal["threads", "tasks"]
T = TypeVar("T")

STORES = ["memory", "file", *NAMES]

NAMED: dict[str, Colour] = {"blocking": "threads", "awaiting": "tasks"}
"""What the colours are called where many work at once."""


class Store:
    """A fresh store: ``backend`` is there to be wrapped, ``plain`` goes straight to it."""

    def __init__(self, kind: str, url: str, table: str, settings: SettingArguments) -> None:
        self.kind, self.url, self.table, self.settings = kind, url, table, settings
        self.backend = self.open_backend()
        self.plain = self.behind(self.backend)

    def open_backend(self, **settings: Any) -> Backend:
        """Another backend of the same store, with other settings."""
        credentials = sign_in if self.kind in NAMES and self.kind != GIVEN else None
        merged: Any = {**self.settings, **settings}
        return open_backend(self.url, None, None, credentials, merged)[0]

    def behind(self, backend: Backend) -> Database:
        """The database as it is through that backend."""
        return Database(self.url, backend=backend, **self.settings)


@contextmanager
def fresh_store(kind: str, directory: Path) -> Iterator[Store]:
    """A store with the one table and nothing in it, for the block."""
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


# --- one text for both colours ----------------------------------------------------------------------------------------


class Way:
    """A database in one colour, for tests that are flows: everything it has is awaited."""

    def __init__(self, db: Database, colour: Colour) -> None:
        self.db = db
        self._twin = None if colour == "threads" else db.aio
        self.port = db.port if self._twin is None else self._twin.port

    async def run(self, body: Callable[[Any], Coroutine[Any, Any, T]], **options: Any) -> T:
        """Run a flow in a transaction; one inside the flow of another is on its own."""
        if self._twin is not None:
            return await self._twin.run(lambda tx: body(Awaited(tx)), **options)
        return self.db.run(lambda tx: run(body(Awaited(tx))), **options)


class Awaited:
    """A transaction whose reads are awaited in either colour."""

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
    """Make a test of a flow: in memory in both colours, and on each other store in one, by turns."""

    ways = [("memory", colour) for colour in COLOURS]
    ways += [way for store in STORES[1:] for way in elsewhere([store], test.__name__, store)]

    @pytest.mark.parametrize(("kind", "colour"), [(kind, NAMED[colour]) for kind, colour in ways])
    def call(kind: str, colour: Colour, tmp_path: Path) -> None:
        with fresh_store(kind, tmp_path) as store:
            flow = test(Way(store.plain, colour))
            if colour == "threads":
                run(flow)
            else:
                asyncio.run(flow)

    call.__name__ = call.__qualname__ = test.__name__
    return call

"""Where the tests of artifacts run: every store with its service, both colours, with a clock that a test can move.

A test is written once, as ``async def test(rig: Rig)``. In the awaiting colour it runs on an event loop; in the
blocking one it never suspends. A test can await the methods of `Rig` in both.

- ``@everywhere``: in memory, and in turn on disk or on ministack.
- ``@here``: in memory and on disk.
- ``@in_memory``: in memory only, for tests that do not depend on the store.

Nothing sleeps: a flow that waits moves the clock.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast
from uuid import uuid4

from rig.clock import Clock, TimedPort
from rig.colour import Awaited, Colour, here_and_elsewhere, in_turn, run_in
from rig.files import bucket_service
from rig.recorder import Recorder
from rig.servers import ENVIRONMENT, sign_in, start_server

from holdall import AsyncDatabase, Database
from holdall.artifacts import Artifact, AsyncArtifacts
from holdall.artifacts.home import Home, KnownHome
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.objects import GetObject, ListObjects
from holdall.core.port import Backend, Port
from holdall.core.requests import Scan
from holdall.core.values import Item

__all__ = [
    "Clock",
    "Colour",
    "Kind",
    "Rig",
    "Store",
    "Way",
    "everywhere",
    "here",
    "in_memory",
    "open_rig",
    "open_store",
]

R = TypeVar("R")
Kind = Literal["memory", "disk", "wire"]

_SERVICE = "main"


# --- what is sent ---------------------------------------------------------------------------------------


class Watched(Recorder):
    """A recorder that leaves its store open: the caller that opened the store closes it."""

    def close(self) -> None:
        """Do nothing."""


# --- the store ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Store:
    """A table and a service without recorders, for direct, blocking access."""

    url: str
    settings: dict[str, Any]
    table: Backend
    service: Backend
    directory: Path

    def items(self, home: Home) -> list[Item]:
        """All items of the table."""
        scan = Scan(home.table, consistent=True)
        found: list[Item] = []
        while True:
            page = self.table.send_blocking(scan)
            found += page.items
            if page.last_key is None:
                return found
            scan = replace(scan, start_after=page.last_key)

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """All objects, by their keys."""
        found: dict[str, bytes] = {}
        after: str | None = None
        while True:
            page = self.service.send_blocking(ListObjects(_SERVICE, prefix, after))
            for each in page.objects:
                body = b""
                if each.size:
                    body = self.service.send_blocking(GetObject(_SERVICE, each.key)).body
                found[each.key] = body
            if page.next is None:
                return found
            after = page.next


@contextmanager
def open_store(kind: Kind) -> Iterator[Store]:
    """A new, empty store."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        settings: dict[str, Any] = {}
        credentials = None
        service: Backend
        if kind == "memory":
            url, service = "memory:", MemoryService()
        elif kind == "disk":
            url, settings = f"embedded:{directory / 'store.db'}", {"durability": "normal"}
            service = DiskService(directory / "files")
        else:
            url, credentials = f"dynamodb://artifacts-{uuid4().hex}", sign_in
            settings = {"endpoint": start_server("ministack"), "region": ENVIRONMENT["AWS_REGION"]}
            settings["manage_table"] = True
            service = bucket_service(f"artifacts/{uuid4().hex}")
        with Database(url, credentials=credentials, **settings) as db:
            yield Store(url, settings, db._backend, service, directory)
        service.close()


# --- the rig --------------------------------------------------------------------------------------------


class Rig:
    """A database in one colour, with a clock and recorders."""

    def __init__(self, colour: Colour, store: Store, clock: Clock | None = None, **more: Any) -> None:
        self.colour = colour
        self.store = store
        self.clock = clock or Clock(ticking=True)
        self.watch = Watched(store.table)
        self._more = more
        kind: Any = Database if colour == "blocking" else AsyncDatabase
        files = {_SERVICE: Watched(store.service, beside=self.watch), **more.pop("files", {})}
        settings = {**store.settings, **more}
        self.db: Any = kind(store.url, backend=self.watch, files=files, **settings)
        port = cast("Port", TimedPort(self.db._context.port, self.clock))
        self.db._context = replace(self.db._context, port=port)

    @property
    def context(self) -> Context:
        found: Context = self.db._context
        return found

    @property
    def home(self) -> Home:
        """Where artifacts are stored; known after the first operation."""
        found = self.context.state.of(KnownHome).home
        assert found is not None
        return found

    @property
    def artifacts(self) -> AsyncArtifacts:
        """``db.artifacts``, awaited in both colours."""
        return cast("AsyncArtifacts", Awaited(self.db.artifacts))

    async def versions(self, name: str, **options: Any) -> list[Artifact]:
        """Everything that ``db.artifacts.versions`` yields."""
        return await self.collect(self.db.artifacts.versions(name, **options))

    async def names(self, *args: Any, **options: Any) -> list[str]:
        """Everything that ``db.artifacts.names`` yields."""
        return await self.collect(self.db.artifacts.names(*args, **options))

    async def collect(self, iterator: Any) -> list[Any]:
        if self.colour == "blocking":
            return list(iterator)
        return [each async for each in iterator]

    def fresh(self, colour: Colour | None = None) -> Rig:
        """Another database on the same store, with the same clock, empty caches and a new recorder."""
        return Rig(colour or self.colour, self.store, self.clock, **self._more)

    def items(self, pk: str) -> dict[str, Item]:
        """The items of a partition, by their sort keys."""
        home = self.home
        return {home.sk_of(each): each for each in self.store.items(home) if home.pk_of(each) == pk}


# --- where a test runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A kind of store, and the colour to use it in."""

    kind: Kind
    colour: Colour

    def __str__(self) -> str:
        return f"{self.kind}, {self.colour}"


@contextmanager
def open_rig(way: Way, **more: Any) -> Iterator[Rig]:
    """A rig with a new, empty store."""
    with open_store(way.kind) as store:
        yield Rig(way.colour, store, **more)


def _ways(others: list[str], name: str) -> list[Way]:
    return [Way(cast("Kind", kind), colour) for kind, colour in here_and_elsewhere(others, name)]


everywhere = run_in(lambda name: _ways(["disk", "wire"], name), open_rig)
here = run_in(lambda name: _ways(["disk"], name), open_rig)
in_memory = run_in(lambda name: [Way("memory", colour) for colour in in_turn(name)], open_rig)

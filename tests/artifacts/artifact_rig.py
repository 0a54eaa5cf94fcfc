"""Where the tests of artifacts run: every store with its service, both colours, with a clock that a test can move.

A test is written once, as ``async def test(rig: Rig)``. In the awaiting colour it runs on an event loop; in the
blocking one it never suspends. What `Rig` gives can be awaited in both.

- ``@everywhere``: in memory in both colours; in a file and a directory, and on ministack, in one of them, by turns.
- ``@here``: in memory, and in a file and a directory, each in both colours.
- ``@in_memory``: where the store cannot make a difference; in both colours.

Nobody sleeps: a flow that wants to moves the clock.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from inspect import Parameter, Signature, isawaitable, signature
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, cast
from uuid import uuid4
from zlib import crc32

import pytest
from files_rig import bucket_service
from rig.servers import ENVIRONMENT, started

from holdall import AsyncDatabase, Database
from holdall.artifacts import Artifact, AsyncArtifacts
from holdall.artifacts.home import Home, KnownHome
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.objects import DescribeService, GetObject, ListObjects
from holdall.core.port import Backend, Port, run
from holdall.core.requests import Request, Scan
from holdall.core.values import Item

__all__ = [
    "Clock",
    "Colour",
    "Kind",
    "Rig",
    "Store",
    "Watch",
    "Way",
    "everywhere",
    "here",
    "in_memory",
    "opening",
    "storing",
]

R = TypeVar("R")
Colour = Literal["blocking", "awaiting"]
Kind = Literal["memory", "disk", "wire"]

_COLOURS: list[Colour] = ["blocking", "awaiting"]
_HERE: list[Kind] = ["memory", "disk"]
_SERVICE = "main"


# --- time -----------------------------------------------------------------------------------------------


class Clock:
    """The time on the wall, and how far it has been moved."""

    def __init__(self) -> None:
        self._moved = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self._moved

    def forward(self, seconds: float) -> None:
        """Let so much time pass at once."""
        self._moved += timedelta(seconds=seconds)


class TimedPort:
    """A port with another clock; to sleep is to move it."""

    def __init__(self, port: Port, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self.now = clock.now

    async def sleep(self, seconds: float) -> None:
        self._clock.forward(seconds)
        await self._port.sleep(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


# --- what is sent ---------------------------------------------------------------------------------------


class Watch:
    """All requests of a database in their order, to the table and to the service, where a test can get in between.

    ``before`` and ``after`` are called with each on its way there and back; what they raise is the answer.
    """

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.before: Callable[[Any], None] = _nothing
        self.after: Callable[[Any], None] = _nothing

    def note(self, request: Any) -> None:
        if not isinstance(request, DescribeService):  # answered without anything being sent
            self.requests.append(request)
            self.before(request)

    def noted(self, request: Any) -> None:
        if not isinstance(request, DescribeService):
            self.after(request)


def _nothing(request: Any) -> None:
    pass


class Watched:
    """A backend whose requests are watched."""

    def __init__(self, backend: Backend, watch: Watch) -> None:
        self._backend = backend
        self._watch = watch

    def send_blocking(self, request: Request[R]) -> R:
        self._watch.note(request)
        reply = self._backend.send_blocking(request)
        self._watch.noted(request)
        return reply

    async def send_awaiting(self, request: Request[R]) -> R:
        self._watch.note(request)
        reply = await self._backend.send_awaiting(request)
        self._watch.noted(request)
        return reply

    def close(self) -> None:
        """Nothing: the store is closed by who opened it."""


# --- the store ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Store:
    """A table and a service, past all watches; to be looked at in the blocking colour."""

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
def storing(kind: Kind) -> Iterator[Store]:
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
            url, credentials = f"dynamodb://artifacts-{uuid4().hex}", _credentials
            settings = {"endpoint": started("ministack"), "region": ENVIRONMENT["AWS_REGION"]}
            settings["manage_table"] = True
            service = bucket_service(f"artifacts/{uuid4().hex}")
        with Database(url, credentials=credentials, **settings) as db:
            yield Store(url, settings, db._backend, service, directory)
        service.close()


def _credentials() -> tuple[str, str, None, None]:
    return ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], None, None


# --- the rig --------------------------------------------------------------------------------------------


class Rig:
    """A database in one of the colours, as a test of artifacts uses it."""

    def __init__(self, colour: Colour, store: Store, clock: Clock | None = None, **more: Any) -> None:
        self.colour = colour
        self.store = store
        self.clock = clock or Clock()
        self.watch = Watch()
        self._more = more
        kind: Any = Database if colour == "blocking" else AsyncDatabase
        files = {_SERVICE: Watched(store.service, self.watch), **more.pop("files", {})}
        settings = {**store.settings, **more}
        self.db: Any = kind(store.url, backend=Watched(store.table, self.watch), files=files, **settings)
        port = cast("Port", TimedPort(self.db._context.port, self.clock))
        self.db._context = replace(self.db._context, port=port)

    @property
    def context(self) -> Context:
        found: Context = self.db._context
        return found

    @property
    def home(self) -> Home:
        """Where artifacts are, once anything has been done with them."""
        found = self.context.state.of(KnownHome).home
        assert found is not None
        return found

    @property
    def artifacts(self) -> AsyncArtifacts:
        """``db.artifacts``, to be awaited in both colours."""
        return cast("AsyncArtifacts", Dressed(self.db.artifacts))

    async def versions(self, name: str, **options: Any) -> list[Artifact]:
        """All that ``db.artifacts.versions`` iterates over."""
        return await self.listed(self.db.artifacts.versions(name, **options))

    async def names(self, *args: Any, **options: Any) -> list[str]:
        """All that ``db.artifacts.names`` iterates over."""
        return await self.listed(self.db.artifacts.names(*args, **options))

    async def listed(self, iterator: Any) -> list[Any]:
        if self.colour == "blocking":
            return list(iterator)
        return [each async for each in iterator]

    def fresh(self, colour: Colour | None = None) -> Rig:
        """Another database on the same store, with the same clock, that knows nothing and that nobody watches yet."""
        return Rig(colour or self.colour, self.store, self.clock, **self._more)

    def items(self, pk: str) -> dict[str, Item]:
        """The items of a partition, by their sort keys."""
        home = self.home
        return {home.sk_of(each): each for each in self.store.items(home) if home.pk_of(each) == pk}


class Dressed:
    """An object whose methods can all be awaited, whether or not they have to be."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def awaited(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            return await result if isawaitable(result) else result

        return awaited


# --- where a test runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A kind of store, and the colour to use it in."""

    kind: Kind
    colour: Colour

    def __str__(self) -> str:
        return f"{self.kind}, {self.colour}"


@contextmanager
def opening(way: Way, **more: Any) -> Iterator[Rig]:
    """A rig with a new, empty store."""
    with storing(way.kind) as store:
        yield Rig(way.colour, store, **more)


Test: TypeAlias = "Callable[..., Coroutine[Any, Any, None]]"


def _on(ways: Callable[[str], list[Way]]) -> Callable[[Test], Callable[..., None]]:
    def decorate(test: Test) -> Callable[..., None]:
        @wraps(test)
        def run_it(way: Way, **arguments: Any) -> None:
            with opening(way) as rig:
                if way.colour == "blocking":
                    run(test(rig, **arguments))
                else:
                    asyncio.run(test(rig, **arguments))

        parameters = [parameter for name, parameter in signature(test).parameters.items() if name != "rig"]
        first = Parameter("way", Parameter.POSITIONAL_OR_KEYWORD)
        del run_it.__wrapped__  # pytest would look at its arguments
        run_it.__signature__ = Signature([first, *parameters])  # type: ignore[attr-defined]
        marked: Callable[..., None] = pytest.mark.parametrize("way", ways(test.__name__), ids=str)(run_it)
        return marked

    return decorate


def _everywhere(name: str) -> list[Way]:
    """In memory in both colours; elsewhere which one takes turns from test to test."""
    turn = crc32(name.encode()) % 2
    memory = [Way("memory", colour) for colour in _COLOURS]
    return [*memory, Way("disk", _COLOURS[turn]), Way("wire", _COLOURS[1 - turn])]


everywhere = _on(_everywhere)
here = _on(lambda name: [Way(kind, colour) for kind in _HERE for colour in _COLOURS])
in_memory = _on(lambda name: [Way("memory", colour) for colour in _COLOURS])

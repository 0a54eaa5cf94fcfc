"""Every behaviour is written once, as ``async def test(db)``, and runs in both colours, on every store that matters.

- ``@everywhere``: in memory in both colours; in a file and over the wire to each server of `rig.servers` in one of
  them, by turns, so that every subject meets every store in both.
- ``@in_memory``: where the store cannot make a difference; in both colours.
- ``@awaiting`` and ``@blocking``: in memory, in one colour; for what only exists there.

``db`` is an `AsyncDatabase`, or a `Database` with every method that does I/O dressed as ``async def``: such a test
never suspends, so it is finished in one step. Each test has a table of its own. Between it and the store stand a
backend that keeps what was sent, one that can fail on purpose, and a clock that moves only when somebody waits.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import wraps
from inspect import Parameter, Signature, iscoroutine, signature
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import uuid4
from zlib import crc32

import pytest
from rig.servers import ENVIRONMENT, GIVEN, NAMES, started

from holdall import AsyncDatabase, Database, Model, ModelKey
from holdall.backends.configuration import open_backend
from holdall.backends.port.awaiting import AwaitingPort
from holdall.backends.port.blocking import BlockingPort
from holdall.backends.services import Services
from holdall.composition import Shared
from holdall.core import (
    CreateTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    Item,
    Request,
    SetTtl,
    run,
)
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.numbers import number_text
from holdall.core.port import Backend
from holdall.core.settings import SettingArguments, Settings
from holdall.errors import HoldallError
from holdall.testing import Fault, FaultyBackend

__all__ = [
    "STORES",
    "Clock",
    "Colour",
    "Db",
    "Way",
    "awaiting",
    "blocking",
    "everywhere",
    "in_memory",
    "opening",
    "raw_key",
    "store_address",
]

R = TypeVar("R")
Colour = Literal["blocking", "awaiting"]

TABLE = "holdall"
ADMINISTRATIVE = (CreateTable, DescribeTable, DescribeTtl, SetTtl)
COLOURS: list[Colour] = ["blocking", "awaiting"]
STORES = ["memory", "file", *NAMES]


# --- time and requests ----------------------------------------------------------------------------------


class Clock:
    """Begins at the present and moves only by waits. ``chance`` is what the random part of each wait comes out as."""

    def __init__(self) -> None:
        self.time = datetime.now(UTC).replace(microsecond=0)
        self.chance = 0.5
        self.waits: list[float] = []

    def forward(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.forward(seconds)

    @property
    def epoch(self) -> int:
        """The seconds since 1970."""
        return int(self.time.timestamp())


class TimedBlockingPort(BlockingPort):
    def __init__(self, backend: Backend, clock: Clock) -> None:
        super().__init__(backend)
        self.clock = clock

    def now(self) -> datetime:
        return self.clock.time

    def random(self) -> float:
        return self.clock.chance

    async def sleep(self, seconds: float) -> None:
        self.clock.wait(seconds)


class TimedAwaitingPort(AwaitingPort):
    def __init__(self, backend: Backend, clock: Clock) -> None:
        super().__init__(backend)
        self.clock = clock

    def now(self) -> datetime:
        return self.clock.time

    def random(self) -> float:
        return self.clock.chance

    async def sleep(self, seconds: float) -> None:
        self.clock.wait(seconds)
        await asyncio.sleep(0)


class Recorder:
    """A backend around a backend, which keeps every request in the order they came.

    ``refusals`` are what the next writes of items are answered with, one each, in place of being done.
    """

    def __init__(self, backend: Backend) -> None:
        self.requests: list[Request[Any]] = []
        self.refusals: list[HoldallError] = []
        self._backend = backend

    def send_blocking(self, request: Request[R]) -> R:
        self._note(request)
        return self._backend.send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        self._note(request)
        return await self._backend.send_awaiting(request)

    def _note(self, request: Request[Any]) -> None:
        self.requests.append(request)
        if self.refusals and request.writes and not isinstance(request, ADMINISTRATIVE):
            raise self.refusals.pop(0)

    def close(self) -> None:
        self._backend.close()


# --- the database in either colour ----------------------------------------------------------------------


class Db(AsyncDatabase):
    """What a test is given, in the awaiting colour; and what `BlockingDb` passes for in the other."""

    def __init__(
        self, url: str, recorder: Recorder, faults: FaultyBackend, clock: Clock, **settings: Any
    ) -> None:
        self.recorder, self.faults, self.clock = recorder, faults, clock
        super().__init__(url, backend=recorder, **settings)

    def _compose(self, backend: Backend, settings: Settings, services: Services, shared: Shared) -> None:
        super()._compose(backend, settings, services, shared)
        self._context = timed(self._context, TimedAwaitingPort(backend, self.clock))

    def sent(self) -> list[Any]:
        """The requests for items since the beginning, or since `forget`."""
        return sent(self.recorder)

    def kinds(self) -> list[str]:
        """What kinds of requests those were."""
        return [type(request).__name__ for request in self.sent()]

    def forget(self) -> None:
        """Count requests from here."""
        self.recorder.requests.clear()

    async def raw(self, key: ModelKey[Any]) -> Item | None:
        """The item under a key as it is stored, behind the recorder's back."""
        reply = await self.send(GetItem(table_of(self._context.settings, key), raw_key(key), consistent=True))
        self.recorder.requests.pop()
        return reply.item

    def table_of(self, model: type[Model]) -> str:
        """The table that a model's items are in."""
        return model_table(self._context.settings, model)


class TimedDatabase(Database):
    def __init__(self, url: str, recorder: Recorder, clock: Clock, **settings: Any) -> None:
        self.clock = clock
        super().__init__(url, backend=recorder, **settings)

    def _compose(self, backend: Backend, settings: Settings, services: Services, shared: Shared) -> None:
        super()._compose(backend, settings, services, shared)
        self._context = timed(self._context, TimedBlockingPort(backend, self.clock))


def timed(context: Context, port: Any) -> Context:
    return replace(context, port=port)


def sent(recorder: Recorder) -> list[Any]:
    return [request for request in recorder.requests if not isinstance(request, ADMINISTRATIVE)]


class BlockingDb:
    """A `Database` whose methods that do I/O are dressed as ``async def``."""

    def __init__(
        self, url: str, recorder: Recorder, faults: FaultyBackend, clock: Clock, **settings: Any
    ) -> None:
        self.recorder, self.faults, self.clock = recorder, faults, clock
        self._db = TimedDatabase(url, recorder, clock, **settings)

    @property
    def sync(self) -> Database:
        return self._db

    async def send(self, request: Request[R]) -> R:
        return self._db.send(request)

    async def get(self, *args: Any, **options: Any) -> Any:
        return self._db.get(*args, **options)

    async def get_one(self, *args: Any, **options: Any) -> Any:
        return self._db.get_one(*args, **options)

    async def get_all(self, *args: Any, **options: Any) -> Any:
        return self._db.get_all(*args, **options)

    def query(self, *args: Any, **options: Any) -> BlockingRows:
        return BlockingRows(self._db.query(*args, **options))

    def transaction(self, **options: Any) -> BlockingTransaction:
        return BlockingTransaction(self._db.transaction(**options))

    async def run(self, function: Any, *args: Any, **options: Any) -> Any:
        return self._db.run(finishing(function), *args, **options)

    def transactional(self, function: Any = None, /, **options: Any) -> Any:
        transactional = self._db.transactional(**options)

        def decorate(function: Any) -> Any:
            call = transactional(finishing(function))

            @wraps(function)
            async def awaited(*args: Any, **keywords: Any) -> Any:
                return call(*args, **keywords)

            return awaited

        return decorate if function is None else decorate(function)

    async def migrate(self, *args: Any, **options: Any) -> Any:
        return self._db.migrate(*args, **options)

    async def close(self) -> None:
        self._db.close()

    def sent(self) -> list[Any]:
        return sent(self.recorder)

    def kinds(self) -> list[str]:
        return [type(request).__name__ for request in self.sent()]

    def forget(self) -> None:
        self.recorder.requests.clear()

    async def raw(self, key: ModelKey[Any]) -> Item | None:
        reply = self._db.send(
            GetItem(table_of(self._db._context.settings, key), raw_key(key), consistent=True)
        )
        self.recorder.requests.pop()
        return reply.item

    def table_of(self, model: type[Model]) -> str:
        return model_table(self._db._context.settings, model)


class BlockingTransaction:
    """A `Transaction` whose methods that do I/O are dressed as ``async def``; the others are its own."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    async def get(self, *args: Any, **options: Any) -> Any:
        return self._tx.get(*args, **options)

    async def get_one(self, *args: Any, **options: Any) -> Any:
        return self._tx.get_one(*args, **options)

    async def get_all(self, *args: Any, **options: Any) -> Any:
        return self._tx.get_all(*args, **options)

    def query(self, *args: Any, **options: Any) -> BlockingRows:
        return BlockingRows(self._tx.query(*args, **options))

    async def __aenter__(self) -> BlockingTransaction:
        self._tx.__enter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._tx.__exit__(*error)


class BlockingRows:
    def __init__(self, rows: Any) -> None:
        self._rows = rows

    async def __aiter__(self) -> AsyncIterator[Any]:
        for row in self._rows:
            yield row

    async def all(self) -> list[Any]:
        return list(self._rows.all())

    async def count(self) -> int:
        return int(self._rows.count())


def finishing(function: Any) -> Any:
    """A body for the blocking colour, from one that awaits only what `BlockingTransaction` has."""
    if not callable(function):
        return function

    @wraps(function)
    def body(tx: Any, *args: Any, **keywords: Any) -> Any:
        result = function(BlockingTransaction(tx), *args, **keywords)
        return run(result) if iscoroutine(result) else result

    return body


# --- raw items ------------------------------------------------------------------------------------------


def raw_key(key: ModelKey[Any]) -> dict[str, Any]:
    """A key as it is stored: in the one table, or in the model's own."""
    names = ("pk", "sk") if key.schema.table is None else ("_id", "_sk")
    return {
        name: {"S": part} if isinstance(part, str) else {"N": number_text(part)}
        for name, part in zip(names, key.encoded, strict=True)
        if part is not None
    }


def table_of(settings: Settings, key: ModelKey[Any]) -> str:
    return model_table(settings, key.model)


def model_table(settings: Settings, model: type[Model]) -> str:
    own = model._schema.table
    return settings.table_name if own is None else f"{settings.table_prefix}{own}"


# --- where a test runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A store, and the colour to use it in."""

    store: str
    colour: Colour

    def __str__(self) -> str:
        return f"{self.store}, {self.colour}"


@contextmanager
def opening(way: Way, rates: Mapping[Fault, float] | None = None) -> Iterator[Db]:
    with tempfile.TemporaryDirectory() if way.store == "file" else _nowhere() as directory:
        url, credentials, settings = store_address(way.store, directory)
        backend, *_ = open_backend(url, None, None, credentials, settings)
        faults = FaultyBackend(backend, rates)
        recorder = Recorder(faults)
        kind: Any = Db if way.colour == "awaiting" else BlockingDb
        try:
            yield kind(url, recorder, faults, Clock(), **settings)
        finally:
            backend.close()


@contextmanager
def _nowhere() -> Iterator[str]:
    yield ""


def store_address(store: str, directory: str) -> tuple[str, Callable[[], Any] | None, SettingArguments]:
    """The URL of a store, where its credentials come from, and its settings."""
    if store == "memory":
        return "memory:", None, {}
    if store == "file":
        return f"embedded:{Path(directory, 'store.db')}", None, {"durability": "normal"}
    unique = uuid4().hex
    credentials = None if store == GIVEN else _credentials
    region = None if store == GIVEN else ENVIRONMENT["AWS_REGION"]
    settings = SettingArguments(
        endpoint=started(store), region=region, manage_table=True, table_prefix=f"behaviour-{unique}-"
    )
    return f"dynamodb://behaviour-{unique}", credentials, settings


def _credentials() -> tuple[str, str, None, None]:
    return ENVIRONMENT["AWS_ACCESS_KEY_ID"], ENVIRONMENT["AWS_SECRET_ACCESS_KEY"], None, None


Test: TypeAlias = "Callable[..., Coroutine[Any, Any, None]]"


Ways: TypeAlias = "Callable[[str], list[Way]]"


def _in_memory(*colours: Colour) -> Ways:
    return lambda name: [Way("memory", colour) for colour in colours]


def _everywhere(name: str) -> list[Way]:
    """Both colours in memory, and one of them on each other store: which one, takes turns from test to test."""
    others = [
        Way(store, COLOURS[crc32(f"{name} {store}".encode()) % 2]) for store in STORES if store != "memory"
    ]
    return [*_in_memory(*COLOURS)(name), *others]


def _on(ways: Ways, faults: Mapping[Fault, float] | None = None) -> Callable[[Test], Callable[..., None]]:
    def decorate(test: Test) -> Callable[..., None]:
        @wraps(test)
        def run_it(way: Way, **arguments: Any) -> None:
            with opening(way, faults) as db:
                finish(way.colour, test(db, **arguments))

        others = [parameter for name, parameter in signature(test).parameters.items() if name != "db"]
        first = Parameter("way", Parameter.POSITIONAL_OR_KEYWORD)
        del run_it.__wrapped__  # pytest would look at its arguments
        run_it.__signature__ = Signature([first, *others])  # type: ignore[attr-defined]
        marked: Callable[..., None] = pytest.mark.parametrize("way", ways(test.__name__), ids=str)(run_it)
        return marked

    return decorate


def finish(colour: Colour, test: Coroutine[Any, Any, None]) -> None:
    if colour == "blocking":
        run(test)
    else:
        asyncio.run(test)


everywhere = _on(_everywhere)
in_memory = _on(_in_memory(*COLOURS))
in_memory_with_stale_reads = _on(_in_memory(*COLOURS), {Fault.STALE: 0.0})
awaiting = _on(_in_memory("awaiting"))
blocking = _on(_in_memory("blocking"))

"""Every behaviour is written once, as ``async def test(db)``, and runs in both colours, on every store that matters.

- ``@everywhere``: in memory, and `elsewhere`: in a file, or on a server of `rig.servers`, in turn.
- ``@in_memory``: in memory only, for tests that do not depend on the store.
- ``@awaiting`` and ``@blocking``: in memory, in one colour, for what exists only there.

``db`` is an `AsyncDatabase`, or a `Database` whose methods with I/O are wrapped in ``async def``: such a test never
suspends, so it is finished in one step. Each test has its own tables. Between the test and the store are a backend that
records requests, another that can inject faults, and a clock that moves only when a flow waits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast
from uuid import uuid4

from holdall import AsyncDatabase, Database, Model, ModelKey
from holdall.backends.configuration import open_backend
from holdall.core import (
    CreateTable,
    DescribeTable,
    DescribeTtl,
    GetItem,
    Item,
    Request,
    SetTtl,
)
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.numbers import number_text
from holdall.core.port import Backend, Port
from holdall.core.schema import KeyAttribute
from holdall.core.settings import SettingArguments
from holdall.errors import HoldallError
from holdall.testing import Fault, FaultyBackend
from rig.clock import Clock, TimedPort
from rig.colour import AsyncView, Colour, Test, Way, finish_body, here_and_elsewhere, in_turn, run_in
from rig.recorder import Recorder
from rig.servers import ENVIRONMENT, GIVEN, NAMES, sign_in, start_server
from rig.slots import create_with_slots

__all__ = [
    "STORES",
    "Colour",
    "Db",
    "Way",
    "awaiting",
    "blocking",
    "everywhere",
    "in_memory",
    "open_database",
    "raw_key",
    "store_address",
]

R = TypeVar("R")

TABLE = "holdall"
ADMINISTRATIVE = (CreateTable, DescribeTable, DescribeTtl, SetTtl)
STORES = ["memory", "file", *NAMES]


# --- time and requests ----------------------------------------------------------------------------------


class RefusingRecorder(Recorder):
    """A recorder that raises the errors in ``refusals``, one for each of the next writes of items."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self.refusals: list[HoldallError] = []
        self.before = self._refuse

    def _refuse(self, request: Request[Any]) -> None:
        if self.refusals and request.writes and not isinstance(request, ADMINISTRATIVE):
            raise self.refusals.pop(0)


# --- the database in either colour ----------------------------------------------------------------------


class RequestView:
    """A test's view of the requests that a database sent, and of its stored items."""

    recorder: RefusingRecorder
    faults: FaultyBackend
    clock: Clock
    _context: Context
    send: Callable[..., Any]

    def list_sent(self) -> list[Any]:
        """List the requests for items since the beginning, or since `forget`."""
        return [request for request in self.recorder.requests if not isinstance(request, ADMINISTRATIVE)]

    def kinds(self) -> list[str]:
        """The types of the requests in `list_sent`."""
        return [type(request).__name__ for request in self.list_sent()]

    def forget(self) -> None:
        """Count requests from here."""
        self.recorder.forget()

    async def raw(self, key: ModelKey[Any]) -> Item | None:
        """The item under a key as stored; the recorder does not count this read."""
        reply = await self.send(GetItem(self.table_of(key.model), raw_key(key), consistent=True))
        self.recorder.requests.pop()
        item: Item | None = reply.item
        return item

    def table_of(self, model: type[Model]) -> str:
        """The table that contains a model's items."""
        settings, own = self._context.settings, model._schema.table
        return settings.table_name if own is None else f"{settings.table_prefix}{own}"


class Db(RequestView, AsyncDatabase):
    """The database of a test in the awaiting colour; in the other, `BlockingDb` stands in for it."""

    def __init__(
        self, url: str, recorder: RefusingRecorder, faults: FaultyBackend, clock: Clock, **settings: Any
    ) -> None:
        AsyncDatabase.__init__(self, url, backend=recorder, **settings)
        self.recorder, self.faults, self.clock = recorder, faults, clock
        set_clock(self, clock)


class BlockingDb(RequestView, AsyncView):
    """A `Database` that is used like an `AsyncDatabase`."""

    AWAITED = AsyncView.AWAITED | {"create", "put", "update", "delete"}  # in a transaction, they only record

    def __init__(
        self, url: str, recorder: RefusingRecorder, faults: FaultyBackend, clock: Clock, **settings: Any
    ) -> None:
        self.sync = Database(url, backend=recorder, **settings)
        AsyncView.__init__(self, self.sync)
        self.recorder, self.faults, self.clock = recorder, faults, clock
        set_clock(self.sync, clock)
        self._context = self.sync._context

    async def send(self, request: Request[R]) -> R:
        return self.sync.send(request)

    def transactional(self, function: Any = None, /, **options: Any) -> Any:
        transactional = self.sync.transactional(**options)

        def decorate(function: Any) -> Any:
            call = transactional(finish_body(function))

            @wraps(function)
            async def await_call(*args: Any, **keywords: Any) -> Any:
                return call(*args, **keywords)

            return await_call

        return decorate if function is None else decorate(function)


def set_clock(db: Database | AsyncDatabase, clock: Clock) -> None:
    db._context = replace(db._context, port=cast("Port", TimedPort(db._context.port, clock)))


# --- raw items ------------------------------------------------------------------------------------------


def raw_key(key: ModelKey[Any]) -> dict[str, Any]:
    """A key as stored, in the one table or in the model's own."""
    names = key.schema.form.table_keys() or (KeyAttribute("pk"), KeyAttribute("sk"))
    texts = [each if isinstance(each, str | None) else number_text(each) for each in key.encoded]
    return {name.name: {name.type: text} for name, text in zip(names, texts, strict=True) if name is not None}


# --- where a test runs ----------------------------------------------------------------------------------


@contextmanager
def open_database(way: Way, rates: Mapping[Fault, float] | None = None) -> Iterator[Db]:
    with tempfile.TemporaryDirectory() if way.store == "file" else _nowhere() as directory:
        url, credentials, settings = store_address(way.store, directory)
        backend, *_ = open_backend(url, None, None, credentials, settings)
        if way.store == "DynamoDB Local":
            create_with_slots(backend, url.removeprefix("dynamodb://"))
        faults = FaultyBackend(backend, rates)
        recorder = RefusingRecorder(faults)
        kind: Any = Db if way.colour == "awaiting" else BlockingDb
        try:
            yield kind(url, recorder, faults, Clock(), **settings)
        finally:
            backend.close()


@contextmanager
def _nowhere() -> Iterator[str]:
    yield ""


def store_address(store: str, directory: str) -> tuple[str, Callable[[], Any] | None, SettingArguments]:
    """The URL of a store, its credentials, and its settings."""
    if store == "memory":
        return "memory:", None, {}
    if store == "file":
        return f"embedded:{Path(directory, 'store.db')}", None, {"durability": "normal"}
    unique = uuid4().hex
    credentials = None if store == GIVEN else sign_in
    region = None if store == GIVEN else ENVIRONMENT["AWS_REGION"]
    settings = SettingArguments(
        endpoint=start_server(store), region=region, manage_table=True, table_prefix=f"behaviour-{unique}-"
    )
    return f"dynamodb://behaviour-{unique}", credentials, settings


Ways: TypeAlias = "Callable[[str], list[Way]]"


def _by_turns(name: str) -> list[Way]:
    return [Way("memory", colour) for colour in in_turn(name)]


def _everywhere(name: str) -> list[Way]:
    return [Way(*way) for way in here_and_elsewhere(STORES[1:], name)]


def _on(ways: Ways, faults: Mapping[Fault, float] | None = None) -> Callable[[Test], Callable[..., None]]:
    return run_in(ways, lambda way: open_database(way, faults))


everywhere = _on(_everywhere)
in_memory = _on(_by_turns)
in_memory_with_stale_reads = _on(_by_turns, {Fault.STALE: 0.0})
awaiting = _on(lambda name: [Way("memory", "awaiting")])
blocking = _on(lambda name: [Way("memory", "blocking")])

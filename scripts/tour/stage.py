"""Shared by the steps of the demo: a metered database, and the list of steps."""

from __future__ import annotations

import inspect
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from holdall import Database
from holdall.core import (
    Page,
    Query,
    Request,
    Scan,
)
from holdall.errors import (
    HoldallError,
)
from tour.report import Voice

logging.getLogger("holdall").addHandler(logging.NullHandler())  # the tour reports failures itself

R = TypeVar("R")


class Meter:
    """Counts the requests of a database, and the capacity that DynamoDB would bill."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.units = {True: 0.0, False: 0.0}  # by whether it writes
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        return sum(self.sent.values())

    def count(self, request: Request[Any], reply: object) -> None:
        with self._lock:
            self.sent[type(request).__name__] += 1
            self.units[request.writes] += getattr(reply, "capacity", 0.0)


class Metered:
    """A database whose requests are counted. It has the methods of a backend, so faults can be injected before it."""

    def __init__(self, db: Database, meter: Meter) -> None:
        self.db = db
        self._twin = db.aio
        self._meter = meter

    @contextmanager
    def _count(self, request: Request[Any]) -> Iterator[list[Any]]:
        replies: list[Any] = []
        try:
            yield replies
        except HoldallError as error:
            self._meter.count(request, error)
            raise
        self._meter.count(request, replies[0])

    def send(self, request: Request[R]) -> R:
        with self._count(request) as replies:
            replies.append(self.db.send(request))
        return replies[0]  # type: ignore[no-any-return]

    send_blocking = send

    async def send_awaiting(self, request: Request[R]) -> R:
        with self._count(request) as replies:
            replies.append(await self._twin.send(request))
        return replies[0]  # type: ignore[no-any-return]

    def pages(self, request: Query | Scan) -> Iterator[Page]:
        for found in self.db.pages(request):
            self._meter.count(request, found)
            yield found

    def close(self) -> None:
        self.db.close()


class Tour:
    """What every step receives: the folder, the store, and the voice."""

    def __init__(self, folder: Path, first: int) -> None:
        self.folder = folder
        self.file = folder / "tour.db"
        self.voice = Voice(first)
        self.meter = Meter()
        self.store = self.open()

    @property
    def url(self) -> str:
        return f"embedded:{self.file}"

    def open(self, **settings: Any) -> Metered:
        return Metered(Database(self.url, **settings), self.meter)

    def take(self, stop: Stop) -> None:
        intro = " ".join((inspect.getdoc(stop.visit) or "").split())
        step = self.voice.begin(stop.title, intro, inspect.getsource(stop.visit))
        requests, began = self.meter.total, time.perf_counter()
        stop.visit(self)
        step.seconds = time.perf_counter() - began
        step.requests = self.meter.total - requests
        self.voice.end()


@dataclass(frozen=True)
class Stop:
    """A step of the tour: its title, and the function that shows it."""

    title: str
    visit: Callable[[Tour], None]


def step(title: str) -> Callable[[Callable[[Tour], None]], Stop]:
    """Make a function a step of the tour; its docstring is the introduction."""
    return lambda visit: Stop(title, visit)


def list_stops(*modules: ModuleType) -> list[Stop]:
    """List all steps of some modules, in the order of the source."""
    return [found for module in modules for found in vars(module).values() if isinstance(found, Stop)]


def expect(kind: type[HoldallError], store: Metered, request: Request[Any]) -> Any:
    """Send a request that must be refused; return the error."""
    try:
        store.send(request)
    except kind as error:
        return error
    raise AssertionError(f"not refused: {request}")

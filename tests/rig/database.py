"""Databases for tests: the address of a new store, a database with recorders, and a process that dies."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdall import AsyncDatabase, Database
from holdall.backends.configuration import open_backend
from holdall.backends.disk import DiskService
from holdall.backends.embedded import EmbeddedBackend
from holdall.core.frozen import replace
from holdall.core.port import Backend, run
from holdall.core.requests import TransactWrite
from rig.clock import Clock, TimedPort
from rig.colour import AsyncView, Awaited, Colour
from rig.recorder import Recorder
from rig.servers import ENVIRONMENT, GIVEN, sign_in, start_server

__all__ = ["FeatureRig", "die", "find_address", "open_directory", "open_recorded"]

DEAD = 9

Address = tuple[str, Callable[[], Any] | None, dict[str, Any]]
"""A URL, credentials and settings."""


def find_address(store: str, directory: str | Path, name: str) -> Address:
    """The address of a new store; on a server, the names of its tables start with ``name``."""
    if store == "memory":
        return "memory:", None, {}
    if store == "file":
        return f"embedded:{Path(directory, 'store.db')}", None, {"durability": "normal"}
    unique = f"{name}-{uuid4().hex}"
    settings = {
        "endpoint": start_server(store),
        "region": None if store == GIVEN else ENVIRONMENT["AWS_REGION"],
        "manage_table": True,
        "table_prefix": f"{unique}-",
    }
    return f"dynamodb://{unique}", None if store == GIVEN else sign_in, settings


@contextmanager
def open_recorded(
    colour: Colour,
    address: Address,
    service: Backend,
    others: Mapping[str, Backend] | None = None,
    **more: Any,
) -> Iterator[tuple[Any, Recorder, Recorder, Clock]]:
    """Open a database with recorders on its table and its default service, and with a clock. ``others`` are further
    services; ``more`` are settings of the database alone."""
    url, credentials, settings = address
    inner, *_ = open_backend(url, None, None, credentials, settings)  # type: ignore[arg-type]
    table, clock = Recorder(inner), Clock(ticking=True)
    recorded = Recorder(service, beside=table)
    files: Any = recorded if others is None else {"default": recorded, **others}
    kind: Any = Database if colour == "blocking" else AsyncDatabase
    db = kind(url, backend=table, files=files, **settings, **more)
    db._context = replace(db._context, port=TimedPort(db._context.port, clock))
    try:
        yield db, table, recorded, clock
    finally:
        inner.close()


class FeatureRig:
    """A database with recorders on its table and its service; its methods can be awaited in both colours."""

    MOMENT: type[Any] = TransactWrite
    """The kind of requests that `in_between` waits for by default."""

    def __init__(self, database: Any, way: Any, recorder: Recorder, service: Recorder, clock: Clock) -> None:
        self.database = database
        self.way = way
        self.recorder = recorder
        self.service = service
        self.clock = clock

    @property
    def db(self) -> Any:
        """The database, used as an async one."""
        return AsyncView(self.database) if self.way.colour == "blocking" else self.database

    @property
    def files(self) -> Any:
        """``db.files``; every method can be awaited."""
        return Awaited(self.database.files)

    async def list_files(self) -> list[Any]:
        """All objects."""
        listing = self.database.files.list()
        return list(listing) if self.way.colour == "blocking" else [each async for each in listing]

    async def objects(self) -> list[str]:
        """The keys of all objects."""
        return [each.key for each in await self.list_files()]

    def in_between(self, act: Callable[[], Any], *kinds: type[Any], when: str = "before") -> None:
        """Run a function once, right before the next request of these kinds is sent, or after it was answered."""

        def interrupt(request: Any) -> Any:
            if not isinstance(request, kinds or self.MOMENT):
                return None
            setattr(self.recorder, when, lambda request: None)
            return act() if self.way.colour == "awaiting" else run(act())

        setattr(self.recorder, when, interrupt)


@contextmanager
def open_directory(directory: Path, days: float = 0, **settings: Any) -> Iterator[tuple[Database, Recorder]]:
    """Open the database of a directory, some days later, with its recorder."""
    table = Recorder(EmbeddedBackend(directory / "app.db", durability="normal"))
    service = Recorder(DiskService(directory / "files"), beside=table)
    with Database("memory:", backend=table, files=service, **settings) as db:
        clock = Clock(ticking=True)
        clock.forward(days * 86400)
        db._context = replace(db._context, port=TimedPort(db._context.port, clock))
        yield db, table


def die(
    database: AbstractContextManager[tuple[Database, Recorder]],
    change: Callable[[Database], None],
    step: int,
    when: str,
    *,
    only_writes: bool = True,
) -> bool:
    """Make a change in a child that dies at a step; return whether it died. By default, only writes count as steps."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with database as (db, recorder):
                left = step

                def count(request: Any) -> None:
                    nonlocal left
                    left -= request.writes or not only_writes
                    if left == 0:
                        os._exit(DEAD)

                setattr(recorder, when, count)
                change(db)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, DEAD)
    return code == DEAD

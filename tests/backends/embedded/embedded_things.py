"""The table that the tests of the embedded engine's files and failures share, and functions that make its requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig.clock import Clock

from holdall import Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    CreateTable,
    GetItem,
    IndexSchema,
    KeyAttribute,
    PutItem,
    Scan,
    TableSchema,
    TransactWrite,
    encode_item,
)

THINGS = TableSchema(
    "Things", KeyAttribute("name"), indexes=(IndexSchema("by_colour", KeyAttribute("colour")),)
)


def put(name: str, **values: object) -> PutItem:
    return PutItem(THINGS.name, encode_item({"name": name, **values}))


def get(name: str, *, consistent: bool = True) -> GetItem:
    return GetItem(THINGS.name, {"name": {"S": name}}, consistent=consistent)


def names(db: Database) -> set[str]:
    pages = db.pages(Scan(THINGS.name, consistent=True))
    return {item["name"]["S"] for page in pages for item in page.items}


def fill(path: Path, count: int = 3) -> None:
    """Create a store with some things in it, and close it."""
    with Database(f"embedded:{path}", durability="normal") as db:
        db.send(CreateTable(THINGS))
        for number in range(count):
            db.send(put(f"thing{number}", colour="red", text="x" * 500))


class StoppingClock(Clock):
    """A clock that, once armed, blocks a transaction in the middle until ``resume`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.resume = threading.Event()
        self._armed = False
        self._calls = 0

    def arm(self) -> None:
        self._armed = True

    def __call__(self) -> float:
        if self._armed:
            self._calls += 1
            if self._calls == 2:  # the first call, for housekeeping, comes before the transaction begins
                self.reached.set()
                self.resume.wait()
        return super().__call__()


@contextmanager
def stop_midway(path: Path | None) -> Iterator[tuple[EmbeddedBackend, StoppingClock, threading.Thread]]:
    """A store in which a thread is putting the thing "slow", and waits until ``clock.resume`` is set."""
    clock = StoppingClock()
    backend = EmbeddedBackend(path, clock=clock)
    backend.send_blocking(CreateTable(THINGS))
    clock.arm()
    request = TransactWrite((put("slow"),), "token")
    # a daemon, so that the run can end after a failed test
    thread = threading.Thread(target=backend.send_blocking, args=(request,), daemon=True)
    thread.start()
    assert clock.reached.wait(30)
    try:
        yield backend, clock, thread
    finally:
        clock.resume.set()
        thread.join(120)
        backend.close()

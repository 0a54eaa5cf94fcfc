"""Closing a store: it waits for requests that have begun, and later requests raise StoreClosedError."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from embedded_things import THINGS, get, names, put, stop_midway

from holdall import AsyncDatabase, Database
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    BatchGet,
    BatchWrite,
    CreateTable,
    DescribeTable,
    GetItem,
    Request,
    Scan,
    TransactGet,
    TransactWrite,
)
from holdall.errors import StoreClosedError

EVERY_KIND: list[Request[Any]] = [
    get("a"),
    GetItem("Nowhere", {"name": {"S": "a"}}),
    BatchGet((get("a"),)),
    TransactGet((get("a"),)),
    Scan(THINGS.name),
    DescribeTable(THINGS.name),
    put("a"),
    BatchWrite((put("a"),)),
    TransactWrite((put("a"),), "token"),
    CreateTable(THINGS),
]


def url(tmp_path: Path, store: str) -> str:
    return "memory:" if store == "memory" else f"embedded:{tmp_path}/store.db"


@pytest.mark.parametrize("store", ["file", "memory"])
def test_every_request_to_a_closed_database_raises_the_error(tmp_path: Path, store: str) -> None:
    with Database(url(tmp_path, store)) as db:
        db.send(CreateTable(THINGS))
        db.send(put("a"))
        db.send(Scan(THINGS.name))
    for request in EVERY_KIND:
        with pytest.raises(StoreClosedError):
            db.send(request)


@pytest.mark.parametrize("store", ["file", "memory"])
@pytest.mark.parametrize("used", [True, False], ids=["used before", "never used"])
def test_every_async_request_to_a_closed_database_raises_the_error(
    tmp_path: Path, store: str, used: bool
) -> None:
    async def scenario() -> None:
        async with AsyncDatabase(url(tmp_path, store)) as db:
            if used:
                await db.send(CreateTable(THINGS))
                await db.send(Scan(THINGS.name))
        for request in EVERY_KIND:
            with pytest.raises(StoreClosedError):
                await db.send(request)

    asyncio.run(scenario())


def test_closing_several_times_sync_and_async_is_harmless(tmp_path: Path) -> None:
    db = Database(f"embedded:{tmp_path}/store.db")
    twin = db.aio
    db.close()
    db.close()
    asyncio.run(twin.close())
    twin.sync.close()


def test_closing_the_async_database_closes_the_sync_one() -> None:
    db = Database("memory:")
    asyncio.run(db.aio.close())
    with pytest.raises(StoreClosedError):
        db.send(CreateTable(THINGS))


def test_an_iteration_over_pages_raises_the_error_after_closing(tmp_path: Path) -> None:
    with Database(f"embedded:{tmp_path}/store.db") as db:
        db.send(CreateTable(THINGS))
        db.send(BatchWrite((put("a"), put("b"))))
        pages = db.pages(Scan(THINGS.name, limit=1))
        assert next(pages).count == 1
    with pytest.raises(StoreClosedError):
        next(pages)


def test_closing_waits_for_a_request_that_has_begun(tmp_path: Path) -> None:
    with stop_midway(tmp_path / "store.db") as (backend, clock, writing):
        closing = threading.Thread(target=backend.close, daemon=True)
        closing.start()
        wait_until_closing(backend)
        assert writing.is_alive()
        assert closing.is_alive()
        clock.resume.set()
        closing.join(120)
        writing.join(120)
        assert not closing.is_alive()
    with Database(f"embedded:{tmp_path}/store.db") as db:
        assert names(db) == {"slow"}


def wait_until_closing(backend: EmbeddedBackend) -> None:
    """Return once the backend has begun to close."""
    while True:
        try:
            backend.send_blocking(get("slow"))
        except StoreClosedError:
            return


@pytest.mark.parametrize("store", ["file", "memory"])
def test_several_threads_can_close_a_store_at_once(tmp_path: Path, store: str) -> None:
    path = tmp_path / "store.db" if store == "file" else None
    with stop_midway(path) as (backend, clock, _):
        closing = [threading.Thread(target=backend.close, daemon=True) for _ in range(3)]
        for thread in closing:
            thread.start()
        clock.resume.set()
        for thread in closing:
            thread.join(120)
        assert not any(thread.is_alive() for thread in closing)


def test_a_request_that_waits_for_a_memory_store_raises_the_error_on_closing() -> None:
    raised: list[type[Exception]] = []

    def wait() -> None:
        try:
            backend.send_blocking(get("slow"))
        except StoreClosedError as error:
            raised.append(type(error))

    with stop_midway(None) as (backend, clock, _):
        waiting = threading.Thread(target=wait, daemon=True)
        closing = threading.Thread(target=backend.close, daemon=True)
        waiting.start()
        closing.start()
        waiting.join(120)  # although the connection that it waits for is still in use
        assert raised == [StoreClosedError]
        clock.resume.set()
        closing.join(120)
        assert not closing.is_alive()


def test_a_closed_store_can_be_opened_again_at_once(tmp_path: Path) -> None:
    for number in range(5):
        with Database(f"embedded:{tmp_path}/store.db") as db:
            if number == 0:
                db.send(CreateTable(THINGS))
            db.send(put(f"{number}"))
            assert len(names(db)) == number + 1

"""A store that another process keeps locked: requests stop waiting and raise a retryable error."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from embedded_things import THINGS, fill, get, put

from holdall.backends.embedded import EmbeddedBackend
from holdall.core import CreateTable, GetReply, KeyCondition, Query
from holdall.errors import StoreBusyError

RED = Query(THINGS.name, KeyCondition("colour", {"S": "red"}), index="by_colour")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "store.db")
    return tmp_path / "store.db"


@contextmanager
def open_backend(path: Path, patience: float = 0.2) -> Iterator[EmbeddedBackend]:
    backend = EmbeddedBackend(path, patience=patience)
    try:
        yield backend
    finally:
        backend.close()


@contextmanager
def hold_lock(path: Path, lock: str) -> Iterator[sqlite3.Connection]:
    """Hold a lock on the file with another connection until the block ends."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)) as other:
        for statement in lock.split(";"):
            other.execute(statement)
        yield other


WRITE_LOCKS = ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]
WHOLE_FILE = "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT"


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_a_write_during_a_lasting_lock_raises_a_retryable_busy_error(path: Path, lock: str) -> None:
    with open_backend(path) as backend:
        with hold_lock(path, lock):
            with pytest.raises(StoreBusyError) as busy:
                backend.send_blocking(put("new"))
            assert busy.value.retryable
            assert isinstance(busy.value, TimeoutError)
        backend.send_blocking(put("new"))
        assert backend.send_blocking(get("new")).item is not None


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_reads_succeed_while_another_process_writes(path: Path, lock: str) -> None:
    with open_backend(path) as backend, hold_lock(path, lock):
        assert backend.send_blocking(get("thing0")).item is not None
        assert backend.send_blocking(RED).count == 3
        assert asyncio.run(backend.send_awaiting(get("thing0"))).item is not None


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_opening_a_new_file_that_another_process_locks_raises_the_busy_error(
    tmp_path: Path, lock: str
) -> None:
    path = tmp_path / "store.db"
    with hold_lock(path, lock), pytest.raises(StoreBusyError) as busy:
        EmbeddedBackend(path, patience=0.2)
    assert busy.value.retryable
    with open_backend(path) as backend:
        backend.send_blocking(CreateTable(THINGS))


def test_opening_a_store_that_another_process_locks_exclusively_raises_the_busy_error(path: Path) -> None:
    with hold_lock(path, WHOLE_FILE), pytest.raises(StoreBusyError):
        EmbeddedBackend(path, patience=0.2)
    opened_again = EmbeddedBackend(path, patience=0.2)
    opened_again.close()


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_a_write_succeeds_if_the_lock_is_released_in_time(path: Path, lock: str) -> None:
    with open_backend(path, patience=30) as backend, hold_lock(path, lock) as other:
        writing = threading.Thread(target=backend.send_blocking, args=(put("new"),))
        writing.start()
        other.execute("COMMIT")
        writing.join()
        assert backend.send_blocking(get("new")).item is not None


def test_other_threads_can_read_while_one_waits_to_write(path: Path) -> None:
    read: list[GetReply] = []
    with open_backend(path, patience=30) as backend, hold_lock(path, "BEGIN IMMEDIATE") as other:
        writing = threading.Thread(target=backend.send_blocking, args=(put("new"),))
        writing.start()
        read.append(backend.send_blocking(get("thing0")))
        other.execute("COMMIT")
        writing.join()
    assert read[0].item is not None


def test_every_async_write_raises_the_busy_error(path: Path) -> None:
    async def write_all(backend: EmbeddedBackend) -> list[object]:
        writes = (backend.send_awaiting(put(f"new{number}")) for number in range(3))
        return [*await asyncio.gather(*writes, return_exceptions=True)]

    with open_backend(path, patience=0.1) as backend, hold_lock(path, "BEGIN IMMEDIATE"):
        outcomes = asyncio.run(write_all(backend))
    assert [type(outcome) for outcome in outcomes] == [StoreBusyError] * 3


def test_a_failed_opening_of_a_busy_store_leaves_nothing_open(path: Path, tmp_path: Path) -> None:
    with hold_lock(path, WHOLE_FILE) as other:
        with pytest.raises(StoreBusyError) as busy:
            EmbeddedBackend(path, patience=0.1)
        other.execute("INSERT INTO tokens VALUES ('t', x'00', 0)")
        assert (
            busy.value.retryable
        )  # keeps the error, and with it the frame of the failed opening, alive until here
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]

"""A store that another process keeps locked: waiting ends, and the error says that waiting longer may help."""

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
    """Another connection has a lock on the file until the block ends."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)) as other:
        for statement in lock.split(";"):
            other.execute(statement)
        yield other


WRITE_LOCKS = ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]
WHOLE_FILE = "PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT"


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_a_write_against_a_lasting_lock_is_busy_and_retryable(path: Path, lock: str) -> None:
    with open_backend(path) as backend:
        with hold_lock(path, lock):
            with pytest.raises(StoreBusyError) as busy:
                backend.send_blocking(put("new"))
            assert busy.value.retryable
            assert isinstance(busy.value, TimeoutError)
        backend.send_blocking(put("new"))
        assert backend.send_blocking(get("new")).item is not None


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_reads_go_on_beside_a_writer(path: Path, lock: str) -> None:
    with open_backend(path) as backend, hold_lock(path, lock):
        assert backend.send_blocking(get("thing0")).item is not None
        assert backend.send_blocking(RED).count == 3
        assert asyncio.run(backend.send_awaiting(get("thing0"))).item is not None


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_opening_a_fresh_file_that_another_keeps_locked_is_busy(tmp_path: Path, lock: str) -> None:
    path = tmp_path / "store.db"
    with hold_lock(path, lock), pytest.raises(StoreBusyError) as busy:
        EmbeddedBackend(path, patience=0.2)
    assert busy.value.retryable
    with open_backend(path) as backend:
        backend.send_blocking(CreateTable(THINGS))


def test_opening_a_store_that_another_has_for_itself_is_busy(path: Path) -> None:
    with hold_lock(path, WHOLE_FILE), pytest.raises(StoreBusyError):
        EmbeddedBackend(path, patience=0.2)
    opened_again = EmbeddedBackend(path, patience=0.2)
    opened_again.close()


@pytest.mark.parametrize("lock", WRITE_LOCKS)
def test_a_write_goes_through_when_the_lock_goes_in_time(path: Path, lock: str) -> None:
    with open_backend(path, patience=30) as backend, hold_lock(path, lock) as other:
        writing = threading.Thread(target=backend.send_blocking, args=(put("new"),))
        writing.start()
        other.execute("COMMIT")
        writing.join()
        assert backend.send_blocking(get("new")).item is not None


def test_a_thread_that_cannot_write_does_not_keep_others_from_reading(path: Path) -> None:
    read: list[GetReply] = []
    with open_backend(path, patience=30) as backend, hold_lock(path, "BEGIN IMMEDIATE") as other:
        writing = threading.Thread(target=backend.send_blocking, args=(put("new"),))
        writing.start()
        read.append(backend.send_blocking(get("thing0")))
        other.execute("COMMIT")
        writing.join()
    assert read[0].item is not None


def test_every_request_of_an_event_loop_that_cannot_write_says_so(path: Path) -> None:
    async def write_all(backend: EmbeddedBackend) -> list[object]:
        writes = (backend.send_awaiting(put(f"new{number}")) for number in range(3))
        return [*await asyncio.gather(*writes, return_exceptions=True)]

    with open_backend(path, patience=0.1) as backend, hold_lock(path, "BEGIN IMMEDIATE"):
        outcomes = asyncio.run(write_all(backend))
    assert [type(outcome) for outcome in outcomes] == [StoreBusyError] * 3


def test_a_busy_store_that_could_not_be_opened_holds_nothing_open(path: Path, tmp_path: Path) -> None:
    with hold_lock(path, WHOLE_FILE) as other:
        with pytest.raises(StoreBusyError) as busy:
            EmbeddedBackend(path, patience=0.1)
        other.execute("INSERT INTO tokens VALUES ('t', x'00', 0)")
        assert busy.value.retryable  # the error, and with it the failed opening's frame, lived until here
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]

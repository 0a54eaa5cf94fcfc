"""Exceptions from signal handlers, at any moment: Ctrl-C, a time limit, a handler that closes the store.

Python delivers a signal between any two calls, also right after a lock was taken or a transaction begun. Whatever it
interrupts, the store stays usable, reads stay fresh, and nothing half-written remains.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from rig.torture import ROUNDS

import holdall
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import (
    Add,
    CreateTable,
    GetItem,
    KeyAttribute,
    KeyCondition,
    Query,
    TableSchema,
    Update,
    UpdateItem,
    encode_item,
    path,
    value,
)
from holdall.errors import StoreClosedError

SOURCE = str(Path(holdall.__file__).parent)

# An exception from a handler that lands in a finaliser is reported, by Python, and goes no further.
pytestmark = [
    pytest.mark.torture,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KEY = encode_item({"pk": "a"})
COUNT = UpdateItem("things", KEY, Update((Add(path("n"), value(1)),)))
INTERRUPTS = 150 * ROUNDS


class Interrupted(Exception):
    """Raised by the signal handler."""


@contextmanager
def interrupts(every: float, do: Callable[[], object] = lambda: None) -> Iterator[None]:
    """A signal every so often; where it meets the main thread inside Holdall, its handler does that and raises."""

    def handler(number: int, frame: FrameType | None) -> None:
        if _inside_holdall(frame):
            do()
            raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, every, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _inside_holdall(frame: FrameType | None) -> bool:
    """Whether what was interrupted is Holdall's own doing, and not pytest's hooks that run in between."""
    while frame is not None and "_pytest" not in frame.f_code.co_filename:
        if frame.f_code.co_filename.startswith(SOURCE):
            return True
        frame = frame.f_back
    return False


def read_counter(backend: EmbeddedBackend) -> int:
    item = backend.send_blocking(GetItem("things", KEY, consistent=True)).item
    return 0 if item is None else int(item["n"]["N"])


def interrupt_often(do: Callable[[], Any]) -> int:
    """Do it again and again under interrupts; how often it was interrupted."""
    broken_off = 0
    deadline = time.monotonic() + 120
    with interrupts(0.0007):
        while broken_off < INTERRUPTS and time.monotonic() < deadline:
            try:
                do()
            except Interrupted:
                broken_off += 1
    return broken_off


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedBackend]:
    where = tmp_path / "store.db" if request.param == "file" else None
    backend = EmbeddedBackend(where, durability="normal", patience=5)
    backend.send_blocking(CreateTable(TableSchema("things", KeyAttribute("pk"))))
    yield backend
    backend.close()


def test_interrupted_writes_leave_the_store_usable_and_lose_nothing(store: EmbeddedBackend) -> None:
    told = 0

    def count() -> None:
        nonlocal told
        store.send_blocking(COUNT)
        told += 1

    broken_off = interrupt_often(count)
    assert broken_off
    assert told <= read_counter(store) <= told + broken_off
    before = read_counter(store)
    store.send_blocking(COUNT)
    assert read_counter(store) == before + 1


def test_interrupted_reads_never_make_later_ones_stale(store: EmbeddedBackend) -> None:
    store.send_blocking(COUNT)
    page = Query("things", KeyCondition("pk", {"S": "a"}))
    assert interrupt_often(lambda: store.send_blocking(page))
    for expected in range(2, 12):
        store.send_blocking(COUNT)
        assert read_counter(store) == expected


def test_a_handler_may_close_the_store_in_the_middle_of_a_request(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path / "store.db", durability="normal")
    backend.send_blocking(CreateTable(TableSchema("things", KeyAttribute("pk"))))
    told = 0
    with interrupts(0.05, backend.close), suppress(Interrupted):
        while True:
            backend.send_blocking(COUNT)
            told += 1
    with pytest.raises(StoreClosedError):
        backend.send_blocking(COUNT)
    again = EmbeddedBackend(tmp_path / "store.db")
    assert told <= read_counter(again) <= told + 1
    again.close()

"""Exceptions from signal handlers at any moment: Ctrl-C, a time limit, a handler that closes the store.

Python delivers a signal between any two calls, even right after a lock was acquired or a transaction begun. Whatever it
interrupts, the store stays usable, reads stay fresh, and no partial write remains.
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

# Python reports an exception that a handler raises inside a finalizer, and ignores it otherwise.
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
    """Send a signal at this interval; if it interrupts Holdall's code, its handler calls ``do`` and raises."""

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
    """Whether the signal interrupted Holdall's code, and not pytest's hooks that run in between."""
    while frame is not None and "_pytest" not in frame.f_code.co_filename:
        if frame.f_code.co_filename.startswith(SOURCE):
            return True
        frame = frame.f_back
    return False


def read_counter(backend: EmbeddedBackend) -> int:
    item = backend.send_blocking(GetItem("things", KEY, consistent=True)).item
    return 0 if item is None else int(item["n"]["N"])


def interrupt_often(do: Callable[[], Any]) -> int:
    """Repeat the call with interrupts; return the number of calls that were interrupted."""
    interrupted = 0
    deadline = time.monotonic() + 120
    with interrupts(0.0007):
        while interrupted < INTERRUPTS and time.monotonic() < deadline:
            try:
                do()
            except Interrupted:
                interrupted += 1
    return interrupted


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedBackend]:
    where = tmp_path / "store.db" if request.param == "file" else None
    backend = EmbeddedBackend(where, durability="normal", patience=5)
    backend.send_blocking(CreateTable(TableSchema("things", KeyAttribute("pk"))))
    yield backend
    backend.close()


def test_interrupted_writes_leave_the_store_usable_and_lose_nothing(store: EmbeddedBackend) -> None:
    acknowledged = 0

    def count() -> None:
        nonlocal acknowledged
        store.send_blocking(COUNT)
        acknowledged += 1

    interrupted = interrupt_often(count)
    assert interrupted
    assert acknowledged <= read_counter(store) <= acknowledged + interrupted
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


def test_a_handler_can_close_the_store_during_a_request(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path / "store.db", durability="normal")
    backend.send_blocking(CreateTable(TableSchema("things", KeyAttribute("pk"))))
    acknowledged = 0
    with interrupts(0.05, backend.close), suppress(Interrupted):
        while True:
            backend.send_blocking(COUNT)
            acknowledged += 1
    with pytest.raises(StoreClosedError):
        backend.send_blocking(COUNT)
    again = EmbeddedBackend(tmp_path / "store.db")
    assert acknowledged <= read_counter(again) <= acknowledged + 1
    again.close()

"""SQLite connections: opening, sharing between threads, waiting for locks, and surviving a fork.

**Fork.** SQLite keeps per-file lock state in process memory, and a child inherits it without the locks behind
it: even a *new* connection in the child would then believe in locks it does not hold, and the WAL could be
deleted under it. So just before a fork every store waits for its requests under way, closes its connections
and holds its doors shut; afterwards both processes open new ones. A fork that Python does not announce (a C
extension's) is noticed afterwards by the process id: the store then refuses to work in the child.
A memory store has no file: the child simply has its own copy, like any other object's.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from holdall.backends.embedded import layout
from holdall.core.settings import Durability
from holdall.errors import (
    ConfigurationError,
    OutcomeUnknown,
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreNotWritableError,
)

__all__ = ["Connections"]

T = TypeVar("T")

_KEPT_IDLE = 8
_LONGEST_PAUSE = 0.004


class Connections:
    """The connections of one store: lent one request at a time, at most one of them writing."""

    def __init__(self, path: Path | None, durability: Durability, patience: float) -> None:
        if sqlite3.sqlite_version_info < (3, 35):
            raise ConfigurationError(
                f"SQLite {sqlite3.sqlite_version} is too old; the embedded engine needs 3.35",
                hint="use a Python built with a newer SQLite",
            )
        self.path = path
        self.patience = patience
        self._durability = durability
        self._idle: list[sqlite3.Connection] = []
        self._lent = 0
        self._most = 1 if path is None else 1_000_000
        self._door = threading.Condition()
        self._writer = threading.Lock()
        self._closed = False
        self._forking = False
        self._queue: deque[object] = deque()
        self._process = os.getpid()
        with _registry:  # from here on a fork waits for us
            _open_stores.add(self)
            self._lent = 1
        first: sqlite3.Connection | None = None
        try:
            first = self.patiently(self._opened)
            self.patiently(lambda: self._prepared(first))
        except BaseException:
            if first is not None:
                first.close()
            self.release(None)
            raise
        self.release(first)

    # --- lending ---

    def acquire(self, *, wait: bool = True) -> sqlite3.Connection | None:
        """A connection for this request; None when there is none at once and ``wait`` is false."""
        with self._door:
            if self._queue or not self._admits():
                if not wait:
                    return None
                self._wait_for_turn()
            self.check_open()
            if self._process != os.getpid():
                raise StoreError(
                    "this process was forked from one that had the store open, unnoticed by Python",
                    hint="open the database after the fork",
                )
            self._lent += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self.patiently(self._opened)
        except BaseException:
            self.release(None)
            raise

    def _admits(self) -> bool:
        return self._closed or (not self._forking and (bool(self._idle) or self._lent < self._most))

    def _wait_for_turn(self) -> None:
        """First come, first served: nobody overtakes those who wait."""
        turn = object()
        self._queue.append(turn)
        try:
            while self._queue[0] is not turn or not self._admits():
                self._door.wait()
        finally:
            self._queue.remove(turn)
            self._door.notify_all()

    def check_open(self) -> None:
        """`StoreClosedError` after close()."""
        if self._closed:
            raise StoreClosedError("the database is closed", hint="open it again")

    def release(self, connection: sqlite3.Connection | None) -> None:
        """Give a connection back."""
        if connection is not None and len(self._idle) >= _KEPT_IDLE:
            connection.close()  # before it counts as back: a fork must not meet it half closed
            connection = None
        with self._door:
            self._lent -= 1
            if connection is not None:
                self._idle.append(connection)
            self._door.notify_all()

    def reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work on a connection; the work makes its own snapshot."""
        connection = self.acquire()
        assert connection is not None
        try:
            return self.patiently(lambda: work(connection))
        finally:
            self.release(connection)

    def writing(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in a write transaction: all of it is committed, or an error means none of it is.

        The lock is taken at the start (BEGIN IMMEDIATE), never by upgrading a read.
        """
        if not self._writer.acquire(timeout=self.patience):
            raise self._busy()
        try:
            connection = self.acquire()
            assert connection is not None
            try:
                self.patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
                try:
                    result = work(connection)
                    self._commit(connection)
                except BaseException as error:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    if isinstance(error, sqlite3.Error):
                        raise _translated(error, self.path) from error
                    raise
                return result
            finally:
                self.release(connection)
        finally:
            self._writer.release()

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if _primary(error) != sqlite3.SQLITE_IOERR:
                raise
            # The pages may have reached the log before the disk failed: a later recovery could find them.
            raise OutcomeUnknown(
                f"{self.path} could not be synced to disk ({error}); the last write may or may not survive",
                hint="check the disk, open the store again and read the item",
            ) from error

    def patiently(self, attempt: Callable[[], T]) -> T:
        """Try until other processes let us, with growing random pauses; at last `StoreBusyError`."""
        deadline: float | None = None
        pause = 0.0005
        while True:
            try:
                return attempt()
            except sqlite3.Error as error:
                if not _is_busy(error):
                    raise _translated(error, self.path) from error
            now = time.monotonic()
            deadline = now + self.patience if deadline is None else deadline
            if now >= deadline:
                raise self._busy()
            time.sleep(min(random.random() * pause, deadline - now))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"{self.path or 'the memory store'} stayed locked for {self.patience:g} seconds",
            hint="another process holds it: wait and try again, or end what keeps it open",
        )

    # --- opening ---

    def _opened(self) -> sqlite3.Connection:
        try:
            if self.path is not None:
                _make_parent(self.path)
            connection = sqlite3.connect(
                ":memory:" if self.path is None else self.path,
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except OSError as error:
            raise _translated(error, self.path) from error
        try:
            connection.execute(f"PRAGMA synchronous = {self._durability.upper()}")
            connection.execute("PRAGMA cache_size = -16384")
            connection.execute("PRAGMA journal_size_limit = 67108864")
            return connection
        except BaseException:
            connection.close()
            raise

    def _prepared(self, connection: sqlite3.Connection) -> None:
        """Make the file a current store. Safe to repeat, and beside other processes that do the same."""
        version = layout.file_version(connection)
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete":  # fresh, or a vacuumed copy
            connection.execute("PRAGMA journal_mode = WAL")
        if version == layout.VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            layout.make_current(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    # --- closing and forking ---

    def close(self) -> None:
        """Wait for requests under way, then close all connections for good."""
        with self._door:
            self._closed = True
            self._door.notify_all()
            self._wait_until_none_lent()
            self._close_idle()
        with _registry:
            _open_stores.discard(self)

    def before_fork(self) -> None:
        """Admit nobody, and hold nothing of SQLite's over the fork."""
        with self._door:
            self._forking = True
            self._wait_until_none_lent()
            if self.path is not None:
                self._close_idle()

    def after_fork(self) -> None:
        """Admit requests again, in the parent and in the child."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._door = threading.Condition()
            self._writer = threading.Lock()
            self._queue.clear()  # whoever waited does not exist here
        with self._door:
            self._forking = False
            self._door.notify_all()

    def _wait_until_none_lent(self) -> None:
        while self._lent:
            self._door.wait()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()


_open_stores: weakref.WeakSet[Connections] = weakref.WeakSet()
_registry = threading.RLock()  # held from before a fork until after it, so that two threads fork in turn
_forking: list[Connections] = []


def _before_fork() -> None:
    _registry.acquire()
    _forking[:] = sorted(_open_stores, key=id)
    for store in _forking:
        store.before_fork()


def _after_fork() -> None:
    while _forking:
        _forking.pop().after_fork()
    _registry.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _make_parent(path: Path) -> None:
    """The directory of the file; a new one is made durable before anything is put into it."""
    if path.parent.is_dir():
        return
    _make_parent(path.parent)
    path.parent.mkdir(exist_ok=True)
    handle = os.open(path.parent.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_busy(error: sqlite3.Error) -> bool:
    return _primary(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _primary(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _translated(error: sqlite3.Error | OSError, path: Path | None) -> StoreError:
    """SQLite's errors in our words."""
    where = path or "the memory store"
    if isinstance(error, OSError):
        return StoreNotWritableError(
            f"{where} cannot be opened: {error.strerror}", hint="check the path and its permissions"
        )
    code = _primary(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreCorruptError(
            f"{where} is damaged or is no Holdall store ({error})",
            hint="restore it from a backup; it was left as it is",
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(
            f"no space is left for {where}", hint="make room and try again; nothing was written"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreNotWritableError(
            f"{where} cannot be opened for writing ({error})",
            hint="check that its directory exists and that both are writable",
        )
    return StoreError(f"{where}: {error}")

"""SQLite connections: opening, sharing between threads, waiting for locks, and surviving a fork.

**Fork.** SQLite keeps per-file lock state in process memory, and a child inherits it without the locks themselves: even
a *new* connection in the child would rely on locks that it does not hold, and the WAL could be deleted under it. So
just before a fork, every store waits for its running requests, closes its connections and admits no new requests;
afterwards both processes open new connections. A fork that Python does not announce (by a C extension) is detected
afterwards by the process id: the store then refuses to work in the child. A memory store has no file: the child simply
has its own copy, as of any other object.
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
from typing import TypeAlias, TypeVar

from holdall.backends.embedded.file import (
    check_same_file,
    identify,
    is_busy,
    open_file,
    prepare,
    primary_code,
    translate_error,
)
from holdall.backends.embedded.line import Line, Ticket
from holdall.core.settings import Durability
from holdall.errors import (
    ConfigurationError,
    OutcomeUnknown,
    StoreBusyError,
    StoreClosedError,
    StoreError,
)

T = TypeVar("T")

_KEPT_IDLE = 8
_MOST = 32  # each has its own descriptors and page cache
_LONGEST_PAUSE = 0.004
_LOOK_AGAIN = 0.5
_HEAD_PAUSE = 0.0005


class _Loan:
    """What one request has borrowed from a store: a connection, and perhaps the right to write and a place in the line.

    A signal handler may raise between any two calls (a time limit, Ctrl-C), even before the first step of a
    ``finally``. So the store holds loans only weakly: a loan that could not be returned ends with its request, and the
    next request reclaims what it had.
    """

    __slots__ = ("__weakref__", "_store", "mark", "place", "thread")

    def __init__(self, store: Connections) -> None:
        self._store = store
        self.place: Ticket | None = None
        self.mark = weakref.ref(self)
        self.thread = threading.get_ident()

    def __enter__(self) -> _Loan:
        return self

    def __exit__(self, *_: object) -> None:
        self._store.take_back(self)


_Mark: TypeAlias = "weakref.ref[_Loan]"


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
        self._memory: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._most = 1 if path is None else _MOST
        self._loans: dict[_Mark, sqlite3.Connection | None] = {}
        self._queue: deque[_Mark] = deque()
        self._writer: _Mark | None = None
        self._line = None if path is None else Line(path.with_name(f"{path.name}-wal"))
        self._hang_doors()
        self._closed = False
        self._forking = False
        self._emptied = False
        self._process = os.getpid()
        try:
            with _Loan(self) as loan:
                with _registry:  # from here on, a fork waits for this request
                    _open_stores.add(self)
                    self._loans[loan.mark] = None
                first = self._loans[loan.mark] = self.patiently(self._open)
                self.patiently(lambda: prepare(first))
                self._memory = first if path is None else None
        except BaseException:
            self.close()
            raise

    # --- lending ---

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work on a connection; the work opens its own snapshot."""
        with _Loan(self) as loan:
            connection = self._lend(loan)
            assert connection is not None
            return self.patiently(lambda: work(connection))

    def read_at_once(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """The same if there is nothing to wait for, else None."""
        with _Loan(self) as loan:
            connection = self._lend(loan, wait=False)
            if connection is None:
                return None
            try:
                return work(connection)
            except sqlite3.Error:
                return None  # the other path waits, or reports what is wrong

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do the work in a write transaction: all of it is committed, or an error means none of it is.

        The lock is taken at the start (BEGIN IMMEDIATE), never by upgrading a read. A transaction that an error leaves
        open is rolled back when the connection is returned.
        """
        deadline = time.monotonic() + self.patience
        with _Loan(self) as loan:
            self._lend_pen(loan, deadline)
            connection = self._lend(loan)
            assert connection is not None
            self._begin(loan, connection, deadline)
            self._check_same_file()
            try:
                result = work(connection)
                self._commit(connection)
            except sqlite3.Error as error:
                raise translate_error(error, self.path) from error
            return result

    def _begin(self, loan: _Loan, connection: sqlite3.Connection, deadline: float) -> None:
        """Take SQLite's lock; if it is not free, queue behind the other processes that wait for it."""
        if self._begin_at_once(connection):
            return
        loan.place = None if self._line is None else self._line.enter()
        while loan.place is not None and not loan.place.wait(
            min(_LOOK_AGAIN, max(0.0, deadline - time.monotonic()))
        ):
            if self._begin_at_once(connection):
                return
            if time.monotonic() >= deadline:
                raise self._explain_busy()
        self.patiently(lambda: connection.execute("BEGIN IMMEDIATE"), deadline, longest=_HEAD_PAUSE)

    def _begin_at_once(self, connection: sqlite3.Connection) -> bool:
        """Take SQLite's lock if it is free."""
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if not is_busy(error):
                raise translate_error(error, self.path) from error
            return False
        return True

    def _lend(self, loan: _Loan, *, wait: bool = True) -> sqlite3.Connection | None:
        """A connection for this request; None if none is free and ``wait`` is false."""
        with self._door:
            self._reclaim()
            if self._queue or not self._admits():
                if not wait:
                    return None
                self._wait_for_turn(loan)
            self.check_open()
            if self._process != os.getpid():
                raise StoreError(
                    "this process was forked while the database was open, in a way that Python did not announce",
                    hint="open the database after the fork",
                )
            # an interrupt here may lose a connection, but never one with an open transaction
            self._loans[loan.mark] = connection = self._memory or (self._idle.pop() if self._idle else None)
        if connection is None:
            self._loans[loan.mark] = connection = self.patiently(self._open)
        return connection

    def _lend_pen(self, loan: _Loan, deadline: float) -> None:
        """Wait until this request may write: only one at a time does."""
        with self._pen:
            while self._writer is not None and self._writer() is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise self._explain_busy()
                self._pen.wait(min(left, _LOOK_AGAIN))
            self._writer = loan.mark

    def take_back(self, loan: _Loan) -> None:
        """Take back what was lent."""
        connection = self._loans.get(loan.mark)
        if connection is not None:
            full = self._memory is None and len(self._idle) >= _KEPT_IDLE
            if not _roll_back(connection) or full or self._closed:
                connection.close()  # before it counts as returned: a fork must not see it half closed
                connection = None
        loan.place = None
        with self._door:
            if self._writer is loan.mark:
                self._writer = None
                self._pen.notify()
            self._loans.pop(loan.mark, None)
            if connection is not None and self._memory is None:
                self._idle.append(connection)
            self._door.notify_all()

    def _reclaim(self) -> None:
        """Reclaim what interrupted requests could not return, and roll back their transactions."""
        for mark, connection in list(self._loans.items()):
            if mark() is None:
                if connection is self._memory and connection is not None:
                    _roll_back(connection)
                elif connection is not None:
                    connection.close()
                self._loans.pop(mark, None)

    def _admits(self) -> bool:
        return self._closed or (not self._forking and len(self._loans) < self._most)

    def _wait_for_turn(self, loan: _Loan) -> None:
        """Wait in line: first come, first served."""
        self._queue.append(loan.mark)
        while self._queue[0] is not loan.mark or not self._admits():
            self._door.wait(_LOOK_AGAIN)
            self._reclaim()
            while self._queue[0]() is None:
                self._queue.popleft()
        self._queue.popleft()
        self._door.notify_all()

    def check_open(self) -> None:
        """`StoreClosedError` after close()."""
        if self._closed:
            raise StoreClosedError("the database is closed", hint="open it again")

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if primary_code(error) != sqlite3.SQLITE_IOERR:
                raise
            # the pages may have reached the log before the disk failed, so a later recovery could find them
            raise OutcomeUnknown(
                f"{self.path} could not be synced to disk ({error}); the last write may or may not survive",
                hint="check the disk, open the database again and read the item",
            ) from error

    def patiently(
        self, attempt: Callable[[], T], deadline: float | None = None, *, longest: float = _LONGEST_PAUSE
    ) -> T:
        """Try until other processes release their locks, with growing random pauses; `StoreBusyError` in the end."""
        pause = 0.0005
        while True:
            try:
                return attempt()
            except sqlite3.Error as error:
                if not is_busy(error):
                    raise translate_error(error, self.path) from error
            now = time.monotonic()
            deadline = now + self.patience if deadline is None else deadline
            if now >= deadline:
                raise self._explain_busy()
            time.sleep(min(random.random() * pause, deadline - now))
            pause = min(pause * 2, longest)

    def _explain_busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"{self.path or 'the database in memory'} stayed locked for {self.patience:g} seconds",
            hint="another process holds the lock: try again later, or end that process's long transaction",
        )

    def _open(self) -> sqlite3.Connection:
        """A connection to the same file that was opened first."""
        if self.path is None:
            return open_file(None, self._durability)
        if self._file is None:
            connection = open_file(self.path, self._durability)
            self._file = identify(self.path)
            return connection
        self._check_same_file()  # for a missing file, SQLite's own error is less clear
        connection = open_file(self.path, self._durability, make=False)
        try:
            self._check_same_file()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_same_file(self) -> None:
        """Refuse to write to a file that is no longer at the path: the write would be lost."""
        if self.path is not None and self._file is not None:
            check_same_file(self.path, self._file)

    # --- closing and forking ---

    def close(self) -> None:
        """Wait for running requests, then close all connections for good."""
        with self._door:
            self._closed = True
            self._door.notify_all()
            if self._none_lent() and self._memory is not None:
                self._memory.close()
            self._close_idle()
        if self._line is not None:
            self._line.close()
        with _registry:
            _open_stores.discard(self)

    def before_fork(self) -> None:
        """Admit no requests, and keep no SQLite connection open during the fork."""
        with self._door:
            self._emptied = False
            self._forking = True
            self._emptied = self._none_lent()
            self._close_idle()

    def after_fork(self) -> None:
        """Admit requests again, in the parent and in the child."""
        if self._process != os.getpid():
            self._hang_doors()
            if self._line is not None:
                self._line.forget()
            self._writer = None
            self._queue.clear()  # the waiting threads do not exist here
            if self._emptied:
                self._process = os.getpid()
            else:  # a signal handler forked, or interrupted the wait: inherited connections are not used or closed
                _parked.extend(self._idle)
                self._idle.clear()
                self._loans.clear()
        with self._door:
            self._forking = False
            self._door.notify_all()

    def _hang_doors(self) -> None:
        lock = threading.RLock()
        self._door = threading.Condition(lock)
        self._pen = threading.Condition(lock)

    def _none_lent(self) -> bool:
        """Wait for the running requests; False if one is this thread's own, which runs a signal handler."""
        mine = threading.get_ident()
        self._reclaim()
        while (threads := self._borrowers()) - {mine}:
            self._door.wait(_LOOK_AGAIN)
        return not threads

    def _borrowers(self) -> set[int]:
        return {loan.thread for mark in self._loans if (loan := mark()) is not None}

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()


_open_stores: weakref.WeakSet[Connections] = weakref.WeakSet()
_registry = threading.RLock()  # held from before a fork until after it, so that threads fork one at a time
_forking: list[Connections] = []
_parked: list[sqlite3.Connection] = []


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


def _roll_back(connection: sqlite3.Connection) -> bool:
    """Roll back what an interrupted request left open; False if that failed and the connection was closed."""
    try:
        if connection.in_transaction:
            connection.rollback()
    except sqlite3.Error:
        connection.close()
        return False
    return True

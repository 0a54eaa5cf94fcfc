"""The line in which processes wait to write: the operating system wakes the next one, so that none has to poll.

A place in the line is an operating-system lock (``flock``) on the write-ahead log, which SQLite itself never locks; so
no extra file is needed. It belongs to one open file, not to the process, and the system frees it when the process dies.
SQLite's own lock still decides which process writes. A process that waits here also tries SQLite's lock now and then: a
process that does not use the line, one that was stopped at the head of it, or a file system without locks costs time
and nothing else.

``flock`` cannot wait for a limited time, so a separate thread waits in it. A place ends when both that thread and the
request are done with it; so a request that is interrupted anywhere leaves nothing locked.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias

try:
    import fcntl
except ImportError:  # pragma: no cover - not on this system: requests poll SQLite
    fcntl = None  # type: ignore[assignment]


class _Lock:
    """The log, opened once more and locked later; dropping the last reference unlocks it."""

    __slots__ = ("file",)

    def __init__(self, log: Path) -> None:
        self.file = os.open(log, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if hasattr(self, "file"):
            with suppress(OSError):
                fcntl.flock(self.file, fcntl.LOCK_UN)  # closing is not enough: a child may have it open
            os.close(self.file)


class Ticket:
    """A request's place in the line, until it is dropped."""

    __slots__ = ("_lock", "_turn")

    def __init__(self, lock: _Lock, turn: threading.Lock) -> None:
        self._lock = lock
        self._turn = turn

    def wait(self, seconds: float) -> bool:
        """Wait for our turn, up to the timeout; return whether it came."""
        return self._turn.acquire(timeout=seconds)


_Asked: TypeAlias = "SimpleQueue[tuple[_Lock, threading.Lock] | None]"


class Line:
    """The line of one store; at most one request of this process is in it at a time."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._asked: _Asked | None = None

    def enter(self) -> Ticket | None:
        """A place at the end of the line; None if there is no line, so that the request must poll."""
        if fcntl is None:
            return None
        try:
            if self._asked is None:
                asked: _Asked = SimpleQueue()
                threading.Thread(
                    target=_wait_in_line, args=(asked,), name="holdall-line", daemon=True
                ).start()
                self._asked = asked
            lock, turn = _Lock(self._log), threading.Lock()
        except (OSError, RuntimeError):  # no log, no more descriptors, no more threads
            return None
        turn.acquire()
        self._asked.put((lock, turn))
        return Ticket(lock, turn)

    def close(self) -> None:
        """End the thread."""
        if self._asked is not None:
            self._asked.put(None)
            self._asked = None

    __del__ = close

    def forget(self) -> None:
        """Forget the thread, which does not exist in a forked child."""
        self._asked = None


def _wait_in_line(asked: _Asked) -> None:
    while (request := asked.get()) is not None:
        lock, turn = request
        with suppress(OSError):  # without locks, every request may go
            fcntl.flock(lock.file, fcntl.LOCK_EX)
        turn.release()
        del request, lock, turn

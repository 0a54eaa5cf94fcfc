"""The line in which processes wait to write, so that the system wakes the next one and the others do not keep asking.

A place in the line is a lock of the system (``flock``) on the write-ahead log, which SQLite itself never locks; so
there is no further file. It belongs to one open file, not to the process, and the system frees it when the process
dies. SQLite's own lock still decides who writes. Who waits here asks SQLite too, now and then: a process without the
line, one that was stopped at the head of it, or a file system without locks cost time and nothing else.

``flock`` cannot wait for a limited time, so a thread of ours waits in it. A place ends when both that thread and the
request are done with it; a request that is broken off anywhere thus leaves nothing locked.
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
except ImportError:  # pragma: no cover - not on this system: requests ask SQLite again and again
    fcntl = None  # type: ignore[assignment]

__all__ = ["Line", "Place"]


class _Lock:
    """The log, open once more, and locked at some time; what is locked is unlocked with the last reference to it."""

    __slots__ = ("file",)

    def __init__(self, log: Path) -> None:
        self.file = os.open(log, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if hasattr(self, "file"):
            with suppress(OSError):
                fcntl.flock(self.file, fcntl.LOCK_UN)  # closing would not do: a forked child may have it open
            os.close(self.file)


class Place:
    """A request's place in the line, until it is dropped."""

    __slots__ = ("_lock", "_turn")

    def __init__(self, lock: _Lock, turn: threading.Lock) -> None:
        self._lock = lock
        self._turn = turn

    def wait(self, seconds: float) -> bool:
        """Wait until it is our turn, or for so long; whether it is."""
        return self._turn.acquire(timeout=seconds)


_Asked: TypeAlias = "SimpleQueue[tuple[_Lock, threading.Lock] | None]"


class Line:
    """The line of one store; from this process only one request at a time stands in it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._asked: _Asked | None = None

    def enter(self) -> Place | None:
        """A place at the end of the line; None where there is no line, and one can only ask again and again."""
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
        return Place(lock, turn)

    def close(self) -> None:
        """End the thread."""
        if self._asked is not None:
            self._asked.put(None)
            self._asked = None

    __del__ = close

    def forget(self) -> None:
        """In a forked child the thread does not exist."""
        self._asked = None


def _wait_in_line(asked: _Asked) -> None:
    while (request := asked.get()) is not None:
        lock, turn = request
        with suppress(OSError):  # where there are no locks, it is everybody's turn
            fcntl.flock(lock.file, fcntl.LOCK_EX)
        turn.release()
        del request, lock, turn

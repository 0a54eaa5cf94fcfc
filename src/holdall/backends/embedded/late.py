"""A store whose file does not exist yet: the first write creates it, so a program that only reads leaves no file."""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TypeVar

from holdall.backends.embedded.engine import EmbeddedBackend
from holdall.backends.fork import call_after_fork
from holdall.core.requests import Request
from holdall.core.settings import Durability

R = TypeVar("R")


def open_late(path: str, durability: Durability) -> EmbeddedBackend | LateBackend:
    """The store of a file; if there is none, but there can be, it is created later."""
    file = Path(path).absolute()
    above = next(parent for parent in file.parents if parent.exists())
    if file.exists() or not above.is_dir():
        return EmbeddedBackend(file, durability=durability)
    return LateBackend(file, durability)


class LateBackend:
    """An empty store until something is written, here or by another process."""

    sees_through = True  # as the embedded engine

    def __init__(self, file: Path, durability: Durability) -> None:
        self._file = file
        self._durability = durability
        self._empty = EmbeddedBackend(None)
        self._store: EmbeddedBackend | None = None
        self._is_closed = False
        self._forget()
        call_after_fork(self._forget)

    def _forget(self) -> None:
        """In a forked child, the holder of the lock may be missing."""
        self._lock = Lock()

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request in this thread."""
        return self._find(request.writes).send_blocking(request)

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request as the embedded engine does."""
        return await self._find(request.writes).send_awaiting(request)

    def _find(self, writes: bool) -> EmbeddedBackend:
        if self._store is not None:
            return self._store
        with self._lock:
            if self._store is None and not self._is_closed and (writes or self._file.exists()):
                self._store = EmbeddedBackend(self._file, durability=self._durability)
            return self._store or self._empty

    def close(self) -> None:
        """Finish running requests and close the file, if there is one."""
        with self._lock:
            self._is_closed = True
        self._empty.close()
        if self._store is not None:
            self._store.close()

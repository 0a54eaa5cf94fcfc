"""Directories below a root: opened without following links, created durably, and removed when they are empty.

Every name is resolved relative to an open directory, step by step from the root: a symbolic link on the way is an
error, wherever it points, and no path is too long.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from holdall.backends.durability import make_directory
from holdall.errors import ConfigurationError, StoreBusyError

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS = 1000
_PAUSES = (0.0005,) * 40 + (0.02,) * 50
_PATIENCE = (0.0005,) * 40 + (0.02,) * 1500
_NO_LOCKS = {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class Directories:
    """The directories of one root. The root itself may be a link; it is created by the first write."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def open(self, names: Sequence[str]) -> Iterator[int]:
        """An existing directory; `FileNotFoundError` or `NotADirectoryError` if there is none."""
        handle = self._descend(names, make=False)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def make(self, names: Sequence[str]) -> Iterator[int]:
        """A directory, created if necessary. While it is empty, a deletion may remove it again."""
        handle = self._open_or_make(names)
        try:
            yield handle
        finally:
            os.close(handle)

    def remove_empty(self, names: Sequence[str], keep: int) -> None:
        """Remove a directory and those above it while they are empty, except the first ``keep``."""
        for end in range(len(names), keep, -1):
            try:
                with self.open(names[: end - 1]) as parent:
                    os.rmdir(names[end - 1], dir_fd=parent)
            except OSError:
                return  # not empty, already gone, or not permitted: then it stays

    def _open_or_make(self, names: Sequence[str]) -> int:
        for _ in range(_ATTEMPTS):
            # a new directory is empty, so a deletion may remove it again
            with suppress(FileNotFoundError):
                return self._descend(names, make=True)
        return self._descend(names, make=True)

    def _descend(self, names: Sequence[str], *, make: bool) -> int:
        handle = self._open_root(make)
        try:
            for name in names:
                try:
                    inner = os.open(name, _OPEN, dir_fd=handle)
                except FileNotFoundError:
                    if not make:
                        raise
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=handle)
                    os.fsync(handle)  # it survives a power cut before anything is put into it
                    inner = os.open(name, _OPEN, dir_fd=handle)
                os.close(handle)
                handle = inner
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _open_root(self, make: bool) -> int:
        try:
            return os.open(self.root, _OPEN & ~os.O_NOFOLLOW)
        except FileNotFoundError:
            if not make:
                raise
        make_directory(self.root)
        return os.open(self.root, _OPEN & ~os.O_NOFOLLOW)


@contextmanager
def lock_file(file: int) -> Iterator[None]:
    """Hold an exclusive lock on an open file, against other threads and processes."""
    with unlock_at_end(file, _lock(file, fcntl.LOCK_EX)):
        yield


@contextmanager
def lock_for_order(directory: int) -> Iterator[None]:
    """The same for a directory and work of microseconds, where the lock only keeps things tidy.

    If another process was stopped while it held the lock, this one continues without it after a second. It also does so
    if the file system has no locks for directories, like NFS.
    """
    with unlock_at_end(directory, _wait_for_lock(directory, _PAUSES) is True):
        yield


@contextmanager
def lock_for_sure(directory: int) -> Iterator[None]:
    """The same where correctness depends on the lock: without it, nothing is done.

    `StoreBusyError` if another process has held it for half a minute, `ConfigurationError` if the file system has no
    locks.
    """
    locked = _wait_for_lock(directory, _PATIENCE)
    if locked is None:
        raise StoreBusyError(
            "another process has held the lock on a directory of this file service for half a minute",
            hint="check whether that process is stopped or hangs",
        )
    if not locked:
        raise ConfigurationError(
            "if_match needs locks for directories, which this file system does not have",
            hint="keep the files on a local disk, or write without if_match",
        )
    with unlock_at_end(directory, locked):
        yield


def _wait_for_lock(directory: int, pauses: Iterable[float]) -> bool | None:
    """Lock the directory; False if the file system has no locks, None if another process held it all the time."""
    for pause in pauses:
        try:
            return _lock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
    return None


def _lock(file: int, how: int) -> bool:
    """Lock the file; False if the file system has no locks."""
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


@contextmanager
def unlock_at_end(file: int, locked: bool) -> Iterator[None]:
    """Unlock an open file at the end of the block, if it was locked."""
    try:
        yield
    finally:
        if locked:
            fcntl.flock(file, fcntl.LOCK_UN)  # closing is not enough: a forked child may still have it open

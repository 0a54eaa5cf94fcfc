"""Directories below a root: opened without following links, made to last, and removed when they are empty.

Everything is named relative to an open directory, step by step from the root: a symbolic link on the way is an error,
wherever it points, and no path is too long.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from holdall.errors import ConfigurationError, StoreBusyError

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS = 1000
_PAUSES = (0.0005,) * 40 + (0.02,) * 50
_PATIENCE = (0.0005,) * 40 + (0.02,) * 1500
_NO_LOCKS = {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class Directories:
    """The directories of one root. The root itself may be a link; it is made when something is to be written."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def open(self, names: Sequence[str]) -> Iterator[int]:
        """A directory that is there; `FileNotFoundError` or `NotADirectoryError` when there is none."""
        handle = self._descend(names, make=False)
        try:
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def make(self, names: Sequence[str]) -> Iterator[int]:
        """A directory, made if need be. As long as it is empty, a deletion in it may remove it again."""
        handle = self._open_or_make(names)
        try:
            yield handle
        finally:
            os.close(handle)

    def remove_empty(self, names: Sequence[str], keep: int) -> None:
        """Remove a directory and those above it as far as they are empty, but for the first ``keep``."""
        for end in range(len(names), keep, -1):
            try:
                with self.open(names[: end - 1]) as parent:
                    os.rmdir(names[end - 1], dir_fd=parent)
            except OSError:
                return  # not empty, not there, or not ours to remove: it may as well stay

    def _open_or_make(self, names: Sequence[str]) -> int:
        for _ in range(_ATTEMPTS):
            # what we have made is empty, and may be removed again by a deletion
            with suppress(FileNotFoundError):
                return self._descend(names, make=True)
        return self._descend(names, make=True)

    def _descend(self, names: Sequence[str], *, make: bool) -> int:
        handle = self._open_root(make)
        try:
            for name in names:
                if make:
                    _make(name, handle)
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
        _make_lasting(self.root)
        return os.open(self.root, _OPEN & ~os.O_NOFOLLOW)


@contextmanager
def lock_file(file: int) -> Iterator[None]:
    """Keep all others who ask for it, threads and processes, from working on an open file."""
    with _unlock(file, _lock(file, fcntl.LOCK_EX)):
        yield


@contextmanager
def lock_for_order(directory: int) -> Iterator[None]:
    """The same for a directory and work of microseconds, for order's sake alone.

    Somebody may have been stopped in the middle of it: after a second we go on without. Likewise where there are no
    locks for directories, as on NFS.
    """
    for pause in _PAUSES:
        try:
            locked = _lock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
            continue
        with _unlock(directory, locked):
            yield
        return
    yield


@contextmanager
def lock_for_sure(directory: int) -> Iterator[None]:
    """The same where something depends on it: without the lock nothing is done.

    `StoreBusyError` when somebody has held it for half a minute, `ConfigurationError` where there are none.
    """
    for pause in _PATIENCE:
        try:
            locked = _lock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause)
            continue
        if not locked:
            raise ConfigurationError(
                "this file system has no locks for directories, without which nothing can depend on what is there",
                hint="keep the files on a local disk, or write without if_match",
            )
        with _unlock(directory, locked):
            yield
        return
    raise StoreBusyError(
        "another process holds a directory of this service, and does not go on", hint="look what stopped it"
    )


def _lock(file: int, how: int) -> bool:
    """Whether there is a lock now: some file systems have none."""
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


@contextmanager
def _unlock(file: int, locked: bool) -> Iterator[None]:
    try:
        yield
    finally:
        if locked:
            fcntl.flock(file, fcntl.LOCK_UN)  # closing it would not do: a forked child may still have it open


def _make(name: str, parent: int) -> None:
    """A directory that survives a power cut before anything is put into it."""
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
        os.fsync(parent)


def _make_lasting(path: Path) -> None:
    if path.is_dir():
        return
    _make_lasting(path.parent)
    path.mkdir(exist_ok=True)
    handle = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

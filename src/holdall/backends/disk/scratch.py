"""Drafts, which readers do not see yet: where they are written, and what happens to them if their process dies.

They are in ``_/temporary``, on the root's own file system, so that they can be renamed to their final place. The
process that writes a draft holds a lock on it while it lives. A draft that is not locked and is an hour old is litter;
on a file system without locks, litter stays.

A draft of attributes gets its second name, beside the bytes, before these are in place. If its process dies in between,
the draft says what that name is, and both are removed.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from holdall.backends.disk.attribute import beside, etag_of, parse_note
from holdall.backends.disk.directory import Directories
from holdall.backends.disk.path import OWN, place_of
from holdall.backends.disk.transfer import read_range
from holdall.errors import InvalidObjectKeyError

_DIRECTORY = (OWN, "temporary")
_AGE = 3600.0
_NOTE = ".json"
_ATTEMPTS = 10
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Draft(NamedTuple):
    """A file that is being written: its directory, its name there, and the file itself; the handles are open."""

    directory: int
    name: str
    file: int


class Scratch:
    """The directory of drafts."""

    def __init__(self, directories: Directories, clock: Callable[[], float]) -> None:
        self._directories = directories
        self._clock = clock
        self._swept: float | None = None
        self._others: list[Callable[[float], None]] = []

    def sweep_too(self, sweep: Callable[[float], None]) -> None:
        """Also call this function when litter is swept, with the time before which files are litter."""
        self._others.append(sweep)

    @contextmanager
    def draft(self, *, note: bool = False) -> Iterator[Draft]:
        """A new file, for bytes or for attributes (``note``); its name here is removed at the end of the block."""
        self._sweep_at_times()
        with self._directories.make(_DIRECTORY) as directory:
            name = os.urandom(16).hex() + (_NOTE if note else "")
            file = os.open(name, _NEW, 0o666, dir_fd=directory)
            try:
                with suppress(OSError):  # without locks, nothing is swept
                    fcntl.flock(file, fcntl.LOCK_EX)
                yield Draft(directory, name, file)
            finally:
                with suppress(OSError):  # it was renamed, or it stays as litter
                    os.unlink(name, dir_fd=directory)
                os.close(file)

    @contextmanager
    def draft_directory(self) -> Iterator[Draft]:
        """A new directory, which the block must rename."""
        with self._directories.make(_DIRECTORY) as parent:
            name = os.urandom(16).hex()
            os.mkdir(name, dir_fd=parent)
            try:
                with self._directories.open((*_DIRECTORY, name)) as handle:
                    yield Draft(parent, name, handle)
            except BaseException:
                _remove_tree(parent, name)
                raise

    def remove_directory(self, parent: int, name: str) -> None:
        """Remove a directory from its place in one step, and then delete everything in it."""
        with self._directories.make(_DIRECTORY) as here:
            away = os.urandom(16).hex()
            os.rename(name, away, src_dir_fd=parent, dst_dir_fd=here)
            _remove_tree(here, away)

    # --- litter ---

    def _sweep_at_times(self) -> None:
        now = self._clock()
        if self._swept is not None and now < self._swept + _AGE:
            return
        self._swept = now
        with suppress(OSError), self._directories.open(_DIRECTORY) as here:
            for name in os.listdir(here):  # noqa: PTH208 - an open directory
                with suppress(OSError):  # litter that cannot be removed does not prevent writes
                    self._sweep(here, name, now - _AGE)
        for sweep in self._others:
            with suppress(OSError):
                sweep(now - _AGE)

    def _sweep(self, here: int, name: str, before: float) -> None:
        found = os.stat(name, dir_fd=here, follow_symlinks=False)
        if found.st_ctime >= before:
            return
        if stat.S_ISDIR(found.st_mode):
            _remove_tree(here, name)
            return
        file = os.open(name, _OLD, dir_fd=here)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if a process is still writing it
            if name.endswith(_NOTE):
                self._sweep_attributes(file)
            os.unlink(name, dir_fd=here)
        finally:
            os.close(file)

    def _sweep_attributes(self, file: int) -> None:
        """Remove attributes whose bytes were never put in place."""
        draft = os.fstat(file)
        note = parse_note(read_range(file, 0, draft.st_size))
        if draft.st_nlink < 2 or note is None:
            return
        etag = note.etag
        with suppress(FileNotFoundError, InvalidObjectKeyError):
            directories, name = place_of(note.key)
            with self._directories.open(directories) as there:
                second = os.stat(beside(name, etag), dir_fd=there, follow_symlinks=False)
                if second.st_ino == draft.st_ino and etag_at(there, name) != etag:
                    os.unlink(beside(name, etag), dir_fd=there)


def etag_at(directory: int, name: str) -> str | None:
    """The identity of the bytes under a name; None if there are none."""
    try:
        return etag_of(os.stat(name, dir_fd=directory, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _remove_tree(parent: int, name: str) -> None:
    """Remove a directory with everything in it. Another process may still be adding files to it."""
    import shutil  # rarely needed, and slow to load

    for _ in range(_ATTEMPTS):
        try:
            shutil.rmtree(name, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError:
            continue
        return

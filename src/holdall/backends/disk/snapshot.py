"""Snapshots of a service on disk: links to the files of all objects as of one moment, for a backup.

The gate is a lock on the root. A process that deletes an object or replaces its bytes holds the lock *shared* for that
step; a snapshot holds it *exclusively* from its beginning until all files are linked. So what existed at its beginning
is still there when it is linked, and then stays, because a link keeps the bytes of a file that is deleted or replaced
later. The kernel releases the locks of a process that dies.

The links are in ``_/snapshots/<id>``, on the service's own file system. The process that made them holds a lock on that
directory; the next snapshot removes directories that no process holds.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdall.backends.disk.directory import Directories, unlock_at_end
from holdall.backends.disk.path import OWN
from holdall.backends.disk.transfer import copy_range
from holdall.backends.durability import sync_path
from holdall.core.requests import Done
from holdall.core.snapshots import Snapshot
from holdall.errors import ConfigurationError, InvalidRequestError, StoreBusyError, StoreNotWritableError

_SNAPSHOTS = "snapshots"
_OURS_ALONE = {"temporary", "uploads", _SNAPSHOTS}
_DRAFT = "~restoring"
_PATIENCE = 600.0
_PAUSE = 0.01


class Gate:
    """Lets deletions and replacements through, except while a snapshot is being linked."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Hold the gate open for one deletion or replacement; waits for a snapshot that is being linked."""
        with self._directories.open(()) as root, unlock_at_end(root, _lock(root, fcntl.LOCK_SH)):
            yield

    def close(self) -> int:
        """Wait for running deletions, and keep others waiting until `open` is called with the returned handle."""
        with self._directories.make((OWN,)):
            root = os.open(self._directories.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not _lock(root, fcntl.LOCK_EX):
                raise ConfigurationError(
                    f"the file system of {self._directories.root} has no locks, which a backup needs",
                    hint="keep the files on a local disk",
                )
        except BaseException:
            os.close(root)
            raise
        return root

    def open(self, handle: int) -> None:
        """Let deletions and replacements continue."""
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _lock(file: int, how: int) -> bool:
    """Take a lock; False if the file system has none."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreBusyError(
                    "a backup has kept deletions of objects waiting for ten minutes",
                    hint="check whether the process that makes the backup is stopped or hangs",
                ) from None
            time.sleep(_PAUSE)
        except OSError:
            return False
        else:
            return True


class Snapshots:
    """The snapshots of one service."""

    def __init__(self, root: Path, gate: Gate) -> None:
        self._root = root
        self._gate = gate
        # of each snapshot: the gate while it is closed, and the directory's lock
        self._open: dict[str, tuple[int | None, int]] = {}

    def begin(self) -> Snapshot:
        """Close the gate, and make a directory for the links."""
        gate = self._gate.close()
        try:
            home = self._root / OWN / _SNAPSHOTS
            home.mkdir(exist_ok=True)
            self._remove_abandoned(home)
            id = os.urandom(8).hex()
            (home / id).mkdir()
            lock = os.open(home / id, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            self._gate.open(gate)
            raise
        self._open[id] = gate, lock
        return Snapshot(id, str(home / id))

    def link(self, id: str) -> Done:
        """Link all files, and open the gate."""
        gate, lock = self._find(id)
        if gate is None:
            raise InvalidRequestError(f"the snapshot {id} is linked already")
        try:
            link_tree(self._root, self._root / OWN / _SNAPSHOTS / id)
        finally:
            self._open[id] = None, lock
            self._gate.open(gate)
        return Done()

    def end(self, id: str) -> Done:
        """Open the gate, if it is still closed, and remove the links."""
        gate, lock = self._find(id)
        del self._open[id]
        if gate is not None:
            self._gate.open(gate)
        shutil.rmtree(self._root / OWN / _SNAPSHOTS / id, ignore_errors=True)
        os.close(lock)
        return Done()

    def _find(self, id: str) -> tuple[int | None, int]:
        found = self._open.get(id)
        if found is None:
            raise InvalidRequestError(f"there is no open snapshot {id!r:.60}")
        return found

    def _remove_abandoned(self, home: Path) -> None:
        """Remove the links of processes that died."""
        for each in home.iterdir():
            with suppress(OSError):
                handle = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(each)
                finally:
                    os.close(handle)


def link_tree(source: Path, target: Path, *, top: bool = True) -> None:
    """Link all regular files below a root; a file that is renamed or deleted meanwhile is left out."""
    with os.scandir(source) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                (target / entry.name).mkdir(exist_ok=True)
                if top and entry.name == OWN:
                    for inner in path.iterdir():
                        if inner.name not in _OURS_ALONE:
                            (target / OWN / inner.name).mkdir(exist_ok=True)
                            link_tree(inner, target / OWN / inner.name, top=False)
                else:
                    link_tree(path, target / entry.name, top=False)
            elif entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):  # the attributes of bytes that were just replaced
                    os.link(path, target / entry.name, follow_symlinks=False)


def adopt_tree(source: Path, root: Path) -> Done:
    """Copy all files below a directory into a root, with their times, which are part of their identity.

    Refused if the root has a file that the directory does not have, or has with other bytes: an interrupted copy can be
    repeated, but nothing is replaced.
    """
    _check_part_of(root, source)
    _copy_tree(source, root)
    return Done()


def _check_part_of(root: Path, source: Path) -> None:
    for path, directories, names in os.walk(root):
        place = Path(path).relative_to(root)
        if place.parts == (OWN,):
            directories[:] = [name for name in directories if name not in _OURS_ALONE]
        for name in names:
            theirs = source / place / name
            if not name.endswith(_DRAFT) and not (theirs.is_file() and _same(theirs, Path(path) / name)):
                raise StoreNotWritableError(
                    f"{root} already has {place / name}, which is not part of the backup",
                    hint="restore the files to an empty directory",
                )


def _same(one: Path, other: Path) -> bool:
    first, second = one.stat(), other.stat()
    return (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)


def _copy_tree(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(os.scandir(source), key=lambda each: each.name):
        there = target / entry.name
        if entry.is_dir(follow_symlinks=False):
            _copy_tree(Path(entry.path), there)
        elif not there.exists():
            draft = there.with_name(f"{entry.name[:100]}{_DRAFT}")
            _copy_file(Path(entry.path), draft)
            draft.rename(there)
    sync_path(target)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as original, target.open("wb") as copy:
        found = os.fstat(original.fileno())
        copy_range(original.fileno(), 0, found.st_size, copy.fileno(), 0)
        os.utime(copy.fileno(), ns=(found.st_mtime_ns, found.st_mtime_ns))
        os.fsync(copy.fileno())

"""Objects on disk: found, put, copied and deleted, so that each exists completely or not at all.

**How a put becomes visible, and why a crash is safe after each step.**

1. The bytes are written to a draft, which readers do not see. After a crash it is litter.
2. The draft gets the time that makes up its identity, and is synced. Still litter.
3. Its attributes are written, synced, and get their name in the object's directory. They are named after bytes that do
   not exist there yet: readers of the old bytes look for another name. After a crash, the litter says what that name
   is.
4. The bytes get their name in one step (``rename``; ``link`` if nothing may be replaced). From here on, readers find
   the new bytes and their attributes, which were there before.
5. The directory is synced; only then is the put acknowledged. A power cut before that may undo step 4, or 4 and 3,
   because a journal keeps their order.
6. The attributes of the old bytes are removed. A crash before that leaves a small file that no reader looks for.

Step 4 and deletions wait while a snapshot is being linked (`holdall.backends.disk.snapshot`).

A process that replaces or deletes bytes holds a lock on their directory while it looks at the old bytes and replaces
them; so it knows which attributes step 6 removes. Without locks, such a small file may remain. Only operations with
``if_match`` depend on the lock, and are refused without it. One gap remains: a process that is stopped for more than a
second while it holds the lock is overtaken by operations without ``if_match``, and may undo their work.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import groupby
from typing import NamedTuple

from holdall.backends.disk.attribute import (
    Attributes,
    beside,
    encode_attributes,
    etag_of,
    info_of,
    parse_note,
)
from holdall.backends.disk.copy import Copies
from holdall.backends.disk.directory import Directories, lock_for_order, lock_for_sure
from holdall.backends.disk.path import permanent, place_of
from holdall.backends.disk.scratch import Draft, Scratch, etag_at
from holdall.backends.disk.snapshot import Gate
from holdall.backends.disk.transfer import READ, read_file, write_at
from holdall.backends.refusal import refuse_other, refuse_taken
from holdall.core.objects import ObjectInfo
from holdall.errors import ObjectNotFoundError, OutcomeUnknown

_MICROSECOND = 1000
_DOUBLINGS = 30
_ATTEMPTS = 1000


class Found(NamedTuple):
    """An object's bytes, open, with the attributes that belong to them."""

    key: str
    file: int
    stat: os.stat_result
    attributes: Attributes | None

    @property
    def info(self) -> ObjectInfo:
        """Its description."""
        return info_of(self.key, self.stat, self.attributes)


class Objects:
    """The objects below a root."""

    def __init__(self, directories: Directories, scratch: Scratch, gate: Gate) -> None:
        self._directories = directories
        self._scratch = scratch
        self._gate = gate
        self._copies = Copies()

    @contextmanager
    def open(self, key: str, if_match: str | None = None) -> Iterator[Found]:
        """An object; `ObjectNotFoundError` if it is missing, `PreconditionFailedError` if it is not the expected
        one."""
        found = self._find(key)
        try:
            if if_match is not None and if_match != etag_of(found.stat):
                raise refuse_other(key)
            yield found
        finally:
            os.close(found.file)

    def check_absent(self, key: str) -> None:
        """Refuse to continue if the object exists."""
        with suppress(ObjectNotFoundError), self.open(key):
            raise refuse_taken(key)

    def check_match(self, key: str, etag: str) -> None:
        """Refuse to continue unless the object has that etag."""
        try:
            with self.open(key, etag):
                return
        except ObjectNotFoundError:
            raise refuse_other(key) from None

    def publish(
        self, key: str, draft: Draft, attributes: Attributes, *, absent: bool, if_match: str | None = None
    ) -> ObjectInfo:
        """Make a draft the object of a key; with ``absent``, only if there is none."""
        directories, name = place_of(key)
        with self._scratch.draft(note=True) as note:
            for attempt in range(_ATTEMPTS):
                with self._directories.make(directories) as directory:
                    try:
                        publication = _Publication(key, name, directory, draft, note, attributes, self._gate)
                        return publication.make(absent, if_match)
                    except FileNotFoundError:
                        # a deletion may remove the empty directory before anything is put into it
                        if attempt == _ATTEMPTS - 1:
                            raise
        raise AssertionError("the last attempt returns or raises")

    def delete(self, keys: Iterable[str]) -> dict[str, OSError]:
        """Delete objects; returns the error for each that could not be deleted."""
        failures: dict[str, OSError] = {}
        places = sorted((place_of(key), key) for key in set(keys))
        for directories, group in groupby(places, lambda pair: pair[0].directories):
            names = {place.name: key for place, key in group}
            try:
                with self._gate.enter(), self._directories.open(directories) as directory:
                    failures |= {names[name]: error for name, error in _delete_in(directory, names).items()}
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                failures |= dict.fromkeys(names.values(), error)
                continue
            self._directories.remove_empty(directories, permanent(directories))
        return failures

    def delete_match(self, key: str, etag: str) -> None:
        """Delete the object with that etag; `PreconditionFailedError` if it has another one."""
        directories, name = place_of(key)
        try:
            with self._gate.enter(), self._directories.open(directories) as directory:
                _delete_match_in(directory, name, key, etag)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._directories.remove_empty(directories, permanent(directories))

    def _find(self, key: str) -> Found:
        directories, name = place_of(key)
        try:
            while True:
                with self._directories.open(directories) as directory:
                    found = self._open(key, name, directory)
                if found is not None:
                    return found
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectNotFoundError(f"there is no object {key!r}") from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise ObjectNotFoundError(
                f"there is no object {key!r}, only a symbolic link, which is not followed"
            ) from None

    def _open(self, key: str, name: str, directory: int) -> Found | None:
        """The object with a name in a directory; None if it was just replaced: open it again."""
        file = os.open(name, READ, dir_fd=directory)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError
            attributes = _attributes(directory, beside(name, etag_of(found)))
            if attributes is None:
                if not _same(found, os.stat(name, dir_fd=directory, follow_symlinks=False)):
                    os.close(file)
                    return None
                attributes = self._copies.recognize(key, name, directory, file)
                found = os.fstat(file)
        except BaseException:
            os.close(file)
            raise
        return Found(key, file, found, attributes)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_mtime_ns, one.st_size) == (other.st_ino, other.st_mtime_ns, other.st_size)


def _attributes(directory: int, name: str) -> Attributes | None:
    try:
        note = parse_note(read_file(directory, name))
    except FileNotFoundError:
        return None
    return None if note is None else note.attributes


class _Publication(NamedTuple):
    """A draft that becomes an object: the steps of a put from the second on."""

    key: str
    name: str
    directory: int
    draft: Draft
    note: Draft
    attributes: Attributes
    gate: Gate

    def make(self, absent: bool, if_match: str | None) -> ObjectInfo:
        """Take all steps, or leave everything as it was."""
        now = self._claim()
        etag = etag_of(now)
        try:
            before = self._take_place(absent, if_match)
        except BaseException:
            # after an interrupt, the bytes may already have their name; then the attributes must stay
            if etag_at(self.directory, self.name) != etag:
                _tidy_away(self.directory, beside(self.name, etag))
            raise
        try:
            os.fsync(self.directory)
        except OSError as error:
            raise OutcomeUnknown(
                f"the object {self.key!r} was written, but may not survive a power cut: {error.strerror}"
            ) from error
        if before is not None and before != etag:
            _tidy_away(self.directory, beside(self.name, before))
        return info_of(self.key, now, self.attributes)

    def _claim(self) -> os.stat_result:
        """Give the bytes a unique identity, and their attributes the name that follows from it."""
        moment = time.time_ns() // _MICROSECOND * _MICROSECOND
        for doubling in range(_DOUBLINGS):
            os.utime(self.draft.file, ns=(moment, moment))
            os.fsync(self.draft.file)
            now = os.fstat(self.draft.file)  # a file system may store times less precisely
            if self._name_attributes(etag_of(now)):
                return now
            moment += _MICROSECOND << doubling
        raise FileExistsError(
            errno.EEXIST, "the times of this file system are too coarse to distinguish files"
        )

    def _name_attributes(self, etag: str) -> bool:
        """Put the attributes beside bytes with this identity; False if other attributes are there."""
        text = encode_attributes(self.key, etag, self.attributes)
        os.ftruncate(self.note.file, 0)
        write_at(self.note.file, text)
        os.fsync(self.note.file)
        try:
            os.link(
                self.note.name,
                beside(self.name, etag),
                src_dir_fd=self.note.directory,
                dst_dir_fd=self.directory,
            )
        except FileExistsError:
            return False
        return True

    def _take_place(self, absent: bool, if_match: str | None) -> str | None:
        """Make the bytes visible; returns the identity of those that they replaced."""
        take = os.link if absent else os.rename
        lock = lock_for_order if if_match is None else lock_for_sure
        # a new object replaces nothing, so it need not wait for a snapshot
        with nullcontext() if absent else self.gate.enter(), lock(self.directory):
            before = etag_at(self.directory, self.name)
            if if_match is not None and if_match != before:
                raise refuse_other(self.key)
            try:
                take(self.draft.name, self.name, src_dir_fd=self.draft.directory, dst_dir_fd=self.directory)
            except FileExistsError:
                raise refuse_taken(self.key) from None
        return before


def _delete_in(directory: int, names: Iterable[str]) -> dict[str, OSError]:
    before: dict[str, str] = {}
    failures: dict[str, OSError] = {}
    with lock_for_order(directory):
        for name in names:
            try:
                etag = etag_at(directory, name)
                if etag is not None:
                    os.unlink(name, dir_fd=directory)
                    before[name] = etag
            except OSError as error:
                failures[name] = error
    if before:
        os.fsync(directory)
    for name, etag in before.items():
        _tidy_away(directory, beside(name, etag))
    return failures


def _delete_match_in(directory: int, name: str, key: str, etag: str) -> None:
    with lock_for_sure(directory):
        before = etag_at(directory, name)
        if before is None:
            return
        if before != etag:
            raise refuse_other(key)
        os.unlink(name, dir_fd=directory)
    os.fsync(directory)
    _tidy_away(directory, beside(name, etag))


def _tidy_away(directory: int, name: str) -> None:
    """Remove a file that no reader looks for any more. If that fails, only a small file remains."""
    with suppress(OSError):
        os.unlink(name, dir_fd=directory)

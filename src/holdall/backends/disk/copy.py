"""Finds the attributes of bytes that lost their modification time when their root was copied (``cp -r``, ``tar``).

Attributes are named after the time of their bytes. If none have that name, but some have that key and size, the bytes
are read, and the attributes with their digest belong to them. Attributes without a digest are not trusted, and neither
are those of a put in progress, which have a second name until it is done.

The time after which the attributes are named is then restored to the open file. That is one step: a crash before it
changes nothing, and a process that replaces the object in the meantime does so with another file. From then on, the
attributes are found as usual, and the object has the etag that it had before the copy. If the time cannot be restored
(a read-only file system, another user's file), this process remembers what it has found.

If the size matches and the digest does not, the copy damaged the bytes or another program wrote them. They are read
like all bytes without attributes, and a warning is logged.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TypeAlias

from holdall.backends.disk.attribute import Attributes, beside, moment_of, parse_note
from holdall.backends.disk.transfer import READ, pieces, read_range
from holdall.core.digests import Digests
from holdall.core.telemetry import warn

_MOST = 10_000
_SETTLED = 2_000_000_000  # nanoseconds: file systems record times of change no more finely

_Notes: TypeAlias = dict[str, list[str]]
"""The identities after which a directory's attributes are named, by the names of their bytes."""


class Copies:
    """What one service has found out about bytes that lost their time."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Attributes | None] = {}
        self._listed: tuple[tuple[int, ...], _Notes] | None = None

    def recognize(self, key: str, name: str, directory: int, file: int) -> Attributes | None:
        """The attributes of the bytes in an open file, whose time is restored; None if there are none."""
        found = os.fstat(file)
        identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if identity in self._known:
            return self._known[identity]
        start = f"{found.st_size:x}-"
        etags = [etag for etag in self._notes(directory).get(name, ()) if etag.startswith(start)]
        kept = [(etag, attributes) for etag in etags if (attributes := _note(key, name, etag, directory))]
        if not kept:
            return None
        match = _match(file, found.st_size, kept)
        if match is None:
            warn(
                "files",
                "the bytes of %r do not match their digest: a copy damaged them, or another program wrote them;"
                " they are read without their content type, metadata and digests",
                key,
            )
        else:
            with suppress(OSError):
                os.utime(file, ns=(found.st_atime_ns, moment_of(match[0])))
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[identity] = attributes = match and match[1]
        return attributes

    def _notes(self, directory: int) -> _Notes:
        """The identities in a directory; once settled, they are kept until a file is added or removed."""
        stat = os.fstat(directory)
        mark = (stat.st_dev, stat.st_ino, stat.st_mtime_ns)
        if self._listed is not None and self._listed[0] == mark:
            return self._listed[1]
        notes: _Notes = {}
        for entry in os.listdir(directory):
            name, tilde, etag = entry.rpartition("~")
            if tilde:
                notes.setdefault(name, []).append(etag)
        if time.time_ns() - stat.st_mtime_ns > _SETTLED:
            self._listed = mark, notes
        return notes


def _note(key: str, name: str, etag: str, directory: int) -> Attributes | None:
    """The attributes that are named after an identity, if they have a digest to compare with bytes."""
    try:
        file = os.open(beside(name, etag), READ, dir_fd=directory)
    except OSError:
        return None
    try:
        stat = os.fstat(file)
        text = read_range(file, 0, stat.st_size)
    finally:
        os.close(file)
    note = parse_note(text)
    if stat.st_nlink > 1 or note is None or (note.key, note.etag) != (key, etag):
        return None
    return note.attributes if note.attributes.sha256 or note.attributes.md5 else None


def _match(file: int, size: int, kept: list[tuple[str, Attributes]]) -> tuple[str, Attributes] | None:
    """The attributes whose digest is that of the bytes; the newest if there are several."""
    digests = Digests(["sha256", "md5"] if any(not each.sha256 for _, each in kept) else ["sha256"])
    for piece in pieces(file, 0, size):
        digests.update(piece)
    matches = [
        (etag, each)
        for etag, each in kept
        if (each.sha256 == digests.sha256 if each.sha256 else each.md5 == digests.md5)
    ]
    return max(matches, key=lambda match: moment_of(match[0]), default=None)

"""Drafts: a file is written next to its final path, as ``.<name>.<mark>.part``, and renamed when it is complete.

So a file under its final name is never half of a download. A draft whose mark is a digest can be resumed; other marks
are ids.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any

from holdall.errors import InvalidOptionsError
from holdall.local.source import hash_file

if TYPE_CHECKING:
    from holdall.core.digests import Digests


class Draft:
    """A file being written for a path. ``done``: how many bytes an earlier download left in it."""

    def __init__(self, path: Path, mark: str) -> None:
        self.path = path
        self.mark = mark
        self.beside = path  # until it is opened: not every path has a name
        self.file: Any = None
        self.done = 0


def name_draft(path: Path, mark: str) -> Path:
    """The path of the draft for a path."""
    return path.with_name(f".{path.name[:40]}.{mark}.part")


def open_draft(draft: Draft, resume: bool) -> None:
    """Open the draft for writing; with ``resume``, after the bytes that an earlier download left."""
    _check_place(draft.path)
    draft.beside = name_draft(draft.path, draft.mark)
    if not resume:
        draft.file = draft.beside.open("xb")
        return
    # neither truncated nor opened for appending: two concurrent downloads write the same bytes at the same offsets
    draft.file = open(draft.beside, "r+b", opener=_open_or_create)  # noqa: SIM115 - it stays open
    draft.done = draft.file.seek(0, 2)


def _open_or_create(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _check_place(path: Path) -> None:
    """Refuse a path where no file can be written, before anything is fetched."""
    if path.is_dir():
        raise InvalidOptionsError(f"{path} is a directory", hint="pass the path of a file in it")
    if not path.parent.is_dir():
        raise InvalidOptionsError(
            f"there is no directory {path.parent} to write to",
            hint="create it first",
        )


def hash_draft(draft: Draft, digests: Digests, start: int, size: int) -> None:
    """Hash a range that an earlier download left; the next write goes after that range."""
    hash_file(draft.file, digests, start, size)


def write_draft(draft: Draft, piece: bytes, digests: Digests | None = None) -> None:
    """Write the next bytes, and hash them."""
    if digests is not None:
        digests.update(piece)
    draft.file.write(piece)


def place_draft(draft: Draft) -> None:
    """Rename the draft to its final name, replacing any file there."""
    draft.file.close()
    draft.beside.replace(draft.path)


def drop_draft(draft: Draft, keep: bool = False) -> None:
    """Close the draft, and remove it unless it is kept to be resumed; does nothing if it was never opened.

    Errors of the operating system are ignored, because the error that led here is the one to raise; a later download
    removes the file.
    """
    if draft.file is None:
        return
    with suppress(OSError):
        draft.file.close()  # the disk may be full when it flushes its buffer
    if not keep:
        with suppress(OSError):
            draft.beside.unlink(missing_ok=True)


_FORM = re.compile(r"\..{1,40}\.(?:([0-9a-f]{16})|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{2})\.part", re.DOTALL)
_HOUR = timedelta(hours=1)
_WEEK = timedelta(weeks=1)
_MOST_KNOWN = 1000


class Visits(dict[Path, datetime]):
    """When each directory was last searched."""


def prepare_place(given: Any, visits: Visits, now: datetime) -> Path:
    """The path to download to, after removing the drafts that killed downloads left beside it.

    A draft is removed if it has not been written to for an hour, or for a week if it was begun with ``resume``. A
    directory is searched at most once an hour. A download whose draft was removed while it was suspended fails without
    changing anything.
    """
    path = Path(given)
    directory = path.parent.absolute()
    if directory not in visits or now - visits[directory] >= _HOUR:
        if len(visits) >= _MOST_KNOWN:
            visits.clear()
        visits[directory] = now
        _remove_old(directory, now)
    return path


def _remove_old(directory: Path, now: datetime) -> None:
    try:
        found = [(path, form) for path in directory.iterdir() if (form := _FORM.fullmatch(path.name))]
    except OSError:
        return  # the directory may be writable but not readable
    for path, form in found:
        before = (now - (_WEEK if form[1] else _HOUR)).timestamp()
        try:
            if _find_last_write(path) < before:
                remove_tree(path)
        except OSError:
            continue  # another process was faster, or it belongs to another user


def _find_last_write(path: Path) -> float:
    """When anything was last written to a file, or below a directory."""
    stat = path.lstat()
    below = path.iterdir() if S_ISDIR(stat.st_mode) else ()
    return max([stat.st_mtime, *map(_find_last_write, below)])


def remove_tree(path: Path) -> None:
    """Remove a file, or a directory with everything in it; do nothing if it is missing."""
    if path.is_dir() and not path.is_symlink():
        for each in list(path.iterdir()):
            remove_tree(each)
        path.rmdir()
    else:
        path.unlink(missing_ok=True)

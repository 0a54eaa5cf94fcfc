"""Drafts: a file is written beside its place, as ``.<name>.<mark>.part``, and renamed when it is complete.

So what is under a name is never half of a download. A draft whose mark is a digest can be resumed; other marks are ids.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdall.errors import InvalidOptionsError

if TYPE_CHECKING:
    from holdall.core.digests import Digests

_PIECE = 1024 * 1024


class Draft:
    """A file being written for a path. ``done``: the bytes that an earlier download left in it."""

    def __init__(self, path: Path, mark: str) -> None:
        self.path = path
        self.mark = mark
        self.beside = path  # until it is opened: not every path has a name
        self.file: Any = None
        self.done = 0


def name_draft(path: Path, mark: str) -> Path:
    """Where what a path is to have is written first."""
    return path.with_name(f".{path.name[:40]}.{mark}.part")


def open_draft(draft: Draft, resume: bool) -> None:
    """Begin to write, after what an earlier download left if it is to be resumed."""
    _check_place(draft.path)
    draft.beside = name_draft(draft.path, draft.mark)
    if not resume:
        draft.file = draft.beside.open("xb")
        return
    # never truncated, nor opened for appending: two downloads at once write the same bytes to the same places
    draft.file = open(draft.beside, "r+b", opener=_open_or_create)  # noqa: SIM115 - it stays open
    draft.done = draft.file.seek(0, 2)


def _open_or_create(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _check_place(path: Path) -> None:
    """Refuse a place where no file can be, before anything is fetched for it."""
    if path.is_dir():
        raise InvalidOptionsError(f"{path} is a directory", hint="give the path of a file in it")
    if not path.parent.is_dir():
        raise InvalidOptionsError(
            f"there is no directory {path.parent} to download into", hint="make it first"
        )


def hash_draft(draft: Draft, digests: Digests, start: int, size: int) -> None:
    """Hash a range of what an earlier download left; the draft is then written after that range."""
    draft.file.seek(start)
    while size and (piece := draft.file.read(min(_PIECE, size))):
        digests.update(piece)
        size -= len(piece)


def write_draft(draft: Draft, piece: bytes, digests: Digests | None = None) -> None:
    """Write the next bytes, and hash them."""
    if digests is not None:
        digests.update(piece)
    draft.file.write(piece)


def place_draft(draft: Draft) -> None:
    """Give the file its name, in place of what is there."""
    draft.file.close()
    draft.beside.replace(draft.path)


def drop_draft(draft: Draft, keep: bool = False) -> None:
    """Write no more, and remove the file unless it is kept to be resumed; harmless for one that was never opened.

    What the system refuses here is left to a later download: an error led to this, and that is the one to raise.
    """
    if draft.file is None:
        return
    with suppress(OSError):
        draft.file.close()  # there may be no room for what it still holds
    if not keep:
        with suppress(OSError):
            draft.beside.unlink(missing_ok=True)

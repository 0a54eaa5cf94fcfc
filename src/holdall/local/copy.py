"""Checked files: files on this machine that should have a certain content; they are hashed while read or copied.

A file that cannot be read, or not completely, has the wrong content; that is not an error here.
"""

from __future__ import annotations

from hashlib import sha256 as _sha256
from pathlib import Path
from typing import Any

from holdall.local.draft import Draft, drop_draft, open_draft, place_draft, write_draft

_PIECE = 1024 * 1024
_TURN = 64
"""Pieces copied per call, because a call cannot be cancelled while it runs."""


class CheckedFile:
    """A file and the SHA-256 that its content should have; ``is_right`` once all of it was read and matches.

    ``is_cached``: it belongs to a cache, in which a matching file is marked as used and any other is removed.
    """

    def __init__(self, path: Path, sha256: str, size: int | None, *, is_cached: bool = False) -> None:
        self.path = path
        self.sha256 = sha256
        self.size = size
        self.is_cached = is_cached
        self.is_over = self.is_right = False
        self.file: Any = None
        self.digest = _sha256()


def read_checked(checked: CheckedFile, size: int = _PIECE) -> bytes:
    """The next bytes; empty at the end."""
    if checked.is_over:
        return b""
    piece = b""
    try:
        if checked.file is None:
            checked.file = checked.path.open("rb")
            if checked.size in (None, checked.file.seek(0, 2)):
                checked.file.seek(0)
        piece = checked.file.read(size)
    except OSError:
        pass  # the digest shows what is missing
    checked.digest.update(piece)
    if not piece:
        _settle(checked)
    return piece


def _settle(checked: CheckedFile) -> None:
    was_opened = checked.file is not None
    close_checked(checked)
    checked.is_right = was_opened and checked.digest.hexdigest() == checked.sha256
    if not checked.is_cached or not was_opened:
        return
    try:
        if checked.is_right:
            checked.path.touch()
        if not checked.is_right or not checked.path.lstat().st_size:
            checked.path.unlink(missing_ok=True)  # empty: it was gone, and touching created it again
    except OSError:
        return  # it was removed meanwhile, or belongs to another user


def close_checked(checked: CheckedFile) -> None:
    """Stop reading; does nothing if the file was read to its end."""
    checked.is_over = True
    if checked.file is not None:
        checked.file.close()


def copy_turn(checked: CheckedFile, draft: Draft | None) -> bool:
    """Copy more of a file, or only hash it; return whether that was all. At the end, a matching draft is renamed."""
    for _ in range(_TURN):
        piece = read_checked(checked)
        if draft is not None and draft.file is None and (piece or checked.is_right):
            open_draft(draft, resume=False)
        if not piece:
            break
        if draft is not None:
            write_draft(draft, piece)
    else:
        return False
    if draft is not None and checked.is_right:
        place_draft(draft)
    elif draft is not None:
        drop_draft(draft)
    return True


def drop_copy(checked: CheckedFile, draft: Draft | None) -> None:
    """Give up a copy that failed."""
    close_checked(checked)
    if draft is not None:
        drop_draft(draft)

"""Leftovers: temporary files that downloads write beside their targets, and that killed downloads left there.

A download writes to ``.<name>.<mark>.part`` beside its target, and renames that when it is complete. It cleans up when
it ends, unless its process is killed. So a later download into the same directory removes files that have not been
written to for an hour, or for a week if they were begun with ``resume``. A directory is searched once an hour at most.
A download whose temporary file is gone when it resumes work fails, and has changed nothing.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from stat import S_ISDIR

from holdall.core.context import Context
from holdall.core.port import Port
from holdall.files.sources import aside

__all__ = ["place_beside", "remove_tree", "resumable_mark", "sweep_leftovers"]

_FORM = re.compile(r"\..{1,40}\.(?:([0-9a-f]{16})|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{2})\.part", re.DOTALL)
"""A mark that is a digest means that the download can be resumed; otherwise the mark is an id."""

_HOUR = timedelta(hours=1)
_WEEK = timedelta(weeks=1)
_MOST_KNOWN = 1000


def place_beside(path: Path, mark: str) -> Path:
    """Where a download to a path writes until it is complete."""
    return path.with_name(f".{path.name[:40]}.{mark}.part")


def resumable_mark(*parts: str) -> str:
    """The mark of a download that can be resumed: the same for the same object and target."""
    from hashlib import sha256

    return sha256("\n".join(parts).encode()).hexdigest()[:16]


class _Visits(dict[Path, datetime]):
    """When each directory was last searched."""


async def sweep_leftovers(context: Context, directory: Path) -> None:
    """Remove what killed downloads left in a directory."""
    port: Port = context.port
    visits: _Visits = context.bindings.setdefault(_Visits, _Visits())
    place, now = await port.call(directory.absolute), port.now()
    if place in visits and now - visits[place] < _HOUR:
        return
    if len(visits) >= _MOST_KNOWN:
        visits.clear()
    visits[place] = now
    await port.finish(aside(port, partial(_remove_old, place, now)))


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

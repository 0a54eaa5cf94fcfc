"""Leftovers: drafts of downloads whose process was killed.

A later download into the same directory removes those that have not been written to for an hour, or for a week if they
were begun with ``resume``. A directory is searched once an hour at most. A download whose draft is gone when it resumes
work fails, and has changed nothing.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_ISDIR
from typing import Any, ClassVar

from holdall.core.context import Kept

_FORM = re.compile(r"\..{1,40}\.(?:([0-9a-f]{16})|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{2})\.part", re.DOTALL)
_HOUR = timedelta(hours=1)
_WEEK = timedelta(weeks=1)
_MOST_KNOWN = 1000


class Visits(Kept, dict[Path, datetime]):
    """When each directory was last searched."""

    follows_tables: ClassVar[bool] = False


def prepare_place(given: Any, visits: Visits, now: datetime) -> Path:
    """The path to download to, after removing what killed downloads left beside it."""
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

"""A cache of content on this machine, by its SHA-256, so that nothing is downloaded twice.

A cached file is ``<directory>/<2 digits>/<sha256>``, written under a temporary name and renamed when it is complete. It
is hashed when it is read; a damaged file is removed and counts as missing. When the cache is over its limit, the files
that were unused for the longest time are removed. Several processes may share a directory: a file that another process
removed counts as missing. If the cache cannot be written, that is logged once and downloads go on without it.

A process measures the cache when it first adds to it, and again when its own additions may have filled it or amount to
a fair share of the limit, because other processes may have added as much.
"""

from __future__ import annotations

import re
from hashlib import sha256 as _sha256
from pathlib import Path
from stat import S_ISREG

from holdall.errors import InvalidOptionsError
from holdall.local.copy import CheckedFile, close_checked, read_checked
from holdall.local.draft import Draft, drop_draft, open_draft, place_draft, write_draft

_FAIR = 64
_TURN = 64
_DAY = 24 * 60 * 60
_SHELF = re.compile(r"[0-9a-f]{2}")
_ENTRY = re.compile(r"[0-9a-f]{64}")
_DRAFT = re.compile(r"\.[0-9a-f]{40,64}\.[0-9a-f-]{16}\.part")


class Cache:
    """What this process knows about a cache. ``total``: the bytes in it, None before they were counted."""

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
        self.limit = limit
        self.total: int | None = None
        self.added = 0
        self.has_complained = False


class CachedFile(CheckedFile):
    """The cached file of a digest, if it exists. The caller has checked that this is 64 hexadecimal digits."""

    def __init__(self, cache: Cache, sha256: str, size: int | None) -> None:
        super().__init__(cache.directory / sha256[:2] / sha256, sha256, size, is_cached=True)


class Filling:
    """A new file that is being added. A failure here does not affect the download that provides the bytes."""

    def __init__(self, cache: Cache, sha256: str, mark: str) -> None:
        self.cache = cache
        self.sha256 = sha256
        self.draft = Draft(cache.directory / sha256[:2] / sha256, mark)
        self.digest = _sha256()
        self.size = 0
        self.is_over = False


def open_cache(name: str, limit: int) -> Cache:
    """The cache in a directory, which is created if it is missing."""
    directory = Path(name).expanduser().absolute()  # stays the same if the working directory changes
    directory.mkdir(parents=True, exist_ok=True)
    return Cache(directory, limit)


def write_piece(filling: Filling, piece: bytes) -> None:
    """Add some bytes."""
    filling.size += len(piece)
    if filling.size > filling.cache.limit:
        drop_filling(filling)
    if filling.is_over:
        return
    filling.digest.update(piece)
    try:
        _open(filling.draft)
        write_draft(filling.draft, piece)
    except (OSError, InvalidOptionsError) as error:
        _give_up(filling, error)


def fill_turn(filling: Filling, checked: CheckedFile) -> bool:
    """Add more of a file; return whether that was all."""
    for _ in range(_TURN):
        piece = b"" if filling.is_over else read_checked(checked)
        if not piece:
            close_checked(checked)
            return True
        write_piece(filling, piece)
    return False


def keep_filling(filling: Filling, now: float) -> None:
    """Put the file into the cache if it has the right bytes; if the cache is then too full, remove others."""
    if filling.is_over or filling.digest.hexdigest() != filling.sha256:
        drop_filling(filling)
        return
    try:
        _open(filling.draft)
        place_draft(filling.draft)
    except (OSError, InvalidOptionsError) as error:
        _give_up(filling, error)
        return
    filling.is_over = True
    cache = filling.cache
    cache.added += filling.size
    for _ in range(2):  # other threads may have added more meanwhile
        if cache.total is not None and not (
            cache.total + cache.added > cache.limit or cache.added * _FAIR > cache.limit
        ):
            return
        cache.total, cache.added = 0, 0  # files added from now on may or may not be counted
        try:
            cache.total = _sweep(cache.directory, cache.limit, now)
        except BaseException:
            cache.total = None
            raise


def drop_filling(filling: Filling) -> None:
    """Discard the file; does nothing after `keep_filling`."""
    if not filling.is_over:
        filling.is_over = True
        drop_draft(filling.draft)


def _open(draft: Draft) -> None:
    if draft.file is None:
        draft.path.parent.mkdir(parents=True, exist_ok=True)
        open_draft(draft, resume=False)


def _give_up(filling: Filling, error: Exception) -> None:
    """Discard the file, and log once that the cache cannot be written, unless a directory was merely removed."""
    drop_filling(filling)
    cache = filling.cache
    if cache.has_complained or isinstance(error, FileNotFoundError):
        return
    cache.has_complained = True
    import logging  # slow to load, and rarely needed

    logging.getLogger("holdall").warning(
        "the artifact cache %s cannot be written, so files are downloaded each time: %s",
        cache.directory,
        error,
    )


# --- the directory ----------------------------------------------------------------------------------------


def _sweep(directory: Path, limit: int, now: float) -> int:
    """Remove old drafts, and files until the cache is within its limit; return how many bytes are left.

    If any file has to be removed, a few more are, so that not every addition to a full cache has to list all of it.
    """
    entries: list[tuple[int, int, str]] = []
    total = 0
    for shelf in _list(directory):
        for path in _list(shelf) if _SHELF.fullmatch(shelf.name) else ():
            try:
                found = path.lstat()
            except OSError:
                continue
            if not S_ISREG(found.st_mode):
                continue
            if _ENTRY.fullmatch(path.name) and path.name.startswith(shelf.name):
                entries.append((found.st_mtime_ns, found.st_size, path.name))
                total += found.st_size
            elif _DRAFT.fullmatch(path.name) and found.st_mtime < now - _DAY:
                _remove(path)
    if total <= limit:
        return total
    low = limit - limit // _FAIR
    entries.sort()
    for _, size, name in entries:
        if total <= limit and total - size < low:
            break
        if _remove(directory / name[:2] / name):
            total -= size
    return total


def _list(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _remove(path: Path) -> bool:
    """Remove a file; return whether it is gone, removed by this process or another."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True

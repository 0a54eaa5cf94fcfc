"""A cache of content on this machine, by its SHA-256, so that what was downloaded once is not fetched again.

An entry is a file ``<directory>/<2 digits>/<sha256>``, filled beside its place and given its name when it is complete.
Whoever takes one out hashes it: a damaged one is removed, and counts as missing. When the entries have more bytes than
they may, those go that were not used for the longest time. Several processes may share a directory; each takes files
that others have removed as they come, and forgets about a cache that cannot be written: downloads go on without it.

How full it is, is looked up when a process first adds to it, and again whenever the process has added so much that it
may be too full, or a fair part of what may be in it, as others may have added as much.
"""

from __future__ import annotations

import re
from functools import partial
from hashlib import sha256 as _sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any

from holdall.artifacts.settings import artifact_settings
from holdall.core.context import Context
from holdall.core.port import Port
from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.files.download import Take
from holdall.files.sources import aside

__all__ = ["Cache", "Filling", "HashedFile", "cache_of", "handed_over"]

_PIECE = 1024 * 1024
_FAIR = 64
_DAY = 24 * 60 * 60
_SHELF = re.compile(r"[0-9a-f]{2}")
_ENTRY = re.compile(r"[0-9a-f]{64}")
_BESIDE = re.compile(r"\.[0-9a-f]{64}\.[0-9a-f-]{16}\.part")


class _Ledger:
    """What this process knows of a cache: how many bytes were in it, None before that was looked up, and came since."""

    def __init__(self, directory: Path, limit: int) -> None:
        self.directory = directory
        self.limit = limit
        self.total: int | None = None
        self.added = 0
        self.complained = False

    @property
    def due(self) -> bool:
        """Whether it is time to look how full it is."""
        if self.total is None:
            return True
        return self.total + self.added > self.limit or self.added * _FAIR > self.limit

    def complain(self, error: OSError) -> None:
        """Say once that nothing can be kept; that others removed a directory is no trouble."""
        if self.complained or isinstance(error, FileNotFoundError):
            return
        self.complained = True
        import logging  # only where there is something to say

        logging.getLogger("holdall").warning(
            "the cache of artifacts %s cannot be written: %s", self.directory, error
        )


async def cache_of(context: Context, wanted: bool | None) -> Cache | None:
    """The cache that the settings name; None when there is none, or it is not wanted."""
    settings = artifact_settings(context.settings)
    if wanted is False:
        return None
    if settings.cache is None:
        if wanted:
            raise InvalidOptionsError(
                "a cache was asked for, and none is set", hint='artifacts=ArtifactSettings(cache="PATH")'
            )
        return None
    ledger: _Ledger | None = context.bindings.get(_Ledger)
    if ledger is None:
        try:
            directory = await context.port.call(_made, settings.cache)
        except (OSError, RuntimeError) as error:
            raise ConfigurationError(
                f"there can be no cache of artifacts at {settings.cache}: {error}",
                hint="give the path of a directory",
            ) from error
        ledger = context.bindings.setdefault(_Ledger, _Ledger(directory, settings.cache_size))
    return Cache(context.port, ledger)


def _made(name: str) -> Path:
    directory = (
        Path(name).expanduser().absolute()
    )  # it stays that one for whoever changes the working directory
    directory.mkdir(parents=True, exist_ok=True)
    return directory


class Cache:
    """Content by its digest. Digests are 64 lower-case hexadecimal digits, which whoever asks has checked."""

    def __init__(self, port: Port, ledger: _Ledger) -> None:
        self._port = port
        self._ledger = ledger

    @property
    def limit(self) -> int:
        """The most bytes that may be in it."""
        return self._ledger.limit

    def place(self, sha256: str) -> Path:
        """Where an entry is, if there is one."""
        return self._ledger.directory / sha256[:2] / sha256

    async def has(self, sha256: str) -> bool:
        """Whether there seems to be an entry."""
        return await self._port.call(_is_there, self.place(sha256))

    async def take_out(self, sha256: str, size: int | None, take: Take) -> bool:
        """Hand the bytes of an entry over; whether they are the right ones, which shows after the last of them."""
        path = self.place(sha256)
        try:
            reader = await self._port.call(HashedFile, path)
        except OSError:
            return False
        try:
            if size is None or reader.size == size:
                await handed_over(self._port, reader, take)
        finally:
            reader.close()
        right = size in (None, reader.size) and reader.hexdigest() == sha256
        await self._port.call(_touched if right else _removed, path)
        return right

    def filling(self, sha256: str) -> Filling:
        """A new entry, to be filled."""
        return Filling(self, self._port, self._ledger, sha256)

    async def keep_file(self, sha256: str, path: Path, size: int) -> None:
        """Take a copy of a file; not of one that somebody is changing, or that is larger than all may be."""
        if size > self.limit:
            return
        filling = self.filling(sha256)
        try:
            reader = await self._port.call(HashedFile, path)
        except OSError:
            return  # it is its owner's, who may have done anything with it
        try:
            await handed_over(self._port, reader, filling.add)
            await filling.keep()
        except BaseException:
            filling.drop()
            raise
        finally:
            reader.close()

    async def grown(self, size: int) -> None:
        """So many bytes more are in it; if those are too many, others go."""
        ledger = self._ledger
        ledger.added += size
        for _ in range(2):  # others may have added more meanwhile
            if not ledger.due:
                return
            await self._port.finish(aside(self._port, partial(self._bound, self._port.now().timestamp())))

    def _bound(self, now: float) -> None:
        ledger = self._ledger
        ledger.total, ledger.added = 0, 0  # what comes from now on may or may not be seen
        try:
            ledger.total = _swept(ledger.directory, ledger.limit, now)
        except BaseException:
            ledger.total = None
            raise


class Filling:
    """An entry being filled, beside its place. What goes wrong with it is no concern of whoever has the bytes."""

    def __init__(self, cache: Cache, port: Port, ledger: _Ledger, sha256: str) -> None:
        self._cache = cache
        self._port = port
        self._ledger = ledger
        self._sha256 = sha256
        self._path = cache.place(sha256)
        self._beside = self._path.with_name(f".{sha256}.{port.new_id()[:16]}.part")
        self._file: Any = None
        self._digest = _sha256()
        self._size = 0
        self._over = self._kept = False

    async def add(self, piece: bytes) -> None:
        """Some bytes more."""
        self._size += len(piece)
        if self._size > self._ledger.limit:
            self.drop()
        if not self._over:
            await self._port.finish(aside(self._port, partial(self._write, piece)))

    async def keep(self) -> None:
        """That was all: it becomes an entry, if the bytes are the right ones."""
        if not self._over:
            await self._port.finish(aside(self._port, self._place))
        if self._kept:
            await self._cache.grown(self._size)

    def drop(self) -> None:
        """Nothing comes of it; harmless after `keep`."""
        self._over = True
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError as error:  # what it still held has no room
            self._ledger.complain(error)
        _removed(self._beside)

    def _write(self, piece: bytes) -> None:
        try:
            self._opened().write(piece)
        except OSError as error:
            self._give_up(error)
        self._digest.update(piece)

    def _opened(self) -> Any:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._beside.open("xb")
        return self._file

    def _place(self) -> None:
        if self._digest.hexdigest() != self._sha256:
            self.drop()
            return
        try:
            self._opened().close()
            self._beside.replace(self._path)
        except OSError as error:
            self._give_up(error)
        else:
            self._file, self._over, self._kept = None, True, True

    def _give_up(self, error: OSError) -> None:
        self._ledger.complain(error)
        self.drop()


class HashedFile:
    """A file that is hashed while it is read. What cannot be read is missing from the digest."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._digest = _sha256()
        self.size = self._file.seek(0, 2)
        self._file.seek(0)

    def read(self, size: int) -> bytes:
        """The next bytes."""
        try:
            piece = self._file.read(size)
        except OSError:
            return b""
        self._digest.update(piece)
        return piece

    def hexdigest(self) -> str:
        """The SHA-256 of what was read."""
        return self._digest.hexdigest()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


async def handed_over(port: Port, reader: HashedFile, take: Take) -> None:
    """Hand over all that a reader has."""
    while piece := await port.finish(port.read(reader, _PIECE)):
        await take(piece)


# --- the directory ----------------------------------------------------------------------------------------


def _swept(directory: Path, limit: int, now: float) -> int:
    """Remove what was left behind, and entries until they are few enough; gives how many bytes are left.

    When any have to go, a few more do, so that not every addition to a full cache has to look at all of it.
    """
    entries: list[tuple[int, int, str]] = []
    total = 0
    for shelf in _listed(directory):
        for path in _listed(shelf) if _SHELF.fullmatch(shelf.name) else ():
            try:
                found = path.lstat()
            except OSError:
                continue
            if not S_ISREG(found.st_mode):
                continue
            if _ENTRY.fullmatch(path.name) and path.name.startswith(shelf.name):
                entries.append((found.st_mtime_ns, found.st_size, path.name))
                total += found.st_size
            elif _BESIDE.fullmatch(path.name) and found.st_mtime < now - _DAY:
                _removed(path)
    return _evicted(directory, entries, total, limit) if total > limit else total


def _evicted(directory: Path, entries: list[tuple[int, int, str]], total: int, limit: int) -> int:
    low = limit - limit // _FAIR
    entries.sort()
    for _, size, name in entries:
        if total <= limit and total - size < low:
            break
        if _removed(directory / name[:2] / name):
            total -= size
    return total


def _listed(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _removed(path: Path) -> bool:
    """Whether it is gone; others may have been faster."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _touched(path: Path) -> None:
    """Mark an entry as used just now."""
    try:
        path.touch()
        if not path.lstat().st_size:
            _removed(path)  # it was gone, and touching made an empty file of it
    except OSError:
        return  # gone again, or somebody else's, whose use of it counts

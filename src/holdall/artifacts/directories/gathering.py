"""Gathering a directory: what is in it, each file read once to be hashed.

The walk, the hashing and whatever else takes a while is done aside, so that an event loop goes on. Symbolic links,
sockets and other special files are refused by name (`InvalidArtifactError`): what they mean is not in the directory.
A file that is written to meanwhile is noticed (`IntegrityError`); one that changes later is, when it is uploaded, as
its bytes have to have the digest that was found here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR, S_ISLNK, S_ISREG, S_IXUSR
from typing import Any

from holdall.artifacts.directories.manifest import MAX_MANIFEST, Entry, Manifest, check_path, manifest_sha256
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.errors import IntegrityError, InvalidArtifactError
from holdall.files.progress import Progress, Told
from holdall.files.sources import aside

__all__ = ["Directory", "gather_directory"]

_PIECE = 1024 * 1024
_TURN = 64 * 1024**2
_TURN_FILES = 500


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory that was gathered: its manifest as bytes, their digest (hexadecimal), and the size of all files.

    ``sizes`` are the files' digests, each once, with the size; ``copies`` how many files have that content, ``places``
    where one of them is.
    """

    manifest: bytes
    sha256: str
    total: int
    sizes: Mapping[str, int]
    copies: Mapping[str, int]
    places: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class _Found:
    """A file or an empty directory, as the walk has seen it."""

    path: str
    place: Path
    seen: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.seen[0]


async def gather_directory(context: Context, path: Path, *, progress: Progress | None = None) -> Directory:
    """What is in a directory, ready to be held; ``progress`` is told of the bytes that were read."""
    port = context.port
    found: list[_Found] = []
    await aside(port, lambda: found.extend(_walk(path)))
    told = Told(port, progress)
    await told.begin(sum(each.size for each in found))
    entries: list[Entry] = []
    places: dict[str, Path] = {}
    for turn in _turns(found):
        digests: list[str | None] = []
        if turn[0].size > _TURN:
            digests.append(await _hashed_large(context, turn[0], told))
        else:
            await aside(port, partial(_hash, turn, digests))
            await told.add(sum(each.size for each in turn))
        for each, digest in zip(turn, digests, strict=True):
            if digest is None:
                entries.append(Entry(each.path))
            else:
                entries.append(Entry(each.path, digest, each.size, bool(each.seen[-1] & S_IXUSR)))
                places.setdefault(digest, each.place)
    made: list[Directory] = []
    await aside(port, lambda: made.append(_directory(entries, places)))
    return made[0]


def _directory(entries: list[Entry], places: Mapping[str, Path]) -> Directory:
    manifest = Manifest.of(entries)
    data = manifest.to_bytes()
    if len(data) > MAX_MANIFEST:
        raise InvalidArtifactError(
            f"the directory has {len(entries):,} files, and its manifest {len(data):,} bytes",
            hint=f"the most are {MAX_MANIFEST:,}: put its directories one by one, or as one archive",
        )
    copies = Counter(entry.sha256 for entry in entries if entry.sha256 is not None)
    return Directory(data, manifest_sha256(data), manifest.total, manifest.sizes, copies, places)


# --- the walk ---------------------------------------------------------------------------------------------


def _walk(root: Path) -> Iterator[_Found]:
    if not root.is_dir():
        raise InvalidArtifactError(f"{root} is no directory")
    waiting = [(root, "")]
    while waiting:
        directory, prefix = waiting.pop()
        empty = True
        for place in directory.iterdir():
            empty = False
            path = check_path(prefix + place.name)
            status = place.lstat()
            if S_ISDIR(status.st_mode):
                waiting.append((place, f"{path}/"))
            elif S_ISREG(status.st_mode):
                yield _Found(path, place, _seen(status))
            else:
                what = "a symbolic link" if S_ISLNK(status.st_mode) else "no ordinary file"
                raise InvalidArtifactError(
                    f"{path!r:.200} is {what}, and cannot be part of an artifact",
                    hint="copy what is meant into the directory",
                )
        if empty and prefix:
            yield _Found(prefix, directory, (0,))


def _seen(status: Any) -> tuple[int, ...]:
    """What tells a file from any other, and from itself when it was written to; the first is its size."""
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ino,
        status.st_dev,
        status.st_mode,
    )


# --- the hashing ------------------------------------------------------------------------------------------


def _turns(found: list[_Found]) -> Iterator[list[_Found]]:
    """Small files together, large ones alone: what is done aside cannot be broken off."""
    turn: list[_Found] = []
    size = 0
    for each in found:
        if turn and (size + each.size > _TURN or len(turn) >= _TURN_FILES):
            yield turn
            turn, size = [], 0
        turn.append(each)
        size += each.size
    if turn:
        yield turn


def _hash(turn: list[_Found], digests: list[str | None]) -> None:
    for each in turn:
        if each.path.endswith("/"):
            digests.append(None)
            continue
        digest = sha256()
        _hash_range(each, digest, 0, each.size + 1)
        _check_unchanged(each)
        digests.append(digest.hexdigest())


async def _hashed_large(context: Context, found: _Found, told: Told) -> str:
    digest = sha256()
    for start in range(0, found.size, _TURN):
        size = min(_TURN, found.size - start)
        await aside(context.port, partial(_hash_range, found, digest, start, size))
        await told.add(size)
    await aside(context.port, partial(_check_unchanged, found))
    return digest.hexdigest()


def _hash_range(found: _Found, digest: Any, start: int, size: int) -> None:
    try:
        with found.place.open("rb", buffering=0) as file:
            file.seek(start)
            while size and (piece := file.read(min(_PIECE, size))):
                digest.update(piece)
                size -= len(piece)
    except FileNotFoundError:
        raise _changed(found) from None


def _check_unchanged(found: _Found) -> None:
    try:
        unchanged = _seen(found.place.lstat()) == found.seen
    except FileNotFoundError:
        unchanged = False
    if not unchanged:
        raise _changed(found)


def _changed(found: _Found) -> IntegrityError:
    return IntegrityError(f"the file {found.path!r:.200} was changed while it was read")

"""Unpacking: a directory's files, written below a new directory that appears under its name when all are there.

Files are fetched several at a time into a directory beside it, each checked; what is in it twice is fetched once. That
directory then takes its name in one step. What fails leaves nothing, or with ``resume`` what there is of it, to be gone
on with: what is there and right is not fetched again, and what does not belong is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath

from holdall.artifacts.cache import HashedFile, handed_over
from holdall.artifacts.directories.holdings import file_places, read_manifest
from holdall.artifacts.directories.manifest import Entry, Manifest
from holdall.artifacts.fetching import Means, Source, fetch_file, source_at, written
from holdall.core.frozen import replace
from holdall.core.objects import DescribeService
from holdall.core.port import Port
from holdall.errors import (
    IntegrityError,
    InvalidArtifactError,
    InvalidOptionsError,
    InvalidRequestError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from holdall.files.download import Take
from holdall.files.leftover import place_beside, remove_tree, resumable_mark
from holdall.files.progress import Told
from holdall.files.sources import aside

__all__ = ["unpack"]

_AT_ONCE = 8
_TURN = 64


async def unpack(means: Means, source: Source, to: Path, told: Told) -> None:
    """A directory's content into a new directory, or in place of an empty one."""
    port = means.port
    place = await port.call(_checked_place, to)
    manifest = await read_manifest(means.context, means.home, source.key, source.sha256)
    mark = port.new_id()[:16]
    if means.resume:
        mark = resumable_mark(means.home.service, source.sha256, place.name)
    beside = place_beside(place, mark)
    unpacking = _Unpacking(means, manifest, beside, told)
    try:
        await unpacking.unpack()
        await port.call(_appear, beside, place)
    except BaseException as error:
        if not means.resume or isinstance(
            error, IntegrityError | InvalidRequestError | ObjectNotFoundError | PreconditionFailedError
        ):
            remove_tree(beside)
        raise


def _checked_place(to: Path) -> Path:
    """Where the directory is to be; refused if something is there, before anything is fetched for it."""
    place = to.resolve()
    if place.is_dir():
        if any(place.iterdir()):
            raise InvalidOptionsError(
                f"the directory {to} is not empty", hint="give a path where nothing is yet"
            )
        if place == Path.cwd():  # whoever is in it would be left in what it was before
            raise InvalidOptionsError(
                f"{to} is the working directory", hint="give the path of a new directory in it"
            )
    elif place.exists():
        raise InvalidOptionsError(f"there is a file {to} already", hint="give a path where nothing is yet")
    elif not place.parent.is_dir():
        raise InvalidOptionsError(
            f"there is no directory {place.parent} to download into", hint="make it first"
        )
    return place


def _appear(beside: Path, place: Path) -> None:
    """Give the directory its name, in one step; an empty one that is there gives its mode."""
    if place.is_dir():
        beside.chmod(place.stat().st_mode & 0o7777)
    try:
        beside.replace(place)
    except OSError:
        _checked_place(place)  # somebody may have put something there
        raise


class _Unpacking:
    """A directory being filled."""

    def __init__(self, means: Means, manifest: Manifest, directory: Path, told: Told) -> None:
        self._means = replace(means, resume=False)  # what is left in here would be taken for content
        self._resume = means.resume
        self._port = means.port
        self._entries = manifest.entries
        self._directory = directory
        self._told = told
        self._failed = False

    async def unpack(self) -> None:
        """Fill it."""
        paths = {
            entry.path: self._path(entry) for entry in self._entries
        }  # all are checked before any is written
        await self._told.begin(sum(entry.size for entry in self._entries))
        await self._port.finish(aside(self._port, partial(self._prepare, paths)))
        part_size = (await self._port.send(DescribeService(self._means.home.service))).part_size
        contents: dict[str | None, list[Entry]] = {}
        for entry in self._entries:
            if not entry.is_directory:
                contents.setdefault(entry.sha256, []).append(entry)
        large = [each for each in contents.values() if each[0].size > part_size]
        small = [each for each in contents.values() if each[0].size <= part_size]
        for start in range(0, len(small), _TURN):
            turn = [self._content(each) for each in small[start : start + _TURN]]
            for outcome in await self._port.gather(turn, limit=_AT_ONCE):
                outcome.result()
        for each in large:  # of these the ranges come side by side
            await self._content(each)

    def _path(self, entry: Entry) -> Path:
        """Where an entry goes; never outside, whoever wrote the manifest."""
        parts = entry.path.removesuffix("/").split("/")
        if any(part in ("", ".", "..") or PurePath(part).parts != (part,) for part in parts):
            raise InvalidArtifactError(f"the path {entry.path!r:.200} leads out of its directory")
        return self._directory.joinpath(*parts)

    def _prepare(self, paths: dict[str, Path]) -> None:
        """Make all directories. Of what an earlier try left, only files of the manifest stay."""
        directories = {self._directory}
        for entry in self._entries:
            path = paths[entry.path]
            directories.update([path] if entry.is_directory else [])
            while (path := path.parent) not in directories:
                directories.add(path)
        if self._resume:
            files = {paths[entry.path] for entry in self._entries if not entry.is_directory}
            _keep_only(self._directory, files, directories)
        for directory in sorted(directories):
            directory.mkdir(exist_ok=self._resume)

    async def _content(self, entries: Sequence[Entry]) -> None:
        """All files with the same content; the first is fetched, the others are copies of it."""
        if self._failed:
            return
        try:
            first, *others = entries
            path = self._path(first)
            source = source_at(self._means.home.file_key(str(first.sha256)), first.sha256, first.size)
            if not (self._resume and await self._is_there(source, path)):
                await self._fetch(source, path)
            await self._port.call(_set_mode, path, first.executable)
            for other in others:
                await self._copy(source, path, other)
        except BaseException:
            self._failed = True
            raise

    async def _fetch(self, source: Source, path: Path) -> None:
        told = _Share(self._port, self._told)
        try:
            await fetch_file(self._means, source, path, told)
        except ObjectNotFoundError:
            places = await file_places(self._means.context, self._means.home, [source.sha256])
            key = places.get(source.sha256)
            if key is None or key == source.key:
                raise
            await fetch_file(self._means, replace(source, key=key), path, told)

    async def _is_there(self, source: Source, path: Path) -> bool:
        """Whether an earlier try left the right file."""
        if not await self._port.call(path.is_file) or not await _copied(self._port, source, path, _nowhere):
            return False
        await self._told.add(source.size or 0)
        return True

    async def _copy(self, source: Source, path: Path, entry: Entry) -> None:
        target = self._path(entry)
        if not await written(self._port, target, partial(_copied, self._port, source, path)):
            raise IntegrityError(f"the file {path} was changed while it was copied")
        await self._port.call(_set_mode, target, entry.executable)
        await self._told.add(entry.size)


async def _copied(port: Port, source: Source, path: Path, take: Take) -> bool:
    reader = await port.call(HashedFile, path)
    try:
        await handed_over(port, reader, take)
    finally:
        reader.close()
    return bool(reader.hexdigest() == source.sha256)


async def _nowhere(piece: bytes) -> None:
    pass


class _Share(Told):
    """A file's part in what is told of the whole directory."""

    def __init__(self, port: Port, whole: Told) -> None:
        super().__init__(port, None)
        self._whole = whole

    async def begin(self, total: int | None, done: int = 0) -> None:
        """The whole has begun already."""

    async def add(self, size: int) -> None:
        """So many bytes more are done."""
        await self._whole.add(size)


# --- the directory ----------------------------------------------------------------------------------------


def _set_mode(path: Path, executable: bool) -> None:
    """Let everybody who may read a program also run it, and nobody anything else."""
    mode = path.stat().st_mode & 0o7777
    wanted = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    if wanted != mode:
        path.chmod(wanted)


def _keep_only(directory: Path, files: set[Path], directories: set[Path]) -> None:
    for path in _listed(directory):
        if path.is_symlink() or not path.is_dir():
            if path not in files or path.is_symlink():
                path.unlink(missing_ok=True)
        elif path in directories:
            _keep_only(path, files, directories)
        else:
            remove_tree(path)


def _listed(directory: Path) -> Iterable[Path]:
    return list(directory.iterdir()) if directory.is_dir() else []

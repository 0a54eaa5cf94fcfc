"""Unpacking: writes a directory's files into a new directory, which appears under its name when it is complete.

Files are fetched several at a time into a temporary directory beside it, and each is verified; content that occurs
several times is fetched once. The temporary directory is then renamed in one step. A failure leaves nothing or, with
``resume``, the part that was fetched. When a download is resumed, files that are present and correct are not fetched
again, and files that do not belong there are removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdall.artifacts.directory.hold import fetch_file_keys, fetch_manifest
from holdall.artifacts.directory.manifest import Manifest, Member
from holdall.artifacts.version.retrieval import Means, Source, copy_file, fetch_file, source_at
from holdall.core.batch import make_batches
from holdall.core.frozen import replace
from holdall.core.objects import DescribeService
from holdall.core.port import Port
from holdall.errors import IntegrityError, InvalidRequestError, ObjectNotFoundError, PreconditionFailedError
from holdall.files.download import resumable_mark
from holdall.files.progress import Meter
from holdall.local.copy import CheckedFile
from holdall.local.draft import Draft
from holdall.local.tree import Tree, drop_tree, find_tree, place_tree, prepare_tree, set_mode

if TYPE_CHECKING:
    from pathlib import Path

_AT_ONCE = 8
_TURN = 64


async def unpack(means: Means, source: Source, to: Path, meter: Meter) -> None:
    """Write a directory's content into a new directory, or into an empty one."""
    port = means.port
    tree = await port.offload(find_tree, to)
    manifest = await fetch_manifest(means.context, means.home, source.key, source.sha256)
    mark = port.new_id()[:16]
    if means.resume:
        mark = resumable_mark(means.home.service, source.sha256, tree.name)
    try:
        await _Unpacking(means, manifest, tree, meter).unpack(mark)
        await port.offload(place_tree, tree)
    except BaseException as error:
        if not means.resume or isinstance(
            error, IntegrityError | InvalidRequestError | ObjectNotFoundError | PreconditionFailedError
        ):
            await port.offload(drop_tree, tree)
        raise


class _Unpacking:
    """A directory being filled."""

    def __init__(self, means: Means, manifest: Manifest, tree: Tree, meter: Meter) -> None:
        self._means = replace(means, resume=False)  # leftovers in here would be taken for content
        self._resume = means.resume
        self._port = means.port
        self._entries = manifest.entries
        self._tree = tree
        self._meter = meter
        self._failed = False

    async def unpack(self, mark: str) -> None:
        """Fill the directory."""
        await self._meter.begin(sum(entry.size for entry in self._entries))
        entries = {entry.path: entry.is_directory for entry in self._entries}
        await self._port.offload(prepare_tree, self._tree, mark, entries, self._resume)
        part_size = (await self._port.send(DescribeService(self._means.home.service))).part_size
        contents: dict[str | None, list[Member]] = {}
        for entry in self._entries:
            if not entry.is_directory:
                contents.setdefault(entry.sha256, []).append(entry)
        large = [each for each in contents.values() if each[0].size > part_size]
        small = [each for each in contents.values() if each[0].size <= part_size]
        for some in make_batches(small, _TURN):
            turn = [self._write_content(each) for each in some]
            for outcome in await self._port.gather(turn, limit=_AT_ONCE):
                outcome.result()
        for each in large:  # the ranges of a large file are fetched in parallel
            await self._write_content(each)

    async def _write_content(self, entries: Sequence[Member]) -> None:
        """Write all files with the same content: fetch the first, and copy it for the others."""
        if self._failed:
            return
        try:
            first, *others = entries
            path = self._tree.paths[first.path]
            source = source_at(self._means.home.file_key(str(first.sha256)), first.sha256, first.size)
            if not (self._resume and await self._is_there(source, path)):
                await self._fetch(source, path)
            await self._port.offload(set_mode, path, first.executable)
            for other in others:
                await self._copy(source, path, other)
        except BaseException:
            self._failed = True
            raise

    async def _fetch(self, source: Source, path: Path) -> None:
        meter = _Share(self._port, self._meter)
        try:
            await fetch_file(self._means, source, path, meter)
        except ObjectNotFoundError:
            places = await fetch_file_keys(self._means.context, self._means.home, [source.sha256])
            key = places.get(source.sha256)
            if key is None or key == source.key:
                raise
            await fetch_file(self._means, replace(source, key=key), path, meter)

    async def _is_there(self, source: Source, path: Path) -> bool:
        """Whether an earlier download left the right file."""
        if not await copy_file(self._port, CheckedFile(path, source.sha256, source.size), None):
            return False
        await self._meter.add(source.size or 0)
        return True

    async def _copy(self, source: Source, path: Path, entry: Member) -> None:
        target = self._tree.paths[entry.path]
        draft = Draft(target, self._port.new_id()[:16])
        if not await copy_file(self._port, CheckedFile(path, source.sha256, source.size), draft):
            raise IntegrityError(
                f"another process changed the file {path} during the download",
                hint="download the directory again",
            )
        await self._port.offload(set_mode, target, entry.executable)
        await self._meter.add(entry.size)


class _Share(Meter):
    """A file's share in the progress of the whole directory."""

    def __init__(self, port: Port, whole: Meter) -> None:
        super().__init__(port, None)
        self._whole = whole

    async def begin(self, total: int | None, done: int = 0) -> None:
        """Do nothing: the progress of the whole has already begun."""

    async def add(self, size: int) -> None:
        """Report ``size`` more bytes."""
        await self._whole.add(size)

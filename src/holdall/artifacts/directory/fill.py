"""The fill: counts and stores the files of a manifest, under a hold.

These are the second to fourth steps of `hold`, which explains why they are safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdall.artifacts.directory.inventory import Directory
from holdall.artifacts.directory.record import (
    BATCH,
    FileRecord,
    Hold,
    Life,
    ManifestRecord,
    change_manifest,
    count_file,
    fetch_all_pairs,
    fetch_files,
    fetch_pairs,
    name_directory,
)
from holdall.artifacts.home import Home
from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.core.digests import base64_of
from holdall.core.expressions import UpdateAction
from holdall.core.objects import DescribeService
from holdall.errors import ContentionError, IntegrityError, PreconditionFailedError
from holdall.files import upload
from holdall.files.mirror import mirror
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import Attempts, commit_once

_PARALLEL = 8
_TOGETHER = 64


class Fill:
    """A manifest under a hold, whose files are being counted and stored."""

    def __init__(
        self,
        context: Context,
        home: Home,
        directory: Directory,
        hold: Hold,
        meter: Meter,
        progress: Progress | None,
    ) -> None:
        self.hold = hold
        self._context = context
        self._home = home
        self._directory = directory
        self._meter = meter
        self._progress = progress
        self._record = ManifestRecord.at(home, hold.manifest)
        self._last = 0

    async def run(self) -> None:
        """Make the manifest complete."""
        port, home, sizes = self._context.port, self._home, self._directory.sizes
        pairs = await fetch_all_pairs(port, home, self.hold.manifest)
        counted = {sha256 for sha256, pair in pairs.items() if pair.is_counted}
        missing: list[Life] = []
        for some in make_batches(list(sizes), 2 * BATCH):
            files = await fetch_files(port, home, some)
            for few in make_batches(some, BATCH):
                missing += [life for life in await self._count(few, files, counted) if not life.is_stored]
            await self._renew()
        done = self._directory.total - sum(self._weight(life) for life in missing)
        await self._meter.add(done)
        single = (await port.send(DescribeService(home.service))).single_put
        small = [life for life in missing if sizes[life.sha256] <= single]
        await self._store_small(small)
        self._last = done = done + sum(map(self._weight, small))
        for life in missing:
            if sizes[life.sha256] > single:
                tell = self._make_progress(done, life)
                await self._store(life, tell)
                if tell is not None:  # the object may already have existed; then no progress was reported
                    await port.call(tell, sizes[life.sha256], None)
                done += self._weight(life)
                await self._renew()
        await self._change_manifest(self.hold, ManifestRecord.complete.set(True))

    def _weight(self, life: Life) -> int:
        """How many bytes of the directory a file accounts for: it may occur more than once."""
        return self._directory.sizes[life.sha256] * self._directory.copies[life.sha256]

    async def _count(
        self, digests: Sequence[str], files: dict[str, FileRecord], counted: set[str]
    ) -> list[Life]:
        """Count the manifest for some files; return where each of them is stored, or will be."""
        port, home, manifest = self._context.port, self._home, self.hold.manifest
        attempts = Attempts(self._context, name_directory(manifest))
        while await attempts.another():
            change = Change(self._context)
            change.require(self._record, self.hold.alive, label="hold")
            lives = [
                Life.of(home, files[sha256])
                if sha256 in counted
                else count_file(change, home, manifest, files[sha256], self._directory.sizes[sha256])
                for sha256 in digests
            ]
            if await self._commit(change):
                return lives
            # read the pairs before the files: a file stays while a pair is counted
            pairs = await fetch_pairs(port, home, manifest, digests)
            counted |= {sha256 for sha256, pair in pairs.items() if pair.is_counted}
            files |= await fetch_files(port, home, digests)
        raise AssertionError  # `another` returns True or raises

    async def _commit(self, change: Change) -> bool:
        """Commit a change that demands the hold; False if something other than the hold has changed."""
        refused = await commit_once(change)
        if refused is not None and "hold" in refused.found:
            raise self._explain_loss()
        return refused is None

    async def _change_manifest(self, hold: Hold, *actions: UpdateAction) -> None:
        change = Change(self._context)
        change_manifest(change, self._record, *actions, expect=[hold.alive], label="hold")
        await self._commit(change)

    async def _renew(self) -> None:
        """Extend the hold to a day from now, if half of its day is over."""
        old, new = self.hold, self.hold.renew(self._context.port.now())
        if new is not None:
            await self._change_manifest(old, new.set(), old.remove())
            self.hold = new

    def _explain_loss(self) -> ContentionError:
        name = name_directory(self.hold.manifest)
        return ContentionError(
            f"putting {name} took so long that its hold on the stored files expired", hint="put it again"
        )

    # --- uploads ---

    async def _store_small(self, lives: list[Life]) -> None:
        for some in make_batches(lives, _TOGETHER):
            flows = [self._store_and_tell(life) for life in some]
            for outcome in await self._context.port.gather(flows, limit=_PARALLEL):
                outcome.result()
            await self._renew()

    async def _store_and_tell(self, life: Life) -> None:
        await self._store(life, None)
        await self._meter.add(self._weight(life))

    def _make_progress(self, before: int, life: Life) -> Progress | None:
        """The function that reports the progress of a large file; large files come last, one after another."""
        progress, total, copies = self._progress, self._directory.total, self._directory.copies[life.sha256]
        if progress is None:
            return None

        def tell(done: int, size: int | None) -> Any:
            now = before + done * copies
            if now > self._last:
                self._last = now
                return progress(now, total)
            return None

        return tell

    async def _store(self, life: Life, progress: Progress | None) -> None:
        """Upload a file, unless it is already stored, and record that it is."""
        size = self._directory.sizes[life.sha256]
        try:
            await upload.put(
                Shelf(self._context, self._home.service),
                life.key,
                self._directory.places[life.sha256],
                if_absent=True,
                sha256=base64_of(life.sha256),
                size=size,
                checksums=("sha256",),
                progress=progress,
            )
        except PreconditionFailedError:
            await self._check_object(life, size)
        file, change = FileRecord.at(self._home, life.sha256), Change(self._context)
        change.update(
            file,
            FileRecord.stored_key.set(life.key),
            expect=[
                FileRecord.born.equals(life.born),
                FileRecord.deleting.absent,
                FileRecord.stored_key.absent,
            ],
            stampable=True,
            label="file",
        )
        refused = await commit_once(change)
        if refused is not None:
            found = FileRecord(file.address, refused.found["file"])
            if (found.born, found.stored_key) != (life.born, life.key):
                raise self._explain_loss()

    async def _check_object(self, life: Life, size: int) -> None:
        """Check that the object under a key is the file: another process may have stored it.

        If the object is missing again, a sweep has removed the file, and the hold with it.
        """
        info = await find_object(self._context, self._home.service, life.key)
        if info is None:
            raise self._explain_loss() from None
        if info.size != size or info.sha256 not in (None, base64_of(life.sha256)):
            raise IntegrityError(
                f"the content of the object {life.key!r:.120} does not match the digest in its key",
                hint="delete the object, and put the directory again",
            )
        await mirror(self._context, self._home.service, life.key)

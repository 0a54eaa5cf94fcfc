"""The sweep: deletes files that no directory needs any more, and what interrupted puts left behind.

The records and their invariants are in `record`. A sweep takes apart a marked manifest that no version has and no put
holds. Every write demands that the manifest still has the sweep's token, so a hold that is written in between ends the
sweep, and nothing that the hold counts is removed. Why it is safe wherever it stops:

1. *The manifest is marked as going*, if it is exactly as it was read; it is no longer complete. No version can be
   counted now. A put of the same directory removes the token, and looks at each file again.
2. *Pairs are taken, 49 to a transaction*, each with its count in the file's record. A file that no other manifest has
   gets ``deleting`` in the same transaction: from then on no put uses its object. The pairs stay, so that the files can
   be found.
3. *The objects are deleted.* If this sweep is slow or dead, and a put needs the file meanwhile, it uses another key.
4. *The files' records and the pairs are deleted, in one transaction.* A key may be used again only now, and only
   because this sweep itself ordered its deletion and saw it end; if another sweep ordered it, a record of that stays.
5. *The manifest's record and its mark are deleted, in one transaction.* Until then, the next sweep finds the mark and
   continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from holdall.artifacts.directory.record import (
    BATCH,
    FileRecord,
    ManifestRecord,
    PairRecord,
    SweepMark,
    change_manifest,
    fetch_all_pairs,
    fetch_files,
    fetch_pairs,
    name_directory,
)
from holdall.artifacts.home import Home
from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.core.expressions import Condition
from holdall.core.objects import DeleteObject, DeleteObjects, ListedObject
from holdall.errors import HoldallError, ServiceError
from holdall.files.listing import Listing
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import Attempts, commit_once
from holdall.tables.record import RecordPages, fetch

_TURN = timedelta(minutes=5)
"""How long other sweeps leave a manifest to the one that began on it. Correctness does not depend on this."""


class Freed(NamedTuple):
    """How many objects a sweep has deleted, and their bytes."""

    objects: int
    bytes: int


async def sweep(context: Context, home: Home, manifests: Iterable[str] | None = None) -> Freed:
    """Delete the files that no directory needs any more: of all marked manifests, or of these.

    If a manifest cannot be swept, the others still are; the first error is raised at the end.
    """
    begun = _Sweep(context, home)
    if manifests is not None:
        for manifest in dict.fromkeys(manifests):
            await begun.look_at(manifest)
    else:
        pages = RecordPages(context.port, SweepMark, SweepMark.query(home), home.address_of)
        while (marks := await pages.next_page()) is not None:
            for mark in marks:
                await begun.look_at(mark.sk)
    if begun.error is not None:
        raise begun.error
    return Freed(begun.objects, begun.bytes)


class _EndedError(Exception):
    """The manifest has changed: another process is putting or sweeping the directory."""


class _Sweep:
    """Looks at manifests one after another, and adds up what it has freed.

    It looks at each only once, so that a manifest and the token identify one attempt: an object whose deletion failed
    is not mistaken for one whose deletion was seen to end.
    """

    def __init__(self, context: Context, home: Home) -> None:
        self._context = context
        self._home = home
        self._token = context.port.new_id()
        self.objects = self.bytes = 0
        self.error: HoldallError | None = None

    async def look_at(self, manifest: str) -> None:
        """Take a manifest apart if no version has it; otherwise remove its mark."""
        try:
            await self._look_at(await fetch(self._context.port, ManifestRecord.at(self._home, manifest)))
        except _EndedError:
            pass
        except HoldallError as error:
            self.error = self.error or error

    async def _look_at(self, manifest: ManifestRecord) -> None:
        port, home, change = self._context.port, self._home, Change(self._context)
        if not manifest.is_stored:
            change.require(manifest, manifest.address.absent, label="manifest")
            change.delete(SweepMark.of(home, manifest.sha256))
            await self._commit(change)
            return
        now = port.now()
        same = [manifest.same(ManifestRecord.born, ManifestRecord.changes)]
        removed = manifest.remove_expired(now)
        if manifest.refs > 0:
            change_manifest(change, manifest, *removed, expect=same, label="manifest")
            change.delete(SweepMark.of(home, manifest.sha256))
            await self._commit(change)
            return
        until = int((manifest.going or "0").partition(":")[0])
        if len(manifest.holds) > len(removed) or until > now.timestamp():
            return
        going = f"{int((now + _TURN).timestamp())}:{self._token}"
        steps = (ManifestRecord.going.set(going), ManifestRecord.complete.remove(), *removed)
        change_manifest(change, manifest, *steps, expect=same, label="manifest")
        await self._commit(change)
        digests = list(await fetch_all_pairs(port, home, manifest.sha256))
        mine = ManifestRecord.going.equals(going)
        for some in make_batches(digests, BATCH):
            await self._free(manifest, mine, some)
        change = Change(self._context)
        change.delete(manifest, expect=[mine], label="manifest")
        change.delete(SweepMark.of(home, manifest.sha256))
        await self._commit(change)

    async def _commit(self, change: Change) -> bool:
        """Commit; False if something other than the manifest has changed."""
        refused = await commit_once(change)
        if refused is not None and "manifest" in refused.found:
            raise _EndedError
        return refused is None

    async def _free(self, manifest: ManifestRecord, mine: Condition, digests: Sequence[str]) -> None:
        """Take some files from the manifest, and delete those that no other manifest has."""
        port, home, sha256 = self._context.port, self._home, manifest.sha256
        attempts = Attempts(self._context, name_directory(sha256))
        while await attempts.another():
            pairs = await fetch_pairs(port, home, sha256, digests)
            files = await fetch_files(port, home, digests)
            counted = [digest for digest, pair in pairs.items() if pair.is_counted]
            if counted:
                change = Change(self._context)
                change.require(manifest, mine, label="manifest")
                for digest in counted:
                    self._take(change, sha256, pairs[digest], files[digest])
                if not await self._commit(change):
                    continue
                files = await fetch_files(port, home, digests)
            # if a sweep of another manifest is deleting a file, leave it to that sweep
            ours = [file for file in files.values() if (file.deleting or "").startswith(f"{sha256}:")]
            await self._delete_objects(ours)
            change = Change(self._context)
            change.require(manifest, mine, label="manifest")
            for file in ours:
                self._end(change, file)
            for pair in pairs.values():
                change.delete(pair)
            if await self._commit(change):
                sizes = [file.size for file in ours if file.stored_key is not None]
                self.objects += len(sizes)
                self.bytes += sum(sizes)
                return

    def _take(self, change: Change, manifest: str, pair: PairRecord, file: FileRecord) -> None:
        """Take a pair; if no other manifest has the file, mark the file for deletion."""
        refs = FileRecord.refs
        change.update(pair, PairRecord.taken.set(True), expect=[pair.address.exists, PairRecord.taken.absent])
        if file.refs == 1:
            deleting = FileRecord.deleting.set(f"{manifest}:{self._token}")
            change.update(file, refs.set(0), deleting, expect=[refs.equals(1)])
        else:
            change.update(file, refs.add(-1), expect=[refs.at_least(2)])

    async def _delete_objects(self, files: Iterable[FileRecord]) -> None:
        keys = [key for file in files for key in {file.object_key(self._home), *file.leftovers}]
        for some in make_batches(keys, DeleteObjects.most):
            request = DeleteObjects(self._home.service, tuple(some))
            failures = (await self._context.port.send(request)).failures
            if failures:
                key, reason = next(iter(failures.items()))
                raise ServiceError(
                    f"{len(failures)} files could not be deleted; the first is {key!r:.120}: {reason}"
                )

    def _end(self, change: Change, file: FileRecord) -> None:
        """End a file's record; if another process may still be deleting the object, its first key is never reused."""
        assert file.deleting is not None
        same = [file.same(FileRecord.deleting)]
        if not file.moved and file.deleting.endswith(f":{self._token}"):
            change.delete(file, expect=same)
        else:
            change.put(file.retire(), expect=same)


_AGE = timedelta(days=2)
_NAME = re.compile(r"([0-9a-f]{64})(\.[0-9a-f-]{36})?")
_STRAY = "stray:"


async def sweep_strays(context: Context, home: Home, *, dry_run: bool = False) -> Freed:
    """Delete objects of files without a record, if they are too old to belong to a put in progress.

    ``dry_run`` only counts them. This lists all objects, a page at a time: run it occasionally.

    A stray object can appear in only one way: a put is delayed for more than a day, a sweep removes its hold and its
    files' records, and then its upload succeeds after all; if the put dies before it notices, nothing refers to the
    object. So from time to time all objects are listed and compared with the records. Why it is safe to delete an
    object without a record:

    - A key that its file's record has given up (`record` explains when) is never used again.
    - For a key that may be used again, a record with ``deleting`` is written first, if there is still none. A process
      that needs the file from then on uses another key, as always.
    """
    prefix = f"{home.file_key('')}/"
    before = context.port.now() - _AGE
    objects = size = 0
    listing = Listing(context, home.service, prefix)
    while (page := await listing.next_page()) is not None:
        old = [
            (listed, name[1])
            for listed in page.objects
            if listed.modified < before and (name := _NAME.fullmatch(listed.key.removeprefix(prefix)))
        ]
        files = await fetch_files(context.port, home, list(dict.fromkeys(sha256 for _, sha256 in old)))
        for listed, sha256 in old:
            if not _is_stray(home, listed, files[sha256]):
                continue
            if dry_run or await _delete_stray(context, home, listed, files[sha256]):
                objects += 1
                size += listed.size
    return Freed(objects, size)


def _is_stray(home: Home, listed: ListedObject, file: FileRecord) -> bool:
    """Whether a file's record, or its absence, shows that no process needs an object."""
    is_first = listed.key == home.file_key(file.sha256)
    if file.moved or not (file.is_stored or is_first):
        return file.born is None or listed.key != file.object_key(home)
    return not file.is_stored or (is_first and (file.deleting or "").startswith(_STRAY))


async def _delete_stray(context: Context, home: Home, listed: ListedObject, file: FileRecord) -> bool:
    """Delete a stray object; return whether it still was one."""
    port, delete = context.port, DeleteObject(home.service, listed.key)
    if file.moved or not (file.is_stored or listed.key == home.file_key(file.sha256)):
        await port.send(delete)
        return True
    change = Change(context)
    if file.is_stored:
        await port.send(delete)  # the process that began to delete it has died
        change.put(file.retire(), expect=[file.same(FileRecord.deleting)])
        await commit_once(change)
        return True
    made = FileRecord.new(
        file.address,
        FileRecord.refs.set(0),
        FileRecord.size.set(listed.size),
        FileRecord.born.set(port.new_id()),
        FileRecord.deleting.set(_STRAY + port.new_id()),
    )
    change.create(made)
    if await commit_once(change) is not None:
        return False
    await port.send(delete)
    change = Change(context)
    change.delete(made, expect=[made.same(FileRecord.deleting)])
    await commit_once(change)
    return True

"""Filling a manifest: its files are counted and stored, under a hold.

The second to fourth step of `holdings`, which says why they are safe.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from holdall.artifacts.directories.counting import (
    BATCH,
    HOLD,
    TRIES,
    Hold,
    Placed,
    add_pair,
    all_pairs,
    change_manifest,
    contention,
    counted,
    failed,
    file_key,
    manifest_key,
    paired,
    pause,
    placed,
    read_files,
    read_pairs,
    transact,
)
from holdall.artifacts.directories.gathering import Directory
from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.expressions import And, Compare, Condition, NotExists, Remove, Set, Update, Value, path
from holdall.core.objects import DescribeService, HeadObject
from holdall.core.requests import ConditionCheck, TransactAction, UpdateItem, stamped
from holdall.core.values import Item
from holdall.errors import (
    ConditionFailedError,
    ContentionError,
    IntegrityError,
    ObjectNotFoundError,
    PreconditionFailedError,
    TransactionCanceledError,
)
from holdall.files import upload
from holdall.files.mirror import mirror
from holdall.files.progress import Progress, Told
from holdall.files.shelf import Shelf

__all__ = ["Filling"]

T = TypeVar("T")

_PARALLEL = 8
_TOGETHER = 64


class Filling:
    """A manifest under a hold, whose files are counted and stored."""

    def __init__(
        self,
        context: Context,
        home: Home,
        directory: Directory,
        hold: Hold,
        told: Told,
        progress: Progress | None,
    ) -> None:
        self.hold = hold
        self._context = context
        self._home = home
        self._directory = directory
        self._told = told
        self._progress = progress
        self._last = 0

    async def fill(self) -> None:
        """Make the manifest complete."""
        digests = list(self._directory.sizes)
        known = await all_pairs(self._context, self._home, self.hold.manifest)
        have = {sha256 for sha256, is_counted in known.items() if is_counted}
        missing: list[Placed] = []
        for some in _batches(digests, 2 * BATCH):
            items = await read_files(self._context, self._home, some)
            for few in _batches(some, BATCH):
                missing += [each for each in await self._counted(few, items, have) if not each.stored]
            await self._renew()
        absent = {each.sha256 for each in missing}
        sizes = self._directory.sizes
        ready = self._directory.total - sum(self._weight(sha256) for sha256 in absent)
        await self._told.add(ready)
        single = (await self._context.port.send(DescribeService(self._home.service))).single_put
        small = [each for each in missing if sizes[each.sha256] <= single]
        await self._store_small(small)
        self._last = ready = ready + sum(self._weight(each.sha256) for each in small)
        for each in missing:
            if sizes[each.sha256] > single:
                tell = self._telling(ready, each)
                await self._store(each, tell)
                if tell is not None:  # it may have been there, so that nothing was told
                    await self._context.port.call(tell, sizes[each.sha256], None)
                ready += self._weight(each.sha256)
                await self._renew()
        done = change_manifest(
            self._home, self.hold.manifest, self.hold.alive, Set(path("complete"), Value({"BOOL": True}))
        )
        await self._under_hold((done,))

    def _weight(self, sha256: str) -> int:
        """How many bytes of the directory a file is: it may be there more than once."""
        return self._directory.sizes[sha256] * self._directory.copies[sha256]

    async def _counted(
        self, digests: list[str], items: dict[str, Item | None], have: set[str]
    ) -> list[Placed]:
        """Have the manifest counted for some files; where each of them is, or is to be."""
        home, manifest, port = self._home, self.hold.manifest, self._context.port
        for turn in range(TRIES):
            found: list[Placed] = []
            actions: list[TransactAction] = [
                ConditionCheck(home.table, manifest_key(home, manifest), self.hold.alive)
            ]
            for sha256 in digests:
                item = items[sha256]
                if sha256 in have:
                    assert item is not None  # as it is counted
                    found.append(placed(home, sha256, item))
                    continue
                count, place = counted(home, sha256, self._directory.sizes[sha256], item, port.new_id())
                actions += (add_pair(home, manifest, sha256), count)
                found.append(place)
            if len(actions) == 1:
                return found
            try:
                await self._under_hold(actions)
            except TransactionCanceledError:
                await pause(self._context, turn)
            else:
                return found
            pairs = await read_pairs(self._context, home, manifest, digests)  # before the files: they stay
            have |= {sha256 for sha256, pair in pairs.items() if paired(pair)}
            items |= await read_files(self._context, home, digests)
        raise contention(manifest)

    async def _under_hold(self, actions: Sequence[TransactAction]) -> None:
        """Write something of which the first demands the hold."""
        try:
            await transact(self._context, actions)
        except TransactionCanceledError as error:
            if failed(error, 0):
                raise _lost(self.hold.manifest) from None
            raise

    async def _renew(self) -> None:
        """Make the hold last a day from now, if half of its day is over."""
        port, old = self._context.port, self.hold
        until = int((port.now() + HOLD).timestamp())
        if until - old.until < HOLD.total_seconds() / 2:
            return
        new = Hold(old.manifest, old.id, until)
        steps = (Set(path(new.attribute), Value({"BOOL": True})), Remove(path(old.attribute)))
        await self._under_hold((change_manifest(self._home, old.manifest, old.alive, *steps),))
        self.hold = new

    # --- uploads ---

    async def _store_small(self, files: list[Placed]) -> None:
        for some in _batches(files, _TOGETHER):
            flows = [self._store_and_tell(each) for each in some]
            for outcome in await self._context.port.gather(flows, limit=_PARALLEL):
                outcome.result()
            await self._renew()

    async def _store_and_tell(self, file: Placed) -> None:
        await self._store(file, None)
        await self._told.add(self._weight(file.sha256))

    def _telling(self, before: int, file: Placed) -> Progress | None:
        """Tell of a large file as it goes; these come last, and one after the other."""
        progress, total, copies = self._progress, self._directory.total, self._directory.copies[file.sha256]
        if progress is None:
            return None

        def tell(done: int, size: int | None) -> Any:
            now = before + done * copies
            if now > self._last:
                self._last = now
                return progress(now, total)
            return None

        return tell

    async def _store(self, file: Placed, progress: Progress | None) -> None:
        """Upload a file, unless it is there, and say that it is."""
        home, size = self._home, self._directory.sizes[file.sha256]
        shelf = Shelf(self._context, home.service)
        try:
            await upload.put(
                shelf,
                file.key,
                self._directory.places[file.sha256],
                if_absent=True,
                sha256=_base64(file.sha256),
                size=size,
                checksums=("sha256",),
                progress=progress,
            )
        except PreconditionFailedError:
            await self._check_there(file, size)
        same = And((_is_born(file), NotExists(path("deleting")), NotExists(path("stored"))))
        update = UpdateItem(
            home.table,
            file_key(home, file.sha256),
            Update((Set(path("stored"), Value({"S": file.key})),)),
            same,
        )
        try:
            await self._context.port.send(stamped(update, self._context.port.new_id()))
        except ConditionFailedError as error:
            item = error.item or {}
            if item.get("born") != {"S": file.born} or item.get("stored") != {"S": file.key}:
                raise _lost(self.hold.manifest) from None

    async def _check_there(self, file: Placed, size: int) -> None:
        """Check that the object under a key is the file: another process was faster, or died before it recorded that.

        If the object is gone again, a sweep has removed the file, and the hold with it.
        """
        try:
            info = await self._context.port.send(HeadObject(self._home.service, file.key))
        except ObjectNotFoundError:
            raise _lost(self.hold.manifest) from None
        if info.size != size or info.sha256 not in (None, _base64(file.sha256)):
            raise IntegrityError(
                f"the object {file.key!r:.120} has other bytes than its key says", hint="delete it"
            )
        await mirror(self._context, self._home.service, file.key)


def _is_born(file: Placed) -> Condition:
    return Compare("=", path("born"), Value({"S": file.born}))


def _base64(sha256: str) -> str:
    return b64encode(bytes.fromhex(sha256)).decode()


def _batches(members: list[T], size: int) -> Iterator[list[T]]:
    for at in range(0, len(members), size):
        yield members[at : at + size]


def _lost(manifest: str) -> ContentionError:
    return ContentionError(
        f"the hold on the directory {manifest[:12]} was over before it was put; put it again"
    )

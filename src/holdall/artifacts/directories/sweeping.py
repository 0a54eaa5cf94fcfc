"""The sweep: files that no directory has any more are deleted, and what was left of puts that died.

The records, and what always holds, are in `counting`. A sweep takes a marked manifest apart that no version has and
nobody holds. Every write demands that the manifest still has the sweep's token, so a hold that comes in between ends
it, and nothing that the hold counts is taken back. Why it is safe wherever it stops:

1. *The manifest is going*, if it is exactly what was read; it is no longer complete. No version can be counted now.
   Whoever puts the same directory removes the token, and looks at each file again.
2. *Pairs are taken, 49 to a transaction*, each with its count in the file's record. A file that nobody else has gets
   ``deleting`` in the same transaction: from then on nobody uses its object. The pairs stay, to be found by.
3. *The objects are deleted.* If we are slow, or dead, and somebody needs the file meanwhile, they use another key.
4. *The files' records and the pairs go, in one transaction.* A key may be used again only now, and only as it was us
   who had its deletion ordered and have seen its end; what another sweep had ordered leaves a record that says so.
5. *The manifest's record and its mark go, in one transaction.* Until then the next sweep finds the mark, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple

from holdall.artifacts.directories.counting import (
    BATCH,
    TRIES,
    all_pairs,
    change_manifest,
    contention,
    delete_mark,
    expired_holds,
    failed,
    file_key,
    holds_of,
    manifest_key,
    marks,
    object_of,
    pair_key,
    pause,
    read_files,
    read_pairs,
    refs_of,
    transact,
)
from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.expressions import (
    Add,
    And,
    Compare,
    Condition,
    Exists,
    NotExists,
    Remove,
    Set,
    Update,
    UpdateAction,
    Value,
    path,
)
from holdall.core.frozen import replace
from holdall.core.objects import DeleteObjects
from holdall.core.requests import ConditionCheck, DeleteItem, GetItem, PutItem, TransactAction, UpdateItem
from holdall.core.values import Attribute, Item
from holdall.errors import HoldallError, ServiceError, TransactionCanceledError

__all__ = ["Freed", "sweep"]

_TURN = timedelta(minutes=5)
"""How long others leave a manifest to the sweep that has begun on it. It is a courtesy: nothing depends on it."""

_MOST_KEYS = 1000


class Freed(NamedTuple):
    """What a sweep has deleted."""

    objects: int
    bytes: int


async def sweep(context: Context, home: Home, manifests: Iterable[str] | None = None) -> Freed:
    """Delete the files that no directory has any more: of all manifests that are marked, or of these.

    One that cannot be swept does not keep the others from it; the first error is raised in the end.
    """
    tally = _Tally(context, home)
    if manifests is not None:
        for manifest in dict.fromkeys(manifests):
            await tally.look_at(manifest)
    else:
        query = marks(home)
        while True:
            page = await context.port.send(query)
            for item in page.items:
                await tally.look_at(home.sk_of(item))
            if page.last_key is None:
                break
            query = replace(query, start_after=page.last_key)
    if tally.error is not None:
        raise tally.error
    return Freed(tally.objects, tally.bytes)


class _Tally:
    """Manifests one after the other, and what came of it."""

    def __init__(self, context: Context, home: Home) -> None:
        self._context = context
        self._home = home
        self.objects = self.bytes = 0
        self.error: HoldallError | None = None

    async def look_at(self, manifest: str) -> None:
        """Take a manifest apart if nobody has it, or its mark away if somebody has."""
        sweeping = _Sweeping(self._context, self._home, manifest)
        try:
            await sweeping.run()
        except _EndedError:
            pass  # somebody has put the directory, or sweeps it, and it is theirs now
        except HoldallError as error:
            self.error = self.error or error
        self.objects += sweeping.objects
        self.bytes += sweeping.bytes


class _EndedError(Exception):
    """The manifest is no longer ours to take apart."""


class _Sweeping:
    """One manifest."""

    def __init__(self, context: Context, home: Home, manifest: str) -> None:
        self._context = context
        self._home = home
        self._manifest = manifest
        self._token = context.port.new_id()
        self.objects = self.bytes = 0

    async def run(self) -> None:
        """Look at the manifest, and take it apart if that is what is to be done."""
        context, home, manifest = self._context, self._home, self._manifest
        key = manifest_key(home, manifest)
        item = (await context.port.send(GetItem(home.table, key, consistent=True))).item
        if item is None:
            check = ConditionCheck(home.table, key, home.absent)
            await self._write((check, delete_mark(home, manifest)))
            return
        now = context.port.now()
        same = home.unchanged(item, "born", "changes")
        over = expired_holds(item, now)
        if refs_of(item) > 0:
            tidied = change_manifest(home, manifest, same, *over)
            await self._write((tidied, delete_mark(home, manifest)))
            return
        if len(holds_of(item)) > len(over) or _is_being_swept(item, now.timestamp()):
            return
        until = int((now + _TURN).timestamp())
        going: Attribute = {"S": f"{until}:{self._token}"}
        steps: list[UpdateAction] = [Set(path("going"), Value(going)), Remove(path("complete")), *over]
        await self._write((change_manifest(home, manifest, same, *steps),))
        mine: Condition = Compare("=", path("going"), Value(going))
        digests = list(await all_pairs(context, home, manifest))
        for at in range(0, len(digests), BATCH):
            await self._free(digests[at : at + BATCH], mine)
        await self._write((DeleteItem(home.table, key, mine), delete_mark(home, manifest)))

    async def _write(self, actions: Iterable[TransactAction]) -> None:
        """Write something of which the first demands that the manifest is as we know it."""
        try:
            await transact(self._context, actions)
        except TransactionCanceledError as error:
            if failed(error, 0):
                raise _EndedError from None
            raise

    async def _free(self, digests: list[str], mine: Condition) -> None:
        """Take some files from the manifest, and delete those that nobody else has."""
        context, home, manifest = self._context, self._home, self._manifest
        check = ConditionCheck(home.table, manifest_key(home, manifest), mine)
        for turn in range(TRIES):
            pairs = await read_pairs(context, home, manifest, digests)
            items = await read_files(context, home, digests)
            untaken = [sha256 for sha256, pair in pairs.items() if pair is not None and "taken" not in pair]
            try:
                if untaken:
                    await self._write((check, *self._takes(untaken, items)))
                    items = await read_files(context, home, digests)
                ours = {sha256: item for sha256, item in items.items() if item and self._is_ours(item)}
                await self._delete_objects(ours)
                ends = [self._end(sha256, item) for sha256, item in ours.items()]
                gone = [DeleteItem(home.table, pair_key(home, manifest, sha256)) for sha256 in digests]
                await self._write((check, *ends, *gone))
            except TransactionCanceledError:
                await pause(context, turn)
                continue
            freed = [int(item["size"]["N"]) for item in ours.values() if "stored" in item]
            self.objects += len(freed)
            self.bytes += sum(freed)
            return
        raise contention(manifest)

    def _takes(self, digests: list[str], items: dict[str, Item | None]) -> list[TransactAction]:
        """What takes pairs, and makes ours the files that nobody else has."""
        home, actions = self._home, list[TransactAction]()
        for sha256 in digests:
            item = items[sha256]
            counts: Condition = And((Exists(path("_type")), NotExists(path("taken"))))
            taken = Update((Set(path("taken"), Value({"BOOL": True})),))
            actions.append(UpdateItem(home.table, pair_key(home, self._manifest, sha256), taken, counts))
            if refs_of(item) == 1:
                steps: tuple[UpdateAction, ...] = (
                    Set(path("refs"), Value({"N": "0"})),
                    Set(path("deleting"), Value({"S": f"{self._manifest}:{self._token}"})),
                )
                condition = Compare("=", path("refs"), Value({"N": "1"}))
            else:
                steps = (Add(path("refs"), Value({"N": "-1"})),)
                condition = Compare(">", path("refs"), Value({"N": "1"}))
            actions.append(UpdateItem(home.table, file_key(home, sha256), Update(steps), condition))
        return actions

    def _is_ours(self, item: Item) -> bool:
        """Whether a file is for this manifest to delete: a sweep of another sees to its own."""
        return "deleting" in item and item["deleting"]["S"].startswith(f"{self._manifest}:")

    async def _delete_objects(self, files: dict[str, Item]) -> None:
        keys: list[str] = []
        for sha256, item in files.items():
            keys += {object_of(self._home, sha256, item), *item.get("leftovers", {}).get("SS", ())}
        for at in range(0, len(keys), _MOST_KEYS):
            request = DeleteObjects(self._home.service, tuple(keys[at : at + _MOST_KEYS]))
            failures = (await self._context.port.send(request)).failures
            if failures:
                key, reason = next(iter(failures.items()))
                raise ServiceError(
                    f"{len(failures)} files could not be deleted, the first {key!r:.120}: {reason}"
                )

    def _end(self, sha256: str, item: Item) -> TransactAction:
        """The end of a file's record. If anybody but us may still be deleting, its old key must not be used again."""
        home, key = self._home, file_key(self._home, sha256)
        same = Compare("=", path("deleting"), Value(item["deleting"]))
        if "moved" not in item and item["deleting"]["S"].endswith(f":{self._token}"):
            return DeleteItem(home.table, key, same)
        left: dict[str, Attribute] = {"_type": {"S": "holdall.ArtifactFile"}, "moved": {"BOOL": True}}
        return PutItem(home.table, {**key, **left}, same)


def _is_being_swept(item: Item, now: float) -> bool:
    return "going" in item and int(item["going"]["S"].partition(":")[0]) > now

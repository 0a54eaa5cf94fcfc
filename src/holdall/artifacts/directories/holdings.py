"""Holdings: the files of directories, stored once whoever has them, and safe from the moment that they are held.

A directory is put by `hold_files`; the transaction that makes its manifest a version then has `swap_actions` in it.
What is no longer had by any version is deleted by `sweep`. The records, and what always holds, are in `counting`; here
is why nothing that is needed is lost, and nothing stays for good, wherever a put stops:

1. *The hold, with its mark, is written first.* If it is all there is, a sweep removes it once it is over. From here on
   no sweep begins on this manifest, and one that is under way can take nothing more from it.
2. *Files are counted, 49 to a transaction*, each with its pair, under the hold, and only as their records were read. A
   file that was stored then stays, as it is counted for us. One that was being deleted gets another key.
3. *Files that are not there are uploaded*, then said to be stored, but only in the life of the record that they were
   uploaded for. Two may upload the same: the second finds it there.
4. *The manifest is complete.* Only now is there a `Hold`. Who comes next with the same directory needs two requests.
5. *The version is counted and the hold dropped, in one transaction.* If the hold was taken away meanwhile, that fails,
   and nothing was put.

After 1 to 4 the mark is there, so that what was left is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdall.artifacts.directories.counting import (
    HOLD,
    TRIES,
    Hold,
    change_manifest,
    contention,
    delete_mark,
    expired_holds,
    failed,
    manifest_key,
    mark,
    pause,
    read_files,
    transact,
)
from holdall.artifacts.directories.filling import Filling
from holdall.artifacts.directories.gathering import Directory, gather_directory
from holdall.artifacts.directories.manifest import MAX_MANIFEST, Manifest, manifest_sha256
from holdall.artifacts.directories.record import ManifestRecord, unmark
from holdall.artifacts.directories.record import change_manifest as change_record
from holdall.artifacts.directories.record import mark as mark_manifest
from holdall.artifacts.directories.sweeping import Freed, sweep
from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.expressions import (
    And,
    Compare,
    Condition,
    Exists,
    IfNotExists,
    Remove,
    Set,
    UpdateAction,
    Value,
    path,
)
from holdall.core.requests import GetItem, TransactAction
from holdall.core.values import Item
from holdall.errors import HoldallError, IntegrityError, InvalidArtifactError, TransactionCanceledError
from holdall.files import download
from holdall.files.progress import Progress, Told
from holdall.files.shelf import Shelf
from holdall.tables.commit.change import Change

__all__ = [
    "Directory",
    "Freed",
    "Hold",
    "abandon",
    "added_actions",
    "count_versions",
    "dropped_actions",
    "file_places",
    "gather_directory",
    "hold_files",
    "read_manifest",
    "redeem_hold",
    "swap_actions",
    "sweep",
]

_COMPLETE = path("complete")
_HAD: Condition = Compare(">=", path("refs"), Value({"N": "1"}))


async def hold_files(
    context: Context, home: Home, directory: Directory, *, progress: Progress | None = None
) -> Hold:
    """Store what is missing of a directory's files, and keep all of them safe for a day, or until the hold is dropped.

    ``progress`` is told of the bytes that are there, and all there are. Called again, it gives another hold.
    """
    told = Told(context.port, progress)
    await told.begin(directory.total)
    hold, complete = await _held(context, home, directory.sha256)
    if complete:
        await told.add(directory.total)
        return hold
    filling = Filling(context, home, directory, hold, told, progress)
    try:
        await filling.fill()
    except BaseException as error:
        await context.port.finish(_given_up(context, home, filling.hold, error))
        raise
    return filling.hold


async def abandon(context: Context, home: Home, hold: Hold) -> None:
    """Drop a hold; what it alone has kept goes with the next sweep. One that is gone is no error."""
    drop = change_manifest(home, hold.manifest, hold.alive, Remove(path(hold.attribute)))
    try:
        await transact(context, (drop,))
    except TransactionCanceledError as error:
        if not failed(error, 0):
            raise


async def _given_up(context: Context, home: Home, hold: Hold, error: BaseException) -> None:
    """Drop a hold after an error, which is the one to tell."""
    try:
        await abandon(context, home, hold)
    except HoldallError as another:
        error.add_note(
            f"its files are held for another day, as the hold could not be dropped: {another.code}"
        )


# --- what goes into the transactions of versions ----------------------------------------------------------


def swap_actions(home: Home, hold: Hold, old_manifest: str | None) -> tuple[TransactAction, ...]:
    """Count a version for what is held, and no longer for the manifest that it replaces; the hold is dropped.

    The transaction fails when the hold was taken away, as it was over.
    """
    manifest = hold.manifest
    ready: Condition = And((hold.alive, Exists(_COMPLETE)))
    drop = Remove(path(hold.attribute))
    if old_manifest == manifest:
        return change_manifest(home, manifest, ready & _HAD, drop), delete_mark(home, manifest)
    new = change_manifest(home, manifest, ready, drop, refs=1)
    old = () if old_manifest is None else dropped_actions(home, old_manifest)
    return (new, delete_mark(home, manifest), *old)


def redeem_hold(change: Change, home: Home, hold: Hold) -> None:
    """Count a version for what is held, and drop the hold; refused if the hold was taken away, as it was over."""
    change_record(
        change,
        ManifestRecord.at(home, hold.manifest),
        ManifestRecord.refs.add(1),
        ManifestRecord.holds[f"{hold.until}:{hold.id}"].remove(),
        expect=[ManifestRecord.holds[f"{hold.until}:{hold.id}"].exists, ManifestRecord.complete.exists],
        label="manifest",
    )
    unmark(change, home, hold.manifest)


def count_versions(
    change: Change, home: Home, *, more: Iterable[str] = (), fewer: Iterable[str] = ()
) -> None:
    """Count versions more for manifests that other versions have, and fewer; a manifest is named for each of them.

    If no version is left, a manifest's files go with the next sweep.
    """
    refs, complete = ManifestRecord.refs, ManifestRecord.complete
    for manifest, count in Counter(more).items():
        record, expect = ManifestRecord.at(home, manifest), [refs.at_least(1), complete.exists]
        change_record(change, record, refs.add(count), expect=expect, label="manifest")
    for manifest, count in Counter(fewer).items():
        record = ManifestRecord.at(home, manifest)
        change_record(change, record, refs.add(-count), expect=[refs.at_least(count)], label="manifest")
        mark_manifest(change, home, manifest)


def added_actions(home: Home, manifest: str, count: int = 1) -> tuple[TransactAction, ...]:
    """Count a version more for a manifest that another version has."""
    return (change_manifest(home, manifest, _HAD & Exists(_COMPLETE), refs=count),)


def dropped_actions(home: Home, manifest: str, count: int = 1) -> tuple[TransactAction, ...]:
    """Count a version less for a manifest, or several; if that was the last, its files go with the next sweep."""
    enough = Compare(">=", path("refs"), Value({"N": str(count)}))
    return change_manifest(home, manifest, enough, refs=-count), mark(home, manifest)


# --- reading ----------------------------------------------------------------------------------------------


async def read_manifest(context: Context, home: Home, artifact_key: str, sha256: str) -> Manifest:
    """The manifest that is under a key; `IntegrityError` when it is not the one with this digest."""
    data = await download.get(Shelf(context, home.service), artifact_key, size=MAX_MANIFEST + 1)
    if len(data) > MAX_MANIFEST:
        raise InvalidArtifactError(f"the object {artifact_key!r:.80} is too large to be a manifest")
    if manifest_sha256(data) != sha256:
        raise IntegrityError(f"the object {artifact_key!r:.80} is not the manifest that it should be")
    return Manifest.parse(data)


async def file_places(context: Context, home: Home, digests: Sequence[str]) -> dict[str, str]:
    """The keys under which files are stored; those that are not are left out.

    Nearly all are under ``home.file_key``: ask here for one that is not found there.
    """
    items = await read_files(context, home, list(dict.fromkeys(digests)))
    return {sha256: item["stored"]["S"] for sha256, item in items.items() if item and "stored" in item}


# --- the hold ---------------------------------------------------------------------------------------------


async def _held(context: Context, home: Home, manifest: str) -> tuple[Hold, bool]:
    """A hold on a manifest, and whether all its files are there. A sweep that is taking it apart ends with it."""
    port = context.port
    for turn in range(TRIES):
        item = (await port.send(GetItem(home.table, manifest_key(home, manifest), consistent=True))).item
        complete = item is not None and "complete" in item
        now = port.now()
        hold = Hold(manifest, port.new_id(), int((now + HOLD).timestamp()))
        begin = change_manifest(
            home,
            manifest,
            home.unchanged(item, "born", "complete"),
            *_begun(hold, item),
            *expired_holds(item, now),
        )
        try:
            await transact(context, (mark(home, manifest), begin))
        except TransactionCanceledError as error:
            if not failed(error, 1):
                raise
            await pause(context, turn)
        else:
            return hold, complete
    raise contention(manifest)


def _begun(hold: Hold, item: Item | None) -> list[UpdateAction]:
    steps: list[UpdateAction] = [
        Set(path(hold.attribute), Value({"BOOL": True})),
        Set(path("refs"), IfNotExists(path("refs"), Value({"N": "0"}))),
        Remove(path("going")),
    ]
    if item is None:
        steps.append(Set(path("born"), Value({"S": hold.id})))
        steps.append(Set(path("_type"), Value({"S": "holdall.ArtifactManifest"})))
    return steps

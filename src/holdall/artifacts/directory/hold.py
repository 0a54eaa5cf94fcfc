"""Holds: they keep the files of a directory safe from the sweep while the directory is being put.

Each file is stored once, however many directories contain it. `hold_files` stores a directory's files; the transaction
that makes a version of its manifest then calls `redeem_hold`. `sweep` deletes files that no version needs any more. The
records and their invariants are in `record`. Why no file that is needed is lost, and no other stays forever, wherever a
put stops:

1. *The hold, with its mark, is written first.* If nothing follows, a sweep removes it once its time is over. From here
   on no sweep begins on this manifest, and one in progress can take nothing more from it.
2. *Files are counted, 49 to a transaction*, each with its pair, under the hold, and only if their records are as they
   were read. A file that is already stored then stays, because it is counted for this manifest. One that was being
   deleted gets another key.
3. *Missing files are uploaded*, then recorded as stored, but only in the life of the record that they were uploaded
   for. Two processes may upload the same file: the second finds it stored.
4. *The manifest is complete.* Only now is there a `Hold`. The next put of the same directory needs two requests.
5. *The version is counted and the hold dropped, in one transaction.* If the hold was removed meanwhile, the transaction
   is refused, and nothing was put.

After each of the steps 1 to 4 the mark exists, so that a sweep finds what was left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from holdall.artifacts.directory.fill import Fill
from holdall.artifacts.directory.inventory import Directory
from holdall.artifacts.directory.manifest import MAX_MANIFEST, Manifest, manifest_sha256
from holdall.artifacts.directory.record import (
    Hold,
    ManifestRecord,
    SweepMark,
    change_manifest,
    fetch_files,
    name_directory,
)
from holdall.artifacts.home import Home
from holdall.core.context import Context
from holdall.core.expressions import UpdateAction
from holdall.errors import HoldallError, IntegrityError, InvalidArtifactError
from holdall.files import download
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, commit_once
from holdall.tables.record import fetch


async def hold_files(
    context: Context, home: Home, directory: Directory, *, progress: Progress | None = None
) -> Hold:
    """Store a directory's missing files, and keep all its files safe for a day, or until the hold is dropped.

    ``progress`` is called with the bytes that are stored, and the total. Called again, this returns another hold.
    """
    meter = Meter(context.port, progress)
    await meter.begin(directory.total)
    hold, is_complete = await _begin_hold(context, home, directory.sha256)
    if is_complete:
        await meter.add(directory.total)
        return hold
    fill = Fill(context, home, directory, hold, meter, progress)
    try:
        await fill.run()
    except BaseException as error:
        await context.port.finish(drop_hold(context, home, fill.hold, error))
        raise
    return fill.hold


async def _begin_hold(context: Context, home: Home, sha256: str) -> tuple[Hold, bool]:
    """Begin a hold on a manifest; return it, and whether all files are stored. This ends a sweep of the manifest."""

    async def body(change: Change) -> tuple[Hold, bool]:
        port = context.port
        manifest = await fetch(port, ManifestRecord.at(home, sha256))
        now = port.now()
        hold = Hold.begin(sha256, port.new_id(), now)
        actions: list[UpdateAction] = [
            hold.set(),
            ManifestRecord.refs.set_if_absent(0),
            ManifestRecord.going.remove(),
            *manifest.remove_expired(now),
        ]
        if not manifest.is_stored:
            actions += [ManifestRecord.born.set(hold.id), ManifestRecord.tag()]
        change.put(SweepMark.of(home, sha256))
        same = manifest.same(ManifestRecord.born, ManifestRecord.complete)
        change_manifest(change, manifest, *actions, expect=[same])
        return hold, manifest.complete

    return await commit(context, body, name_directory(sha256))


async def drop_hold(context: Context, home: Home, hold: Hold, error: BaseException | None = None) -> None:
    """Drop a hold, if it still exists; the next sweep deletes the files that only this hold kept.

    ``error`` is the error that led to this, which the caller raises: it gets a note if the hold cannot be dropped.
    """
    change = Change(context)
    record = ManifestRecord.at(home, hold.manifest)
    change_manifest(change, record, hold.remove(), expect=[hold.alive])
    try:
        await commit_once(change)
    except HoldallError as another:
        if error is None:
            raise
        error.add_note(
            f"the files of the directory stay stored for another day, because their hold could not be removed: "
            f"{another.code}"
        )


# --- steps in the transactions of versions ----------------------------------------------------------------


def redeem_hold(change: Change, home: Home, hold: Hold) -> None:
    """Count a version for the held manifest, and drop the hold; refused if the hold was removed because it expired."""
    change_manifest(
        change,
        ManifestRecord.at(home, hold.manifest),
        ManifestRecord.refs.add(1),
        hold.remove(),
        expect=[hold.alive, ManifestRecord.complete.exists],
        label="manifest",
    )
    change.delete(SweepMark.of(home, hold.manifest))


def count_versions(
    change: Change, home: Home, *, more: Iterable[str] = (), fewer: Iterable[str] = ()
) -> None:
    """Increase and decrease the counts of manifests; a manifest is named once for each version.

    If no version is left, the next sweep deletes the manifest's files.
    """
    refs, complete = ManifestRecord.refs, ManifestRecord.complete
    for manifest, count in Counter(more).items():
        record, expect = ManifestRecord.at(home, manifest), [refs.at_least(1), complete.exists]
        change_manifest(change, record, refs.add(count), expect=expect, label="manifest")
    for manifest, count in Counter(fewer).items():
        record = ManifestRecord.at(home, manifest)
        change_manifest(change, record, refs.add(-count), expect=[refs.at_least(count)], label="manifest")
        change.put(SweepMark.of(home, manifest))


# --- reading ----------------------------------------------------------------------------------------------


async def fetch_manifest(context: Context, home: Home, artifact_key: str, sha256: str) -> Manifest:
    """Fetch the manifest under a key; `IntegrityError` if it does not have this digest."""
    data = await download.get(Shelf(context, home.service), artifact_key, size=MAX_MANIFEST + 1)
    if len(data) > MAX_MANIFEST:
        raise InvalidArtifactError(f"the object {artifact_key!r:.80} is too large to be a manifest")
    if manifest_sha256(data) != sha256:
        raise IntegrityError(
            f"the manifest of a directory, the object {artifact_key!r:.80}, is not the one that was published"
        )
    return Manifest.parse(data)


async def fetch_file_keys(context: Context, home: Home, digests: Sequence[str]) -> dict[str, str]:
    """Fetch the keys under which files are stored; files that are not stored are left out.

    Nearly all are under ``home.file_key``: call this only for a file that is not found there.
    """
    files = await fetch_files(context.port, home, list(dict.fromkeys(digests)))
    return {sha256: file.stored_key for sha256, file in files.items() if file.stored_key is not None}

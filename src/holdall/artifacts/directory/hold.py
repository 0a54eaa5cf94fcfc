"""Holds: the files of directories, each stored once however many directories have it, and safe once they are held.

`hold_files` puts a directory's files; the transaction that makes a version of its manifest then calls `redeem_hold`.
`sweep` deletes what no version has any more. The records, and what always holds, are in `record`. Why nothing that is
needed is lost, and nothing stays for good, wherever a put stops:

1. *The hold, with its mark, is written first.* If nothing else is, a sweep removes it once its time is over. From here
   on no sweep begins on this manifest, and one that is under way can take nothing more from it.
2. *Files are counted, 49 to a transaction*, each with its pair, under the hold, and only if their records are as they
   were read. A file that was stored then stays, because it is counted for this manifest. One that was being deleted
   gets another key.
3. *Files that are not there are uploaded*, then recorded as stored, but only in the life of the record that they were
   uploaded for. Two processes may upload the same file: the second finds it there.
4. *The manifest is complete.* Only now is there a `Hold`. The next put of the same directory needs two requests.
5. *The version is counted and the hold dropped, in one transaction.* If the hold was taken away meanwhile, the
   transaction is refused, and nothing was put.

After 1 to 4 the mark is there, so that a sweep finds what was left.
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
    """Store what is missing of a directory's files, and keep all of them safe for a day, or until the hold is dropped.

    ``progress`` is called with the bytes that are there, and all there are. Called again, this returns another hold.
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
    """A hold on a manifest, and whether all its files are there. It ends a sweep that is taking the manifest apart."""

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
    """Drop a hold, if it is still there; what it alone has kept goes with the next sweep.

    An ``error`` that led to this is the one to raise: it gets a note if the hold cannot be dropped.
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
            f"its files are held for another day, as the hold could not be dropped: {another.code}"
        )


# --- what goes into the transactions of versions ----------------------------------------------------------


def redeem_hold(change: Change, home: Home, hold: Hold) -> None:
    """Count a version for what is held, and drop the hold; refused if the hold was taken away, as it was over."""
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
    """Count versions more for manifests that other versions have, and fewer; a manifest is named for each of them.

    If no version is left, a manifest's files go with the next sweep.
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
    """The manifest under a key; `IntegrityError` if it is not the one with this digest."""
    data = await download.get(Shelf(context, home.service), artifact_key, size=MAX_MANIFEST + 1)
    if len(data) > MAX_MANIFEST:
        raise InvalidArtifactError(f"the object {artifact_key!r:.80} is too large to be a manifest")
    if manifest_sha256(data) != sha256:
        raise IntegrityError(f"the object {artifact_key!r:.80} is not the manifest that it should be")
    return Manifest.parse(data)


async def fetch_file_keys(context: Context, home: Home, digests: Sequence[str]) -> dict[str, str]:
    """The keys under which files are stored; without those that are not stored.

    Nearly all are under ``home.file_key``: call this for a file that is not found there.
    """
    files = await fetch_files(context.port, home, list(dict.fromkeys(digests)))
    return {sha256: file.stored_key for sha256, file in files.items() if file.stored_key is not None}

"""The last step of a publish: write the row and the note of a version whose object exists.

One transaction writes both, removes the reservation's mark and counts a directory's files for the version. It fails if
the mark is gone: another process took the publisher for dead, and its number is lost.
"""

from __future__ import annotations

from holdall.artifacts.event import announce
from holdall.artifacts.home import Home
from holdall.artifacts.record import Head, NameEntry, Note, VersionNote, VersionRow
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.content import artifact_of, content_updates
from holdall.artifacts.version.latest import check_counted, read_latest
from holdall.artifacts.version.origin import Placed
from holdall.artifacts.version.reservation import give_up
from holdall.core.context import Context
from holdall.core.objects import DeleteObject
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import Attempts, commit_once
from holdall.tables.record import fetch


async def write_version(
    context: Context, home: Home, name: str, placed: Placed, *, alone: bool
) -> Artifact | None:
    """Write the row of an object; None if its number turns out not to be ours.

    ``alone``: refused if another process has published meanwhile.
    """
    port, reservation, content = context.port, placed.reservation, placed.content
    sk = reservation.sk
    row = VersionRow.make(home, name, sk, placed.modified, content.sha256)
    note = VersionNote.new(
        Note.at(home, name, sk).address, *content_updates(content, row), Note.revision.set(port.new_id())
    )
    listed = reservation.head.listed
    attempts = Attempts(context, f"the artifact {name!r:.60}")
    while True:
        await attempts.another()
        change = Change(context)
        change.create(row, label="row")
        change.put(note)
        reservation.use(change, alone=alone, listed=listed)
        if not listed:
            change.put(NameEntry.of(home, name))
        _count_files(change, home, placed)
        announce(change, "published", name, sk, content.sha256)
        refused = await commit_once(change)
        if refused is None:
            return artifact_of(row, note, content=content)
        found = refused.found
        if "row" in found or ("manifest" in found and placed.hold is not None):
            break
        if "head" in found:
            if not reservation.is_held(Head(reservation.head.address, found["head"]), alone=alone):
                break
            listed = False  # a purge has removed the name from the list meanwhile
        if "manifest" in found:
            latest = await read_latest(context, home, name)
            if latest.content is None or latest.content.manifest != content.manifest:
                break  # LATEST has changed, and nothing else kept those files
            await check_counted(context, home, name, content)
    there = await fetch(port, row)
    if not there.is_stored:  # no version has the number, so its object is litter
        await port.send(DeleteObject(home.service, content.key, content.etag))
    elif there.item == row.item and (await fetch(port, note)).revision == note.revision:
        # an earlier send of this call wrote it, although its reply did not say so
        return artifact_of(row, note, content=content)
    await give_up(context, reservation)
    return None


def _count_files(change: Change, home: Home, placed: Placed) -> None:
    """Count a directory's files for the version: those held for it, or those of LATEST."""
    if placed.content.manifest is None:
        return
    from holdall.artifacts.directory.hold import count_versions, redeem_hold

    if placed.hold is None:
        count_versions(change, home, more=[placed.content.manifest])
    else:
        redeem_hold(change, home, placed.hold)

"""The flow that publishes LATEST, or content passed with the call, as the next version, which never changes.

**The steps, and why a crash is safe after each.**

0. Content passed with the call is made LATEST, as by a put. A crash after that leaves only an unpublished LATEST. Large
   content is uploaded once, under a temporary key, and copied from there; a reindex finds what dead processes leave.
1. A number is reserved: one conditional update of the head raises the counter and leaves a mark with the number and the
   time at which the reservation ends. After a crash the number is burnt: no publisher gets it again.
2. The object of that number is created, only if there is none (`origin`): a copy of LATEST, if it has not changed since
   it was read, or the content passed with the call, even if LATEST has changed. After a crash the object is litter; the
   mark names its place.
3. One transaction writes the row and the note, and removes the mark (`write_version`). It fails if the mark is gone.

`reservation` explains how numbers are reserved, and how the next publisher cleans up after one that died.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.artifacts.event import announce
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import check_name, number_of
from holdall.artifacts.record import Head, NameRecord, Note, VersionNote, VersionRow
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.content import artifact_of, content_updates, find_content
from holdall.artifacts.version.expectation import Expected, read_newest_rows
from holdall.artifacts.version.intent import Intent, prepare_intent, put_intent, use_intent
from holdall.artifacts.version.latest import check_counted, read_content, read_latest
from holdall.artifacts.version.origin import GivenContent, LatestContent, Origin, Placed
from holdall.artifacts.version.reservation import clean, give_up, reserve
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.objects import DeleteObject
from holdall.core.telemetry import warn
from holdall.errors import ArtifactChangedError, InvalidOptionsError, ServiceError
from holdall.files.progress import Progress
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import Attempts, commit_once
from holdall.tables.record import fetch


async def publish(
    context: Context,
    name: str,
    content: Any = None,
    *,
    content_type: str | None = None,
    metadata: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    force: bool = False,
    expect_sha256: str | None = None,
    expect_version: int | str | None = None,
    expect_revision: str | None = None,
    progress: Progress | None = None,
) -> Artifact:
    """Publish LATEST, or ``content``, as the next version, which never changes; return that version.

    ``content`` is bytes, the path of a file or directory, or a stream; ``content_type``, ``metadata``, ``tags`` and
    ``progress`` are those of `put`. It becomes LATEST first, and then the next version, even if another process puts
    something else in between.

    If the newest version already has the same content, type, metadata and tags, that version is returned and no new one
    is made, unless ``force=True``. ``expect_sha256`` and ``expect_revision`` are what LATEST must have before this
    call; ``expect_version`` is what the newest version must be (0 if there must be none yet). If one of them does not
    hold, this raises `ArtifactChangedError`.
    """
    expected = Expected(expect_sha256, expect_version, expect_revision).check_given()
    if content is not None:
        home, intent = await prepare_intent(
            context, name, content, content_type, metadata, tags, expected, progress, publish=True
        )
        return await use_intent(context, home, intent, _publish_intent(context, home, intent, force))
    if (content_type, metadata, tags, progress) != (None, None, None, None):
        raise InvalidOptionsError(
            "content_type, metadata, tags and progress need content",
            hint="pass the content too, or leave them out: LATEST is published with those it was put with",
        )
    check_name(name)
    home = await find_home(context)
    return await _publish(context, home, name, LatestContent(context, home, name, expected), expected, force)


async def _publish_intent(context: Context, home: Home, intent: Intent, force: bool) -> Artifact:
    """Make an intent LATEST, and publish exactly that content."""
    name, wanted, known = intent.name, intent.expected, None
    if not force:
        known = await read_newest_rows(context, home, name)
        origin = GivenContent(context, home, intent)
        same = await _find_same(context, home, origin, known[1], intent.content.sha256)
        if same is not None:
            await put_intent(context, home, intent)
            if intent.version_hold is not None:
                from holdall.artifacts.directory.hold import drop_hold

                await drop_hold(context, home, intent.version_hold)
            return same
    staged = intent
    if await intent.material.is_large(context, home):
        await wanted.check(context, home, name)  # before it is uploaded in vain
        staged = replace(intent, material=await intent.material.stage(context, home, intent.progress))
    try:
        await put_intent(context, home, staged)
        origin = GivenContent(context, home, staged)
        # the expectations of LATEST were met: from here on only the versions matter
        if wanted.version is not None:
            known = None  # the newest version was checked after these rows were read
        return await _publish(context, home, name, origin, Expected(version=wanted.version), True, known)
    finally:
        if staged.material is not intent.material:
            await context.port.finish(staged.material.discard_waiting(context, home))


async def _publish(
    context: Context,
    home: Home,
    name: str,
    origin: Origin,
    expected: Expected,
    force: bool,
    known: tuple[VersionRow, VersionRow | None] | None = None,
) -> Artifact:
    """Publish an origin. ``known`` are the newest rows; if they are outdated, that costs another attempt at most."""
    attempts = Attempts(context, f"the artifact {name!r:.60}")
    while True:
        await attempts.another()
        row, newest = known or await read_newest_rows(context, home, name)
        known = None
        sha256 = await origin.find_sha256(row)
        expected.check_version(name, newest)
        if not force:
            same = await _find_same(context, home, origin, newest, sha256)
            if same is not None:
                return same
        least = 0 if newest is None else number_of(newest.sk) or 0
        reservation = await reserve(context, home, name, least)
        alone = expected.version is not None
        try:
            if alone:  # any other publish from here on changes the head
                _, newest = await read_newest_rows(context, home, name)
                expected.check_version(name, newest)
            placed = await origin.place(reservation)
            published = (
                None if placed is None else await write_version(context, home, name, placed, alone=alone)
            )
        except ArtifactChangedError:
            await give_up(context, reservation)
            raise
        await _clean_up(context, home, name, reservation.head)
        if published is not None:
            return published


async def _find_same(
    context: Context, home: Home, origin: Origin, newest: VersionRow | None, sha256: str
) -> Artifact | None:
    """The newest version, if it is the same as what would be published, which has this digest."""
    if newest is None or not newest.is_live or newest.sha256 != sha256:
        return None
    wanted, name = await origin.describe(), newest.pk
    note = await fetch(context.port, Note.at(home, name, newest.sk))
    content = find_content(newest, note)
    if content is None:
        info = await find_object(context, home.service, home.object_key(name, newest.sk))
        content = None if info is None else await read_content(context, home, info)
    if content is None or not content.is_like(wanted):
        return None
    return artifact_of(newest, note, content=content, aliases=note.served_by)


async def _clean_up(context: Context, home: Home, name: str, head: Head) -> None:
    """Clean up after publishers that died. If that is not permitted, the version is published anyway."""
    try:
        await clean(context, home, name, head)
    except ServiceError as error:
        warn(
            "artifacts",
            "the remains of an interrupted publish of %r could not be deleted: %s",
            name,
            error.code,
        )


async def write_version(
    context: Context, home: Home, name: str, placed: Placed, *, alone: bool
) -> Artifact | None:
    """Write the row and the note of a placed object; None if the reservation of its number was lost.

    ``alone``: refused if another process has published meanwhile.

    One transaction writes both, removes the reservation's mark and counts a directory's files for the version. It fails
    if the mark is gone: another process took the publisher for dead, and the number is lost.
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
            change.put(NameRecord.of(home, name))
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
                break  # LATEST has changed, and nothing else kept its files
            await check_counted(context, home, name, content)
    there = await fetch(port, row)
    if not there.is_stored:  # no version has the number, so its object is litter
        await port.send(DeleteObject(home.service, content.key, content.etag))
    elif there.item == row.item and (await fetch(port, note)).revision == note.revision:
        # an earlier attempt of this call wrote it, although its reply was lost
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

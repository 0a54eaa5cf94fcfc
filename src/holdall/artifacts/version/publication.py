"""The flow that publishes LATEST, or content passed with the call, as the next version, which never changes.

**The steps, and why a crash is safe after each.**

0. Content passed with the call is made LATEST, as by a put. A crash after that leaves only an unpublished LATEST. Large
   content is uploaded once, under a key of its own, and copied from there; a reindex finds what dead processes leave.
1. A number is reserved: one conditional update of the head raises the counter and leaves a mark with the number and
   how long it is good. After a crash the number is burnt: no publisher gets it again.
2. The object of that number is made, only if nothing is there (`origin`): a copy of LATEST, if it has not changed since
   it was read, or the content passed with the call, even if LATEST has changed. After a crash it is litter; the mark
   names its place.
3. One transaction writes the row and our note, and removes the mark (`publication`). It fails if the mark is gone.

`reservation` explains how numbers are reserved, and how the next publisher cleans up after one that died.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.artifacts.home import Home, home_of
from holdall.artifacts.name import check_name, number_of
from holdall.artifacts.record import Head, VersionRow
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.expectation import Expected, newest_rows
from holdall.artifacts.version.intent import Intent, prepare_intent, put_intent, use_intent
from holdall.artifacts.version.latest import read_latest
from holdall.artifacts.version.origin import GivenContent, LatestContent, Origin
from holdall.artifacts.version.registration import write_version
from holdall.artifacts.version.reservation import clean, give_up, reserve
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.telemetry import warn
from holdall.errors import ArtifactChangedError, InvalidOptionsError, ServiceError
from holdall.files.progress import Progress
from holdall.tables.commit.flow import Attempts


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
    """Publish LATEST, or ``content``, as the next version, which never changes; returns that version.

    ``content`` is bytes, a file or a directory by its path, or a stream; ``content_type``, ``metadata``, ``tags`` and
    ``progress`` are those of `put`. It becomes LATEST first, and then the next version, even if another process puts
    something else in between.

    If the newest version already has the same content, type, metadata and tags, it is returned, and no version is made,
    unless ``force``. ``expect_sha256`` and ``expect_revision`` are what LATEST must be before this call,
    ``expect_version`` is what the newest version must be (0: there is none yet): `ArtifactChangedError` otherwise.
    """
    expected = Expected(expect_sha256, expect_version, expect_revision).check_given()
    if content is not None:
        home, intent = await prepare_intent(
            context, name, content, content_type, metadata, tags, expected, progress, publish=True
        )
        return await use_intent(context, home, intent, _publish_intent(context, home, intent, force))
    if (content_type, metadata, tags, progress) != (None, None, None, None):
        raise InvalidOptionsError(
            "content_type, metadata, tags or progress was given without content",
            hint="pass the content too; LATEST is published with what it was put with",
        )
    check_name(name)
    home = await home_of(context)
    return await _publish(context, home, name, LatestContent(context, home, name, expected), expected, force)


async def _publish_intent(context: Context, home: Home, intent: Intent, force: bool) -> Artifact:
    """Make an intent LATEST, and publish exactly that content."""
    name, wanted = intent.name, intent.expected
    if not force:
        _, newest = await newest_rows(context, home, name)
        same = await _find_same(GivenContent(context, home, intent), newest, intent.material.sha256)
        if same is not None:
            await put_intent(context, home, intent)
            if intent.version_hold is not None:
                from holdall.artifacts.directory.hold import drop_hold

                await drop_hold(context, home, intent.version_hold)
            return same
    if wanted != Expected():  # before large content is uploaded in vain
        await wanted.check(context, home, name, await read_latest(context, home, name))
    staged = replace(intent, material=await intent.material.stage(context, home, intent.progress))
    try:
        await put_intent(context, home, staged)
        origin = GivenContent(context, home, staged)
        # the expectations of LATEST held: from here on only the versions matter
        return await _publish(context, home, name, origin, Expected(version=wanted.version), True)
    finally:
        if staged.material is not intent.material:
            await context.port.finish(staged.material.let_go(context, home))


async def _publish(
    context: Context, home: Home, name: str, origin: Origin, expected: Expected, force: bool
) -> Artifact:
    attempts = Attempts(context, f"the artifact {name!r:.60}")
    while True:
        await attempts.another()
        row, newest = await newest_rows(context, home, name)
        sha256 = await origin.find_sha256(row)
        expected.check_version(name, newest)
        if not force:
            same = await _find_same(origin, newest, sha256)
            if same is not None:
                return same
        least = 0 if newest is None else number_of(newest.sk) or 0
        reservation = await reserve(context, home, name, least)
        alone = expected.version is not None
        try:
            if alone:  # any other publish from here on changes the head
                _, newest = await newest_rows(context, home, name)
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


async def _find_same(origin: Origin, newest: VersionRow | None, sha256: str) -> Artifact | None:
    """The newest version, if it is what would be published."""
    if newest is None or not newest.is_live or newest.sha256 != sha256:
        return None
    return await origin.find_same(newest)


async def _clean_up(context: Context, home: Home, name: str, head: Head) -> None:
    """Clean up after publishers that died. If that is not permitted, our version is published all the same."""
    try:
        await clean(context, home, name, head)
    except ServiceError as error:
        warn("artifacts", "what a dead publisher of %r has left could not be deleted: %s", name, error.code)

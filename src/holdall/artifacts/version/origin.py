"""Where the bytes of a new version come from: LATEST, or the content that the caller passed to `publish`.

An origin creates the object of a reserved number, if there is none yet, from exactly the content that the row will
name. If LATEST is replaced meanwhile, its object is read again. Content from the caller is sent as it is, even if
LATEST has changed.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from holdall.artifacts.home import Home
from holdall.artifacts.name import LATEST
from holdall.artifacts.record import Note, VersionRow
from holdall.artifacts.version.artifact import Artifact
from holdall.artifacts.version.content import (
    Content,
    artifact_of,
    content_of,
    find_content,
    object_sha256,
    user_metadata,
)
from holdall.artifacts.version.expectation import Expected
from holdall.artifacts.version.intent import Intent
from holdall.artifacts.version.latest import Latest, check_home, read_latest, settle, tags_of
from holdall.artifacts.version.lookup import explain_missing
from holdall.artifacts.version.reservation import Reservation, give_up, prolong
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import CopyObject, ObjectInfo
from holdall.errors import ObjectNotFoundError, PreconditionFailedError
from holdall.files.mirror import mirror
from holdall.files.transfer import find_object
from holdall.tables.commit.flow import Attempts
from holdall.tables.record import fetch

if TYPE_CHECKING:
    from holdall.artifacts.directory.record import Hold


@dataclass(frozen=True, slots=True)
class Placed:
    """An object under a reserved number: its content, and ``hold`` if a directory's files are held for it."""

    reservation: Reservation
    content: Content
    modified: datetime
    hold: Hold | None = None


class Origin(Protocol):
    """Where the bytes of a version come from."""

    async def find_sha256(self, row: VersionRow) -> str:
        """The digest of the content to publish, given the row of LATEST."""

    async def find_same(self, newest: VersionRow) -> Artifact | None:
        """The newest version, which has that digest, if its type, metadata and tags are the same too."""

    async def place(self, reservation: Reservation) -> Placed | None:
        """Create the object of a reserved number; None if the number cannot be used."""


class LatestContent:
    """The content of LATEST; ``expected`` is what the caller expects of it."""

    def __init__(self, context: Context, home: Home, name: str, expected: Expected) -> None:
        self._context = context
        self._home = home
        self._name = name
        self._expected = expected
        self._row = VersionRow.at(home, name, LATEST)

    async def find_sha256(self, row: VersionRow) -> str:
        """The digest in the row of LATEST; or in its object, if the caller has expectations."""
        expected = self._expected
        if not row.is_live or expected.sha256 is not None or expected.revision is not None:
            row = await self._revive_row()
        self._row = row
        expected.check_sha256(self._name, row.sha256)
        if expected.revision is not None:
            expected.check_revision(self._name, await read_latest(self._context, self._home, self._name))
        assert row.sha256 is not None
        return row.sha256

    async def _revive_row(self) -> VersionRow:
        """The row of LATEST, verified against its object: a process may have died after it put the object."""
        latest, info = await settle(self._context, self._home, self._name)
        if not latest.is_live or info is None:
            raise explain_missing(self._name, LATEST)
        return latest.row

    async def find_same(self, newest: VersionRow) -> Artifact | None:
        """The newest version, if LATEST is exactly that."""
        context, home = self._context, self._home
        latest, info = await settle(context, home, self._name)
        if info is None or not latest.is_live:
            return None
        ours = latest.content or content_of(info, await tags_of(context, home, info.key))
        return None if ours is None else await _find_same(context, home, self._name, newest, ours)

    async def place(self, reservation: Reservation) -> Placed | None:
        """Copy the object of LATEST."""
        context, home, name = self._context, self._home, self._name
        latest = Latest(name, self._row, reservation.head, None)
        self._expected.check_revision(name, latest)
        key = home.object_key(name, reservation.sk)
        content = find_content(self._row, reservation.head)
        if content is not None:
            check_home(home, replace(latest, content=content))
        attempts = Attempts(context, f"the artifact {name!r:.60}")
        while True:
            await attempts.another()
            if content is None:
                content = await self._look()
            reservation = await prolong(context, reservation, content.size)
            try:
                copied = await self._copy(content, key)
            except _TakenError:
                break
            if copied is not None:
                kept = replace(
                    content,
                    etag=copied.etag,
                    key=copied.key,
                    content_type=copied.headers.content_type,
                    metadata=user_metadata(copied),
                )
                return Placed(reservation, kept, copied.modified)
            content = None
        await give_up(context, reservation)
        return None

    async def _look(self) -> Content:
        """Read the content of LATEST from its object; raise if it is not what the caller expects."""
        context, home, name = self._context, self._home, self._name
        latest, info = await settle(context, home, name)
        if info is None or not latest.is_live:
            raise explain_missing(name, LATEST)
        content = latest.content or content_of(info, await tags_of(context, home, info.key))
        if content is None:
            raise explain_missing(name, LATEST)
        self._expected.check_revision(name, latest)
        self._expected.check_sha256(name, content.sha256)
        return replace(content, etag=info.etag)

    async def _copy(self, content: Content, key: str) -> ObjectInfo | None:
        """Copy LATEST to a key; None if LATEST has changed, `_TakenError` if the key has another object."""
        context, home = self._context, self._home
        digest = b64encode(bytes.fromhex(content.sha256)).decode()
        # without Holdall's mark, so that the object is the one that versioned would have created
        copy = CopyObject(
            home.service, content.key, key, content.etag, context.port.new_id(), digest, unmarked=True
        )
        try:
            info = await context.port.send(copy)
        except (PreconditionFailedError, ObjectNotFoundError):
            found = await find_object(context, home.service, key)
            if found is None:
                return None
            if not _has_content(found, content.sha256, content.size):
                raise _TakenError from None
            info = found  # the number is ours, and so is the object: a reply was lost
        await mirror(context, home.service, key)
        return info


class _TakenError(Exception):
    """Another program's object has the reserved number: versioned does not respect reservations."""


class GivenContent:
    """The caller's content; it is or was LATEST, and is sent again for the version."""

    def __init__(self, context: Context, home: Home, intent: Intent) -> None:
        self._context = context
        self._home = home
        self._intent = intent

    async def find_sha256(self, row: VersionRow) -> str:
        """The digest of the content."""
        return self._intent.material.sha256

    async def find_same(self, newest: VersionRow) -> Artifact | None:
        """The newest version, if the content is exactly that."""
        context, home, intent = self._context, self._home, self._intent
        ours = Content(intent.material.sha256, "", 0, "", intent.content_type, intent.metadata, intent.tags)
        return await _find_same(context, home, intent.name, newest, ours)

    async def place(self, reservation: Reservation) -> Placed | None:
        """Send the content, or copy it from its temporary key."""
        context, home, intent = self._context, self._home, self._intent
        material, key = intent.material, home.object_key(intent.name, reservation.sk)
        reservation = await prolong(context, reservation, material.size)
        try:
            info = await material.create(
                context,
                home,
                key,
                content_type=intent.content_type,
                metadata=intent.object_metadata,
                tags=intent.tags,
            )
        except PreconditionFailedError:
            found = await find_object(context, home.service, key)
            if found is None or not _has_content(found, material.sha256, material.size):
                await give_up(context, reservation)
                return None
            info = found  # the number is ours, and so is the object: a reply was lost
        return Placed(reservation, replace(intent.content(info), key=key), info.modified, intent.version_hold)


def _has_content(found: ObjectInfo, sha256: str, size: int) -> bool:
    return (object_sha256(found), found.size) == (sha256, size)


async def _find_same(
    context: Context, home: Home, name: str, newest: VersionRow, ours: Content
) -> Artifact | None:
    """The newest version, if it is exactly this content with the same type, metadata and tags."""
    sk = newest.sk
    note = await fetch(context.port, Note.at(home, name, sk))
    theirs = find_content(newest, note)
    if theirs is None:
        there = await find_object(context, home.service, home.object_key(name, sk))
        theirs = None if there is None else content_of(there, await tags_of(context, home, there.key))
    if theirs is None or _say(ours) != _say(theirs):
        return None
    return artifact_of(newest, note, content=theirs, aliases=note.served_by)


def _say(content: Content) -> tuple[object, ...]:
    return content.sha256, content.content_type, content.metadata or {}, content.tags or {}

"""Where the bytes of a new version come from: LATEST, or the content that the caller passed to `publish`.

An origin creates the object of a reserved number, if there is none yet, from exactly the content that the row will
name. If LATEST is replaced meanwhile, its object is read again. Content from the caller is sent as it is, even if
LATEST has changed.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from holdall.artifacts.home import Home
from holdall.artifacts.name import LATEST
from holdall.artifacts.record import VersionRow
from holdall.artifacts.version.content import Content, find_content, object_sha256, user_metadata
from holdall.artifacts.version.expectation import Expected
from holdall.artifacts.version.intent import Intent
from holdall.artifacts.version.latest import Latest, check_home, read_content, settle
from holdall.artifacts.version.lookup import explain_missing
from holdall.artifacts.version.reservation import Reservation, give_up, prolong
from holdall.core.context import Context
from holdall.core.digests import base64_of
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import CopyObject, ObjectInfo
from holdall.errors import ObjectNotFoundError, PreconditionFailedError
from holdall.files.mirror import mirror
from holdall.files.transfer import find_object
from holdall.tables.commit.flow import Attempts

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

    async def describe(self) -> Content:
        """The content to publish, with its type, metadata and tags."""

    async def place(self, reservation: Reservation) -> Placed | None:
        """Create the object of a reserved number; None if the number cannot be used."""


class LatestContent:
    """The content of LATEST; ``expected`` is what the caller expects of it."""

    def __init__(self, context: Context, home: Home, name: str, expected: Expected) -> None:
        self._context = context
        self._home = home
        self._name = name
        self._expected = expected
        self._row: VersionRow

    async def find_sha256(self, row: VersionRow) -> str:
        """The digest in the row of LATEST; or in its object, if the caller has expectations."""
        expected = self._expected
        if not row.is_live or expected.sha256 is not None or expected.revision is not None:
            latest, _ = await self._settle()  # a process may have died after it put the object
            row = latest.row
        self._row = row
        assert row.sha256 is not None
        return row.sha256

    async def _settle(self) -> tuple[Latest, ObjectInfo]:
        """LATEST, verified against its object; raise if it is missing, or not what the caller expects."""
        name = self._name
        latest, info = await settle(self._context, self._home, name)
        if info is None or not latest.is_live:
            raise explain_missing(name, LATEST)
        self._expected.check_sha256(name, latest.row.sha256)
        self._expected.check_revision(name, latest)
        return latest, info

    async def describe(self) -> Content:
        """The content of LATEST, from the head or from the object."""
        latest, info = await self._settle()
        content = latest.content or await read_content(self._context, self._home, info)
        if content is None:
            raise explain_missing(self._name, LATEST)
        return replace(content, etag=info.etag)

    async def place(self, reservation: Reservation) -> Placed | None:
        """Copy the object of LATEST."""
        context, home, name = self._context, self._home, self._name
        content = find_content(self._row, reservation.head)
        self._expected.check_revision(name, Latest(name, self._row, reservation.head, content))
        check_home(home, name, content)
        key = home.object_key(name, reservation.sk)
        attempts = Attempts(context, f"the artifact {name!r:.60}")
        while True:
            await attempts.another()
            if content is None:
                content = await self.describe()
            reservation = await prolong(context, reservation, content.size)
            # without Holdall's mark, so that the object is the one that versioned would have created
            copy = CopyObject(
                home.service,
                content.key,
                key,
                content.etag,
                context.port.new_id(),
                base64_of(content.sha256),
                unmarked=True,
            )
            try:
                copied: ObjectInfo | None = await context.port.send(copy)
            except (PreconditionFailedError, ObjectNotFoundError):
                copied = await find_object(context, home.service, key)
                if copied is not None and not _has_content(copied, content):
                    await give_up(context, reservation)
                    return None
            if copied is not None:  # perhaps by a request whose reply was lost
                await mirror(context, home.service, key)
                kept = replace(
                    content,
                    etag=copied.etag,
                    key=copied.key,
                    content_type=copied.headers.content_type,
                    metadata=user_metadata(copied),
                )
                return Placed(reservation, kept, copied.modified)
            content = None  # LATEST has changed


class GivenContent:
    """The caller's content; it is or was LATEST, and is sent again for the version."""

    def __init__(self, context: Context, home: Home, intent: Intent) -> None:
        self._context = context
        self._home = home
        self._intent = intent

    async def find_sha256(self, row: VersionRow) -> str:
        """The digest of the content."""
        return self._intent.content.sha256

    async def describe(self) -> Content:
        """The content."""
        return self._intent.content

    async def place(self, reservation: Reservation) -> Placed | None:
        """Send the content, or copy it from its temporary key."""
        context, home, intent = self._context, self._home, self._intent
        content, key = intent.content, home.object_key(intent.name, reservation.sk)
        reservation = await prolong(context, reservation, content.size)
        try:
            info = await intent.material.create(context, home, key, intent.headers, intent.tags)
        except PreconditionFailedError:
            found = await find_object(context, home.service, key)
            if found is None or not _has_content(found, content):
                await give_up(context, reservation)
                return None
            info = found  # the number is ours, and so is the object: a reply was lost
        return Placed(
            reservation, replace(content, etag=info.etag, key=key), info.modified, intent.version_hold
        )


def _has_content(found: ObjectInfo, content: Content) -> bool:
    """Whether the object under a reserved number is ours; versioned does not respect reservations."""
    return (object_sha256(found), found.size) == (content.sha256, content.size)

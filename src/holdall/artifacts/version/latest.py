"""LATEST: the one version that changes, stored in two places that must agree.

The object is authoritative; its metadata describes the content. The row, which listings show, and the head beside it
are brought in line with it by any process that finds that they are not (`settle`). Why this is safe wherever a process
stops, and however many do it at once:

1. The row and the head are read *before* the object. They are written only if both are still what was read.
2. So of two processes that write at once, one has to read again; and a process that has put an object reads the row
   afterwards.
3. Therefore a process that sees the last object then writes the row. If that process dies in between, the row is
   outdated, and the next process to read it notices and corrects it.

A directory's files are counted for it before its manifest is put (``next|…`` on the head), so there is never a manifest
whose files may be swept.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from holdall.artifacts.home import Home
from holdall.artifacts.name import LATEST
from holdall.artifacts.record import ROW, Head, NameRecord, VersionRow, parse_moment
from holdall.artifacts.version.content import Content, content_of, content_updates, find_content
from holdall.core.context import Context
from holdall.core.expressions import Remove, Set
from holdall.core.frozen import dataclass
from holdall.core.objects import GetTags, ObjectInfo
from holdall.errors import ConfigurationError, IntegrityError, ObjectNotFoundError
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import Attempts, Refused, commit_once
from holdall.tables.record import fetch

if TYPE_CHECKING:
    from holdall.artifacts.directory.record import Hold

_STALE = timedelta(days=1)
_MOST_GONE = 20


@dataclass(frozen=True, slots=True)
class Latest:
    """LATEST as it is in the table; ``content`` is what the head describes, None if it describes nothing."""

    name: str
    row: VersionRow
    head: Head
    content: Content | None

    @property
    def is_purged(self) -> bool:
        """Whether it was purged; then its object, if it has not been deleted yet, means nothing."""
        return not self.row.is_stored and self.head.purging is not None

    @property
    def is_live(self) -> bool:
        """Whether it exists and is not deleted."""
        return self.row.is_live


async def read_latest(context: Context, home: Home, name: str) -> Latest:
    """Read the row and the head, strongly consistent."""
    row, head = await fetch(context.port, VersionRow.at(home, name, LATEST), Head.of(home, name))
    return Latest(name, row, head, find_content(row, head))


async def settle(
    context: Context, home: Home, name: str, hold: Hold | None = None
) -> tuple[Latest, ObjectInfo | None]:
    """Bring the row and the head of LATEST in line with its object; return both, None for a missing object."""
    attempts = Attempts(context, f"the artifact {name!r:.60}")
    while True:
        await attempts.another()
        latest = await read_latest(context, home, name)
        check_home(home, name, latest.content)
        info = (
            None
            if latest.is_purged
            else await find_object(context, home.service, home.object_key(name, LATEST))
        )
        if info is None or is_in_line(latest, info):
            return latest, info
        found = await put_right(context, home, latest, info, hold=hold)
        if isinstance(found, Latest):
            return found, info
        if found.found.keys() == {"manifest"}:
            await check_counted(context, home, name, content_of(info))


async def check_counted(context: Context, home: Home, name: str, content: Content | None) -> None:
    """Raise `IntegrityError` for a directory that was copied from elsewhere, without the counts of its files."""
    if content is None or content.manifest is None:
        return
    from holdall.artifacts.directory.record import ManifestRecord

    if not (await fetch(context.port, ManifestRecord.at(home, content.manifest))).refs:
        raise IntegrityError(
            f"this table has no records of the files of the directory {name!r:.60} (manifest {content.manifest})",
            hint="put the directory again",
        )


def is_in_line(latest: Latest, info: ObjectInfo) -> bool:
    """Whether the row names the object's content, and the head names that object (unless versioned wrote since)."""
    content = content_of(info)
    if content is None:
        return True  # neither Holdall nor versioned put the object, so it tells us nothing
    if latest.row.sha256 != content.sha256:
        return False
    known = latest.content
    if known is None:
        return True
    # versioned may have put the same bytes again, with another type or metadata, within the second of the row's time
    return (known.etag, known.content_type, known.metadata or {}) == (
        content.etag,
        content.content_type,
        content.metadata or {},
    )


async def put_right(
    context: Context,
    home: Home,
    latest: Latest,
    info: ObjectInfo,
    *,
    content: Content | None = None,
    hold: Hold | None = None,
) -> Latest | Refused:
    """Write the row and the head for an object; refused if another process has written either meanwhile."""
    if content is None:
        content = await read_content(context, home, info)
        assert content is not None
    name, change = latest.name, Change(context)
    row = VersionRow.make(home, name, LATEST, info.modified, content.sha256)
    fewer, more, gone = plan_counts(context, latest.head, content.manifest, hold)
    values = (
        *content_updates(content, row),
        Head.deleted_at.remove(),
        Head.purging.remove(),
        *(Head.coming[each].remove() for each in gone),
        Head.listed.set(True),
    )
    change.put(row, expect=[latest.row.same(*ROW)])
    head = update_head(change, latest, *values)
    if not latest.head.listed:
        change.put(NameRecord.of(home, name))
    if fewer or more:
        from holdall.artifacts.directory.hold import count_versions

        count_versions(change, home, more=more, fewer=fewer)
    refused = await commit_once(change)
    if refused is not None:
        return refused
    if fewer:
        from holdall.artifacts.directory.sweep import sweep

        # if the process dies before this, its marks are left to a later purge
        await sweep(context, home, tuple(fewer))
    return Latest(name, row, head, content)


def plan_counts(
    context: Context, head: Head, manifest: str | None, hold: Hold | None
) -> tuple[list[str], list[str], list[str]]:
    """Plan what new content means for the manifests that are counted for LATEST.

    Returns those to count less (each as often as it was counted), those to count more, and the marks of coming
    manifests to remove.
    """
    old, coming, now = head.manifest, head.coming, context.port.now()
    gone = [
        each
        for each, value in coming.items()
        if (hold is not None and each.endswith(hold.id))
        or (now - parse_moment(each.partition("|")[0]) > _STALE and value != manifest)
    ]
    gone.sort(key=lambda each: hold is None or not each.endswith(hold.id))
    del gone[_MOST_GONE:]  # more do not fit into a transaction; the next one removes the others
    fewer = [*([old] if old is not None and old != manifest else [])]
    more = [manifest] if manifest is not None and manifest != old else []
    for each in gone:
        value = coming[each]
        if value in more:
            more.remove(value)  # it was already counted while it was coming
        else:
            fewer.append(value)
    return fewer, more, gone


def update_head(change: Change, latest: Latest, *values: Set | Remove) -> Head:
    """Change the head if it is still the one that was read; return the head as it will be."""
    head, values = latest.head, (*values, Head.revision.set(change.context.port.new_id()))
    tag = () if head.is_stored else (Head.tag(),)
    same = head.same(Head.revision, Head.listed, or_created=True)
    change.update(head, *values, *tag, expect=[same])
    return head.apply(*values)


async def unlist(context: Context, home: Home, name: str) -> bool:
    """Remove a name from the list if it has no versions, and nothing was put or published meanwhile."""
    head = await fetch(context.port, Head.of(home, name))
    if (await context.port.send(home.query(name, limit=1))).items:
        return False
    change, row = Change(context), VersionRow.at(home, name, LATEST)
    change.require(row, row.address.absent)
    change.delete(NameRecord.of(home, name))
    if head.is_stored:
        change.update(head, Head.listed.remove(), expect=[head.same(Head.published)])
    else:
        change.require(head, head.address.absent)
    return await commit_once(change) is None


async def read_content(context: Context, home: Home, info: ObjectInfo) -> Content | None:
    """Read the tags of an object; the content that it describes with them, as `content_of`."""
    try:
        tags = await context.port.send(GetTags(home.service, info.key))
    except ObjectNotFoundError:  # deleted meanwhile
        tags = {}
    return content_of(info, dict(tags))


def check_home(home: Home, name: str, content: Content | None) -> None:
    """Raise `ConfigurationError` if the content of LATEST is stored elsewhere, under another prefix or suffix."""
    expected = home.object_key(name, LATEST)
    if content is not None and content.key != expected:
        raise ConfigurationError(
            f"the artifact {name!r:.60} is stored under the key {content.key!r:.80}, not under {expected!r:.80}",
            hint="open the database with the prefix and suffix with which the artifact was put: "
            "artifacts=ArtifactSettings(prefix=..., suffix=...)",
        )

"""The flow that deletes permanently: rows first, then bytes, so that a listed version is never without its bytes.

**Why a crash is safe after each step.** One transaction deletes the row and the note, and leaves a mark that names the
bytes to delete. The bytes are deleted, then the mark. If the process dies in between, the mark stays, and the next
purge continues from it. Numbers are never used again: the counter stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdall.artifacts.alias.flow import change_alias
from holdall.artifacts.alias.state import read_aliases
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import (
    LATEST,
    check_name,
    display_version,
    encode_meta_pk,
    encode_version_sk,
    number_of,
)
from holdall.artifacts.record import CONTENT, ROW, Head, Note, PurgeMark, VersionNote, VersionRow
from holdall.artifacts.version.content import find_content, object_sha256
from holdall.artifacts.version.deletion import (
    check_droppable,
    describe_version,
    drop_aliases_of,
    read_version,
)
from holdall.artifacts.version.latest import Latest, plan_counts, unlist, update_head
from holdall.artifacts.version.lookup import find_serving
from holdall.artifacts.version.reservation import clean, raise_counter
from holdall.artifacts.version.vacancy import delete_marked, finish_purge, make_mark
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.objects import DeleteObject
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, commit_once
from holdall.tables.record import RecordPages, fetch


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What was purged, or would be: versions, aliases, and the number of objects and their bytes."""

    name: str
    versions: tuple[str, ...]
    aliases: tuple[str, ...]
    objects: int
    bytes: int
    dry_run: bool


async def purge(
    context: Context,
    name: str,
    version: int | str | None = None,
    *,
    drop_aliases: bool = False,
    allow_protected: bool = False,
    dry_run: bool = False,
) -> PurgeReport:
    """Delete a version permanently, with its bytes; without ``version``, the whole artifact with all its versions.

    If aliases serve what would be deleted, `ArtifactInUseError` names them; with ``drop_aliases=True`` they are deleted
    too. A missing version or artifact is not an error. The numbers of purged versions are never used again. ``dry_run``
    reports what would be deleted, except for the files of directories: only the purge itself finds out whether other
    directories need them.
    """
    check_name(name)
    sk = None if version is None else encode_version_sk(version)
    home = await find_home(context)
    work = _Purge(context, home, name, drop_aliases, allow_protected, dry_run)
    if not dry_run:
        await _finish_purges(context, home, name)
    await (work.purge_all() if sk is None else work.purge_version(sk))
    if not dry_run:
        await work.sweep()
    return PurgeReport(
        name, tuple(work.versions), tuple(dict.fromkeys(work.aliases)), work.objects, work.bytes, dry_run
    )


@dataclass(frozen=True, slots=True)
class _Bytes:
    """An object to delete."""

    key: str
    etag: str
    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class _Purged:
    """A version whose row was deleted: the object to delete next, the mark that names it, and its aliases."""

    found: _Bytes | None
    mark: PurgeMark | Mapping[str, Any] | None
    aliases: Sequence[str]


class _Purge:
    """One purge, and what it has deleted so far; the files of directories are counted when they are deleted."""

    def __init__(
        self,
        context: Context,
        home: Home,
        name: str,
        drop_aliases: bool,
        allow_protected: bool,
        dry_run: bool,
    ) -> None:
        self._context = context
        self._home = home
        self._name = name
        self._drop_aliases = drop_aliases
        self._allow_protected = allow_protected
        self._dry_run = dry_run
        self._manifests: set[str] = set()
        self.versions: list[str] = []
        self.aliases: list[str] = []
        self.objects = 0
        self.bytes = 0

    async def sweep(self) -> None:
        """Delete files that no directory needs any more: those of purged versions, and those dead processes left."""
        from holdall.artifacts.directory.sweep import sweep

        freed = await sweep(self._context, self._home, tuple(sorted(self._manifests)))
        await sweep(self._context, self._home)
        self.objects += freed.objects
        self.bytes += freed.bytes

    async def purge_all(self) -> None:
        """Purge all versions, and Holdall's own items about the artifact."""
        context, home, name = self._context, self._home, self._name
        found = await read_aliases(context, home, name)
        what = f"the artifact {name!r:.60}"
        check_droppable(found, what, self._drop_aliases, self._allow_protected)  # all before any is deleted
        for each in found:
            self.aliases.append(each.alias)
            if not self._dry_run:
                await change_alias(
                    context,
                    name,
                    each.alias,
                    lambda state: (),
                    "deleted",
                    allow_protected=self._allow_protected,
                    reason="the artifact was purged",
                )
        if not self._dry_run:
            await self._note_begin()
            await self.purge_version(LATEST)  # its row may be missing because a process died
        query = home.query(name, reverse=True, limit=100)
        pages = RecordPages(context.port, VersionRow, query, home.address_of)
        while (rows := await pages.next_page()) is not None:
            for row in rows:
                if row.sk == LATEST or number_of(row.sk) is not None:
                    await self.purge_version(row.sk)
        if not self._dry_run:
            await self._forget_notes()
            await clean(context, home, name)
            await unlist(context, home, name)

    async def _note_begin(self) -> None:
        """Note when the purge began: until it ends, the artifact may be listed without versions."""
        head, change = await fetch(self._context.port, Head.of(self._home, self._name)), Change(self._context)
        if head.is_stored:
            now = self._context.port.now()
            change.update(head, Head.purged_at.set(now), expect=[head.address.exists])
            await commit_once(change)

    async def _forget_notes(self) -> None:
        """Delete notes about versions whose rows are missing: versioned purges only its own rows."""
        context, home, name = self._context, self._home, self._name
        query = home.query(encode_meta_pk(name), prefix=VersionNote.prefix)
        pages = RecordPages(context.port, VersionNote, query, home.address_of)
        while (notes := await pages.next_page()) is not None:
            for note in notes:
                change = Change(context)
                row = VersionRow.at(home, name, note.sk.removeprefix(VersionNote.prefix))
                change.require(row, row.address.absent)
                change.delete(note, expect=[note.same(Note.revision)])
                manifests, _ = self._uncount(change, note)
                if await commit_once(change) is None:
                    self._manifests.update(manifests)

    async def purge_version(self, sk: str) -> None:
        """Purge a version; do nothing if it does not exist."""
        context, home, name = self._context, self._home, self._name

        async def body(change: Change) -> _Purged | None:
            row, note = await read_version(context, home, name, sk)
            if not row.is_stored:
                if isinstance(note, Head) and note.is_stored and not self._dry_run:
                    await self._forget_rest(note)
                return None
            found = await self._find_object(row, note)
            if self._dry_run:
                return _Purged(found, None, await self._foresee(sk))
            aliases = await drop_aliases_of(change, home, name, sk, self._drop_aliases, self._allow_protected)
            if not change.plan.steps:  # they were too many for one transaction, and are already deleted
                self.aliases += aliases
            manifests, stale = self._uncount(change, note)
            self._manifests.update(manifests)
            if sk != LATEST and row.is_version:
                await raise_counter(context, home, name, number_of(sk) or 0)
            return _Purged(found, self._delete_row(change, row, note, found, stale), aliases)

        done = await commit(context, body, describe_version(name, sk))
        if done is None:
            return
        self.aliases += done.aliases
        self.versions.append(display_version(sk))
        if done.found is not None:
            self.objects += 1
            self.bytes += done.found.size
        if isinstance(done.mark, PurgeMark):
            await finish_mark(context, home, name, done.mark)
        elif done.mark is not None:
            await delete_marked(context, home, name, done.mark)

    async def _foresee(self, sk: str) -> list[str]:
        """The aliases that would be deleted with a version; raises if the purge would."""
        served = find_serving(await read_aliases(self._context, self._home, self._name), sk)
        what = describe_version(self._name, sk)
        check_droppable(served, what, self._drop_aliases, self._allow_protected)
        return [each.alias for each in served]

    async def _forget_rest(self, head: Head) -> None:
        """If there is no LATEST: finish an interrupted purge of it, and remove the counts that are left for it."""
        context, home, name = self._context, self._home, self._name
        if head.purging is not None:
            await finish_purge(context, home, name, head)
        while head.is_stored:
            change = Change(context)
            manifests, stale = self._uncount(change, head)
            if not manifests and not stale:
                return
            update_head(
                change,
                Latest(name, VersionRow.at(home, name, LATEST), head, None),
                *(column.remove() for column in (Note.update_at, *CONTENT)),
                *(Head.coming[each].remove() for each in stale),
            )
            if await commit_once(change) is not None:
                return  # another process has just put LATEST
            self._manifests.update(manifests)
            head = await fetch(context.port, head)

    def _uncount(self, change: Change, note: Note) -> tuple[list[str], list[str]]:
        """Remove the counts of manifests for a version; for LATEST, also those of puts that never finished.

        Returns the manifests, and the marks of those puts, which the change has to remove.
        """
        stale: list[str] = []
        if isinstance(note, Head):
            manifests, _, stale = plan_counts(self._context, note, None, None)
        else:  # only noted manifests were counted: versioned publishes a directory without counting it
            manifests = [] if note.manifest is None else [note.manifest]
        if manifests:
            from holdall.artifacts.directory.hold import count_versions

            count_versions(change, self._home, fewer=manifests)
        return manifests, stale

    async def _find_object(self, row: VersionRow, note: Note) -> _Bytes | None:
        """The object of a version; None if there is none."""
        content = find_content(row, note)
        if content is not None:
            return _Bytes(content.key, content.etag, content.size, content.sha256)
        info = await find_object(self._context, self._home.service, self._home.object_key(row.pk, row.sk))
        return None if info is None else _Bytes(info.key, info.etag, info.size, object_sha256(info))

    def _delete_row(
        self, change: Change, row: VersionRow, note: Note, found: _Bytes | None, stale: Sequence[str]
    ) -> PurgeMark | Mapping[str, Any] | None:
        """Delete the row and its note, and leave a mark that names the bytes to delete."""
        context, home, sk = self._context, self._home, row.sk
        same = note.same(Note.revision, Note.served_by, Note.referred, or_created=True)
        change.delete(row, expect=[row.same(*ROW)])
        if not isinstance(note, Head):
            change.delete(note, expect=[same])
            address = home.address(encode_meta_pk(self._name), PurgeMark.prefix + sk)
            key = home.object_key(self._name, sk) if found is None else found.key
            mark = PurgeMark.new(address, PurgeMark.key.set(key), PurgeMark.at.set(context.port.now()))
            change.put(mark)
            return mark
        purging = None if found is None else make_mark(context, found.etag, found.sha256)
        change.update(
            note,
            *(column.remove() for column in (Note.update_at, *CONTENT, Note.deleted_at, Note.served_by)),
            *(Head.coming[each].remove() for each in stale),
            Note.revision.set(context.port.new_id()),
            *(() if purging is None else (Head.purging.set(purging),)),
            expect=[same],
        )
        return purging


# --- bytes ------------------------------------------------------------------------------------------------


async def _finish_purges(context: Context, home: Home, name: str) -> None:
    """Continue purges that other processes began and did not finish."""
    query = home.query(encode_meta_pk(name), prefix=PurgeMark.prefix)
    for mark in await RecordPages(context.port, PurgeMark, query, home.address_of).read_all():
        await finish_mark(context, home, name, mark)


async def finish_mark(context: Context, home: Home, name: str, mark: PurgeMark) -> None:
    """Delete the bytes that a mark names, then the mark; keep the bytes if versioned has written the row since."""
    row = VersionRow.at(home, name, mark.sk.removeprefix(mark.prefix))
    if not (await fetch(context.port, row)).is_stored:
        await context.port.send(DeleteObject(home.service, mark.key))
    change = Change(context)
    change.delete(mark)
    await commit_once(change)

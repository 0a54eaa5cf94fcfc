"""The check of artifacts: aliases against versions, versions against bytes, the list of names, and reservations."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from holdall.artifacts.catalogue import NamePages
from holdall.artifacts.directory.record import FileRecord
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import display_version, encode_meta_pk
from holdall.artifacts.record import Head, NameRecord, Note, PurgeMark, VersionRow, parse_moment
from holdall.artifacts.settings import artifact_settings
from holdall.artifacts.version.content import find_content
from holdall.artifacts.version.latest import unlist
from holdall.artifacts.version.purge import finish_mark
from holdall.artifacts.version.reservation import clean
from holdall.artifacts.version.vacancy import finish_purge
from holdall.core.batch import make_batches
from holdall.core.requests import GetItem, TransactGet
from holdall.core.values import Item
from holdall.errors import HoldallError
from holdall.maintenance.doctor.alias import AliasCheck
from holdall.maintenance.doctor.object import is_there
from holdall.maintenance.doctor.work import Work
from holdall.tables.layout import Layout
from holdall.tables.record import TYPE, RecordPages, fetch, fetch_all, put_all

_OLD = timedelta(hours=1)
_PAGE = 100


async def find_artifacts(work: Work, layout: Layout | None) -> Home | None:
    """The home of artifacts; None if the database cannot have any, or if that cannot be found out."""
    context = work.context
    settings = artifact_settings(context.settings)
    if settings.service is None and context.settings.default_service is None:
        return None
    if settings.table is None and (layout is None or layout.mode != "A"):
        return None
    try:
        return await find_home(context)
    except HoldallError as error:
        await work.find("artifacts", "error", "artifacts", f"they cannot be used: {error.message}")
        return None


class NameCheck:
    """Looks for artifacts that are missing from the list of names."""

    def __init__(self, work: Work, home: Home) -> None:
        self._work = work
        self._home = home
        self._last = ""

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the versions of a page."""
        names = []
        for item in rows:  # the items of a partition are adjacent
            if VersionRow.sha256.name not in item or VersionRow.is_deleted.name not in item or TYPE in item:
                continue
            name = self._home.pk_of(item)
            if name != self._last and not name.startswith("__"):
                names.append(name)
            self._last = name
        for some in make_batches(names, _PAGE):
            await _check_listed(self._work, self._home, some)


class FileCheck:
    """Looks for files of directories whose bytes are missing."""

    def __init__(self, work: Work, home: Home) -> None:
        self._work = work
        self._home = home

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the files of a page."""
        home = self._home
        for item in rows:
            if FileRecord.is_type_of(item):
                file = FileRecord(home.address_of(item), item)
                await self._work.examine("artifacts", f"file {file.sha256}", self._check(file))

    async def _check(self, file: FileRecord) -> None:
        key = file.stored_key
        if key is None or file.deleting is not None or await self._has(key):
            return
        again = await fetch(self._work.context.port, FileRecord(file.address))
        if again.item == file.item and not await self._has(key):
            message = (
                f"its bytes are missing ({self._home.service}:{key}); directories need it: {file.refs:,}"
            )
            await self._work.find("artifacts", "error", f"file {file.sha256}", message)

    async def _has(self, key: str) -> bool:
        return await is_there(self._work, self._home.service, key) is not False


async def _is_unlisted(work: Work, home: Home, record: NameRecord) -> bool:
    """Whether an artifact has a version, but is not listed, as of one moment: it may just have been purged."""
    items = (await work.context.port.send(home.query(record.sk, limit=1))).items
    if not items:
        return False
    keys = home.address_of(items[0]).key, record.address.key
    reads = tuple(GetItem(home.table, key, True) for key in keys)
    version, listed = (await work.context.port.send(TransactGet(reads))).items
    return version is not None and listed is None


async def check_artifacts(work: Work, home: Home) -> None:
    """Find faults of aliases, versions without bytes, names without versions, and what dead processes left."""
    pages = NamePages(work.context, deleted=True)
    while (names := await pages.next_page()) is not None:
        for name in names:
            await work.examine("artifacts", f"artifact {name}", _check_artifact(work, home, name))


async def _check_listed(work: Work, home: Home, names: Sequence[str]) -> None:
    records = [NameRecord.of(home, name) for name in names]
    for record, found in zip(records, await fetch_all(work.context.port, records), strict=True):
        if found.is_stored or not await _is_unlisted(work, home, record):
            continue
        mend = partial(put_all, work.context.port, [record])
        message = "it is missing from the list of names"
        await work.find("artifacts", "error", f"artifact {record.sk}", message, "add it to the list", mend)


async def _check_artifact(work: Work, home: Home, name: str) -> None:
    await AliasCheck(work, home, name).check()
    if not await _check_versions(work, home, name):
        await _check_name(work, home, name)
    await _check_head(work, home, name)
    await _check_purges(work, home, name)


async def _check_name(work: Work, home: Home, name: str) -> None:
    """Find a name that is listed without an artifact, unless a purge is about to remove it from the list."""
    port, began = work.context.port, work.context.port.now() - _OLD
    head = await fetch(port, Head.of(home, name))
    versions = (await port.send(home.query(name, limit=1))).items
    record = await fetch(port, NameRecord(NameRecord.of(home, name).address))
    if versions or not record.is_stored or (head.purged_at is not None and head.purged_at > began):
        return
    mend = partial(unlist, work.context, home, name)
    message = "it is listed, but has no versions"
    await work.find("artifacts", "notice", f"artifact {name}", message, "remove it from the list", mend)


async def _check_versions(work: Work, home: Home, name: str) -> int:
    """Find versions without bytes; return how many versions there are, deleted or not."""
    count = 0
    query = home.query_versions(name, limit=_PAGE)
    pages = RecordPages(work.context.port, VersionRow, query, home.address_of)
    while (rows := await pages.next_page()) is not None:
        count += len(rows)
        live = [row for row in rows if row.is_live]
        notes = await fetch_all(work.context.port, [Note.at(home, name, row.sk) for row in live])
        for row, note in zip(live, notes, strict=True):
            content = find_content(row, note)
            key = home.object_key(name, row.sk) if content is None else content.key
            if await is_there(work, home.service, key) is not False:
                continue
            again = await fetch(work.context.port, VersionRow(row.address))
            if again.item == row.item and await is_there(work, home.service, key) is False:
                subject = f"version {display_version(row.sk)} of {name}"
                await work.find(
                    "artifacts", "error", subject, f"its bytes are missing ({home.service}:{key})"
                )
    return count


async def _check_head(work: Work, home: Home, name: str) -> None:
    """Find a purge of LATEST that did not end, and numbers that a publisher reserved and did not use."""
    head = await fetch(work.context.port, Head.of(home, name))
    before = work.context.port.now() - _OLD
    if head.purging is not None and parse_moment(head.purging["at"]) < before:
        mend = partial(finish_purge, work.context, home, name, head)
        message = "LATEST was purged, but its bytes may be left"
        await work.find("artifacts", "notice", f"artifact {name}", message, "delete them", mend)
    for slot, mark in head.reserving.items():
        try:
            ended = parse_moment(mark.partition("|")[0])
        except ValueError:
            continue  # burnt already
        if ended < before:
            number = head.reserved.get(slot)
            message = f"version {number} was reserved and not published; the next publication clears it away"

            async def clear() -> bool:
                return await clean(work.context, home, name) > 0

            await work.find("artifacts", "notice", f"artifact {name}", message, "clear it away", clear)


async def _check_purges(work: Work, home: Home, name: str) -> None:
    """Find purges of versions that did not end."""
    before = work.context.port.now() - _OLD
    query = home.query(encode_meta_pk(name), prefix=PurgeMark.prefix)
    pages = RecordPages(work.context.port, PurgeMark, query, home.address_of)
    while (marks := await pages.next_page()) is not None:
        for mark in marks:
            if mark.at is not None and mark.at > before:
                continue
            mend = partial(finish_mark, work.context, home, name, mark)
            version = display_version(mark.sk.removeprefix(PurgeMark.prefix))
            message = f"version {version} was purged, but its bytes may be left ({home.service}:{mark.key})"
            await work.find("artifacts", "notice", f"artifact {name}", message, "delete them", mend)

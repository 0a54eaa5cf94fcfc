"""The catalogue: the names of all artifacts, in a separate partition."""

from __future__ import annotations

from datetime import timedelta

from holdall.artifacts.directory.sweep import Freed, sweep_strays
from holdall.artifacts.home import Home, find_home
from holdall.artifacts.name import LATEST
from holdall.artifacts.record import NAMES, NameRecord, VersionRow
from holdall.artifacts.version.latest import unlist
from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.expressions import NotExists, Path
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject
from holdall.core.requests import Scan
from holdall.errors import InvalidOptionsError
from holdall.files.listing import Listing
from holdall.tables.record import TYPE, RecordPages, fetch_all, put_all

_PAGE = 100
_OLD = timedelta(days=2)


class NamePages:
    """The names of artifacts, a page at a time, in the order of their bytes."""

    def __init__(
        self, context: Context, prefix: str = "", deleted: bool = False, after: str | None = None
    ) -> None:
        if after and not after.startswith(prefix):
            raise InvalidOptionsError(
                f"after is {after!r:.60}, which does not begin with the prefix {prefix!r:.60}",
                hint="pass the last name that names() returned with the same prefix",
            )
        self._context = context
        self._prefix = prefix
        self._deleted = deleted
        self._after = after
        self._pages: RecordPages[NameRecord] | None = None

    async def next_page(self) -> list[str] | None:
        """Return the names of the next page, which may be empty; None at the end."""
        home = await find_home(self._context)
        if self._pages is None:
            query = home.query(NAMES, limit=_PAGE, prefix=self._prefix)
            if self._after:
                query = replace(query, start_after=home.key(NAMES, self._after))
            self._pages = RecordPages(self._context.port, NameRecord, query, home.address_of)
        page = await self._pages.next_page()
        if page is None:
            return None
        names = [record.sk for record in page]
        if self._deleted:
            return names
        # the artifacts that still have a version: most have LATEST
        rows = await fetch_all(self._context.port, [VersionRow.at(home, name, LATEST) for name in names])
        return [row.pk for row in rows if row.is_live or await _has_versions(self._context, home, row.pk)]


async def _has_versions(context: Context, home: Home, name: str) -> bool:
    query = replace(home.query(name, reverse=True), filter=VersionRow.sha256.exists)
    pages = RecordPages(context.port, VersionRow, query, home.address_of)
    while (rows := await pages.next_page()) is not None:
        if any(row.is_live for row in rows):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindex found and changed.

    There are ``artifacts``; it ``added`` those that were missing from the list of names, and ``removed`` names without
    an artifact. It deleted ``objects`` of interrupted uploads, with ``bytes`` in all.
    """

    artifacts: int
    added: int
    removed: int
    objects: int = 0
    bytes: int = 0


async def reindex(context: Context) -> Reindexed:
    """Rebuild the list of names from the table, including artifacts that the package versioned wrote.

    This reads the whole table. It also deletes what interrupted uploads left in the file service long ago.
    """
    home = await find_home(context)
    found, added = await _add_missing(context, home)
    removed = await _remove_empty(context, home)
    strays = await sweep_strays(context, home)
    incoming = await clear_incoming(context, home)
    return Reindexed(found, added, removed, strays.objects + incoming.objects, strays.bytes + incoming.bytes)


async def clear_incoming(context: Context, home: Home, *, dry_run: bool = False) -> Freed:
    """Delete content that was uploaded to become LATEST by processes that died; ``dry_run`` only counts it."""
    prefix, before = f"{home.incoming_key('')}/", context.port.now() - _OLD
    objects = size = 0
    listing = Listing(context, home.service, prefix)
    while (page := await listing.next_page()) is not None:
        for each in page.objects:
            if each.modified < before:
                if not dry_run:
                    await context.port.send(DeleteObject(home.service, each.key))
                objects, size = objects + 1, size + each.size
    return Freed(objects, size)


async def _add_missing(context: Context, home: Home) -> tuple[int, int]:
    rows = VersionRow.sha256.exists & VersionRow.is_deleted.exists & NotExists(Path((TYPE,)))
    scan = Scan(home.table, filter=rows, projection=(Path((home.partition,)),), consistent=True)
    pages, last, found, added = PageCursor(context.port, scan), "", 0, 0
    while (page := await pages.next_page()) is not None:
        names = []
        for item in page.items:  # the items of a partition are adjacent
            name = home.pk_of(item)
            if name != last and not name.startswith("__"):
                names.append(name)
            last = name
        found += len(names)
        added += await _add(context, home, names)
    return found, added


async def _add(context: Context, home: Home, names: list[str]) -> int:
    added = 0
    for some in make_batches(names, _PAGE):
        records = [NameRecord.of(home, name) for name in some]
        there = await fetch_all(context.port, records)
        new = [record for record, found in zip(records, there, strict=True) if not found.is_stored]
        await put_all(context.port, new)
        added += len(new)
    return added


async def _remove_empty(context: Context, home: Home) -> int:
    pages = NamePages(context, deleted=True)
    removed = 0
    while (names := await pages.next_page()) is not None:
        for name in names:
            removed += await unlist(context, home, name)
    return removed

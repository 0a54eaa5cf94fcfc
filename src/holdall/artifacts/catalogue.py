"""The catalogue: the names of all artifacts, kept in a partition of their own."""

from __future__ import annotations

from datetime import timedelta

from holdall.artifacts.directories.strays import sweep_strays
from holdall.artifacts.home import Home, home_of
from holdall.artifacts.latest import DIRECTORY, directory_item, unlist
from holdall.artifacts.naming import LATEST
from holdall.artifacts.stored import is_live
from holdall.core.context import Context
from holdall.core.expressions import Exists, NotExists, Path, path
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject, ListObjects
from holdall.core.requests import BatchGet, BatchWrite, PutItem, Query, Scan

__all__ = ["NamePages", "Reindexed", "reindex"]

_PAGE = 100
_BATCH = BatchWrite.most
_OLD = timedelta(days=2)


class NamePages:
    """The names of artifacts, a page at a time, in the order of their bytes."""

    def __init__(self, context: Context, prefix: str = "", deleted: bool = False) -> None:
        self._context = context
        self._prefix = prefix
        self._deleted = deleted
        self._query: Query | None = None
        self._ended = False

    async def next_page(self) -> list[str] | None:
        """Some more names, perhaps none; None at the end."""
        if self._ended:
            return None
        home = await home_of(self._context)
        if self._query is None:
            self._query = home.query(DIRECTORY, limit=_PAGE, prefix=self._prefix)
        page = await self._context.port.send(self._query)
        self._ended = page.last_key is None
        self._query = replace(self._query, start_after=page.last_key)
        names = [home.sk_of(item) for item in page.items]
        return names if self._deleted or not names else await self._live(home, names)

    async def _live(self, home: Home, names: list[str]) -> list[str]:
        """Those of which something is left; of most that is LATEST."""
        reads = tuple(home.get(name, LATEST) for name in names)
        rows = (await self._context.port.send(BatchGet(reads))).items
        return [
            name
            for name, row in zip(names, rows, strict=True)
            if is_live(row) or await _has_versions(self._context, home, name)
        ]


async def _has_versions(context: Context, home: Home, name: str) -> bool:
    query = replace(home.query(name, reverse=True), filter=Exists(path("sha256")))
    while True:
        page = await context.port.send(query)
        if any(is_live(row) for row in page.items):
            return True
        if page.last_key is None:
            return False
        query = replace(query, start_after=page.last_key)


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindex found: artifacts there are, of which so many were not listed; names of none; and objects, with
    their bytes, that belonged to nothing, which it deleted."""

    artifacts: int
    added: int
    removed: int
    objects: int = 0
    bytes: int = 0


async def reindex(context: Context) -> Reindexed:
    """List all artifacts that are in the table, those that versioned made too; it reads the whole table.

    It also deletes what uploads that died long ago have left in the service.
    """
    home = await home_of(context)
    found, added = await _add_missing(context, home)
    removed = await _remove_empty(context, home)
    strays = await sweep_strays(context, home)
    objects, size = await _clear_incoming(context, home)
    return Reindexed(found, added, removed, strays.objects + objects, strays.bytes + size)


async def _clear_incoming(context: Context, home: Home) -> tuple[int, int]:
    """Delete what was waiting to become LATEST when its process died."""
    prefix, before = f"{home.incoming_key('')}/", context.port.now() - _OLD
    objects = size = 0
    after: str | None = None
    while True:
        page = await context.port.send(ListObjects(home.service, prefix, after))
        for each in page.objects:
            if each.modified < before:
                await context.port.send(DeleteObject(home.service, each.key))
                objects, size = objects + 1, size + each.size
        after = page.next
        if after is None:
            return objects, size


async def _add_missing(context: Context, home: Home) -> tuple[int, int]:
    rows = Exists(path("sha256")) & Exists(path("is_deleted")) & NotExists(path("_type"))
    scan = Scan(home.table, filter=rows, projection=(Path((home.partition,)),), consistent=True)
    last, found, added = "", 0, 0
    while True:
        page = await context.port.send(scan)
        names = []
        for item in page.items:  # the items of a partition come together
            name = home.pk_of(item)
            if name != last and not name.startswith("__"):
                names.append(name)
            last = name
        found += len(names)
        added += await _add(context, home, names)
        if page.last_key is None:
            return found, added
        scan = replace(scan, start_after=page.last_key)


async def _add(context: Context, home: Home, names: list[str]) -> int:
    added = 0
    for at in range(0, len(names), _PAGE):
        some = names[at : at + _PAGE]
        there = (await context.port.send(BatchGet(tuple(home.get(DIRECTORY, name) for name in some)))).items
        new = [name for name, item in zip(some, there, strict=True) if item is None]
        for place in range(0, len(new), _BATCH):
            puts = [PutItem(home.table, directory_item(home, name)) for name in new[place : place + _BATCH]]
            await context.port.send(BatchWrite(tuple(puts)))
        added += len(new)
    return added


async def _remove_empty(context: Context, home: Home) -> int:
    pages = NamePages(context, deleted=True)
    removed = 0
    while (names := await pages.next_page()) is not None:
        for name in names:
            removed += await unlist(context, home, name)
    return removed

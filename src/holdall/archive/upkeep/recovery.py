"""Rebuilding pointers that are damaged or lost, or whose objects are, from the objects that still exist.

An object records its owner, the time at which it was archived, and the digest of its text; all of that is verified. The
object is put once more before an item points to it, so that its etag changes, and a sweep that has found it
unreferenced cannot delete it. An item is changed only if it is still as it was read; a deleted item is never recreated.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from holdall.archive.declaration import fetch_contents
from holdall.archive.envelope import open_envelope
from holdall.archive.exchange import exchange_pointer, has_moved
from holdall.archive.follower import delete_object
from holdall.archive.item import ArchivePlace, find_place, lacks_contents
from holdall.archive.pack.batch import ArchivedCopy, CopyChoice, consider_slices
from holdall.archive.pointer import POINTER, Pointer, check_format, read_pointer, show_key
from holdall.archive.storage import store
from holdall.archive.template import KeyPlan
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.frozen import dataclass
from holdall.core.objects import GetObject
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.errors import CorruptArchiveError, DanglingPointerError, ObjectNotFoundError
from holdall.files.listing import Listing
from holdall.models.model import Model
from holdall.transactions.query.scan import of_model
from holdall.transactions.table_run.pace import Pace

_AT_ONCE = 16
_PAGE = 500
_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class ArchiveRebuild:
    """What a rebuild has found and done so far, or what a dry run would do.

    ``examined`` counts the items that have a pointer or must have lost one. Of these, ``sound`` can be read;
    ``rebuilt`` point to an object again, ``older`` of them to one with other content than their pointer named;
    ``changed`` were written by another client meanwhile; and for ``lost`` no object was found. ``problems`` describes
    the first few of the lost.
    """

    examined: int
    sound: int
    rebuilt: int
    older: int
    changed: int
    lost: int
    problems: tuple[str, ...]


async def rebuild_pointers(
    context: Context,
    model: type[Model],
    *,
    dry_run: bool = False,
    progress: Callable[[ArchiveRebuild], Any] | None = None,
) -> ArchiveRebuild:
    """Repair archived items whose pointer or object is damaged or lost: point them to another copy of their object.

    An object with exactly the content that the pointer names is preferred; otherwise the newest intact one is used.
    Objects are looked for where the pointer says, and where the current template puts them. ``dry_run`` only
    counts, and changes nothing. This reads the whole table and all archived objects. ``progress`` is called with a
    report after each page.
    """
    return await rebuild_at_rate(context, model, None, dry_run=dry_run, progress=progress)


async def rebuild_at_rate(
    context: Context,
    model: type[Model],
    rate: float | None,
    *,
    dry_run: bool,
    progress: Callable[[ArchiveRebuild], Any] | None = None,
) -> ArchiveRebuild:
    """Like `rebuild_pointers`; ``rate`` is the most items of the table to read per second."""
    place, pace = await find_place(context, model), Pace(rate)
    work = _Rebuild(context, place, dry_run)
    limit = None if rate is None else min(_PAGE, max(1, int(rate)))
    cursor = PageCursor(
        context.port, Scan(place.binding.table, filter=of_model(place.binding), limit=limit, consistent=True)
    )
    while (page := await cursor.next_page()) is not None:
        await pace.wait(context.port, page.scanned)
        for outcome in await context.port.gather(map(work.consider, page.items), limit=_AT_ONCE):
            outcome.result()
        if progress is not None:
            await context.port.call(progress, work.report())
    return work.report()


class _Rebuild:
    def __init__(self, context: Context, place: ArchivePlace, dry_run: bool) -> None:
        self._context = context
        self._place = place
        self._dry_run = dry_run
        self._examined = self._sound = self._rebuilt = self._older = self._changed = self._lost = 0
        self._problems: list[str] = []

    def report(self) -> ArchiveRebuild:
        counts = self._examined, self._sound, self._rebuilt, self._older, self._changed, self._lost
        return ArchiveRebuild(*counts, tuple(self._problems))

    async def consider(self, item: Item) -> None:
        """Rebuild the pointer of an item if necessary."""
        pointer: Pointer | None = None
        if POINTER in item:
            self._examined += 1
            check_format(item)
            try:
                pointer = read_pointer(item)
                await fetch_contents(self._context, pointer)
            except (CorruptArchiveError, DanglingPointerError):
                if await has_moved(self._context, self._place.binding, item):
                    self._changed += 1
                    return
            else:
                self._sound += 1
                return
        elif self._place.split(item)[1]:
            return
        found = await self._find(item, pointer)
        if POINTER not in item:
            if found is None or not lacks_contents(self._place, item, found.contents.item):
                return
            self._examined += 1
        if found is None:
            self._note_lost(item, pointer)
        elif self._dry_run or await self._point(item, found):
            self._rebuilt += 1
            self._older += pointer is not None and pointer.digest != found.contents.envelope.digest
        else:
            self._changed += 1

    async def _point(self, item: Item, found: ArchivedCopy) -> bool:
        place = self._place
        keys, envelope = place.plan_keys(item), found.contents.envelope
        pointer = await store(self._context, place.service, keys, envelope, found.archived_at)
        if await exchange_pointer(self._context, place.binding, item, pointer):
            return True
        await delete_object(self._context.port, pointer)
        return False

    def _note_lost(self, item: Item, pointer: Pointer | None) -> None:
        self._lost += 1
        if len(self._problems) < _PROBLEMS:
            key = show_key(self._place.binding.key_of(item))
            named = "" if pointer is None else f"; its pointer names {pointer.where}"
            self._problems.append(f"{key}: no readable object of this item was found{named}")

    # --- its objects ----------------------------------------------------------------------------------------

    async def _find(self, item: Item, pointer: Pointer | None) -> ArchivedCopy | None:
        """Find the object with the content that the item's pointer names; otherwise the item's newest object."""
        place, keys = self._place, self._place.plan_keys(item)
        choice = CopyChoice(None if pointer is None else pointer.digest)
        seen = {(place.service, key) for key in keys.candidates}
        if pointer is not None:
            seen.add((pointer.service, pointer.key))
        for service, key in sorted(seen):
            if choice.consider(await self._fetch(service, key, keys, item)):
                return choice.best
        for prefix in keys.prefixes:
            listing = Listing(self._context, place.service, prefix)
            while (page := await listing.next_page()) is not None:
                for key in [listed.key for listed in page.objects]:
                    if (place.service, key) not in seen:
                        seen.add((place.service, key))
                        if choice.consider(await self._fetch(place.service, key, keys, item)):
                            return choice.best
        if place.archive.pack or (pointer is not None and pointer.offset is not None):
            await consider_slices(self._context, place, item, choice)
        return choice.best

    async def _fetch(self, service: str, key: str, keys: KeyPlan, item: Item) -> ArchivedCopy | None:
        """Fetch an object; None unless it belongs to the item and is intact."""
        try:
            found = await self._context.port.send(GetObject(service, key))
            contents = open_envelope(found.body, f"{service}:{key}")
        except (ObjectNotFoundError, CorruptArchiveError):
            return None
        metadata = found.info.headers.metadata
        place = self._place
        if not place.owns(contents) or contents.key != place.binding.key_of(item):
            return None
        if metadata.get("owner") != keys.owner or metadata.get("sha256") != contents.envelope.digest:
            return None
        try:
            return ArchivedCopy(contents, datetime.fromisoformat(metadata["archived_at"]))
        except (KeyError, ValueError):
            return None

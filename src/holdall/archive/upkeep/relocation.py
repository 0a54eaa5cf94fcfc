"""Moving archived objects to the keys that their model's template gives them now.

Why nothing is lost, wherever the process dies and whatever other clients write meanwhile: the new object is a copy; the
pointer is exchanged only if it is still the one that was read; the old object is deleted after that, and only if it has
the pointer's etag. If the process dies in between, one object too many is left to the sweep. A second run skips the
items that were moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdall.archive.ancestor import NAMES, read_moment
from holdall.archive.declaration import fetch_contents
from holdall.archive.envelope import Envelope
from holdall.archive.exchange import exchange_pointer, has_moved
from holdall.archive.follower import delete_object
from holdall.archive.item import ArchivePlace, find_place
from holdall.archive.pack.batch import fetch_index
from holdall.archive.pointer import POINTER, Pointer, read_pointer
from holdall.archive.storage import store
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.frozen import dataclass
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.errors import HoldallError, ObjectNotFoundError
from holdall.models.model import Model
from holdall.tables.commit.lock import all_of
from holdall.transactions.query.scan import of_model

_AT_ONCE = 16
_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class ArchiveRekey:
    """What a rekey has done so far, or what a dry run would do.

    Of ``examined`` archived items, ``moved`` had their objects moved to other keys, and ``current`` already had them in
    the right place. ``changed`` were written by another client meanwhile and left alone. ``failed`` could not be moved;
    ``problems`` has the messages of the first few.
    """

    examined: int
    moved: int
    current: int
    changed: int
    failed: int
    problems: tuple[str, ...]


async def rekey(
    context: Context,
    model: type[Model],
    *,
    dry_run: bool = False,
    progress: Callable[[ArchiveRekey], Any] | None = None,
) -> ArchiveRekey:
    """Move a model's archived objects to the keys that its current template, key style and service give them.

    Run it after you change one of those; until then, items are read from where they are. Run it also on a copy of a
    table, such as a restored backup: its items get their own objects, and the original keeps its objects. With
    ``Archive(ancestor=...)`` it also converts the items that tempest's hybrid storage archived, and leaves the old
    objects in place. ``dry_run`` only counts, and changes nothing. This reads the whole table; it can be stopped at any
    moment and run again. ``progress`` is called with a report after each page.
    """
    place = await find_place(context, model)
    work = _Rekey(context, place, dry_run)
    binding = place.binding
    scan = Scan(binding.table, filter=all_of([of_model(binding), place.archive.pointer]), consistent=True)
    cursor = PageCursor(context.port, scan)
    while (page := await cursor.next_page()) is not None:
        for outcome in await context.port.gather(map(work.consider, page.items), limit=_AT_ONCE):
            outcome.result()
        if progress is not None:
            await context.port.call(progress, work.report())
    return work.report()


class _Rekey:
    def __init__(self, context: Context, place: ArchivePlace, dry_run: bool) -> None:
        self._context = context
        self._place = place
        self._dry_run = dry_run
        self._examined = self._moved = self._current = self._changed = self._failed = 0
        self._problems: list[str] = []
        self._packs: dict[str, bool] = {}

    def report(self) -> ArchiveRekey:
        counts = self._examined, self._moved, self._current, self._changed, self._failed
        return ArchiveRekey(*counts, tuple(self._problems))

    async def consider(self, item: Item) -> None:
        """Move the object of an item, unless it is already in the right place."""
        self._examined += 1
        try:
            if await self._is_current(item):
                self._current += 1
            elif self._dry_run or await (self._move(item) if POINTER in item else self._convert(item)):
                self._moved += 1
            else:
                self._changed += 1
        except HoldallError as error:
            if error.retryable:
                raise
            if await has_moved(self._context, self._place.binding, item):
                self._changed += 1
                return
            self._failed += 1
            if len(self._problems) < _PROBLEMS:
                self._problems.append(error.message)

    async def _is_current(self, item: Item) -> bool:
        if POINTER not in item:
            return False
        pointer, keys = read_pointer(item), self._place.plan_keys(item)
        if pointer.offset is not None and self._place.archive.pack:
            return pointer.service == self._place.service and await self._is_own_pack(pointer)
        place = self._place.service, keys.mark
        return (pointer.service, pointer.owner) == place and keys.includes(pointer.key)

    async def _is_own_pack(self, pointer: Pointer) -> bool:
        """Whether a pack belongs to this table, rather than to one that this table is a copy of.

        The key cannot show it: the key of a pack does not depend on the template's variables.
        """
        known = self._packs.get(pointer.key)
        if known is None:
            try:
                known = await fetch_index(self._context, self._place, pointer.key) is not None
            except ObjectNotFoundError:
                known = False
            self._packs[pointer.key] = known
        return known

    async def _move(self, item: Item) -> bool:
        """Move an object; False if its item was changed meanwhile.

        If this table is a copy, the object of the original table stays where it is.
        """
        place, context = self._place, self._context
        pointer = read_pointer(item)
        contents = await fetch_contents(context, pointer)
        owned, envelope = place.owns(contents), contents.envelope
        if not owned:
            envelope = Envelope.of(place.binding.table, place.binding.key_of(item), contents.item)
        keys = place.plan_keys(item)
        moved = await store(context, place.service, keys, envelope, pointer.archived_at)
        if not await exchange_pointer(context, place.binding, item, moved):
            await delete_object(context.port, moved)
            return False
        if owned:
            await delete_object(context.port, pointer)
        return True

    async def _convert(self, item: Item) -> bool:
        """Convert an item that the ancestor archived; False if the item was changed meanwhile.

        This also puts back the attributes that must stay in the table. The ancestor kept only attributes whose names
        looked like keys; but without its index keys an item is missing from the indexes, and without its time to live
        it never expires.
        """
        place, context = self._place, self._context
        key = place.binding.key_of(item)
        whole, info = await place.archive.fetch_ancestor(context, item, key)
        envelope = Envelope.of(place.binding.table, key, whole)
        moment = read_moment(info.headers.metadata.get("archived_at", "")) or info.modified
        pointer = await store(context, place.service, place.plan_keys(whole), envelope, moment)
        added = {name: whole[name] for name in sorted(place.kept) if name in whole and name not in item}
        if await exchange_pointer(context, place.binding, item, pointer, NAMES, added):
            return True
        await delete_object(context.port, pointer)
        return False

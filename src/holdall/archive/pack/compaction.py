"""Compaction: rewrites packs that hold few live slices, to get rid of the bytes of changed and deleted items.

Why nothing is lost wherever the process dies: the live slices are copied into a new pack first; then each pointer is
exchanged separately, on the condition that it still names the old slice. If another client has written the item
meanwhile, that write wins, and leaves a dead slice in the new pack. The old pack stays until the sweep finds that no
pointer names it; a reader that still holds an old pointer reads the item again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from holdall.archive.envelope import read_envelope
from holdall.archive.exchange import exchange_pointer
from holdall.archive.item import ArchivePlace, find_place, prefix_of
from holdall.archive.pack.batch import Batch, fetch_index, fetch_owners, find_pointer, store_pack
from holdall.archive.pack.pack import FOLDER, PACK_SUFFIX, PackedSlice, Slice
from holdall.archive.pointer import Pointer
from holdall.archive.upkeep.sweep import GRACE
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import GetObject, ListedObject
from holdall.core.values import Item
from holdall.errors import (
    CorruptArchiveError,
    InvalidOptionsError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from holdall.files.listing import Listing
from holdall.models.model import Model

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction has done so far, or what a dry run would do.

    ``packs`` counts the packs that were examined; ``live_bytes`` of their slices are still needed, ``dead_bytes`` are
    not. ``rewritten`` packs had too small a share of live bytes, and ``moved`` items were copied from them into new
    packs. ``damaged`` slices do not have the archived content and were left where they are.
    """

    packs: int = 0
    live_bytes: int = 0
    dead_bytes: int = 0
    rewritten: int = 0
    moved: int = 0
    damaged: int = 0


async def compact(
    context: Context,
    model: type[Model],
    *,
    live_share: float = 0.5,
    older_than: timedelta = GRACE,
    dry_run: bool = False,
    progress: Callable[[Compaction], Any] | None = None,
) -> Compaction:
    """Rewrite a model's packs in which less than ``live_share`` of the bytes belongs to items that are still archived.

    The next `sweep` deletes the old packs, and those that are no longer needed at all. With ``live_share=1``, no bytes
    of changed or deleted items remain after that. Packs younger than ``older_than`` are skipped, because a run may
    still be pointing items to them. ``dry_run`` only counts, and changes nothing. ``progress`` is called with a report
    after each pack.
    """
    if isinstance(live_share, bool) or not isinstance(live_share, int | float) or not 0 < live_share <= 1:
        raise InvalidOptionsError(
            f"live_share must be a number above 0 and at most 1, not {live_share!r:.60}"
        )
    place = await find_place(context, model)
    work = _Work(context, place, live_share, dry_run)
    before = context.port.now() - older_than
    listing = Listing(context, place.service, prefix_of(place) + FOLDER)
    while (page := await listing.next_page()) is not None:
        for each in page.objects:
            if each.key.endswith(PACK_SUFFIX) and each.modified <= before:
                await work.consider(each)
                if progress is not None:
                    await context.port.call(progress, work.done)
    await work.finish()
    return work.done


@dataclass(frozen=True, slots=True)
class _Live:
    """A slice that is still needed, the item that owns it, and that item's pointer."""

    packed: PackedSlice
    item: Item
    pointer: Pointer


@dataclass(frozen=True, slots=True)
class _Move:
    """A slice to copy into a new pack, and its owner."""

    slice: Slice
    live: _Live


class _Work:
    """One compaction: collects slices from old packs until there are enough for a new one."""

    def __init__(self, context: Context, place: ArchivePlace, live_share: float, dry_run: bool) -> None:
        self._context = context
        self._place = place
        self._live_share = live_share
        self._dry_run = dry_run
        self._batch: Batch[_Move] = Batch()
        self.done = Compaction()

    async def consider(self, found: ListedObject) -> None:
        """Examine a pack, and copy its live slices if they are few."""
        place = self._place
        try:
            index = await fetch_index(self._context, place, found.key, found.etag)
            if index is None:
                return
            live = await self._find_live(found, index.slices)
            size = sum(each.packed.size for each in live)
            rewrite = bool(live) and size < self._live_share * index.size
            if rewrite and not self._dry_run:
                await self._copy(found, live)
        except (ObjectNotFoundError, PreconditionFailedError):
            return  # the sweep was faster
        done = self.done
        self.done = replace(
            done,
            packs=done.packs + 1,
            live_bytes=done.live_bytes + size,
            dead_bytes=done.dead_bytes + index.size - size,
            rewritten=done.rewritten + rewrite,
            moved=done.moved + (len(live) if rewrite and self._dry_run else 0),
        )
        while self._batch.is_full:
            await self._move(self._batch.take())

    async def finish(self) -> None:
        """Move the slices that are still waiting."""
        while self._batch:
            await self._move(self._batch.take())

    async def _find_live(self, found: ListedObject, slices: Sequence[PackedSlice]) -> list[_Live]:
        live = []
        for packed, item in zip(slices, await fetch_owners(self._context, self._place, slices), strict=True):
            try:
                pointer = find_pointer(item)
            except CorruptArchiveError:
                continue  # the sweep keeps the pack for such an item
            if pointer is not None and (pointer.service, pointer.key, pointer.offset) == (
                *(self._place.service, found.key),
                packed.offset,
            ):
                assert item is not None
                live.append(_Live(packed, item, pointer))
        return live

    async def _copy(self, found: ListedObject, live: Sequence[_Live]) -> None:
        request = GetObject(self._place.service, found.key, if_match=found.etag)
        body = (await self._context.port.send(request)).body
        for each in live:
            packed = each.packed
            data = body[packed.offset : packed.offset + packed.size]
            try:
                read_envelope(data, each.pointer.digest, each.pointer.where)
            except CorruptArchiveError:
                self.done = replace(self.done, damaged=self.done.damaged + 1)
                continue
            slice = Slice(packed.key, packed.digest, data)
            self._batch.add(_Move(slice, each))

    async def _move(self, moves: Sequence[_Move]) -> None:
        """Store a new pack, and point the items to it."""
        now = self._context.port.now()
        slices = [move.slice for move in moves]
        key, info, index = await store_pack(self._context, self._place, slices, now)
        flows = (
            exchange_pointer(
                self._context,
                self._place.binding,
                move.live.item,
                replace(move.live.pointer, key=key, etag=info.etag, offset=packed.offset),
            )
            for move, packed in zip(moves, index.slices, strict=True)
        )
        outcomes = await self._context.port.gather(flows, limit=_AT_ONCE)
        moved = sum(outcome.result() for outcome in outcomes)
        self.done = replace(self.done, moved=self.done.moved + moved)

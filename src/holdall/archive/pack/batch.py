"""Packs in a service: storing them, finding the owners of their slices, and reading slices.

To archive items together, one pack with all of them is stored first; then each item is swapped separately.

Why nothing is lost, wherever the process dies and whatever other clients write meanwhile: for each item the same holds
as for an item with its own object. An item that is not swapped leaves a dead slice in the pack. The sweep deletes a
pack of which no item was swapped, and the compaction rewrites a pack with few live slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from holdall.archive.envelope import CODEC, Contents, Envelope, open_envelope
from holdall.archive.item import ArchivePlace, lacks_contents, prefix_of
from holdall.archive.pack.pack import (
    FOLDER,
    INDEX_BYTES,
    PACK_BYTES,
    PACK_ITEMS,
    PACK_SUFFIX,
    IndexReader,
    Pack,
    PackedSlice,
    PackIndex,
    Slice,
)
from holdall.archive.pointer import POINTER, Pointer, read_pointer
from holdall.core.batch import make_batches
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.measure import item_size
from holdall.core.objects import GetObject, ObjectHeaders, ObjectInfo, PutObject
from holdall.core.requests import BatchGet, GetItem
from holdall.core.values import Item
from holdall.errors import CorruptArchiveError, ObjectNotFoundError, PreconditionFailedError
from holdall.files.listing import Listing
from holdall.tables.record import read_items

_HEAD = 64 * 1024


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item to archive as it was read, with its slice and what stays of it in the table."""

    item: Item
    slice: Slice
    left_bytes: int

    @property
    def object_bytes(self) -> int:
        """The bytes that it takes in a pack, including an estimate of its part of the index."""
        return len(self.slice.data) + INDEX_BYTES


class Sliced(Protocol):
    """Something with a slice."""

    @property
    def slice(self) -> Slice:
        """The slice."""


S = TypeVar("S", bound=Sliced)


class Batch(Generic[S]):
    """Collects slices until there are enough for a pack."""

    def __init__(self) -> None:
        self._waiting: list[S] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether there is enough for a pack."""
        return self._bytes >= PACK_BYTES or len(self._waiting) >= PACK_ITEMS

    def add(self, another: S) -> None:
        """Add one more."""
        self._waiting.append(another)
        self._bytes += len(another.slice.data)

    def take(self) -> list[S]:
        """Remove and return the members of the next pack."""
        count = size = 0
        while count < min(len(self._waiting), PACK_ITEMS) and size < PACK_BYTES:
            size += len(self._waiting[count].slice.data)
            count += 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self._bytes -= size
        return taken


def make_candidate(place: ArchivePlace, item: Item, now: datetime) -> Candidate:
    """Prepare an item for a pack."""
    key = place.binding.key_of(item)
    envelope = Envelope.of(place.binding.table, key, item)
    slice = Slice.of(key, envelope)
    # as long as the real values
    pack, etag = f"{prefix_of(place)}{FOLDER}{slice.digest}{PACK_SUFFIX}", slice.digest[:32]
    pointer = _point(place, pack, etag, PackedSlice(key, slice.digest, PACK_BYTES, len(slice.data)), now)
    kept, _ = place.split(item)
    return Candidate(item, slice, item_size({**kept, POINTER: pointer.stored}))


async def store_batch(
    context: Context, place: ArchivePlace, candidates: Sequence[Candidate], now: datetime
) -> list[Pointer]:
    """Store a pack of these items; return the pointers to replace them with."""
    key, info, index = await store_pack(context, place, [each.slice for each in candidates], now)
    return [_point(place, key, info.etag, packed, now) for packed in index.slices]


def _point(place: ArchivePlace, key: str, etag: str, packed: PackedSlice, now: datetime) -> Pointer:
    return Pointer(place.service, key, etag, packed.digest, packed.size, CODEC, now, offset=packed.offset)


# --- packs in a service -----------------------------------------------------------------------------------


async def store_pack(
    context: Context, place: ArchivePlace, slices: Sequence[Slice], now: datetime
) -> tuple[str, ObjectInfo, PackIndex]:
    """Store a pack of these slices; return its key, its description and its index.

    No other pack has its key, so the put needs no condition and can be repeated.
    """
    port = context.port
    pack = await port.offload(Pack.of, place.binding.table, place.schema.name, slices, port.new_id())
    key = pack.key(prefix_of(place))
    metadata = {"codec": CODEC, "archived_at": now.isoformat(timespec="seconds"), "items": str(len(slices))}
    headers = ObjectHeaders("application/gzip", metadata=metadata)
    info = await port.send(PutObject(place.service, key, pack.body, headers, sha256=pack.sha256))
    return key, info, pack.index


async def fetch_index(
    context: Context, place: ArchivePlace, key: str, etag: str | None = None
) -> PackIndex | None:
    """Fetch the index of a pack; None if it does not hold items of this model in this table.

    In a table that belongs to one model, the model's name is not compared.
    """
    reader = IndexReader(f"{place.service}:{key}")
    while True:
        request = GetObject(place.service, key, reader.read, _HEAD, if_match=etag)
        try:
            index = reader.take((await context.port.send(request)).body)
        except CorruptArchiveError:
            return None
        if index is not None:
            models = {schema.name for schema in place.schema.family()}
            is_ours = index.table == place.binding.table and (place.binding.own or index.model in models)
            keyed = all(packed.key.keys() == place.key_names for packed in index.slices)
            return index if is_ours and keyed else None


async def fetch_owners(
    context: Context, place: ArchivePlace, slices: Sequence[PackedSlice]
) -> Sequence[Item | None]:
    """Fetch the items that own these slices, as they are in the table now."""
    reads = [GetItem(place.binding.table, packed.key, True) for packed in slices]
    return await read_items(context.port, reads)


async def is_pack_named(context: Context, place: ArchivePlace, key: str, etag: str) -> bool | None:
    """Whether the owner of any slice points to this pack; None if the pack does not hold items of this table.

    True also if an owner may need the pack because its pointer is damaged or lost.
    """
    index = await fetch_index(context, place, key, etag)
    if index is None:
        return None
    for some in make_batches(index.slices, BatchGet.most):
        for packed, item in zip(some, await fetch_owners(context, place, some), strict=True):
            try:
                pointer = find_pointer(item)
            except CorruptArchiveError:
                return True
            if pointer is not None and pointer.key == key:  # even if the service has been renamed
                return True
            if pointer is None and item is not None and not place.split(item)[1]:
                copy = await _fetch_copy(context, place, key, packed)
                if copy is None or lacks_contents(place, item, copy.contents.item):
                    return True
    return False


@dataclass(frozen=True, slots=True)
class ArchivedCopy:
    """The contents of an object or a slice, and when it was archived."""

    contents: Contents
    archived_at: datetime


class CopyChoice:
    """The best of an item's copies: one with the wanted digest, otherwise the one that was archived last."""

    def __init__(self, digest: str | None) -> None:
        self._digest = digest
        self.best: ArchivedCopy | None = None

    def consider(self, copy: ArchivedCopy | None) -> bool:
        """Compare another copy with the best one, and return whether it has the wanted digest."""
        if copy is None:
            return False
        is_wanted = copy.contents.envelope.digest == self._digest
        if is_wanted or self.best is None or copy.archived_at > self.best.archived_at:
            self.best = copy
        return is_wanted


async def consider_slices(context: Context, place: ArchivePlace, item: Item, choice: CopyChoice) -> None:
    """Consider the slices of an item in all packs. This reads the index of every pack."""
    key = place.binding.key_of(item)
    listing = Listing(context, place.service, prefix_of(place) + FOLDER)
    while (page := await listing.next_page()) is not None:
        for each in page.objects:
            try:
                index = await fetch_index(context, place, each.key, each.etag)
            except (ObjectNotFoundError, PreconditionFailedError):
                continue
            for packed in () if index is None else index.slices:
                if packed.key == key and choice.consider(await _fetch_copy(context, place, each.key, packed)):
                    return


async def _fetch_copy(
    context: Context, place: ArchivePlace, key: str, packed: PackedSlice
) -> ArchivedCopy | None:
    """Fetch a slice; None if it is damaged or missing."""
    try:
        found = await context.port.send(GetObject(place.service, key, packed.offset, packed.size))
        contents = open_envelope(found.body, key)
        moment = datetime.fromisoformat(found.info.headers.metadata["archived_at"])
    except (ObjectNotFoundError, CorruptArchiveError, KeyError, ValueError):
        return None
    is_whole = (
        contents.envelope.digest == packed.digest and place.owns(contents) and contents.key == packed.key
    )
    return ArchivedCopy(contents, moment) if is_whole else None


def find_pointer(item: Item | None) -> Pointer | None:
    """Read an item's pointer; None if it has none; `CorruptArchiveError` if the pointer is damaged."""
    return None if item is None or POINTER not in item else read_pointer(item)

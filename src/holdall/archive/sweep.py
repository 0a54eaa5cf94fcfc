"""Sweeping objects that no pointer names: what interrupted runs, and writes to archived items, left behind.

Why nothing that is needed goes: an object is younger than its pointer by seconds, and only those that are a week old
are looked at; its own text says which item it is of, which is read strongly consistent; an item whose pointer is
damaged keeps all of its objects; and an object is deleted only if it is still the one of the listing. An object that
does not say whose it is, as those of other programs, is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from holdall.archive.ancestor import read_key
from holdall.archive.batch import is_pack_named
from holdall.archive.envelope import Contents, open_envelope
from holdall.archive.item import ArchivePlace, find_place, lacks_contents, prefix_of
from holdall.archive.pack import PACK_SUFFIX
from holdall.archive.pointer import POINTER, read_pointer
from holdall.archive.template import SUFFIX
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject, GetObject, HeadObject, ListedObject, ListObjects
from holdall.core.requests import GetItem
from holdall.errors import (
    CorruptArchiveError,
    InvalidOptionsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    UnsupportedConditionError,
)
from holdall.models.model import Model

GRACE = timedelta(days=7)
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class ArchiveSweep:
    """What a sweep has found so far.

    It looked at ``examined`` objects; no pointer names ``unreferenced`` of them, and ``deleted`` of those are gone.
    ``retained`` of them are still there because the server ignores conditions on deletions. ``foreign`` objects do not
    say that they are of an item of this table.
    """

    examined: int
    unreferenced: int
    deleted: int
    retained: int
    foreign: int


async def sweep(
    context: Context,
    model: type[Model],
    *,
    older_than: timedelta = GRACE,
    dry_run: bool = True,
    exclusive: bool = False,
    prefix: str | None = None,
    progress: Callable[[ArchiveSweep], Any] | None = None,
) -> ArchiveSweep:
    """Delete objects of a model's archive that no pointer names; ``dry_run``, the default, only counts them.

    Where the server ignores conditions on deletions, such objects are only counted, as ``retained``. With
    ``exclusive`` they are deleted there, too: you vouch that nothing archives items of the model meanwhile.
    ``prefix`` is what keys begin with, if not as the template says: after a change of the template, for example.
    ``progress`` is called after each page of the listing.
    """
    if older_than < GRACE and not dry_run and not exclusive:
        raise InvalidOptionsError(
            f"older_than is {older_than}, but a run may be about to swap an item",
            hint="give seven days or more; or exclusive=True, if nothing archives meanwhile",
        )
    place = await find_place(context, model)
    work = _Sweep(context, place, None if dry_run else exclusive)
    before = context.port.now() - older_than
    start = prefix_of(place) if prefix is None else prefix
    listing: ListObjects | None = ListObjects(place.service, start)
    while listing is not None:
        page = await context.port.send(listing)
        kinds = SUFFIX, PACK_SUFFIX
        old = [each for each in page.objects if each.key.endswith(kinds) and each.modified <= before]
        for outcome in await context.port.gather(map(work.consider, old), limit=_AT_ONCE):
            outcome.result()
        listing = None if page.next is None else replace(listing, after=page.next)
        if progress is not None:
            await context.port.call(progress, work.report())
    return work.report()


class _Sweep:
    """One sweep. ``exclusive`` is None for one that deletes nothing."""

    def __init__(self, context: Context, place: ArchivePlace, exclusive: bool | None) -> None:
        self._context = context
        self._place = place
        self._exclusive = exclusive
        self._examined = self._unreferenced = self._deleted = self._retained = self._foreign = 0

    def report(self) -> ArchiveSweep:
        return ArchiveSweep(self._examined, self._unreferenced, self._deleted, self._retained, self._foreign)

    async def consider(self, found: ListedObject) -> None:
        """Delete an object if no pointer names it."""
        self._examined += 1
        named = await self._is_named(found)
        if named is None:
            self._foreign += 1
        elif not named:
            self._unreferenced += 1
            if self._exclusive is not None:
                await self._delete(found)

    async def _is_named(self, found: ListedObject) -> bool | None:
        """Whether an object's item, or any of a pack's, needs it; None if it is not of items of this table."""
        place, port = self._place, self._context.port
        try:
            if found.key.endswith(PACK_SUFFIX):
                return await is_pack_named(self._context, place, found.key, found.etag)
            body = (await port.send(GetObject(place.service, found.key, if_match=found.etag))).body
        except (ObjectNotFoundError, PreconditionFailedError):
            return True  # it is gone, or was written anew
        contents = _open(body, found.key)
        if contents is None or not place.owns(contents):
            return None
        item = (await port.send(GetItem(place.binding.table, contents.key, True))).item
        if item is None:
            return False
        if not place.archive.is_pointer(item):
            return lacks_contents(place, item, contents.item)
        try:  # whatever its etag: a late put may have changed that
            return (read_pointer(item).key if POINTER in item else read_key(item)) == found.key
        except CorruptArchiveError:
            return True

    async def _delete(self, found: ListedObject) -> None:
        service, port = self._place.service, self._context.port
        try:
            await port.send(DeleteObject(service, found.key, if_match=found.etag))
        except PreconditionFailedError:
            return  # it was written anew
        except UnsupportedConditionError:
            if not self._exclusive:
                self._retained += 1
                return
            if (await port.send(HeadObject(service, found.key))).etag != found.etag:
                return
            await port.send(DeleteObject(service, found.key))
        self._deleted += 1


def _open(body: bytes, where: str) -> Contents | None:
    try:
        return open_envelope(body, where)
    except CorruptArchiveError:
        return None

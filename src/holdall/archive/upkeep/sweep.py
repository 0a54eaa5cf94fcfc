"""The sweep: deletes objects that no pointer names, left behind by interrupted runs and by writes to archived items.

Why it never deletes an object that is needed: an object is stored seconds before its pointer, and only objects a week
old are examined; the object's own text names its item, which is read with strong consistency; an item whose pointer is
damaged keeps all of its objects; and an object is deleted only if it has not changed since it was listed. An object
that does not name its item, such as one that another program put there, is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from holdall.archive.ancestor import open_body, read_key
from holdall.archive.envelope import open_envelope
from holdall.archive.item import ArchivePlace, find_place, lacks_contents, prefix_of
from holdall.archive.pack.batch import is_pack_named
from holdall.archive.pack.pack import PACK_SUFFIX
from holdall.archive.pointer import POINTER, read_pointer
from holdall.archive.template import SUFFIX
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.objects import DeleteObject, GetObject, ListedObject
from holdall.core.requests import GetItem
from holdall.core.values import Item
from holdall.errors import (
    CorruptArchiveError,
    InvalidOptionsError,
    ObjectNotFoundError,
    PreconditionFailedError,
    UnsupportedConditionError,
)
from holdall.files.listing import Listing
from holdall.files.transfer import find_object
from holdall.models.model import Model

GRACE = timedelta(days=7)
_AT_ONCE = 16

Verdict: TypeAlias = Literal["needed", "unreferenced", "theirs", "foreign"]
"""What the sweep does with an object. ``theirs``: no pointer names it, and the ancestor's library put it there."""


@dataclass(frozen=True, slots=True)
class ArchiveSweep:
    """What a sweep has found and deleted so far.

    Of ``examined`` objects, ``unreferenced`` are named by no pointer. Of these, ``deleted`` were deleted, and
    ``retained`` were kept because deleting them needs ``exclusive=True``. ``foreign`` objects do not belong to items of
    this model; they are never deleted.
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
    """Delete the objects of a model's archive that no pointer names; ``dry_run``, the default, only counts them.

    Two kinds of objects are only counted, as ``retained``: all of them on a server that ignores conditions on
    deletions, and those of tempest's hybrid storage whose items have been converted or written since. With
    ``exclusive=True`` they are deleted too; pass it only if no program archives items of the model meanwhile.
    Objects younger than ``older_than`` are skipped. ``prefix`` is the beginning of the keys to look at; you need it
    only for keys that the current template does not produce, for example after you have changed the template.
    ``progress`` is called with a report after each page of the listing.
    """
    if older_than < GRACE and not dry_run and not exclusive:
        raise InvalidOptionsError(
            f"older_than must be at least 7 days, not {older_than}: an archive run may still be using younger objects",
            hint="pass exclusive=True if no program archives items of the model meanwhile",
        )
    place = await find_place(context, model)
    work = _Sweep(context, place, None if dry_run else exclusive)
    before = context.port.now() - older_than
    listing = Listing(context, place.service, prefix_of(place) if prefix is None else prefix)
    while (page := await listing.next_page()) is not None:
        kinds = SUFFIX, PACK_SUFFIX
        old = [each for each in page.objects if each.key.endswith(kinds) and each.modified <= before]
        for outcome in await context.port.gather(map(work.consider, old), limit=_AT_ONCE):
            outcome.result()
        if progress is not None:
            await context.port.call(progress, work.report())
    return work.report()


class _Sweep:
    """One sweep. ``exclusive`` is None if it deletes nothing."""

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
        verdict = await self._judge(found)
        if verdict == "foreign":
            self._foreign += 1
        elif verdict != "needed":
            self._unreferenced += 1
            if self._exclusive is not None:
                await self._delete(found, theirs=verdict == "theirs")

    async def _judge(self, found: ListedObject) -> Verdict:
        """Decide what to do with an object, which may be a pack."""
        place, port = self._place, self._context.port
        try:
            if found.key.endswith(PACK_SUFFIX):
                named = await is_pack_named(self._context, place, found.key, found.etag)
                return "foreign" if named is None else "needed" if named else "unreferenced"
            body = (await port.send(GetObject(place.service, found.key, if_match=found.etag))).body
        except (ObjectNotFoundError, PreconditionFailedError):
            return "needed"  # it was deleted or replaced meanwhile
        try:
            contents = open_envelope(body, found.key)
            key, archived = contents.key, contents.item
            known: Verdict = "unreferenced" if place.owns(contents) else "foreign"
        except CorruptArchiveError:
            archived = self._open_ancestor(body, found.key)
            key = {name: archived[name] for name in place.key_names if name in archived}
            known = "theirs" if key.keys() == place.key_names else "foreign"
        if known == "foreign" or not place.covers(key, archived):
            return "foreign"
        item = (await port.send(GetItem(place.binding.table, key, True))).item
        return "needed" if item is not None and self._needs(item, found.key, archived) else known

    def _open_ancestor(self, body: bytes, where: str) -> Item:
        """The item in an object of the ancestor; empty if it is not one, or the archive does not read them."""
        try:
            return open_body(body, where) if self._place.archive.ancestor is True else {}
        except CorruptArchiveError:
            return {}

    def _needs(self, item: Item, key: str, archived: Item) -> bool:
        """Whether an item points to this object, or must have lost its pointer to it."""
        if not self._place.archive.is_pointer(item):
            return lacks_contents(self._place, item, archived)
        try:  # regardless of the etag, which a late put may have changed
            return (read_pointer(item).key if POINTER in item else read_key(item)) == key
        except CorruptArchiveError:
            return True

    async def _delete(self, found: ListedObject, *, theirs: bool) -> None:
        service, port = self._place.service, self._context.port
        if theirs and not self._exclusive:
            self._retained += 1
            return
        try:
            await port.send(DeleteObject(service, found.key, if_match=found.etag))
        except PreconditionFailedError:
            return  # it was replaced meanwhile
        except UnsupportedConditionError:
            if not self._exclusive:
                self._retained += 1
                return
            there = await find_object(self._context, service, found.key)
            if there is None or there.etag != found.etag:
                return
            await port.send(DeleteObject(service, found.key))
        self._deleted += 1

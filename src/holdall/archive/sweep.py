"""Sweeping objects that no pointer names: what interrupted runs, and writes to archived items, left behind.

Why nothing that is needed goes: an object is younger than its pointer by seconds, and only those that are a week old
are looked at; its own text says which item it is of, which is read strongly consistent; and it is deleted only if it is
still the object of the listing.
"""

from __future__ import annotations

import json
import zlib
from datetime import timedelta

from holdall.archive.item import place_of, table_name
from holdall.archive.pointer import POINTER, read_pointer
from holdall.archive.template import SUFFIX, format_segment
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import DeleteObject, GetObject, ListedObject, ListObjects
from holdall.core.requests import DescribeTable, GetItem
from holdall.errors import InvalidOptionsError, ObjectNotFoundError, PreconditionFailedError
from holdall.models.model import Model
from holdall.transactions.binding import bind

GRACE = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class ArchiveSweep:
    """What a sweep found: objects that it looked at, those that no pointer names, and those that are not ours."""

    examined: int
    unreferenced: int
    foreign: int


async def sweep(
    context: Context, model: type[Model], *, older_than: timedelta = GRACE, dry_run: bool = True
) -> ArchiveSweep:
    """Delete objects of a model's archive that no pointer names; ``dry_run`` only counts them."""
    if older_than < GRACE and not dry_run:
        raise InvalidOptionsError(
            f"older_than is {older_than}, but a run may be about to swap an item",
            hint="give seven days or more",
        )
    schema = model._schema
    binding = await bind(context, schema)
    table = (await context.port.send(DescribeTable(binding.table))).schema
    place = place_of(context, schema, binding, table)
    prefix = place.archive.template.partition("{")[0]
    if place.archive.template.startswith("{tableName}"):
        prefix = format_segment(table_name(schema), "documented") + "/"
    before = context.port.now() - older_than
    examined = unreferenced = foreign = 0
    listing: ListObjects | None = ListObjects(place.service, prefix)
    while listing is not None:
        page = await context.port.send(listing)
        for each in page.objects:
            if not each.key.endswith(SUFFIX) or each.modified > before:
                continue
            examined += 1
            named = await _is_named(context, place.service, binding.table, each)
            if named is None:
                foreign += 1
            elif not named:
                unreferenced += 1
                if not dry_run:
                    await _delete(context, place.service, each)
        listing = None if page.next is None else replace(listing, after=page.next)
    return ArchiveSweep(examined, unreferenced, foreign)


async def _is_named(context: Context, service: str, table: str, found: ListedObject) -> bool | None:
    """Whether the item of an object points to it; None if it is of no item of this table."""
    try:
        body = (await context.port.send(GetObject(service, found.key, if_match=found.etag))).body
        said = json.loads(zlib.decompress(body, zlib.MAX_WBITS | 16))
        if said["table"] != table:
            return None
        key = said["key"]
    except (ObjectNotFoundError, PreconditionFailedError):
        return True  # it is gone, or was written anew
    except (ValueError, KeyError, TypeError, zlib.error):
        return None
    item = (await context.port.send(GetItem(table, key, True))).item
    if item is None or POINTER not in item:
        return False
    pointer = read_pointer(item)
    return (pointer.service, pointer.key, pointer.etag) == (service, found.key, found.etag)


async def _delete(context: Context, service: str, found: ListedObject) -> None:
    try:
        await context.port.send(DeleteObject(service, found.key, if_match=found.etag))
    except PreconditionFailedError:
        return  # it was written anew

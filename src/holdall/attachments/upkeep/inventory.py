"""The inventory of stored files: all blobs of the table, and the pictures that were made of one. It only reads."""

from __future__ import annotations

from holdall.attachments.blob.blob import Blob
from holdall.attachments.home import find_home
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.owner.flow import AttachmentPages
from holdall.attachments.picture.derived import preview_owner, read_variants, variant_owner
from holdall.attachments.record import BlobRow
from holdall.attachments.stored import find_row
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.frozen import dataclass
from holdall.core.option import check_count
from holdall.core.requests import Scan

_PAGE = 500


@dataclass(frozen=True, slots=True)
class BlobPage:
    """Some blobs of the table. ``next`` is the id to pass as ``after`` for more; None if there are no more.

    ``scanned`` is how many items were read to find them. If ``complete`` is False, the limit of items ended the page
    before the end of the table.
    """

    blobs: tuple[Blob, ...]
    next: str | None
    scanned: int
    complete: bool


async def scan(
    context: Context, *, limit: int = 100, after: str | None = None, most_scanned: int | None = None
) -> BlobPage:
    """Return blobs of the whole table, in no particular order, with the pictures that were made of others.

    This reads the table's other items too, until it has found ``limit`` blobs or, if you pass ``most_scanned``, has
    read about that many items. ``after`` is the ``next`` of the page before.
    """
    check_count(limit, "limit")
    if most_scanned is not None:
        check_count(most_scanned, "most_scanned")
    home = await find_home(context)
    start = None if after is None else home.blob(after).key
    kind = BlobRow.entity.equals("Blob")
    request = Scan(home.layout.table, filter=kind, limit=_PAGE, start_after=start, enough=limit + 1)
    cursor = PageCursor(context.port, request)
    found: list[Blob] = []
    scanned = 0
    while (page := await cursor.next_page()) is not None:
        scanned += page.scanned
        found += [Blob.of(BlobRow(home.layout.address_of(item), item)) for item in page.items]
        if len(found) >= limit and (len(found) > limit or page.last_key is not None):
            return BlobPage(tuple(found[:limit]), found[limit - 1].id, scanned, False)
        if most_scanned is not None and scanned >= most_scanned and page.last_key is not None:
            return BlobPage(tuple(found), None, scanned, False)
    return BlobPage(tuple(found), None, scanned, True)


async def pictures(context: Context, blob: Blob | str) -> list[Attachment]:
    """List the pictures that were made of a blob and are stored: its preview, and its variants.

    The variants of a PDF or video are those of its preview.
    """
    home = await find_home(context)
    row = await find_row(context, home, blob)
    owners = [preview_owner(row.id)]
    variants = await read_variants(context, home, row.id, row.variants)
    owners += [variant_owner(row.id, each.digest) for each in variants]
    found: list[Attachment] = []
    for owner in owners:
        pages = AttachmentPages(context, owner.record_type, owner.record_id)
        while (page := await pages.next_page()) is not None:
            found += page
    return found

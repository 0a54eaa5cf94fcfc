"""Flows for the attachments of an owner that is known only by its type and id, as in command-line tools."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from holdall.attachments.blob.blob import Blob
from holdall.attachments.home import Home, Owner, find_home
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.owner.declaration import HasMany, HasOne
from holdall.attachments.owner.intent import read_leaving
from holdall.attachments.owner.participant import AttachmentsParticipant, Order, Uploads
from holdall.attachments.owner.proxy import Dependent, Pending, Removal, Removed
from holdall.attachments.record import AttachmentRow, Slot
from holdall.attachments.stored import read_blobs, read_slots
from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.option import check_count
from holdall.errors import InvalidOptionsError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit
from holdall.tables.record import RecordPages


class AttachmentPages:
    """The attachments of an owner, page by page, in key order; those whose blob is missing are left out."""

    def __init__(
        self,
        context: Context,
        record_type: str,
        record_id: str,
        name: str | None = None,
        *,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> None:
        if limit is not None:
            check_count(limit, "limit")
        if name is not None and after is not None and after[0] != name:
            raise InvalidOptionsError(
                f"after is an attachment of {after[0]!r:.60}, not of {name!r:.60}",
                hint="pass the name and the id of an attachment that this list has returned",
            )
        self._context = context
        self._owner = Owner(record_type, record_id)
        self._name = name
        self._pages: RecordPages[AttachmentRow] | None = None
        self._leaving: frozenset[str] = frozenset()
        self._after = after
        self._left = limit

    async def next_page(self) -> Sequence[Attachment] | None:
        """Return the next page; None after the last."""
        home = await find_home(self._context)
        if self._pages is None:
            slots = await _read_slots(self._context, home, self._owner, self._name)
            self._leaving = await read_leaving(self._context, home, slots)
            query = replace(home.attachments(self._owner, self._name), limit=self._left)
            if self._after is not None:
                start = home.attachment(self._owner, *self._after)
                query = replace(query, start_after=start.attributes)
            self._pages = RecordPages(self._context.port, AttachmentRow, query, home.layout.address_of)
        page = None if self._left == 0 else await self._pages.next_page()
        if page is None:
            return None
        rows = [row for row in page if row.id not in self._leaving]
        blobs = await read_blobs(self._context, home, [row.blob_id for row in rows])
        found = [
            Attachment.of(self._context.settings, row, Blob.of(blobs[row.blob_id]))
            for row in rows
            if blobs[row.blob_id].is_stored
        ]
        if self._left is not None:
            found = found[: self._left]
            self._left -= len(found)
        return found


async def _read_slots(context: Context, home: Home, owner: Owner, name: str | None) -> list[Slot]:
    """Read the slot of a name, or all slots of an owner."""
    if name is not None:
        return await read_slots(context, home, [(owner, name)])
    return await RecordPages(context.port, Slot, home.slots(owner), home.layout.address_of).read_all()


async def attach(
    context: Context,
    blob: Blob | str,
    *,
    record_type: str,
    record_id: str,
    name: str,
    one: bool = False,
    dependent: Dependent = "purge_later",
) -> None:
    """Attach a blob to an owner, without checking that the owner exists.

    ``one=True`` replaces what is attached under the name; ``dependent`` decides what happens to the replaced blob, as
    in `has_one_attached`.
    """
    from holdall.attachments.blob.flow import find

    found = blob if isinstance(blob, Blob) else await find(context, blob)
    kind = HasOne if one else HasMany
    # in batches: a row that an intent is removing does not count as attached
    declaration = kind(dependent=dependent, analyze="lazily", name=name, in_batches=not one)
    removed = (Removed(None, declaration.removal),) if one else ()
    wish = declaration.wish(Owner(record_type, record_id), Pending(removed, (found,)))
    await _commit_order(context, Order(wish, declaration, None))


async def detach(
    context: Context,
    attachment_id: str,
    *,
    record_type: str,
    record_id: str,
    name: str,
    dependent: Dependent = False,
) -> bool:
    """Remove one attachment; return False if it does not exist.

    ``dependent`` decides what happens to its blob, as in `has_one_attached`.
    """
    return await remove_rows(context, Owner(record_type, record_id), name, [attachment_id], dependent) > 0


async def remove_rows(
    context: Context, owner: Owner, name: str, ids: Collection[str], dependent: Removal | Literal[False]
) -> int:
    """Remove the attachments with these ids in one transaction; return how many existed."""
    kept: Dependent = False if dependent == "detach" else dependent
    declaration = HasMany(dependent=kept, analyze="lazily", name=name)
    pending = Pending((Removed(frozenset(ids), declaration.removal),))
    order = Order(declaration.wish(owner, pending), declaration, None)
    await _commit_order(context, order)
    assert order.result is not None
    return len(order.result.gone)


async def _commit_order(context: Context, order: Order) -> None:
    async def body(change: Change) -> None:
        participant = AttachmentsParticipant(Uploads())
        participant.add(order)
        change.join(participant)

    owner = order.wish.owner
    await commit(context, body, f"{order.wish.name} of {owner.record_type} {owner.record_id}")

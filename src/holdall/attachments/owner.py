"""Flows on the attachments of an owner that is known by its type and id alone, such as tools have it."""

from __future__ import annotations

from collections.abc import Sequence

from holdall.attachments.blob import Attachment, Blob
from holdall.attachments.declaration import HasMany, HasOne
from holdall.attachments.home import Home, Owner, home_of
from holdall.attachments.participant import AttachmentsParticipant, Order
from holdall.attachments.proxy import Pending, Removal, Removed
from holdall.attachments.record import AttachmentRow
from holdall.attachments.stored import read_blobs
from holdall.attachments.wish import Wish
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit


class AttachmentPages:
    """The attachments of an owner, page by page, in the order of their keys; those whose blob is gone are left out."""

    def __init__(self, context: Context, record_type: str, record_id: str, name: str | None = None) -> None:
        self._context = context
        self._owner = Owner(record_type, record_id)
        self._name = name
        self._home: Home | None = None
        self._cursor: PageCursor | None = None

    async def next_page(self) -> Sequence[Attachment] | None:
        """The next page; None after the last."""
        if self._home is None or self._cursor is None:
            self._home = await home_of(self._context)
            query = self._home.attachments(self._owner, self._name)
            self._cursor = PageCursor(self._context.port, query)
        page = await self._cursor.next_page()
        if page is None:
            return None
        rows = [AttachmentRow(self._home.layout.address_of(item), item) for item in page.items]
        blobs = await read_blobs(self._context, self._home, [row.blob_id for row in rows])
        return [
            Attachment.of(row, Blob.of(blobs[row.blob_id])) for row in rows if blobs[row.blob_id].is_stored
        ]


async def attach(
    context: Context,
    blob: Blob | str,
    *,
    record_type: str,
    record_id: str,
    name: str,
    one: bool = False,
    dependent: Removal | bool = "purge_later",
) -> None:
    """Attach a blob to an owner. ``one``: in place of what is there, with which ``dependent`` says what to do.

    Whether there is such an owner is not asked.
    """
    from holdall.attachments.flow import find

    found = blob if isinstance(blob, Blob) else await find(context, blob)
    declaration = (HasOne if one else HasMany)(
        dependent=dependent, service=None, analyze="lazily", variants={}, validate=None
    )
    removed = (Removed(None, declaration.removal),) if one else ()
    owner = Owner(record_type, record_id)
    wish = Wish(owner, name, one, Pending(removed, (found,)))

    async def body(change: Change) -> None:
        participant = AttachmentsParticipant({})
        participant.add(Order(wish, declaration, None))
        change.join(participant)

    await commit(context, body, f"{name} of {record_type} {record_id}")


async def detach(
    context: Context,
    attachment_id: str,
    *,
    record_type: str,
    record_id: str,
    name: str,
    dependent: Removal | bool = False,
) -> bool:
    """Let go of one attachment; ``dependent`` says what becomes of its blob. Returns False if it was gone."""
    declaration = HasMany(dependent=dependent, service=None, analyze="lazily", variants={}, validate=None)
    pending = Pending((Removed(frozenset((attachment_id,)), declaration.removal),))
    order = Order(Wish(Owner(record_type, record_id), name, False, pending), declaration, None)

    async def body(change: Change) -> None:
        participant = AttachmentsParticipant({})
        participant.add(order)
        change.join(participant)

    await commit(context, body, f"{name} of {record_type} {record_id}")
    return order.outcome is not None and bool(order.outcome.gone)

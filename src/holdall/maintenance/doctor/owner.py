"""The check of attachments against their owners: those whose owner no longer exists, deleted by another program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdall.attachments.home import Owner, find_home
from holdall.attachments.owner.resolution import parse_key
from holdall.attachments.record import AttachmentRow, Slot
from holdall.core.values import Item
from holdall.errors import HoldallError
from holdall.maintenance.doctor.work import Work
from holdall.tables.layout import Address, Layout
from holdall.tables.record import Record, fetch, fetch_all
from holdall.transactions.binding import Binding, bind

_NEEDED = (AttachmentRow.id, AttachmentRow.record_type, AttachmentRow.record_id, AttachmentRow.name)


class OwnerCheck:
    """Looks up the owners of attachments, if their models were given."""

    def __init__(self, work: Work, layout: Layout, bindings: Sequence[Binding]) -> None:
        self._work = work
        self._layout = layout
        schemas = [each for binding in bindings for each in binding.schema.family()]
        self._schemas = {each.record_type: each for each in schemas if not each.abstract}

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the attachments of a page."""
        found = [AttachmentRow(self._layout.address_of(item), item) for item in rows if _is_attachment(item)]
        attachments = [row for row in found if row.record_type in self._schemas]
        owners = [(row, owner) for row in attachments if (owner := await self._locate(row)) is not None]
        places = {owner.address.identity: owner for _, owner in owners}
        stored = await fetch_all(self._work.context.port, list(places.values()))
        known = {owner.address.identity for owner in stored if owner.is_stored}
        for row, owner in owners:
            if owner.address.identity not in known:
                await self._report(row, owner)

    async def _locate(self, row: AttachmentRow) -> Record | None:
        """Where the owner of an attachment should be; None if its id does not tell."""
        schema = self._schemas[row.record_type]
        try:
            key: Any = parse_key(schema, Owner(row.record_type, row.record_id))
            if key is None:
                return None
            binding = await bind(self._work.context, schema)
            place = binding.key(key)
        except HoldallError:
            return None
        return Record(Address(binding.table, place, place))

    async def _report(self, row: AttachmentRow, owner: Record) -> None:
        """Report an attachment, unless it is being removed, or its owner has been created meanwhile."""
        home = await find_home(self._work.context)
        slot = Slot(home.slot(row.owner, row.name))
        again, now, slot = await fetch(self._work.context.port, row, owner, slot)
        if not again.is_stored or now.is_stored or slot.intents:
            return
        message = f"its owner, {row.record_type} {row.record_id}, does not exist"
        await self._work.find("orphans", "warning", f"attachment {row.id}", message)


def _is_attachment(item: Item) -> bool:
    """Whether an item is an attachment that can be read; the check of blobs reports the others."""
    return AttachmentRow.entity.peek(item) == "Attachment" and all(
        column.peek(item) is not None for column in _NEEDED
    )

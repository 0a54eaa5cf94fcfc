"""The ledger of a change: what it does to the counts and references of blobs, one action for each blob.

Pure. A reference leads from a blob to an attachment, so that a blob's attachments can be found. A blob's row holds up
to `MOST_REFERENCES` of them; further ones are separate items in the blob's partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from holdall.attachments.home import Home
from holdall.attachments.record import MOST_REFERENCES, AttachmentRow, BlobRow, ReferenceRecord
from holdall.core.expressions import UpdateAction
from holdall.tables.commit.change import Change


class _Account:
    """The changes to one blob."""

    def __init__(self, blob: BlobRow) -> None:
        self.blob = blob
        self.added: list[AttachmentRow] = []
        self.removed: list[AttachmentRow] = []


class Ledger:
    """Changes to blobs, to be written all at once."""

    def __init__(self, home: Home, blobs: Mapping[str, BlobRow]) -> None:
        self._home = home
        self._blobs = blobs
        self._accounts: dict[str, _Account] = {}

    def add(self, row: AttachmentRow) -> None:
        """Note that a new attachment refers to its blob, which exists."""
        self._account(row).added.append(row)

    def remove(self, row: AttachmentRow) -> None:
        """Note that an attachment no longer refers to its blob; a missing blob is ignored."""
        if self._blobs[row.blob_id].is_stored:
            self._account(row).removed.append(row)

    def _account(self, row: AttachmentRow) -> _Account:
        return self._accounts.setdefault(row.blob_id, _Account(self._blobs[row.blob_id]))

    def write(self, change: Change) -> None:
        """Add one step for each blob, and the steps for references that are separate items."""
        for account in self._accounts.values():
            self._write_account(change, account)

    def repair(
        self,
        change: Change,
        blob: BlobRow,
        count: int,
        missing: Sequence[AttachmentRow],
        stray: Sequence[str],
    ) -> None:
        """Correct a blob's count and references, unless the count changes meanwhile."""
        actions: list[UpdateAction] = [BlobRow.count.set(count)]
        self._refer(change, blob, actions, missing, stray)
        change.update(blob, *actions, expect=[blob.address.exists, blob.same(BlobRow.count)])

    def _refer(
        self,
        change: Change,
        blob: BlobRow,
        actions: list[UpdateAction],
        added: Sequence[AttachmentRow],
        removed: Iterable[str],
    ) -> None:
        """Add and remove references, in the blob's row or as separate items."""
        held = blob.references
        items = 0
        for id in removed:
            if id in held:
                actions.append(BlobRow.references[id].remove())
            elif blob.reference_items:
                change.delete(ReferenceRecord(self._home.reference(blob.id, id)))
                items -= 1
        room = MOST_REFERENCES - len(held)
        for row in added:
            if room > 0:
                actions.append(BlobRow.references[row.id].set(self.place(row)))
                room -= 1
            else:
                change.create(self._reference_item(row))
                items += 1
        if items:
            actions.append(BlobRow.reference_items.add(items))

    def _write_account(self, change: Change, account: _Account) -> None:
        blob = account.blob
        actions: list[UpdateAction] = []
        self._refer(change, blob, actions, account.added, [row.id for row in account.removed])
        delta = len(account.added) - len(account.removed)
        if delta:
            actions.append(BlobRow.count.add(delta))
        if actions:
            change.update(blob, *actions, expect=[blob.address.exists])
        else:
            change.require(blob, blob.address.exists)

    def _reference_item(self, row: AttachmentRow) -> ReferenceRecord:
        address = self._home.reference(row.blob_id, row.id)
        return ReferenceRecord.new(
            address,
            ReferenceRecord.attachment_id.set(row.id),
            ReferenceRecord.place.set(self.place(row)),
        )

    def place(self, row: AttachmentRow) -> str:
        """The place of an attachment, as a reference stores it."""
        return self._home.format_place(row.owner, row.name)

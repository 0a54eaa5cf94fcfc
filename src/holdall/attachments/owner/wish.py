"""Wishes: the changes that a caller wants to an owner's attachments under one name, and the steps that carry them out.

Pure. Why no blob is lost, or kept needlessly: a row and its blob's count change in the same write, and a row is deleted
on the condition that it exists. So no row is counted twice, and a count of 0 means that no row refers to the blob.

Why a `has_one_attached` name never has two files: each writer also changes the name's slot, on the condition that it is
as it was read. Of two writers one is refused, reads again, and finds the other's row. A row that another program wrote
without the slot is removed by the next change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdall.attachments.blob.blob import Blob
from holdall.attachments.home import Owner
from holdall.attachments.owner.ledger import Ledger
from holdall.attachments.owner.proxy import Pending, Removal
from holdall.attachments.record import AttachmentRow, Slot
from holdall.core.frozen import dataclass
from holdall.tables.commit.change import Change

BATCH = 32
"""One transaction can always remove this many rows, each with its blob and with a reference stored as an item."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The changes recorded for one name of an owner.

    ``is_new``: the same transaction creates the owner, so it has no stored rows. ``is_gone``: it deletes the owner.
    ``is_limited``: the number of files is limited. ``in_batches``: an intent may remove rows too many for the
    transaction.
    """

    owner: Owner
    name: str
    is_one: bool
    pending: Pending
    is_new: bool = False
    is_gone: bool = False
    is_limited: bool = False
    in_batches: bool = False

    @property
    def needs_rows(self) -> bool:
        """Whether stored rows must be read."""
        return not self.is_new and (bool(self.pending.removed) or self.needs_all_rows)

    @property
    def needs_all_rows(self) -> bool:
        """Whether all rows of the name must be read, and not only those with given ids."""
        if self.is_new:
            return False
        added = self.pending.added
        return (
            self.pending.removes_all
            or any(isinstance(each, Blob) for each in added)
            or (self.is_limited and bool(added))
        )

    @property
    def removed_ids(self) -> frozenset[str]:
        """The ids of the rows to remove, as far as the caller named them."""
        return frozenset[str]().union(*(each.ids or () for each in self.pending.removed))

    @property
    def can_miss(self) -> bool:
        """Whether a list that lags behind may hide rows that must be removed."""
        return self.pending.removes_all and not self.is_new and not self.is_one


@dataclass(frozen=True, slots=True)
class WishResult:
    """The result of a wish: rows that stay, are added and are removed.

    ``removed`` maps the ids of blobs to what happens to them. ``leaving`` has the ids of the rows that an intent
    removes.
    """

    kept: Sequence[AttachmentRow]
    added: Sequence[AttachmentRow]
    gone: Sequence[AttachmentRow]
    removed: Mapping[str, Removal]
    leaving: Mapping[Removal, Sequence[str]]


def plan_wish(
    change: Change,
    ledger: Ledger,
    wish: Wish,
    rows: Sequence[AttachmentRow],
    slot: Slot | None,
    new: Sequence[AttachmentRow],
    too_many: bool,
) -> WishResult:
    """Add the steps of a wish: ``rows`` and ``slot`` are what is stored, ``new`` are the rows to add.

    ``too_many``: more rows are removed than fit into one transaction.
    """
    coming = {row.blob_id: row for row in new}
    kept: list[AttachmentRow] = []
    gone: list[AttachmentRow] = []
    removed: dict[str, Removal] = {}
    leaving: dict[Removal, list[str]] = {}
    for row in rows:
        how = _removal(wish, row)
        if how is None or (row.blob_id in coming and not wish.is_gone):
            kept.append(row)
            continue
        if too_many and wish.in_batches:
            leaving.setdefault(how, []).append(row.id)
            continue
        change.delete(row, expect=[row.address.exists])
        ledger.remove(row)
        gone.append(row)
        if how != "detach" and removed.get(row.blob_id) != "purge":
            removed[row.blob_id] = how
    have = {row.blob_id for row in kept}
    added = [row for row in new if row.blob_id not in have]
    for row in added:
        change.create(row)
    if slot is not None and wish.is_one:
        _plan_slot(change, wish, slot, [*kept, *added])
    return WishResult(kept, added, gone, removed, leaving)


def list_staying(wish: Wish, rows: Sequence[AttachmentRow]) -> list[AttachmentRow]:
    """The stored rows that a wish keeps."""
    return [row for row in rows if _removal(wish, row) is None]


def _removal(wish: Wish, row: AttachmentRow) -> Removal | None:
    """How a stored row is removed; None if it stays."""
    for each in wish.pending.removed:
        if each.ids is None or row.id in each.ids:
            return each.how
    return None


def _plan_slot(change: Change, wish: Wish, slot: Slot, rows: Sequence[AttachmentRow]) -> None:
    unchanged = slot.same(Slot.version, Slot.attachment_id)
    if wish.is_gone:
        if slot.is_stored:
            change.delete(slot, expect=[unchanged])
        return
    last = rows[-1] if rows else None
    if last is not None and slot.attachment_id == last.id:
        return
    actions = [Slot.version.set(slot.version + 1)]
    if last is not None:
        actions += [Slot.attachment_id.set(last.id), Slot.blob_id.set(last.blob_id)]
    change.put(Slot.new(slot.address, *actions), expect=[unchanged])

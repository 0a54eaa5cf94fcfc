"""The check of what Holdall stores beside attachments: slots, intents, the records of variants, and claims of keys.

A slot changes together with the attachment that it names, so if the slot is the same before and after a look at the
attachment, the two should agree. An intent is removed before its job ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdall.attachments.home import Home, Owner
from holdall.attachments.owner.intent import locate_parts, plan_end
from holdall.attachments.owner.remainder import detach_batches
from holdall.attachments.picture.derived import find_source, variant_owner
from holdall.attachments.record import AttachmentRow, BlobRow, Hour, Marker, Slot, VariantRow
from holdall.attachments.stored import list_rows
from holdall.attachments.upkeep.purge import delete_picture
from holdall.attachments.upload.upload import GRACE
from holdall.core.values import Item
from holdall.jobs.outbox import enqueue_alone
from holdall.maintenance.doctor.job import is_enqueued
from holdall.maintenance.doctor.object import is_there
from holdall.maintenance.doctor.work import Work, show_key
from holdall.tables.claim import Claim, service_of
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import RecordPages, fetch, fetch_all


class SlotCheck:
    """Compares slots with the attachments that they name, and the intents in them with their jobs."""

    def __init__(self, work: Work, home: Home) -> None:
        self._work = work
        self._port = work.context.port
        self._home = home

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the slots of a page."""
        for item in rows:
            if Slot.is_type_of(item):
                slot = Slot(self._home.layout.address_of(item), item)
                subject = f"slot {show_key(slot.address.key)}"
                await self._work.examine("blobs", subject, self._check(slot))

    async def _check(self, slot: Slot) -> None:
        owner, name = self._home.parse_slot(slot.stored)
        subject = f"slot {name} of {owner.record_type} {owner.record_id}"
        if slot.attachment_id is not None:
            await self._check_attachment(subject, owner, name, slot)
        for intent in slot.intents:
            await self._check_intent(subject, owner, name, slot, intent)

    async def _check_attachment(self, subject: str, owner: Owner, name: str, slot: Slot) -> None:
        row = AttachmentRow(self._home.attachment(owner, name, str(slot.attachment_id)))
        row = await fetch(self._port, row)
        if row.is_stored and row.blob_id == slot.blob_id:
            return
        if await self._is_going(owner) or await self._has_changed(slot):
            return
        if row.is_stored:
            message = f"it names blob {slot.blob_id}, but its attachment has blob {row.blob_id}"
            last: AttachmentRow | None = row
        else:
            rows = await list_rows(self._work.context, self._home, owner, name)
            last = rows[-1] if rows else None
            message = f"it names attachment {slot.attachment_id}, which does not exist"

        async def mend() -> bool:
            change, actions = Change(self._work.context), [Slot.version.set(slot.version + 1)]
            if last is not None:
                actions += [Slot.attachment_id.set(last.id), Slot.blob_id.set(last.blob_id)]
                change.require(last, last.same(AttachmentRow.id, AttachmentRow.blob_id))
            if not row.is_stored:
                change.require(row, row.address.absent)
            same = slot.same(Slot.version, Slot.attachment_id)
            change.put(Slot.new(slot.address, *actions), expect=[same, Slot.intents.absent])
            return await commit_once(change) is None

        repair = "name the attachment that exists" if last is not None else "empty it"
        await self._work.find("blobs", "notice", subject, message, repair, mend)

    async def _check_intent(self, subject: str, owner: Owner, name: str, slot: Slot, intent: str) -> None:
        context = self._work.context
        if await is_enqueued(self._work, detach_batches, containing=intent):
            return
        first = await fetch(self._port, locate_parts(self._home, intent)[0])
        if await self._has_changed(slot):
            return

        async def end() -> bool:
            change = Change(context)
            plan_end(change, slot, intent)
            return await commit_once(change) is None

        if first.is_stored:
            place = [owner.record_type, owner.record_id, name, intent]
            enqueue = partial(enqueue_alone, context, detach_batches, place)
            message = (
                "its files were removed, but the job that deletes them does not exist or has failed for good"
            )
            await self._work.find("blobs", "error", subject, message, "enqueue the job again", enqueue)
        else:
            message = f"it names the intent {intent}, which does not exist"
            await self._work.find("blobs", "notice", subject, message, "remove the name", end)

    async def _is_going(self, owner: Owner) -> bool:
        """Whether an owner is a picture whose source was purged: its slot is deleted after its attachment."""
        id = find_source(owner)
        return id is not None and not (await fetch(self._port, BlobRow(self._home.blob(id)))).is_stored

    async def _has_changed(self, slot: Slot) -> bool:
        return (await fetch(self._port, slot)).item != slot.item


class VariantCheck:
    """Looks for records of variants whose source does not exist."""

    def __init__(self, work: Work, home: Home) -> None:
        self._work = work
        self._home = home

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the variants of a page."""
        for item in rows:
            if VariantRow.entity.peek(item) == "VariantRecord":
                row = VariantRow(self._home.layout.address_of(item), item)
                subject = f"variant {show_key(row.address.key)}"
                await self._work.examine("blobs", subject, self._check(row))

    async def _check(self, row: VariantRow) -> None:
        context, home = self._work.context, self._home
        source, row = await fetch(context.port, BlobRow(home.blob(row.blob_id)), row)
        if source.is_stored or not row.is_stored or await self._is_marked(row.blob_id):
            return
        if not (await fetch(context.port, row)).is_stored:
            return  # a purge was about to end
        mend = partial(delete_picture, context, home, variant_owner(row.blob_id, row.digest), "image")
        subject = f"variant {row.digest} of blob {row.blob_id}"
        message = "its source is missing, so it cannot be found"
        await self._work.find("blobs", "notice", subject, message, "delete it with its picture", mend)

    async def _is_marked(self, blob_id: str) -> bool:
        """Whether a marker leads a sweep to the blob and its variants: its purge is in progress, or died."""
        context, home = self._work.context, self._home
        query = home.hours(context.port.now() + GRACE)
        pages = RecordPages(context.port, Hour, query, home.layout.address_of)
        while (hours := await pages.next_page()) is not None:
            markers = [Marker(home.marker_at(hour.hour, blob_id)) for hour in hours]
            if markers and any(each.is_stored for each in await fetch_all(context.port, markers)):
                return True
        return False


class ClaimCheck:
    """Looks for claims of keys whose object was never stored, or deleted by another program."""

    def __init__(self, work: Work, home: Home) -> None:
        self._work = work
        self._home = home

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the claims of a page."""
        for item in rows:
            if Claim.is_type_of(item):
                claim = Claim(self._home.layout.address_of(item), item)
                subject = f"claim {show_key(claim.address.key)}"
                await self._work.examine("blobs", subject, self._check(claim))

    async def _check(self, claim: Claim) -> None:
        context = self._work.context
        service = service_of(self._home.layout.logical(claim.stored)[0])
        if claim.at is None or claim.at > context.port.now() - GRACE or service not in self._work.services:
            return
        if await is_there(self._work, service, claim.key) is not False:
            return
        if (await fetch(context.port, claim)).item != claim.item:
            return

        async def mend() -> bool:
            change = Change(context)
            change.delete(claim, expect=[claim.same(Claim.id, Claim.at)])
            return await commit_once(change) is None

        subject = f"key {claim.key!r:.120} of file service {service}"
        message = "it is claimed for an object that does not exist, so no object can be created there"
        await self._work.find("blobs", "warning", subject, message, "release the key", mend)

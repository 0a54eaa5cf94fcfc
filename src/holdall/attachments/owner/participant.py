"""The attachments' part of a transaction: all changes recorded for its owners, committed in the same write.

It joins once, however many owners and names there are. It reads what is stored, and states rows, slots and counts; once
everything is known to fit, it stores the bytes; then one write carries everything, with at most one job for the blobs
to delete. Old bytes are deleted last: by that job, after the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from holdall.attachments.blob.address import verify_with
from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.content_type import BINARY
from holdall.attachments.blob.identification import identify_blob
from holdall.attachments.event import deliver_events, describe_event
from holdall.attachments.home import Home, find_home
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.owner.declaration import Declaration
from holdall.attachments.owner.given import Given, NewFile
from holdall.attachments.owner.intent import delete_parts, plan_intent, read_leaving
from holdall.attachments.owner.ledger import Ledger
from holdall.attachments.owner.ordered_id import order_id
from holdall.attachments.owner.proxy import ManyAttached, OneAttached
from holdall.attachments.owner.wish import BATCH, Wish, WishResult, list_staying, plan_wish
from holdall.attachments.picture.analysis import examine, is_analyzable
from holdall.attachments.picture.derivation import Derivation, carry_out, derive, derive_all
from holdall.attachments.record import AttachmentRow, BlobRow, Intent, Slot
from holdall.attachments.stored import read_blobs, read_named, read_rows, read_slots
from holdall.attachments.upkeep.purge import purge, purge_blobs
from holdall.attachments.upload.upload import StoredFile, discard_files, identify_file, store_files
from holdall.core.context import Context
from holdall.core.keys import format_moment
from holdall.core.port import Port
from holdall.errors import ConfigurationError, InvalidTokenError, RecordNotFound
from holdall.jobs.outbox import Outbox, enqueue_alone
from holdall.tables.commit.change import Change, Participant
from holdall.tables.record import put_all

DETACH_AGAIN, DETACH_BATCHES = "holdall.detach-again", "holdall.detach-batches"
LAG = 60.0
"""After this many seconds, a list of mode B shows everything."""
GIVEN_UP = 3600.0
"""After this many seconds, an intent whose transaction has not committed is dropped."""


class Order:
    """One name of one owner: the wish, the declaration with its rules, and the proxy to update afterwards."""

    def __init__(
        self, wish: Wish, declaration: Declaration, proxy: OneAttached | ManyAttached | None
    ) -> None:
        self.wish = wish
        self.declaration = declaration
        self.proxy = proxy
        self.result: WishResult | None = None


class Uploads(dict[object, StoredFile]):
    """The new files of a run, by the identity of what the caller attached."""


class AttachmentsParticipant(Participant):
    """Takes part in a transaction with all recorded changes.

    ``uploads`` belong to the whole run, so that a file is uploaded only once in it. ``keeper`` decides about the bytes
    if the attempt fails: the participant itself, unless another one uploaded them.
    """

    def __init__(self, uploads: Uploads, keeper: AttachmentsParticipant | None = None) -> None:
        self._keeper = keeper or self
        self._uploads = uploads
        self._orders: list[Order] = []
        self._files: dict[str, tuple[StoredFile, BlobRow]] = {}
        self._blobs: dict[str, BlobRow] = {}
        self._at_once: list[str] = []
        self._analyzed_now: set[str] = set()
        self._derivations: list[Derivation] = []
        self._intents: list[tuple[Wish, str, list[Intent]]] = []
        self._outbox: Outbox | None = None
        self._moment: datetime
        self._context: Context
        self._home: Home

    def add(self, order: Order) -> None:
        """Add one more name of an owner."""
        self._orders.append(order)

    async def state(self, change: Change) -> None:
        """Read what is stored; add rows, slots, counts and the job."""
        context = self._context = change.context
        home = self._home = await find_home(context)
        wishes = [order.wish for order in self._orders]
        slots = await _read_slots(context, home, wishes)
        leaving = await read_leaving(context, home, slots)
        read = await _read_rows(context, home, wishes, slots)
        rows = [[row for row in some if row.id not in leaving] for some in read]
        staying = [list_staying(wish, some) for wish, some in zip(wishes, rows, strict=True)]
        too_many = sum(map(len, rows)) - sum(map(len, staying)) > BATCH
        needed = [
            left if too_many and wish.in_batches else some
            for wish, some, left in zip(wishes, rows, staying, strict=True)
        ]
        ids = {id(each): _blob_id(context, each) for wish in wishes for each in wish.pending.added}
        known = [row.blob_id for some in needed for row in some] + [each for each in ids.values() if each]
        self._blobs = await read_blobs(context, home, known)
        await self._identify(ids)
        self._derivations = []
        ledger = Ledger(home, self._blobs)
        moment = self._moment = context.port.now()
        for order, found, slot in zip(self._orders, rows, slots, strict=True):
            new: list[AttachmentRow] = []
            for each in order.wish.pending.added:
                blob_id = ids[id(each)] or await self._identify_file(order, each, moment)
                new.append(_new_row(context, home, order.wish, blob_id, moment))
                moment += timedelta(microseconds=1)
            order.result = plan_wish(change, ledger, order.wish, found, slot, new, too_many)
            if order.result.leaving:
                assert slot is not None
                intent = plan_intent(change, home, context.port.new_id(), slot, order.result.leaving)
                self._intents.append((order.wish, *intent))
            order.declaration.validate.check_count(
                order.wish.name, len(order.result.kept) + len(order.result.added)
            )
            for row in order.result.added:
                self._derive(order.declaration, row.blob_id)
                if row.blob_id in self._files:
                    _, blob = self._files[row.blob_id]
                    blob.fill(BlobRow.count.set(1), BlobRow.references[row.id].set(ledger.place(row)))
                    change.create(blob)
                else:
                    ledger.add(row)
        ledger.write(change)
        await self._state_jobs(change)

    async def _identify_file(self, order: Order, given: Given, now: datetime) -> str:
        """Determine the type of a new file; return the id of the blob that it becomes."""
        file = self._file_of(order, given, now)
        await identify_file(self._context, file)
        return file.id

    def _derive(self, declaration: Declaration, blob_id: str) -> None:
        """Note the analysis and variants that the file of a new attachment needs."""
        file, row = self._files.get(blob_id) or (None, self._blobs[blob_id])
        kind, metadata = row.content_type if file is None else file.content_type, row.metadata
        is_known = metadata.get("analyzed") is True
        if file is not None and not is_known:
            if declaration.analyze_at == "immediately":
                self._analyzed_now.add(blob_id)
                is_known = True
            elif declaration.analyze_at != "lazily" and not is_analyzable(kind):
                row.fill(BlobRow.metadata.set({**metadata, "analyzed": True}))
        found = derive(declaration, blob_id, kind, is_known)
        if found is not None:
            self._derivations.append(found)

    def _file_of(self, order: Order, given: Given, now: datetime) -> StoredFile:
        """The upload of a new file: that of an earlier attempt, if it has the same source and is not too old.

        One that is too old is left to the sweep, which may already be deleting it; so the next has another id and key.
        """
        assert isinstance(given, NewFile)
        file = self._uploads.get(given.identity)
        if file is None or file.id in self._files or file.is_too_old(now):
            service = _service(self._context, order, given)
            file = StoredFile(self._context, given, service, order.declaration.validate, order.wish.name)
            self._uploads[given.identity] = file
        row = file.new_row(self._home, now)
        file.keeper = self._keeper
        self._files[file.id] = file, row
        return file

    async def _identify(self, ids: Mapping[int, str | None]) -> None:
        """Make sure that the blobs to attach exist, and that their declarations accept them."""
        for order in self._orders:
            field, accept = order.wish.name, order.declaration.validate
            for each in order.wish.pending.added:
                blob_id = ids[id(each)]
                if blob_id is None:
                    continue
                if not self._blobs[blob_id].is_stored:
                    raise RecordNotFound(
                        f"there is no blob {blob_id!r:.80} to attach",
                        hint="it may have been deleted: a sweep deletes blobs that are not attached within two days",
                    )
                blob = self._blobs[blob_id] = await identify_blob(self._context, self._blobs[blob_id])
                accept.check_type(field, blob.content_type or BINARY)
                accept.check_size(field, blob.byte_size)

    async def _state_jobs(self, change: Change) -> None:
        """Add one job that deletes all released blobs, and one job for all events."""
        removed: dict[str, str] = {}
        events: list[dict[str, Any] | None] = []
        for order in self._orders:
            assert order.result is not None
            for blob_id, how in order.result.removed.items():
                if removed.get(blob_id) != "purge":
                    removed[blob_id] = how
            context, gone, added = change.context, order.result.gone, order.result.added
            events += [describe_event(context, "detached", row.blob_id, row) for row in gone]
            events += [describe_event(context, "attached", row.blob_id, row) for row in added]
        self._at_once = [blob_id for blob_id, how in removed.items() if how == "purge"]
        outbox = Outbox(change.context)
        reported = [event for event in events if event is not None]
        if removed:  # also for blobs deleted right after the commit, in case the process dies first
            delay = 60 if len(self._at_once) == len(removed) else None
            outbox.add(purge, list(removed), delay=delay)
        if reported:
            outbox.add(deliver_events, reported)
        if self._derivations:  # also for urgent work, in case the process dies right after the commit
            delay = 60 if all(each.is_urgent for each in self._derivations) else None
            packed = [each.pack() for each in self._derivations]
            outbox.add(derive_all, packed, delay=delay)
        missed = [] if self._home.layout.mode == "A" else self._list_missed()
        if missed:
            outbox.add(DETACH_AGAIN, missed, delay=LAG)
        if self._intents:
            outbox.add(DETACH_BATCHES, self._list_intents())
        if not outbox.is_empty:
            self._outbox = outbox
            await outbox.state(change)

    def _list_missed(self) -> list[list[Any]]:
        """Where to look a second time, because the list lags behind and may not show the latest attachments."""
        found: list[list[Any]] = []
        for order in self._orders:
            wish, outcome = order.wish, order.result
            if wish.can_miss:
                assert outcome is not None
                how = next(each.how for each in wish.pending.removed if each.ids is None)
                before, kept = format_moment(self._moment), [row.id for row in outcome.kept]
                place = [wish.owner.record_type, wish.owner.record_id, wish.name]
                found.append([*place, how, before, kept])
        return found

    def _list_intents(self) -> list[list[str]]:
        return [
            [wish.owner.record_type, wish.owner.record_id, wish.name, named]
            for wish, named, _ in self._intents
        ]

    async def upload(self, context: Context, orders: Sequence[Order]) -> None:
        """Store the bytes of new files now, for a later participant with the same ``uploads``."""
        self._context, self._home = context, await find_home(context)
        for order in orders:
            for each in order.wish.pending.added:
                if isinstance(each, NewFile):
                    self._file_of(order, each, context.port.now())
        await store_files(context, self._home, [file for file, _ in self._files.values()])

    async def prepare(self, port: Port) -> None:
        """Store intents and bytes, and complete the rows with what is now known about the bytes."""
        if self._outbox is not None:
            await self._outbox.prepare(port)
        if self._intents:
            context, intents = self._context, self._list_intents()
            await enqueue_alone(context, DETACH_BATCHES, *intents, delay=GIVEN_UP)
            for _, _, parts in self._intents:
                await put_all(port, parts)
        await store_files(self._context, self._home, [file for file, _ in self._files.values()])
        for file, row in self._files.values():
            file.describe(row)
            if file.id in self._analyzed_now:
                row.fill(BlobRow.metadata.set({**row.metadata, **await examine(self._context, Blob.of(row))}))

    async def settle(self, port: Port) -> None:
        """Update the proxies, and delete the blobs that must not wait for a job."""
        if self._outbox is not None:
            await self._outbox.settle(port)
        for order in self._orders:
            if order.proxy is not None:
                assert order.result is not None
                added = [self.attachment_of(row) for row in order.result.added]
                if order.wish.needs_all_rows or order.wish.is_new:
                    order.proxy.commit([*map(self.attachment_of, order.result.kept), *added])
                else:  # the proxy may know the other rows
                    order.proxy.extend(added, {row.id for row in order.result.gone})
        if self._at_once:
            await purge_blobs(self._context, self._at_once)
        await carry_out(self._context, [each for each in self._derivations if each.is_urgent])

    def attachment_of(self, row: AttachmentRow) -> Attachment:
        """The attachment of a row that stays or was added."""
        blob = self._files[row.blob_id][1] if row.blob_id in self._files else self._blobs[row.blob_id]
        return Attachment.of(self._context.settings, row, Blob.of(blob))

    async def abandon(self, port: Port) -> None:
        """Delete bytes that nothing will refer to, and intents."""
        for _, _, parts in self._intents:
            await delete_parts(self._context, parts)
        own = [
            file for file, _ in self._files.values() if file.keeper is self
        ]  # those that no later attempt reused
        await discard_files(self._context, self._home, own)


def _blob_id(context: Context, given: Given) -> str | None:
    """The id of an existing blob; None for a new file."""
    if isinstance(given, NewFile):
        return None
    if isinstance(given, Blob):
        return given.id
    try:
        return str(verify_with(context.settings, given.text, "attach", context.port.now()))
    except (InvalidTokenError, ConfigurationError) as error:
        raise type(error)(
            f"a string to attach must be the signed id of a blob: {error.message}",
            hint="to attach a file, pass a pathlib.Path or an open file"
            + ("" if error.hint is None else f"; {error.hint}"),
        ) from None


def _service(context: Context, order: Order, file: NewFile) -> str:
    service = file.service or order.declaration.service
    if callable(service):
        service = service(None if order.proxy is None else order.proxy.owner)
    return context.settings.choose_service(service, f"a file for {order.wish.name} cannot be stored")


def _new_row(context: Context, home: Home, wish: Wish, blob_id: str, moment: datetime) -> AttachmentRow:
    id = order_id(moment, context.port.new_id())
    return AttachmentRow.new(
        home.attachment(wish.owner, wish.name, id),
        AttachmentRow.id.set(id),
        AttachmentRow.record_type.set(wish.owner.record_type),
        AttachmentRow.record_id.set(wish.owner.record_id),
        AttachmentRow.name.set(wish.name),
        AttachmentRow.blob_id.set(blob_id),
        AttachmentRow.created_at.set(moment),
        AttachmentRow.entity.set("Attachment"),
    )


async def _read_rows(
    context: Context, home: Home, wishes: Sequence[Wish], slots: Sequence[Slot | None]
) -> list[list[AttachmentRow]]:
    """Read the rows that each wish needs, in parallel."""
    positions = [position for position, wish in enumerate(wishes) if wish.needs_rows]
    flows = [_read_wish(context, home, wishes[position], slots[position]) for position in positions]
    found: list[list[AttachmentRow]] = [[] for _ in wishes]
    if len(flows) == 1:
        found[positions[0]] = await flows[0]
    elif flows:
        for position, outcome in zip(positions, await context.port.gather(flows), strict=True):
            found[position] = outcome.result()
    return found


async def _read_wish(context: Context, home: Home, wish: Wish, slot: Slot | None) -> list[AttachmentRow]:
    if wish.needs_all_rows:
        return await read_rows(context, home, wish.owner, wish.name, slot)
    return await read_named(context, home, wish.owner, wish.name, sorted(wish.removed_ids))


async def _read_slots(context: Context, home: Home, wishes: Sequence[Wish]) -> list[Slot | None]:
    """Read the slots of names that have one or may have intents; a new owner has none."""
    wanted = [
        wish for wish in wishes if not wish.is_new and (wish.is_one or (wish.in_batches and wish.needs_rows))
    ]
    places = [(wish.owner, wish.name) for wish in wanted]
    found = dict(zip(places, await read_slots(context, home, places), strict=True))
    return [
        Slot(home.slot(wish.owner, wish.name))
        if wish.is_new and wish.is_one
        else found.get((wish.owner, wish.name))
        for wish in wishes
    ]

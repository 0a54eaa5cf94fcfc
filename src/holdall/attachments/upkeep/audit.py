"""The audit: finds out whether counts, references, rows and bytes agree, and repairs what it can.

It reads the whole table, a page at a time, first blobs and then attachments, and looks up what each page refers to. A
blob whose count, references and attachments do not agree is a *suspect*; its attachments are then collected by another
scan, for up to ten thousand suspects at a time. So memory depends on the faults, not on the table.

Other programs may write at the same time, so anything that looks wrong is read once more by its key before it is
reported, and a repair is conditional on what was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

from holdall.attachments.home import Home, find_home
from holdall.attachments.owner.ledger import Ledger
from holdall.attachments.picture.derived import is_derived
from holdall.attachments.record import AttachmentRow, BlobRow, ReferenceRecord
from holdall.attachments.stored import read_blobs, read_references
from holdall.attachments.upkeep.purge import delete_picture
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import Scan
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import Record, RecordPages, fetch, fetch_all

R = TypeVar("R", bound=Record)

_MOST_SUSPECTS = 10_000
_MOST_LOOKS = 5

Problem: TypeAlias = Literal["count", "references", "row", "bytes"]
"""A wrong count, wrong references, a row whose blob is missing, or bytes that are missing or of another size."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A discrepancy. ``message`` describes it; ``repair`` is what a repair does, empty if nothing can be done.

    ``repaired`` is whether this call has done it.
    """

    problem: Problem
    id: str
    message: str
    repair: str
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class AuditReport:
    """How many blobs and attachments there are, the discrepancies found, and how many were repaired."""

    blobs: int
    attachments: int
    findings: tuple[Finding, ...]
    repaired: int


async def check(context: Context, *, repair: bool = False, bytes: bool = True) -> AuditReport:
    """Check that counts, references, attachments and bytes agree; ``repair=True`` corrects what it can.

    This reads the whole table. ``bytes=False`` does not ask the file services whether the bytes exist.
    """
    home = await find_home(context)
    findings: list[Finding] = []
    audit = Audit(context, home, repair, findings.append)
    blobs = attachments = 0
    found = _scan(context, home, BlobRow, "Blob")
    while (some := await found.next_page()) is not None:
        blobs += len(some)
        await audit.visit_blobs(some)
        for blob in some if bytes else ():
            await audit.check_bytes(blob)
    pages = _scan(context, home, AttachmentRow, "Attachment")
    while (rows := await pages.next_page()) is not None:
        attachments += len(rows)
        await audit.visit_attachments(rows)
    await audit.settle()
    return AuditReport(blobs, attachments, tuple(findings), sum(each.repaired for each in findings))


async def reindex(context: Context) -> int:
    """Add the references that are missing from blobs whose attachments a Rails application wrote.

    Return how many blobs changed. This reads the whole table.
    """
    report = await check(context, repair=True, bytes=False)
    return sum(finding.problem == "references" for finding in report.findings)


def _scan(context: Context, home: Home, kind: type[R], entity: str) -> RecordPages[R]:
    scan = Scan(home.layout.table, filter=BlobRow.entity.equals(entity), consistent=True)
    return RecordPages(context.port, kind, scan, home.layout.address_of)


class Audit:
    """An audit in progress; it is shown all blobs and attachments, in any order, and passes findings to ``add``."""

    def __init__(self, context: Context, home: Home, repair: bool, add: Callable[[Finding], object]) -> None:
        self._context = context
        self._port = context.port
        self._home = home
        self._repair = repair
        self._add = add
        self._suspects: set[str] = set()
        self._settled: set[str] = set()

    def merge(self, other: Audit) -> None:
        """Take over what an audit of another part of the table suspects."""
        self._suspects |= other._suspects - self._settled

    # --- finding suspects -----------------------------------------------------------------------------------

    async def visit_blobs(self, blobs: Sequence[BlobRow]) -> None:
        """Look up the attachments that the references of blobs name."""
        named: list[tuple[BlobRow, AttachmentRow]] = []
        for blob in blobs:
            references = await read_references(self._context, self._home, blob)
            if blob.count != len(references):
                await self._suspect(blob.id)
                continue
            for id, place in references.items():
                row = self._locate(id, place)
                if row is None:
                    await self._suspect(blob.id)
                else:
                    named.append((blob, row))
        found = await fetch_all(self._port, [row for _, row in named])
        for (blob, _), row in zip(named, found, strict=True):
            if not row.is_stored or (_is_readable(row) and row.blob_id != blob.id):
                await self._suspect(blob.id)

    async def visit_attachments(self, rows: Sequence[AttachmentRow]) -> None:
        """Look up the blobs of attachments, and whether they refer to the attachments."""
        blobs = await read_blobs(self._context, self._home, [row.blob_id for row in rows])
        lost: dict[str, list[AttachmentRow]] = {}
        for row in rows:
            blob = blobs[row.blob_id]
            if not blob.is_stored:
                lost.setdefault(row.blob_id, []).append(row)
            elif row.id not in blob.references:
                record = ReferenceRecord(self._home.reference(blob.id, row.id))
                if not blob.reference_items or not (await fetch(self._port, record)).is_stored:
                    await self._suspect(blob.id)
        for blob_id, some in lost.items():
            await self.check_orphans(blob_id, some)

    def _locate(self, id: str, place: str) -> AttachmentRow | None:
        """The attachment that a reference leads to, not yet read; None if the reference leads nowhere."""
        try:
            return AttachmentRow(self._home.attachment(*self._home.parse_place(place), id))
        except ValueError:
            return None

    async def _suspect(self, blob_id: str) -> None:
        if blob_id not in self._settled:
            self._suspects.add(blob_id)
            if len(self._suspects) >= _MOST_SUSPECTS:
                await self.settle()

    async def settle(self) -> None:
        """Collect the attachments of all suspects, and compare them with their blobs."""
        if not self._suspects:
            return
        found: dict[str, list[AttachmentRow]] = {id: [] for id in sorted(self._suspects)}
        self._settled |= self._suspects
        self._suspects = set()
        pages = _scan(self._context, self._home, AttachmentRow, "Attachment")
        while (rows := await pages.next_page()) is not None:
            for row in rows:
                if _is_readable(row) and row.blob_id in found:
                    found[row.blob_id].append(row)
        for id, some in found.items():
            await self.check_blob(id, some)

    # --- judging --------------------------------------------------------------------------------------------

    async def check_blob(self, id: str, rows: list[AttachmentRow]) -> None:
        """Compare a blob's count and references with the rows; leave alone a blob that is being changed."""
        for _ in range(_MOST_LOOKS):
            blob = await fetch(self._port, BlobRow(self._home.blob(id)))
            if not blob.is_stored:
                return
            references = await read_references(self._context, self._home, blob)
            wanted = {row.address.identity: row for row in rows}
            for named, place in references.items():
                if (row := self._locate(named, place)) is not None:
                    wanted.setdefault(row.address.identity, row)
            found = await fetch_all(self._port, list(wanted.values()))
            if any(row.is_stored and not _is_readable(row) for row in found):
                return  # it may refer to the blob
            if (await fetch(self._port, blob)).item == blob.item:
                stored = {row.id: row for row in found if row.is_stored and row.blob_id == blob.id}
                await self._compare(blob, references, stored)
                return

    async def _compare(
        self, blob: BlobRow, references: Mapping[str, str], stored: Mapping[str, AttachmentRow]
    ) -> None:
        findings: list[Finding] = []
        if blob.count != len(stored):
            message = f"blob {blob.id} has an attachment count of {blob.count}, but {len(stored)} refer to it"
            findings.append(Finding("count", blob.id, message, f"set the count to {len(stored)}"))
        missing = [row for id, row in stored.items() if id not in references]
        stray = [id for id in references if id not in stored]
        if missing or stray:
            message = f"blob {blob.id} lacks {len(missing)} references, and has {len(stray)} wrong ones"
            findings.append(Finding("references", blob.id, message, "correct the references"))
        repaired = False
        if self._repair and findings:
            change = Change(self._context)
            Ledger(self._home, {blob.id: blob}).repair(change, blob, len(stored), missing, stray)
            repaired = await commit_once(change) is None
        for finding in findings:
            self._add(replace(finding, repaired=repaired))

    async def check_orphans(self, blob_id: str, rows: list[AttachmentRow]) -> None:
        """Report rows whose blob is missing."""
        if (await fetch(self._port, BlobRow(self._home.blob(blob_id)))).is_stored:
            return
        for row in await fetch_all(self._port, rows):
            if row.is_stored:
                message = f"{row.name} of {row.record_type} {row.record_id} refers to blob {blob_id}, which is missing"
                repaired = self._repair and await self._delete_row(row, blob_id)
                self._add(Finding("row", row.id, message, "delete the attachment", repaired))

    async def _delete_row(self, row: AttachmentRow, blob_id: str) -> bool:
        change, blob = Change(self._context), BlobRow(self._home.blob(blob_id))
        change.delete(row, expect=[row.address.exists])
        change.require(blob, blob.address.absent)
        return await commit_once(change) is None

    async def check_bytes(self, blob: BlobRow) -> None:
        """Report bytes that are missing or of another size; only pictures made from other files can be repaired."""
        message = await self._look_at_bytes(blob)
        if message is not None:
            blob = await fetch(self._port, blob)  # it may have been purged since the page was read
            message = await self._look_at_bytes(blob) if blob.is_stored else None
        if message is None:
            return
        references = await read_references(self._context, self._home, blob)
        named = [self._locate(id, place) for id, place in references.items()]
        places = [self._home.parse_place(place) for place in references.values() if None not in named]
        if not places or not all(is_derived(owner) for owner, _ in places):
            self._add(Finding("bytes", blob.id, message, ""))
            return
        for owner, name in places if self._repair else ():
            await delete_picture(self._context, self._home, owner, name)
        repaired = self._repair and not (await fetch(self._port, blob)).is_stored
        repair = "delete the picture, which is made again when it is requested"
        self._add(Finding("bytes", blob.id, message, repair, repaired))

    async def _look_at_bytes(self, blob: BlobRow) -> str | None:
        info = await find_object(self._context, blob.service_name, blob.key)
        if info is None:  # the bytes of an unattached blob may not be uploaded yet
            return f"the bytes of blob {blob.id} are missing" if blob.count else None
        if info.size == blob.byte_size:
            return None
        return f"blob {blob.id} should have {blob.byte_size:,} bytes, but has {info.size:,}"


def _is_readable(row: AttachmentRow) -> bool:
    """Whether an attachment has the attributes by which it is counted."""
    try:
        return bool(row.id and row.blob_id)
    except (KeyError, ValueError):
        return False

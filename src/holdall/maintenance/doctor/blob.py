"""The check of blobs: counts and references against attachments, attachments against blobs, blobs against bytes.

The rules are those of `holdall.attachments.upkeep.audit`; here it is shown the pages of the one pass over the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from holdall.attachments.home import Home
from holdall.attachments.record import AttachmentRow, BlobRow
from holdall.attachments.upkeep.audit import Audit, Finding
from holdall.core.values import Item
from holdall.errors import HoldallError
from holdall.maintenance.doctor.report import DoctorFinding
from holdall.maintenance.doctor.work import Work, show_key
from holdall.tables.record import Record
from holdall.tables.record_column import RecordColumn

R = TypeVar("R", bound=Record)
_BLOB = (BlobRow.id, BlobRow.key, BlobRow.service_name, BlobRow.byte_size, BlobRow.count)
_ATTACHMENT = (
    *(AttachmentRow.id, AttachmentRow.record_type, AttachmentRow.record_id),
    *(AttachmentRow.name, AttachmentRow.blob_id),
)


class BlobCheck:
    """Shows blobs and attachments to the audit."""

    def __init__(self, work: Work, home: Home) -> None:
        self._work = work
        self._home = home
        self._audit = Audit(work.context, home, work.repair, self._add)

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the blobs and attachments of a page."""
        address_of = self._home.layout.address_of
        kinds = [(BlobRow.entity.peek(item), item) for item in rows]
        blobs = [BlobRow(address_of(item), item) for kind, item in kinds if kind == "Blob"]
        blobs = await self._choose_readable("blob", blobs, _BLOB)
        if blobs:
            await self._audit.visit_blobs(blobs)
        for blob in blobs:
            await self._check_bytes(blob)
        found = [AttachmentRow(address_of(item), item) for kind, item in kinds if kind == "Attachment"]
        found = await self._choose_readable("attachment", found, _ATTACHMENT)
        if found:
            await self._audit.visit_attachments(found)

    async def _choose_readable(
        self, what: str, rows: Sequence[R], columns: Sequence[RecordColumn[Any]]
    ) -> list[R]:
        """The rows with all their attributes; each of the others is a finding."""
        found: list[R] = []

        async def read(row: R) -> None:
            for column in columns:
                column.read(row.item)
            found.append(row)

        for row in rows:
            await self._work.examine("blobs", f"{what} {show_key(row.address.key)}", read(row))
        return found

    async def _check_bytes(self, blob: BlobRow) -> None:
        work, service = self._work, blob.service_name
        if service in work.silent:
            return
        try:
            await self._audit.check_bytes(blob)
        except HoldallError as error:
            work.silent.add(service)  # it would not answer for the other blobs either
            message = f"whether it has the bytes of blobs could not be checked: {error.message}"
            await work.find("blobs", "error", f"file service {service}", message)

    async def finish(self, parts: Sequence[BlobCheck]) -> None:
        """Compare the blobs that look wrong with all their attachments."""
        for part in parts:
            if part is not self:
                self._audit.merge(part._audit)
        await self._audit.settle()

    def _add(self, found: Finding) -> None:
        what = "attachment" if found.problem == "row" else "blob"
        subject, repair = f"{what} {found.id}", found.repair or None
        self._work.add(DoctorFinding("blobs", "error", subject, found.message, repair, found.repaired))

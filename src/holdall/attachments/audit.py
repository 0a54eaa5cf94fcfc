"""The audit: whether counts, references, rows and bytes agree; and what it takes to make them agree.

It reads the whole table, and remembers the keys of all attachments meanwhile. Other programs write at the same time, so
whatever looks wrong is read once more by its key before it is reported, and a repair is conditional on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from holdall.attachments.home import Home, Owner, home_of
from holdall.attachments.ledger import read_references
from holdall.attachments.record import AttachmentRow, BlobRow
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.expressions import Condition
from holdall.core.frozen import dataclass
from holdall.core.objects import HeadObject
from holdall.core.requests import Scan
from holdall.core.values import Item
from holdall.errors import ObjectNotFoundError
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import fetch, fetch_all

Problem: TypeAlias = Literal["count", "references", "row", "bytes"]
"""A wrong count, references that are not those of the rows, a row whose blob is gone, bytes missing or of another size."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not agree; ``repair`` says what a repair does about it, empty if it can do nothing."""

    problem: Problem
    id: str
    message: str
    repair: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """How many blobs and attachments there are, what does not agree, and how much of it was repaired."""

    blobs: int
    attachments: int
    findings: tuple[Finding, ...]
    repaired: int


async def check(context: Context, *, repair: bool = False, bytes: bool = True) -> AuditReport:
    """Compare counts, references, rows and bytes; ``repair`` puts right what can be. It reads the whole table.

    ``bytes=False`` does not ask the services whether the bytes are there.
    """
    home = await home_of(context)
    rows = await _read_rows(context, home)
    audit = _Audit(context, home, repair)
    blobs: set[str] = set()

    async def look(item: Item) -> None:
        blob = BlobRow(home.layout.address_of(item), item)
        blobs.add(blob.id)
        await audit.check_blob(blob, rows.get(blob.id, []))
        if bytes:
            await audit.check_bytes(blob)

    await _scan(context, home, BlobRow.entity.equals("Blob"), look)
    for blob_id in rows.keys() - blobs:
        await audit.check_orphans(blob_id, rows[blob_id])
    total = sum(len(some) for some in rows.values())
    return AuditReport(len(blobs), total, tuple(audit.findings), audit.repaired)


async def reindex(context: Context) -> int:
    """Give blobs the references of attachments that another program wrote; return how many blobs had to be changed."""
    report = await check(context, repair=True, bytes=False)
    return sum(finding.problem == "references" for finding in report.findings)

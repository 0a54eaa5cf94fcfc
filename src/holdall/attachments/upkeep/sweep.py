"""The sweep: deletes blobs that nothing refers to, and bytes without a blob, after a grace period.

It follows the markers, so it scans neither the table nor a bucket. Why it is safe beside everything else: a blob's row
is deleted only at a count of 0, and attaching the blob demands that its row exists. Bytes without a row belong to an
upload that began before the grace period, and such an upload never commits. If a chosen key now holds the bytes of
another blob, they are left alone. What a resumable upload left is deleted after its item, two days after it expired.
Each marker is deleted after the things it leads to, each hour after its markers; so if a sweep dies, the next one
continues it.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Literal, TypeAlias

from holdall.attachments.home import Home, find_home
from holdall.attachments.record import BlobRow, Hour, Marker, UploadRecord
from holdall.attachments.stored import read_blobs
from holdall.attachments.upkeep.purge import delete_bytes, delete_derived, delete_unattached
from holdall.attachments.upload.remains import delete_remains
from holdall.attachments.upload.upload import GRACE, are_bytes_of
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.requests import Query
from holdall.errors import InvalidOptionsError
from holdall.jobs.attempt import current_job
from holdall.jobs.declaration import job
from holdall.tables.record import RecordPages, delete_all

Found: TypeAlias = Literal["blob", "bytes", "attached"]
"""What a marker leads to: a blob that is not attached, bytes without a blob, or a blob that is attached."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep found.

    ``blobs`` counts the blobs that are not attached, ``bytes`` the objects without a blob; both are deleted, except in
    a dry run. ``attached`` counts the blobs that turned out to be attached, and stay.
    """

    blobs: int
    bytes: int
    attached: int


async def sweep(context: Context, *, older_than: timedelta = GRACE, dry_run: bool = False) -> SweepReport:
    """Delete blobs that are not attached, and bytes that interrupted uploads left; ``dry_run`` only counts them.

    Only files stored more than ``older_than`` ago are examined. It must be at least two days, except in a dry run.
    """
    if older_than < GRACE and not dry_run:
        raise InvalidOptionsError(
            f"older_than must be at least 2 days, not {older_than}: the upload of a younger file may be in progress"
        )
    home = await find_home(context)
    before = context.port.now() - older_than
    total: Counter[Found] = Counter()
    pages = RecordPages(context.port, Hour, home.hours(before), home.layout.address_of)
    while (hours := await pages.next_page()) is not None:
        for hour in hours:
            for query in home.markers(hour.hour):
                await _sweep_part(context, home, query, total, dry_run)
            if not dry_run:
                await delete_all(context.port, [hour])
    return SweepReport(total["blob"], total["bytes"], total["attached"])


async def _sweep_part(
    context: Context, home: Home, query: Query, total: Counter[Found], dry_run: bool
) -> None:
    pages = RecordPages(context.port, Marker, query, home.layout.address_of)
    while (markers := await pages.next_page()) is not None:
        blobs = await read_blobs(context, home, [marker.blob_id for marker in markers])
        for marker in markers:
            total[await _sweep_one(context, home, marker, blobs[marker.blob_id], dry_run)] += 1


async def _sweep_one(context: Context, home: Home, marker: Marker, row: BlobRow, dry_run: bool) -> Found:
    """Follow one marker; return what it led to."""
    found: Found = "bytes" if not row.is_stored else "attached" if row.count > 0 else "blob"
    if dry_run:
        return found
    if found == "blob" and not await delete_unattached(context, row):
        found = "attached"  # a moment ago
    if found != "attached":
        await delete_derived(context, home, marker.blob_id, row.variants)
        if found == "blob" or await are_bytes_of(context, marker.service, marker.key, marker.blob_id):
            kind = row.content_type if row.is_stored else "image/"
            await delete_bytes(context, marker.service, marker.key, kind)
    if marker.is_upload:
        await delete_all(context.port, [UploadRecord(home.upload(marker.blob_id))])
        await delete_remains(context, marker.service, marker.key)
    await delete_all(context.port, [marker])
    return found


@job("holdall.sweep")
async def sweep_job() -> None:
    """Sweep once."""
    await sweep(current_job().context)

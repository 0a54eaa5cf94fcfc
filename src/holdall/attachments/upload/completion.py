"""The completion of a resumable upload: its parts and pieces become the bytes of a blob.

It begins when the item counts every byte, and depends only on the item. So any number of processes may complete an
upload, at the same time or after another one has died: all of them store the same bytes under the same key, and one of
them creates the blob's row, in the transaction that marks the item as complete.
"""

from __future__ import annotations

from holdall.attachments.home import Home
from holdall.attachments.record import BlobRow, UploadRecord
from holdall.attachments.upload.arrival import explain_change, explain_loss, read_pieces
from holdall.attachments.upload.remains import end_upload, provider_headers
from holdall.attachments.upload.upload import GRACE
from holdall.core.context import Context
from holdall.core.digests import Digests
from holdall.core.objects import CompleteUpload, DeleteObjects, GetObject, PutObject, Upload, UploadPart
from holdall.errors import InvalidRequestError, ObjectNotFoundError
from holdall.files.mirror import mirror
from holdall.files.multipart import list_parts
from holdall.files.source import hash_bytes
from holdall.files.transfer import find_object
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import fetch

_READ = 8 * 1024 * 1024


async def complete(context: Context, home: Home, record: UploadRecord) -> UploadRecord:
    """Make the blob of an upload whose bytes have all arrived; return the upload's new state."""
    port = context.port
    try:
        await _join(context, record)
    except (ObjectNotFoundError, InvalidRequestError) as error:
        # Another process may have joined them already, or even deleted the pieces. Or the service has discarded or
        # rejected the parts: a directory bucket, for example, accepts no gaps in their numbers.
        now = await fetch(port, UploadRecord(record.address))
        if now.is_stored and now.is_complete:
            return now
        if await find_object(context, record.service, record.key) is None:
            raise await explain_loss(context, record) from error
    md5 = record.md5
    if md5 is None and record.checksum is not None:
        md5 = await _hash(context, record)
    if record.checksum not in (None, md5):
        raise await end_upload(context, record, f"its bytes have the MD5 {md5}, not {record.checksum}")
    await mirror(context, record.service, record.key)
    done = await _create_blob(context, home, record, md5)
    if record.pieces and done.is_complete:
        keys = tuple(key for key, _ in record.pieces)
        await port.send(DeleteObjects(record.service, keys))
    return done


async def _join(context: Context, record: UploadRecord) -> None:
    """Store the bytes under the blob's key; if another process has stored them already, they are the same."""
    port, service = context.port, record.service
    tail = await read_pieces(context, service, record.pieces)
    if record.multipart is None:
        await port.send(
            PutObject(service, record.key, tail, provider_headers(record), record.md5, record.sha256)
        )
        return
    upload, number = Upload(record.key, record.multipart), record.next_part
    numbers = [each for first, last in record.parts for each in range(first, last + 1)]
    if tail:
        await port.send(UploadPart(service, upload, number, tail))
        numbers.append(number)
    have = await list_parts(port, service, upload)
    if any(each not in have for each in numbers):
        raise ObjectNotFoundError(f"parts of upload {record.id} are missing from the file service")
    parts = tuple(have[each] for each in numbers)
    await port.send(CompleteUpload(service, upload, parts, record.md5, record.sha256))


async def _hash(context: Context, record: UploadRecord) -> str | None:
    digests = Digests(["md5"])
    for start in range(0, record.byte_size, _READ):
        part = await context.port.send(GetObject(record.service, record.key, start, _READ))
        await hash_bytes(context.port, digests, part.body)
    return digests.md5


async def _create_blob(context: Context, home: Home, record: UploadRecord, md5: str | None) -> UploadRecord:
    now = context.port.now()
    if now >= record.expires_at + GRACE / 2:  # a sweep may be about to delete the bytes
        raise explain_change(record, None)
    metadata = dict(record.metadata) if md5 else {**record.metadata, "composed": True}
    row = BlobRow.new(
        home.blob(record.id),
        BlobRow.id.set(record.id),
        BlobRow.key.set(record.key),
        BlobRow.filename.set(record.filename),
        BlobRow.content_type.set(record.content_type),
        BlobRow.byte_size.set(record.byte_size),
        BlobRow.checksum.set(md5),
        BlobRow.sha256.set(record.sha256),
        BlobRow.metadata.set(metadata),
        BlobRow.service_name.set(record.service),
        BlobRow.created_at.set(now),
        BlobRow.count.set(0),
        BlobRow.entity.set("Blob"),
    )
    actions = (UploadRecord.is_complete.set(True), UploadRecord.version.set(record.version + 1))
    change = Change(context)
    change.create(row)
    change.update(
        UploadRecord(record.address),
        *actions,
        expect=[UploadRecord.version.equals(record.version)],
        label="upload",
    )
    if await commit_once(change) is None:
        return record.apply(*actions)
    found = await fetch(context.port, UploadRecord(record.address))
    if not found.is_stored or not found.is_complete:
        raise explain_change(record, found.item)
    return found

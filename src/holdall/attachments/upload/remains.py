"""What a resumable upload keeps in its service until it is complete: pieces under their own prefix, and parts."""

from __future__ import annotations

from holdall.attachments.blob.delivery import delivery_of
from holdall.attachments.blob.filename import Filename
from holdall.attachments.record import UploadRecord
from holdall.attachments.upload.upload import provider_metadata
from holdall.core.context import Context
from holdall.core.objects import AbortUpload, DeleteObject, ListUploads, ObjectHeaders
from holdall.errors import IntegrityError
from holdall.files.shelf import Shelf
from holdall.files.upkeep import delete_prefix
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once


def piece_prefix(key: str) -> str:
    """The prefix of the keys of an upload's pieces."""
    return f"uploads/{key}/"


def provider_headers(record: UploadRecord) -> ObjectHeaders:
    """The headers with which the service stores the file."""
    kind, disposition = delivery_of(record.content_type, Filename(record.filename))
    return ObjectHeaders(kind, disposition, None, provider_metadata(record.metadata, record.id, None))


async def give_up(context: Context, record: UploadRecord) -> bool:
    """Delete an upload and all bytes that have arrived; False if it is complete or missing.

    The item is deleted first, on the condition that the upload is not complete. From then on no blob can be made of it,
    so its bytes are not needed.
    """
    change = Change(context)
    expect = [record.address.exists, UploadRecord.is_complete.absent]
    change.delete(record, expect=expect, label="upload")
    if await commit_once(change) is not None:
        return False
    await delete_remains(context, record.service, record.key)
    await context.port.send(DeleteObject(record.service, record.key))
    return True


async def end_upload(context: Context, record: UploadRecord, why: str) -> IntegrityError:
    """Give up an upload that can never be completed; return the error to raise."""
    await give_up(context, record)
    return IntegrityError(f"upload {record.id} cannot continue: {why}", hint="start a new upload")


async def delete_remains(context: Context, service: str, key: str) -> None:
    """Delete the pieces and parts of an upload, whether its item counted them or not; safe to repeat."""
    await delete_prefix(Shelf(context, service), piece_prefix(key))
    for upload in await context.port.send(ListUploads(service, key)):
        await context.port.send(AbortUpload(service, upload))

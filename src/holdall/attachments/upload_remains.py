"""What a resumable upload keeps in its service until it is complete: pieces under a prefix of its own, and parts."""

from __future__ import annotations

from holdall.attachments.delivery import delivery_of
from holdall.attachments.filename import Filename
from holdall.attachments.record import UploadRecord
from holdall.attachments.upload import provider_metadata
from holdall.core.context import Context
from holdall.core.objects import AbortUpload, DeleteObject, ListUploads, ObjectHeaders
from holdall.errors import IntegrityError
from holdall.files.shelf import Shelf
from holdall.files.upkeep import delete_prefix
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once


def piece_prefix(key: str) -> str:
    """What the keys of an upload's pieces begin with."""
    return f"uploads/{key}/"


def provider_headers(record: UploadRecord) -> ObjectHeaders:
    """What the file is kept with in its service."""
    kind, disposition = delivery_of(record.content_type, Filename(record.filename))
    return ObjectHeaders(kind, disposition, None, provider_metadata(record.metadata, record.id, None))


async def give_up(context: Context, record: UploadRecord) -> bool:
    """Delete an upload with all that arrived; False if it is complete or gone.

    The item goes first, on the condition that it is not complete. No blob can come of it from then on, so its bytes
    belong to nothing.
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
    """Give up an upload that can never be completed; returns the error to raise."""
    await give_up(context, record)
    return IntegrityError(f"the upload {record.id} cannot go on: {why}", hint="start another")


async def delete_remains(context: Context, service: str, key: str) -> None:
    """Delete the pieces and parts of an upload, whether its item counted them or not; safe to do again."""
    await delete_prefix(Shelf(context, service), piece_prefix(key))
    for upload in await context.port.send(ListUploads(service, key)):
        await context.port.send(AbortUpload(service, upload))

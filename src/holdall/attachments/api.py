"""``db.blobs``: files by themselves, sync and async."""

from __future__ import annotations

from holdall.attachments import audit, flow
from holdall.attachments import sweep as sweep_flow
from holdall.attachments.blob import Blob
from holdall.attachments.handle import BlobHandle
from holdall.core.context import Context
from holdall.core.shell import awaiting, blocking


class Blobs:
    """The blobs of a database: files, whether something has them attached or not."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def open(self, blob: Blob | str) -> BlobHandle:
        """A blob as a temporary file, whole and checked, for a ``with`` block."""
        return BlobHandle(self._context, blob)

    create_and_upload = blocking(flow.create_and_upload)
    create_before_direct_upload = blocking(flow.create_before_direct_upload)
    find = blocking(flow.find)
    find_signed = blocking(flow.find_signed)
    signed_id = blocking(flow.signed_id)
    attachments = blocking(flow.attachments)
    download = blocking(flow.download)
    url = blocking(flow.url)
    compose = blocking(flow.compose)
    update_metadata = blocking(flow.update_metadata)
    delete = blocking(flow.delete)
    purge = blocking(flow.purge_now)
    purge_later = blocking(flow.purge_later)
    sweep = blocking(sweep_flow.sweep)
    check = blocking(audit.check)
    reindex = blocking(audit.reindex)


class AsyncBlobs:
    """The blobs of a database: files, whether something has them attached or not."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def open(self, blob: Blob | str) -> BlobHandle:
        """A blob as a temporary file, whole and checked, for an ``async with`` block."""
        return BlobHandle(self._context, blob)

    create_and_upload = awaiting(flow.create_and_upload)
    create_before_direct_upload = awaiting(flow.create_before_direct_upload)
    find = awaiting(flow.find)
    find_signed = awaiting(flow.find_signed)
    signed_id = awaiting(flow.signed_id)
    attachments = awaiting(flow.attachments)
    download = awaiting(flow.download)
    url = awaiting(flow.url)
    compose = awaiting(flow.compose)
    update_metadata = awaiting(flow.update_metadata)
    delete = awaiting(flow.delete)
    purge = awaiting(flow.purge_now)
    purge_later = awaiting(flow.purge_later)
    sweep = awaiting(sweep_flow.sweep)
    check = awaiting(audit.check)
    reindex = awaiting(audit.reindex)

"""``db.blobs``: stored files, attached or not; sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from holdall.attachments.blob import content, creation
from holdall.attachments.blob import flow as blob_flow
from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.handle import BlobHandle
from holdall.attachments.owner import flow as owner_flow
from holdall.attachments.owner import resolution
from holdall.attachments.owner.attachment import Attachment
from holdall.attachments.owner.flow import AttachmentPages
from holdall.attachments.picture import analysis, picture
from holdall.attachments.settings import AttachmentSettings, attachment_settings
from holdall.attachments.upkeep import audit, inventory
from holdall.attachments.upkeep import sweep as sweep_flow
from holdall.attachments.upload import resumable
from holdall.core.cursor import AwaitingPages, BlockingPages
from holdall.core.shell import Namespace, awaiting, blocking, iterate, iterate_awaiting


class Blobs(Namespace):
    """``db.blobs``: the stored files of a database, attached or not."""

    @property
    def settings(self) -> AttachmentSettings:
        """The format of signed ids and variants, and the path at which the web application serves files."""
        return attachment_settings(self._context.settings)

    def open(self, blob: Blob | str) -> BlobHandle:
        """Open a blob as a temporary file, complete and verified, for a ``with`` block."""
        return BlobHandle(self._context, blob)

    def stream(self, blob: Blob, *, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Iterate over a blob's bytes from ``start`` on, or over ``size`` of them, piece by piece.

        If the service reports another size or MD5 than the blob has, this raises `IntegrityError` before the first
        piece; the pieces themselves are not verified against its digests. A slow reader holds no connection, and at
        most 2 MB in memory.
        """
        return BlockingPages(content.new_pieces(self._context, blob, start, size), self._context)

    def list(
        self,
        record_type: str,
        record_id: str,
        name: str | None = None,
        *,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> Iterator[Attachment]:
        """Iterate over an owner's attachments, or those under one name, in key order: at most ``limit``.

        Pages are fetched as you iterate. ``after`` is the name and the id of an attachment, to begin with the next.
        """
        pages = AttachmentPages(self._context, record_type, record_id, name, after=after, limit=limit)
        return iterate(pages, self._context)

    create_and_upload = blocking(creation.create_and_upload)
    create_before_direct_upload = blocking(creation.create_before_direct_upload)
    start_upload = blocking(resumable.start_upload)
    find_upload = blocking(resumable.find_upload)
    find_signed_upload = blocking(resumable.find_signed_upload)
    continue_upload = blocking(resumable.continue_upload)
    cancel_upload = blocking(resumable.cancel_upload)
    scan = blocking(inventory.scan)
    find = blocking(blob_flow.find)
    find_signed = blocking(blob_flow.find_signed)
    find_by_url = blocking(blob_flow.find_by_url)
    signed_id = blocking(blob_flow.signed_id)
    attachments = blocking(blob_flow.attachments)
    attach = blocking(owner_flow.attach)
    detach = blocking(owner_flow.detach)
    owners = blocking(resolution.owners)
    download = blocking(content.download)
    url = blocking(content.url)
    analyze = blocking(analysis.analyze)
    variant = blocking(picture.variant)
    preview = blocking(picture.preview)
    representation = blocking(picture.representation)
    pictures = blocking(inventory.pictures)
    compose = blocking(creation.compose)
    update_metadata = blocking(blob_flow.update_metadata)
    delete = blocking(blob_flow.delete)
    purge = blocking(blob_flow.purge_now)
    purge_later = blocking(blob_flow.purge_later)
    sweep = blocking(sweep_flow.sweep)
    check = blocking(audit.check)
    reindex = blocking(audit.reindex)


class AsyncBlobs(Namespace):
    """``db.blobs`` of an `AsyncDatabase`: the same methods as `Blobs`, for async code."""

    @property
    def settings(self) -> AttachmentSettings:
        """The format of signed ids and variants, and the path at which the web application serves files."""
        return attachment_settings(self._context.settings)

    def open(self, blob: Blob | str) -> BlobHandle:
        """Open a blob as a temporary file, complete and verified, for an ``async with`` block."""
        return BlobHandle(self._context, blob)

    def stream(self, blob: Blob, *, start: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """Iterate over a blob's bytes from ``start`` on, or over ``size`` of them, piece by piece.

        If the service reports another size or MD5 than the blob has, this raises `IntegrityError` before the first
        piece; the pieces themselves are not verified against its digests. A slow reader holds no connection, and at
        most 2 MB in memory.
        """
        return AwaitingPages(content.new_pieces(self._context, blob, start, size), self._context)

    def list(
        self,
        record_type: str,
        record_id: str,
        name: str | None = None,
        *,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[Attachment]:
        """Iterate over an owner's attachments, or those under one name, in key order: at most ``limit``.

        Pages are fetched as you iterate. ``after`` is the name and the id of an attachment, to begin with the next.
        """
        pages = AttachmentPages(self._context, record_type, record_id, name, after=after, limit=limit)
        return iterate_awaiting(pages, self._context)

    create_and_upload = awaiting(creation.create_and_upload)
    create_before_direct_upload = awaiting(creation.create_before_direct_upload)
    start_upload = awaiting(resumable.start_upload)
    find_upload = awaiting(resumable.find_upload)
    find_signed_upload = awaiting(resumable.find_signed_upload)
    continue_upload = awaiting(resumable.continue_upload)
    cancel_upload = awaiting(resumable.cancel_upload)
    scan = awaiting(inventory.scan)
    find = awaiting(blob_flow.find)
    find_signed = awaiting(blob_flow.find_signed)
    find_by_url = awaiting(blob_flow.find_by_url)
    signed_id = awaiting(blob_flow.signed_id)
    attachments = awaiting(blob_flow.attachments)
    attach = awaiting(owner_flow.attach)
    detach = awaiting(owner_flow.detach)
    owners = awaiting(resolution.owners)
    download = awaiting(content.download)
    url = awaiting(content.url)
    analyze = awaiting(analysis.analyze)
    variant = awaiting(picture.variant)
    preview = awaiting(picture.preview)
    representation = awaiting(picture.representation)
    pictures = awaiting(inventory.pictures)
    compose = awaiting(creation.compose)
    update_metadata = awaiting(blob_flow.update_metadata)
    delete = awaiting(blob_flow.delete)
    purge = awaiting(blob_flow.purge_now)
    purge_later = awaiting(blob_flow.purge_later)
    sweep = awaiting(sweep_flow.sweep)
    check = awaiting(audit.check)
    reindex = awaiting(audit.reindex)

"""Creating blobs: from bytes, from other blobs, and for bytes that a client will upload itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.delivery import custom_metadata, delivery_of
from holdall.attachments.blob.filename import Filename
from holdall.attachments.home import Home, find_home
from holdall.attachments.owner.declaration import Accept
from holdall.attachments.owner.given import NewFile, own_metadata, read_given
from holdall.attachments.record import BlobRow, ContentRecord
from holdall.attachments.stored import find_row
from holdall.attachments.upload.upload import (
    GRACE,
    StoredFile,
    discard_files,
    new_key,
    place_marker,
    provider_metadata,
    store_files,
)
from holdall.core.context import Context
from holdall.core.objects import SignedUrl
from holdall.errors import InvalidOptionsError
from holdall.files import composition, upkeep
from holdall.files.progress import Progress
from holdall.files.shelf import Shelf
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, commit_once
from holdall.tables.record import fetch

_ANYTHING = Accept()


async def create_and_upload(
    context: Context,
    given: Any,
    *,
    filename: str | Filename | None = None,
    content_type: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    identify: bool = True,
    service: str | None = None,
    key: str | None = None,
    dedupe: bool = False,
    progress: Progress | None = None,
) -> Blob:
    """Store a file as a blob that is not attached to anything yet. Attach it within two days, or a sweep deletes it.

    ``given`` is a path, an open file, bytes, an iterator of bytes or an upload of a web framework. The content type is
    determined from the first bytes; ``identify=False`` keeps the one that you pass. ``key`` is the key of the bytes in
    the service; it must be unused. With ``dedupe=True``, if a file with the same bytes, name and type was stored with
    ``dedupe=True`` before, that blob is returned instead of a new one.
    """
    file = read_given(
        given,
        filename=filename,
        content_type=content_type,
        metadata=metadata,
        identify=identify,
        service=service,
        key=key,
    )
    if not isinstance(file, NewFile):
        raise InvalidOptionsError(
            "a blob or a signed id (a string) cannot be uploaded: its file is already stored",
            hint="to upload a file, pass a pathlib.Path or an open file; to find a blob, use db.blobs.find or "
            "db.blobs.find_signed",
        )
    home = await find_home(context)
    stored = StoredFile(context, file, service_of(context, file.service), _ANYTHING, "file")
    await store_files(context, home, [stored], progress)
    row = stored.new_row(home, context.port.now())
    stored.describe(row)
    if not dedupe:
        await _create(context, row)
        return Blob.of(row)
    same = await find_same(context, home, row)
    if same is not None:
        await discard_files(context, home, [stored])
        return Blob.of(same)
    return Blob.of(row)


async def create_before_direct_upload(
    context: Context,
    *,
    filename: str | Filename,
    byte_size: int,
    checksum: str,
    content_type: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    service: str | None = None,
    expires: float | timedelta = 300,
) -> tuple[Blob, SignedUrl]:
    """Create a blob whose bytes a client uploads directly to the service; return it with the URL and headers to use.

    The service accepts only bytes of this size, MD5 (``checksum``, in base64) and type. Metadata that only Holdall may
    set is dropped. The URL expires after ``expires``, a number of seconds or a timedelta; one day at most.
    """
    if isinstance(byte_size, bool) or byte_size < 0:
        raise InvalidOptionsError(f"byte_size must be a number of bytes, 0 or more, not {byte_size!r:.40}")
    # bytes that arrive after the sweep would never be deleted
    if upkeep.seconds(expires) > (GRACE / 2).total_seconds():
        raise InvalidOptionsError(f"expires must be at most one day, not {expires!r:.60}")
    home, now = await find_home(context), context.port.now()
    kept = own_metadata(metadata)
    row = BlobRow.new(
        home.blob(id := context.port.new_id()),
        BlobRow.id.set(id),
        BlobRow.key.set(new_key(context.port)),
        BlobRow.filename.set(str(filename)),
        BlobRow.content_type.set(content_type),
        BlobRow.byte_size.set(byte_size),
        BlobRow.checksum.set(checksum),
        BlobRow.metadata.set(kept),
        BlobRow.service_name.set(service_of(context, service)),
        BlobRow.created_at.set(now),
        BlobRow.count.set(0),
        BlobRow.entity.set("Blob"),
    )
    signed = await upkeep.upload_url(
        Shelf(context, row.service_name),
        row.key,
        size=byte_size,
        md5=checksum,
        expires=expires,
        content_type=content_type,
        metadata=custom_metadata(kept),
    )
    await place_marker(context, home, row, now)
    await _create(context, row)
    return Blob.of(row), signed


async def find_same(context: Context, home: Home, row: BlobRow) -> BlobRow | None:
    """Create a blob that later files with the same content can reuse; if there is one already, return it."""
    assert row.sha256 is not None
    content = ContentRecord(home.content(row.service_name, row.sha256))

    async def body(change: Change) -> BlobRow | None:
        known = await fetch(context.port, ContentRecord(content.address))
        if known.is_stored:
            same = await fetch(context.port, BlobRow(home.blob(known.blob_id)))
            if _lasts(same, context.port.now()) and (same.filename, same.content_type) == (
                row.filename,
                row.content_type,
            ):
                return same
        change.create(row)
        new = ContentRecord.new(content.address, ContentRecord.blob_id.set(row.id))
        change.put(new, expect=[known.same(ContentRecord.blob_id)])
        return None

    return await commit(context, body, f"the blob with the digest {row.sha256}")


def _lasts(row: BlobRow, now: datetime) -> bool:
    """Whether a blob exists, and is not so old that a sweep may delete it before the caller can attach it."""
    created = row.created_at
    return row.is_stored and (row.count > 0 or created is None or now - created < GRACE / 2)


async def _create(context: Context, row: BlobRow) -> None:
    change = Change(context)
    change.create(row)
    await commit_once(change)


def service_of(context: Context, service: str | None) -> str:
    """The name of a service: the given one, or the default."""
    found = service or context.settings.default_service
    if found is None:
        raise InvalidOptionsError(
            "the database has no default file service",
            hint='pass service=..., or open the database with files="s3://bucket" or files="file:PATH"',
        )
    return found


async def compose(
    context: Context,
    blobs: Sequence[Blob | str],
    *,
    filename: str | Filename,
    content_type: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Blob:
    """Create a blob by concatenating the bytes of others, which stay as they are. The new blob has no checksum."""
    home, now = await find_home(context), context.port.now()
    rows = [await find_row(context, home, each) for each in blobs]
    services = {row.service_name for row in rows}
    if len(services) != 1:
        raise InvalidOptionsError(
            "only blobs in the same file service can be composed",
            hint="copy them to one service first: download each, and store it with service=...",
        )
    kind = content_type or next((row.content_type for row in rows if row.content_type), None)
    row = BlobRow.new(
        home.blob(id := context.port.new_id()),
        BlobRow.id.set(id),
        BlobRow.key.set(key or new_key(context.port)),
        BlobRow.filename.set(str(filename)),
        BlobRow.content_type.set(kind),
        BlobRow.byte_size.set(sum(row.byte_size for row in rows)),
        BlobRow.metadata.set({**own_metadata(metadata), "composed": True, "identified": True}),
        BlobRow.service_name.set(services.pop()),
        BlobRow.created_at.set(now),
        BlobRow.count.set(0),
        BlobRow.entity.set("Blob"),
    )
    await place_marker(context, home, row, now)
    delivery = delivery_of(kind, str(filename))
    await composition.compose(
        Shelf(context, row.service_name),
        [each.key for each in rows],
        row.key,
        content_type=delivery.content_type,
        disposition=delivery.disposition,
        metadata=provider_metadata(metadata or {}, row.id, key),
        if_absent=key is not None,
    )
    await _create(context, row)
    return Blob.of(row)

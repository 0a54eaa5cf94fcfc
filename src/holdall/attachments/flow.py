"""The flows of ``db.blobs``, which need no owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from holdall.attachments.address import SignedFile, parse_address, verify_variation
from holdall.attachments.attachment import Attachment
from holdall.attachments.blob import Blob
from holdall.attachments.declaration import Accept
from holdall.attachments.delivery import Disposition, custom_metadata, delivery_of
from holdall.attachments.filename import Filename
from holdall.attachments.given import NewFile, own_metadata, read_given
from holdall.attachments.home import Home, home_of
from holdall.attachments.purge import delete_row, purge, purge_row
from holdall.attachments.record import AttachmentRow, BlobRow, ContentRecord
from holdall.attachments.representation import Representation
from holdall.attachments.settings import attachment_settings
from holdall.attachments.signed_id import Purpose, read_expiry, sign_id, verify_id
from holdall.attachments.stored import find_row, read_blobs, read_references
from holdall.attachments.upload import (
    GRACE,
    StoredFile,
    discard_files,
    new_key,
    place_marker,
    provider_metadata,
    store_files,
)
from holdall.core.context import Context
from holdall.core.expressions import Path, Remove, Set, UpdateAction, Value
from holdall.core.objects import ObjectInfo, SignedUrl
from holdall.core.values import encode
from holdall.errors import IntegrityError, InvalidOptionsError, InvalidTokenError, RecordNotFound
from holdall.files import composition, upkeep
from holdall.files import download as file_download
from holdall.files.download import Wanted, find_place, give, read_into, read_into_file
from holdall.files.piece import Pieces
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf
from holdall.jobs.outbox import enqueue_alone
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit, commit_once
from holdall.tables.record import fetch, fetch_all

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
    home = await home_of(context)
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
    if (
        upkeep.seconds(expires) > (GRACE / 2).total_seconds()
    ):  # bytes that arrive after the sweep would never be deleted
        raise InvalidOptionsError(f"expires must be at most one day, not {expires!r:.60}")
    home, now = await home_of(context), context.port.now()
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


# --- finding ----------------------------------------------------------------------------------------------


async def find(context: Context, id: str) -> Blob:
    """Return the blob with this id; `RecordNotFound` if there is none."""
    return Blob.of(await find_row(context, await home_of(context), id))


async def find_signed(context: Context, signed_id: str, *, purpose: Purpose = "blob") -> Blob | None:
    """Return the blob that a signed id identifies.

    None if the id is invalid, has expired or was signed for another purpose, or if the blob does not exist.
    """
    try:
        id = verify_id(
            context.settings.secret,
            signed_id,
            purpose=purpose,
            now=context.port.now(),
            form=attachment_settings(context.settings).signed_ids,
        )
        return await find(context, str(id))
    except (InvalidTokenError, RecordNotFound):
        return None


async def find_by_url(context: Context, path: str) -> SignedFile | None:
    """Return the file that a URL's path in the web application identifies; ``attached.url()`` returns such paths.

    None if the path was tampered with, has expired, or its blob does not exist.
    """
    own = attachment_settings(context.settings)
    address = parse_address(own.path, path)
    if address is None:
        return None
    now, picture = context.port.now(), None
    blob = await find_signed(context, address.signed_id)
    if blob is None:
        return None
    if address.variation is not None:
        try:
            variant = verify_variation(context.settings, address.variation, now)
        except (InvalidTokenError, InvalidOptionsError):
            return None
        picture = Representation(context.settings, blob, variant)
    until = read_expiry(address.signed_id, form=own.signed_ids)
    return SignedFile(blob, picture, address.proxied, None if until is None else until - now)


async def signed_id(
    context: Context, blob: Blob | str, *, purpose: Purpose = "blob", expires: float | timedelta | None = None
) -> str:
    """Return a signed id of the blob, valid for one purpose: ``"blob"`` to view it, ``"attach"`` to attach it.

    ``expires`` is a number of seconds or a timedelta; without it, the signed id never expires.
    """
    until = None if expires is None else context.port.now() + timedelta(seconds=upkeep.seconds(expires))
    id = blob if isinstance(blob, str) else blob.id
    form = attachment_settings(context.settings).signed_ids
    return sign_id(context.settings.secret, id, purpose=purpose, expires=until, form=form)


async def attachments(context: Context, blob: Blob | str) -> list[Attachment]:
    """List the attachments of a blob. Those that a Rails application wrote are found only after `reindex`."""
    home = await home_of(context)
    row = await find_row(context, home, blob)
    places = await read_references(context, home, row)
    wanted = [AttachmentRow(home.attachment(*home.parse_place(place), id)) for id, place in places.items()]
    found = await fetch_all(context.port, wanted) if wanted else []
    return [
        Attachment.of(context.settings, each, Blob.of(row))
        for each in found
        if each.is_stored and each.blob_id == row.id
    ]


# --- bytes ------------------------------------------------------------------------------------------------


def request_bytes(context: Context, blob: Blob, *, verify: bool = True) -> Wanted:
    """Describe the download of a blob, whose bytes must be those that were uploaded.

    Its checksum is an MD5 or, if Rails was configured so, a SHA-256 after ``sha256:``.
    """
    kind, _, digest = (blob.checksum or "").rpartition(":")
    md5 = "" if kind else digest
    sha256 = blob.sha256 or (digest if kind == "sha256" else None)

    def vet(info: ObjectInfo) -> None:
        if info.size != blob.byte_size or (info.md5 and md5 and info.md5 != md5):
            raise IntegrityError(f"the bytes of blob {blob.id} are not those that were uploaded")

    shelf = Shelf(context, blob.service_name)
    return Wanted(shelf, blob.key, verify, sha256 if verify else None, vet if verify else None)


async def download(
    context: Context,
    blob: Blob | str,
    to: Any = None,
    *,
    start: int = 0,
    size: int | None = None,
    verify: bool = True,
    progress: Progress | None = None,
    resume: bool = False,
) -> Any:
    """Return a blob's bytes, or ``size`` of them from ``start`` on. With ``to``, write all of them to a file or stream.

    A complete download is verified against the blob's digest: `IntegrityError` if it differs.
    """
    found = blob if isinstance(blob, Blob) else await find(context, blob)
    wanted, meter = request_bytes(context, found, verify=verify), Meter(context.port, progress)
    if start or size is not None:
        if to is not None:
            raise InvalidOptionsError(
                "a range of bytes cannot be written to a file", hint="leave out to=, or start= and size="
            )
        return await file_download.get(wanted.shelf, found.key, start=start, size=size)
    if to is None:
        pieces: list[bytes] = []

        async def take(piece: bytes) -> None:
            pieces.append(piece)

        await read_into(wanted, take, meter)
        return b"".join(pieces)
    if callable(getattr(to, "write", None)):
        return await read_into(wanted, partial(give, context.port, to), meter)
    return await read_into_file(wanted, await find_place(context, to), meter, resume=resume)


def new_pieces(context: Context, blob: Blob, start: int, size: int | None) -> Pieces:
    """A cursor over a blob's bytes. The size and MD5 that the service reports must be those of the blob."""
    wanted = request_bytes(context, blob)
    return Pieces(wanted.shelf, wanted.key, start, size, vet=wanted.vet)


async def url(
    context: Context,
    blob: Blob | str,
    *,
    expires: float | timedelta = 300,
    disposition: Disposition = "inline",
    filename: str | None = None,
) -> str:
    """Return a temporary URL for the bytes, directly in the service.

    It expires after ``expires``, a number of seconds or a timedelta. Types that a browser could execute are always
    served as downloads, even with ``disposition="inline"``.
    """
    found = blob if isinstance(blob, Blob) else await find(context, blob)
    shelf = Shelf(context, found.service_name)
    kind, header = delivery_of(found.content_type, filename or found.filename, disposition)
    return await upkeep.url(shelf, found.key, expires=expires, content_type=kind, disposition=header)


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
    home, now = await home_of(context), context.port.now()
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


# --- changes ----------------------------------------------------------------------------------------------


async def update_metadata(context: Context, blob: Blob | str, changes: Mapping[str, Any]) -> Blob:
    """Set these entries of a blob's metadata, and leave the others; the value None removes an entry.

    Other processes may change other entries at the same time.
    """
    home = await home_of(context)
    row = await find_row(context, home, blob)
    actions: list[UpdateAction] = []
    for name, value in changes.items():
        path = Path((BlobRow.metadata.name, name))
        actions.append(Remove(path) if value is None else Set(path, Value(encode(value))))
    if actions:
        change = Change(context)
        change.update(
            row,
            *actions,
            expect=[row.address.exists],
            refused=lambda _: RecordNotFound(f"there is no blob {row.id!r:.80}"),
        )
        await commit_once(change)
    return Blob.of(await find_row(context, home, row.id))


async def delete(context: Context, blob: Blob | str) -> None:
    """Delete a blob and its bytes. `ForeignKeyViolation` if it is attached; a missing blob is not an error."""
    home = await home_of(context)
    (row,) = (await read_blobs(context, home, [blob if isinstance(blob, str) else blob.id])).values()
    if row.is_stored:
        await delete_row(context, home, row)


async def purge_now(context: Context, blob: Blob | str) -> bool:
    """Delete a blob and its bytes, unless it is attached; return False if it is."""
    home = await home_of(context)
    (row,) = (await read_blobs(context, home, [blob if isinstance(blob, str) else blob.id])).values()
    return not row.is_stored or await purge_row(context, home, row)


async def purge_later(context: Context, *blobs: Blob | str) -> None:
    """Enqueue a job that deletes blobs and their bytes, except those that are attached when it runs."""
    ids = [each if isinstance(each, str) else each.id for each in blobs]
    await enqueue_alone(context, purge, ids, key=None, delay=None, queue=None)

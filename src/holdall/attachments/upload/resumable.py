"""Resumable uploads: files that arrive in several requests, to any server, over broken connections.

An upload is an item. It records which blob the file will become, and which of its bytes have arrived. `arrival` stores
bytes and then moves the item's offset; `completion` makes the blob from them.

Why nothing is lost or left over wherever a process dies: the item counts only bytes that are stored. Before the item, a
marker is written for the moment at which the upload expires. Two days after that moment, it leads the sweep to
everything that may be left: the item, objects and parts of the upload, counted or not, and a blob that was never
attached. So neither completing nor cancelling an upload has to remove its marker, and the sweep also finds what a
request that seemed dead stores late.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdall.attachments.blob.address import verify_with
from holdall.attachments.blob.creation import service_of
from holdall.attachments.blob.filename import Filename
from holdall.attachments.home import Home, find_home
from holdall.attachments.owner.given import own_metadata
from holdall.attachments.record import Marker, UploadRecord
from holdall.attachments.upkeep.purge import purge_blobs
from holdall.attachments.upload.arrival import Arrival, conflict_at
from holdall.attachments.upload.completion import complete
from holdall.attachments.upload.remains import give_up, provider_headers
from holdall.attachments.upload.upload import new_key, new_marker, place_markers
from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.objects import BeginUpload, DescribeService
from holdall.core.rules.object import MAX_OBJECT, check_object_request
from holdall.errors import InvalidOptionsError, InvalidTokenError, RecordNotFound
from holdall.files.upkeep import seconds
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import delete_all, fetch

_MOST_PARTS = 9_000
"""The parts of the largest uploads. A service allows 10,000; a request that dies while storing a part wastes one."""


def choose_part_size(byte_size: int, least: int) -> int:
    """The size of a file's parts: the service's default, or one that downloads try when they verify an etag."""
    sizes = (least, *(1 << power for power in range(23, 31)))
    return next(size for size in sizes if size * _MOST_PARTS >= byte_size)


@dataclass(frozen=True, slots=True)
class ResumableUpload:
    """A file that arrives in several requests. ``offset`` is how many of its bytes have been stored.

    When ``is_complete`` is true, there is a blob with the same id.
    """

    id: str
    filename: Filename
    content_type: str | None
    byte_size: int
    metadata: Mapping[str, Any]
    service_name: str
    offset: int
    is_complete: bool
    created_at: datetime
    expires_at: datetime


async def start_upload(
    context: Context,
    *,
    filename: str | Filename,
    byte_size: int,
    content_type: str | None = None,
    checksum: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    service: str | None = None,
    expires: float | timedelta = 86400,
) -> ResumableUpload:
    """Start an upload whose bytes may arrive in any number of requests.

    All bytes must arrive within ``expires``, a number of seconds or a timedelta. With ``checksum``, the MD5 in base64,
    they are verified at the end; if they came in several requests, they are read once more for this. Metadata that only
    Holdall may set is dropped.
    """
    if isinstance(byte_size, bool) or not isinstance(byte_size, int) or not 0 <= byte_size <= MAX_OBJECT:
        raise InvalidOptionsError(
            f"byte_size must be a whole number from 0 to {MAX_OBJECT:,}, not {byte_size!r:.40}"
        )
    if not str(filename):
        raise InvalidOptionsError("an upload needs a file name", hint='pass filename="..."')
    port, now = context.port, context.port.now()
    until = now + timedelta(seconds=seconds(expires))
    name = service_of(context, service)
    traits = await port.send(DescribeService(name))
    home = await find_home(context)
    record = UploadRecord.new(
        home.upload(id := port.new_id()),
        UploadRecord.id.set(id),
        UploadRecord.key.set(new_key(port)),
        UploadRecord.service.set(name),
        UploadRecord.filename.set(str(filename)),
        UploadRecord.content_type.set(content_type),
        UploadRecord.byte_size.set(byte_size),
        UploadRecord.checksum.set(checksum),
        UploadRecord.metadata.set(own_metadata(metadata)),
        UploadRecord.created_at.set(now),
        UploadRecord.expires_at.set(until),
        UploadRecord.part_size.set(choose_part_size(byte_size, traits.part_size)),
        UploadRecord.version.set(0),
        UploadRecord.offset.set(0),
        UploadRecord.next_part.set(1),
    )
    check_object_request(BeginUpload(name, record.key, provider_headers(record)))
    marker = new_marker(home, id, name, record.key, until)
    marker.fill(Marker.is_upload.set(True))
    await place_markers(context, home, [marker], until)
    change = Change(context)
    change.create(record)
    await commit_once(change)
    return show_upload(record if byte_size else await complete(context, home, record))


async def find_upload(context: Context, id: str) -> ResumableUpload:
    """Return the upload with this id; `RecordNotFound` if there is none, or it was cancelled or has expired."""
    return show_upload(await _read(context, await find_home(context), id))


async def find_signed_upload(context: Context, signed_id: str) -> ResumableUpload | None:
    """Return the upload that a signed id identifies, which must have been signed with the purpose ``"upload"``.

    None if the signed id is invalid, or the upload does not exist.
    """
    try:
        id = verify_with(context.settings, signed_id, "upload", context.port.now())
        return await find_upload(context, str(id))
    except (InvalidTokenError, RecordNotFound):
        return None


async def continue_upload(
    context: Context,
    upload: ResumableUpload | str,
    offset: int,
    source: Any,
    *,
    checksum: str | None = None,
) -> ResumableUpload:
    """Store the next bytes of an upload, beginning at ``offset``; with the last of them, the upload becomes a blob.

    ``source`` is bytes, a path, a stream, or an iterator of bytes; it is never held in memory as a whole. If reading it
    fails, the bytes that have arrived are kept. ``checksum`` is a digest of these bytes, in base64 after ``md5:``,
    ``sha1:`` or ``sha256:``; if they do not match it, none of them are kept, and this raises `IntegrityError`.
    `UploadConflictError` if the upload is at another offset, or if another request continues it meanwhile.
    """
    home = await find_home(context)
    record = await _read(context, home, upload if isinstance(upload, str) else upload.id)
    if offset != record.offset:
        raise conflict_at(record, f"but the request sent bytes from {offset!r:.30} on")
    record = await Arrival(context, record, checksum).take(source)
    if record.offset == record.byte_size and not record.is_complete:
        record = await complete(context, home, record)
    return show_upload(record)


async def cancel_upload(context: Context, upload: ResumableUpload | str) -> None:
    """Cancel an upload, and delete the bytes that have arrived. A missing upload is not an error.

    If the upload is complete, its blob is deleted, unless it is attached.
    """
    home = await find_home(context)
    id = upload if isinstance(upload, str) else upload.id
    try:
        record = await _read(context, home, id)
    except RecordNotFound:
        return
    if not await give_up(context, record):
        await purge_blobs(context, [id])
        await delete_all(context.port, [record])


async def _read(context: Context, home: Home, id: str) -> UploadRecord:
    record = await fetch(context.port, UploadRecord(home.upload(id))) if id else None
    if record is None or not record.is_stored or context.port.now() >= record.expires_at:
        raise RecordNotFound(
            f"there is no upload {id!r:.80}",
            hint="if there was one, it was cancelled or has expired; start a new upload",
        )
    return record


def show_upload(record: UploadRecord) -> ResumableUpload:
    """The public value of an upload's record."""
    created = record.created_at
    assert created is not None
    return ResumableUpload(
        record.id,
        Filename(record.filename),
        record.content_type,
        record.byte_size,
        record.metadata,
        record.service,
        record.offset,
        record.is_complete,
        created,
        record.expires_at,
    )

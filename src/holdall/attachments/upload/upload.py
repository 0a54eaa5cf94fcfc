"""Storing the bytes of new files, so that none are lost and none are left over.

Why it is safe wherever the process dies: a marker is written before the first byte. It leads the sweep to bytes that no
row refers to: after the grace period, a blob that is not attached is deleted, bytes first, marker last. A commit
happens at most half the grace period after its marker; an upload whose marker is older than that is repeated, with
another id and key. So the sweep never deletes bytes that a commit in progress is about to refer to.

A key that a caller chose may belong to another file, now or when the sweep runs. So bytes under a chosen key carry the
id of their blob, and a marker leads only to bytes of its own blob.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from holdall.attachments.blob.content_type import HEAD_BYTES, identify
from holdall.attachments.blob.delivery import custom_metadata, delivery_of
from holdall.attachments.blob.filename import Filename
from holdall.attachments.home import Home, format_hour
from holdall.attachments.owner.given import NewFile
from holdall.attachments.record import BlobRow, Hour, Marker
from holdall.core.context import Context, Kept
from holdall.core.objects import DeleteObject, DescribeService, ObjectInfo
from holdall.core.port import Port
from holdall.errors import InvalidOptionsError
from holdall.files.progress import Progress
from holdall.files.shelf import Shelf
from holdall.files.source import Continued, open_source, read_exactly, read_range
from holdall.files.transfer import find_object
from holdall.files.upload import put
from holdall.local.source import StreamSource
from holdall.tables.record import Record, delete_all, put_all

if TYPE_CHECKING:
    from holdall.attachments.owner.declaration import Accept

GRACE = timedelta(days=2)
"""How long bytes may be stored without an attachment that refers to them."""

BLOB_MARK = "hd-blob-id"
"""The metadata that records, for bytes under a key that a caller chose, the blob that they were stored for."""

KEY_LENGTH = 28
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class StoredFile:
    """A new file in a run: its blob's id and key, and whether its bytes are stored. Later attempts reuse it."""

    def __init__(self, context: Context, file: NewFile, service: str, accept: Accept, field: str) -> None:
        port = context.port
        self.file = file
        self.service = service
        self.accept = accept
        self.field = field
        self.id = port.new_id()
        self.key = file.key or new_key(port)
        self.marked_at: datetime | None = None
        self.content_type: str | None = None
        self.content: Any = None
        self.info: ObjectInfo | None = None
        self.keeper: object = None

    def is_ready(self, now: datetime) -> bool:
        """Whether its bytes are stored, and a commit can still refer to them."""
        return self.info is not None and not self.is_too_old(now)

    def is_too_old(self, now: datetime) -> bool:
        """Whether its marker is so old that no commit may refer to its bytes."""
        return self.marked_at is not None and now - self.marked_at >= GRACE / 2

    def new_row(self, home: Home, now: datetime) -> BlobRow:
        """The row of its blob, to be completed once its bytes are stored."""
        return BlobRow.new(
            home.blob(self.id),
            BlobRow.id.set(self.id),
            BlobRow.key.set(self.key),
            BlobRow.filename.set(self.file.filename),
            BlobRow.metadata.set({**self.file.metadata, "identified": True}),
            BlobRow.service_name.set(self.service),
            BlobRow.created_at.set(now),
            BlobRow.count.set(0),
            BlobRow.entity.set("Blob"),
        )

    def describe(self, row: BlobRow) -> None:
        """Complete a blob's row with what is known now that its bytes are stored."""
        assert self.info is not None
        row.fill(
            BlobRow.content_type.set(self.content_type),
            BlobRow.byte_size.set(self.info.size),
            BlobRow.checksum.set(self.info.md5),
            BlobRow.sha256.set(self.info.sha256),
        )


def new_key(port: Port) -> str:
    """A key that cannot be guessed: 28 characters, safe on file systems that ignore case."""
    number = UUID(port.new_id()).int << 128 | UUID(port.new_id()).int
    digits = []
    for _ in range(KEY_LENGTH):
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return "".join(digits)


def new_marker(home: Home, blob_id: str, service: str, key: str, now: datetime) -> Marker:
    """The marker that leads a sweep to bytes."""
    return Marker.new(
        home.marker(now, blob_id),
        Marker.blob_id.set(blob_id),
        Marker.service.set(service),
        Marker.key.set(key),
        Marker.created_at.set(now),
    )


class _Hours(Kept):
    """The hours that this process has listed."""

    def __init__(self) -> None:
        self.names: set[str] = set()


async def place_markers(context: Context, home: Home, markers: Sequence[Marker], now: datetime) -> None:
    """Write markers, and list their hour so that a sweep finds them."""
    listed = context.state.of(_Hours).names
    hour = Hour.new(home.hour(now), Hour.hour.set(format_hour(now)))
    records: list[Record] = [*([] if hour.hour in listed else [hour]), *markers]
    await put_all(context.port, records)
    listed.add(hour.hour)


async def place_marker(context: Context, home: Home, row: BlobRow, now: datetime) -> Marker:
    """Write the marker of a blob that is not attached."""
    marker = new_marker(home, row.id, row.service_name, row.key, now)
    await place_markers(context, home, [marker], now)
    return marker


async def store_files(
    context: Context, home: Home, files: Sequence[StoredFile], progress: Progress | None = None
) -> None:
    """Store the bytes of files that are not stored yet: markers first, then the files in parallel."""
    port, now = context.port, context.port.now()
    waiting = [file for file in files if not file.is_ready(now)]
    if not waiting:
        return
    for service in dict.fromkeys(file.service for file in waiting):
        await port.send(DescribeService(service))  # an unknown service is reported before anything is written
    markers = [new_marker(home, file.id, file.service, file.key, now) for file in waiting]
    await place_markers(context, home, markers, now)
    for file in waiting:
        file.marked_at = now
    for outcome in await port.gather([_store(context, file, progress) for file in waiting]):
        outcome.result()


async def identify_file(context: Context, file: StoredFile) -> None:
    """Determine a file's content type from its first bytes, unless that was done; raise if it is not accepted."""
    if file.info is not None or file.content is not None:
        return
    given = file.file
    source = await open_source(context.port, given.source)
    content = given.source
    if isinstance(source, StreamSource):
        head = await _peek(context.port, source.stream, given.filename)
        content = Continued(head, source.stream)
    else:
        file.accept.check_size(file.field, source.size)
        head = await read_range(context.port, source, 0, min(HEAD_BYTES, source.size))
    declared = given.content_type
    file.content_type = (
        declared
        if declared is not None and not given.identify
        else identify(head, name=str(Filename(given.filename)), declared=declared)
    )
    file.accept.check_type(file.field, file.content_type)
    file.content = content


async def _store(context: Context, file: StoredFile, progress: Progress | None) -> None:
    await identify_file(context, file)
    given, content = file.file, file.content
    file.content = None  # a stream can be read only once
    delivery = delivery_of(file.content_type, Filename(given.filename))
    file.info = await put(
        Shelf(context, file.service),
        file.key,
        content,
        content_type=delivery.content_type,
        disposition=delivery.disposition,
        metadata=provider_metadata(given.metadata, file.id, given.key),
        if_absent=given.key is not None,
        progress=progress,
    )
    file.accept.check_size(file.field, file.info.size)


def provider_metadata(metadata: Mapping[str, Any], blob_id: str, key: str | None) -> dict[str, str]:
    """The metadata that bytes are stored with; ``key`` is the one that the caller chose, if any."""
    custom = custom_metadata(metadata)
    return custom if key is None else {**custom, BLOB_MARK: blob_id}


async def are_bytes_of(context: Context, service: str, key: str, blob_id: str) -> bool:
    """Whether the bytes under a key belong to this blob, which has no row, and not to another file with the same key.

    A random key is never used twice.
    """
    if len(key) == KEY_LENGTH and not key.strip(_DIGITS):
        return True
    info = await find_object(context, service, key)
    return info is not None and info.headers.metadata.get(BLOB_MARK) == blob_id


async def discard_files(context: Context, home: Home, files: Sequence[StoredFile]) -> None:
    """Delete the bytes of files that no row will ever refer to, then their markers."""
    for file in files:
        if file.marked_at is not None:
            if await are_bytes_of(context, file.service, file.key, file.id):
                await context.port.send(DeleteObject(file.service, file.key))
            await delete_all(context.port, [Marker(home.marker(file.marked_at, file.id))])
            file.marked_at = file.info = None


async def _peek(port: Port, stream: Any, name: str) -> bytes:
    """Read the first bytes of a caller's stream, from its beginning if it can be rewound."""
    seekable = getattr(stream, "seekable", None)
    can_seek = callable(seekable) and await port.call(seekable)
    if can_seek:
        await port.call(stream.seek, 0)
    head = await read_exactly(port, stream, HEAD_BYTES)
    if not head and not can_seek:
        raise InvalidOptionsError(
            f"the stream for {name!r:.80} has no bytes left: it was read before, and it is not seekable",
            hint='pass a path, bytes or a seekable file; to attach an empty file, pass b""',
        )
    return head

"""The arrival of bytes in a resumable upload: they are stored first, then counted in the upload's item.

A file's bytes become parts of one multipart upload in the service, which stays open until the last byte has arrived: so
completing a file of any size moves no bytes. All parts have the same size. Bytes too few for a part are stored as a
separate object, a *piece*, until there are enough for a part. A file that fits into one part has only pieces.

Why it is safe beside other requests, even ones that only seem dead: every write of the item demands the version that
the request has read, so of two requests one is refused, and the bytes that it stored do not count. A piece has a random
key. A part has a number that this request has claimed in the item before it sends the part, and that no other request
ever uses; so a part that arrives late replaces nothing. A number that was claimed but never counted is wasted.

Why it is safe wherever the process dies: bytes that are stored but not counted are sent again by the client, and swept
with the upload.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import AsyncIterable, Iterable
from typing import Any

from holdall.attachments.owner.given import Pieces
from holdall.attachments.record import UploadRecord
from holdall.attachments.upload.remains import end_upload, piece_prefix, provider_headers
from holdall.core.buffer import Buffer
from holdall.core.context import Context
from holdall.core.digests import Digests
from holdall.core.expressions import UpdateAction
from holdall.core.objects import BeginUpload, DeleteObjects, GetObject, PutObject, Upload, UploadPart
from holdall.core.rules.object import MAX_PARTS
from holdall.errors import (
    HoldallError,
    IntegrityError,
    InvalidOptionsError,
    InvalidRequestError,
    ObjectNotFoundError,
    RecordNotFound,
    UploadConflictError,
)
from holdall.files.source import open_source, read_range
from holdall.local.source import StreamSource
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.record import fetch

_READ = 1024 * 1024
_MOST_PIECES = 32
"""After this many pieces, the next one absorbs all earlier ones."""

_ALGORITHMS = ("md5", "sha1", "sha256")


def conflict_at(record: UploadRecord, what: str) -> UploadConflictError:
    """The error for a request that does not fit the state of an upload."""
    return UploadConflictError(
        f"upload {record.id} is at byte {record.offset:,} of {record.byte_size:,}, {what}",
        offset=record.offset,
        hint="read the upload again, and continue it from its offset",
    )


class Arrival:
    """The bytes of one request on their way into an upload."""

    def __init__(self, context: Context, record: UploadRecord, checksum: str | None) -> None:
        self._context = context
        self._port = context.port
        self._record = record
        self._checksum = _Checksum(checksum) if checksum is not None else None
        self._whole = Digests() if record.offset == 0 else None  # only for a file that arrives in one request
        self._offset = record.offset
        self._parts = record.parts
        self._pieces = record.pieces
        self._held, self._size = Buffer(0), 0
        self._litter: list[str] = []

    async def take(self, source: Any) -> UploadRecord:
        """Store and count all bytes of a source; return the upload's new state.

        Without a checksum they are counted part by part; with one, only when all have arrived.
        """
        body = await _open(self._context, source)
        left = self._record.byte_size - self._offset
        if body.size is not None and body.size > left:
            raise self._refuse_more()
        while await self._fill(body):
            await self._store()
            if self._checksum is None:
                await self._count()
        if self._checksum is not None:
            self._checksum.check(self._record)
        await self._store()
        await self._count()
        return self._record

    async def _fill(self, body: _Body) -> bool:
        """Collect the bytes of one part; False if the source ends first."""
        record = self._record
        tail = sum(size for _, size in self._pieces)
        wanted = min(record.part_size - tail, record.byte_size - self._offset)
        try:
            while self._size < wanted:
                piece = await body.read(min(_READ, wanted - self._size))
                if not piece:
                    await self._hash()
                    return False
                self._held.write(piece)
                self._size += len(piece)
            if self._offset + self._size == record.byte_size and await body.read(1):
                raise self._refuse_more()
        except InvalidRequestError:
            raise
        except BaseException as error:  # the connection broke, or the server is stopping
            if self._checksum is None:
                await self._port.finish(self._keep(error))
            raise
        await self._hash()
        return self._offset + self._size < record.byte_size

    async def _keep(self, error: BaseException) -> None:
        """Keep what arrived before an error; the caller raises that error."""
        try:
            await self._hash()
            await self._store()
            await self._count()
        except HoldallError as another:
            error.add_note(f"the last {self._size:,} bytes that arrived could not be stored: {another.code}")

    def _refuse_more(self) -> InvalidRequestError:
        record = self._record
        return InvalidRequestError(
            f"upload {record.id} was started with {record.byte_size:,} bytes, and more have arrived"
        )

    async def _hash(self) -> None:
        digests = [each for each in (self._whole, self._checksum) if each is not None]
        if digests and self._size:
            await self._port.offload(_update_all, digests, self._held)

    # --- storing ------------------------------------------------------------------------------------------

    async def _store(self) -> None:
        """Store the collected bytes: as a part if they fill one, otherwise as a piece."""
        if not self._size:
            return
        record, before = self._record, self._pieces
        size = self._size + sum(size for _, size in before)
        is_part = size == record.part_size < record.byte_size
        merges = is_part or len(before) >= _MOST_PIECES
        data, self._held = self._held.take(), Buffer(0)
        try:
            if merges and before:
                data = await read_pieces(self._context, record.service, before) + data
            if is_part:
                number, upload = await self._claim_part()
                await self._port.send(UploadPart(record.service, upload, number, data))
                self._parts, self._pieces = add_number(self._parts, number), []
            else:
                key = piece_prefix(record.key) + self._port.new_id()
                await self._port.send(PutObject(record.service, key, data))
                self._pieces = [*([] if merges else before), (key, len(data))]
        except ObjectNotFoundError as error:
            raise await explain_loss(self._context, self._record) from error
        if merges:
            self._litter += [key for key, _ in before]
        self._offset += self._size
        self._size = 0

    async def _claim_part(self) -> tuple[int, Upload]:
        """Claim a part number that no other request uses; the first claim also begins the multipart upload."""
        record = self._record
        number = record.next_part
        if number >= MAX_PARTS:  # the last one is for the end of the file
            raise await end_upload(
                self._context, record, "it was interrupted too often and has used up all part numbers"
            )
        actions: list[UpdateAction] = [UploadRecord.next_part.set(number + 1)]
        if record.multipart is None:
            begin = BeginUpload(record.service, record.key, provider_headers(record))
            upload = await self._port.send(begin)
            actions.append(UploadRecord.multipart.set(upload.id))
        else:
            upload = Upload(record.key, record.multipart)
        await self._write(*actions)
        return number, upload

    async def _count(self) -> None:
        """Count the stored bytes in the item; then delete pieces that were absorbed, or that will never count."""
        if self._offset == self._record.offset:
            return
        whole = self._whole if self._offset == self._record.byte_size else None
        counted = self._record.pieces
        try:
            await self._write(
                UploadRecord.offset.set(self._offset),
                UploadRecord.parts.set(self._parts),
                UploadRecord.pieces.set(self._pieces),
                *([UploadRecord.md5.set(whole.md5), UploadRecord.sha256.set(whole.sha256)] if whole else []),
            )
        except (UploadConflictError, RecordNotFound):  # the bytes stored here will never count
            known = {key for key, _ in counted}
            self._litter = [key for key, _ in self._pieces if key not in known]
            await self._drop_litter()
            raise
        await self._drop_litter()

    async def _drop_litter(self) -> None:
        if self._litter:
            await self._port.send(DeleteObjects(self._record.service, tuple(self._litter)))
            self._litter = []

    async def _write(self, *actions: UpdateAction) -> None:
        record = self._record
        actions = (*actions, UploadRecord.version.set(record.version + 1))
        change = Change(self._context)
        change.update(
            UploadRecord(record.address),
            *actions,
            expect=[UploadRecord.version.equals(record.version)],
            stampable=True,
            label="upload",
        )
        refused = await commit_once(change)
        if refused is not None:
            raise explain_change(record, refused.found["upload"])
        self._record = record.apply(*actions)


def explain_change(record: UploadRecord, found: Any) -> HoldallError:
    """The error that explains why an upload could not be written: it is gone, or another request continued it."""
    if found is None:
        return RecordNotFound(f"upload {record.id} was cancelled or has expired", hint="start a new upload")
    return conflict_at(UploadRecord(record.address, found), "because another request has continued it")


async def explain_loss(context: Context, record: UploadRecord) -> HoldallError:
    """The error that explains why bytes cannot be used: another request used them, or the service lost them."""
    now = await fetch(context.port, UploadRecord(record.address))
    if not now.is_stored or now.version != record.version:
        return explain_change(record, now.item)
    return await end_upload(context, record, "the file service has lost or rejected its bytes")


def add_number(runs: list[list[int]], number: int) -> list[list[int]]:
    """Append a number to runs of numbers."""
    if runs and runs[-1][1] == number - 1:
        return [*runs[:-1], [runs[-1][0], number]]
    return [*runs, [number, number]]


async def read_pieces(context: Context, service: str, pieces: list[tuple[str, int]]) -> bytes:
    """Read the bytes of pieces, concatenated."""
    port = context.port
    found = await port.gather([port.send(GetObject(service, key)) for key, _ in pieces])
    return b"".join([each.result().body for each in found])


# --- the bytes of a request -------------------------------------------------------------------------------


class _Checksum:
    """The checksum of a request's bytes: the name of its algorithm, a colon, and a digest in base64."""

    def __init__(self, given: str) -> None:
        name, _, self._expected = given.partition(":")
        if name not in _ALGORITHMS or not self._expected:
            raise InvalidOptionsError(
                f"checksum must be the name of an algorithm, a colon and base64, not {given!r:.60}",
                hint=f"known algorithms: {', '.join(_ALGORITHMS)}",
            )
        self._digest = hashlib.new(name, usedforsecurity=False)

    def update(self, data: memoryview) -> None:
        self._digest.update(data)

    def check(self, record: UploadRecord) -> None:
        if b64encode(self._digest.digest()).decode() != self._expected:
            raise IntegrityError(
                f"bytes of upload {record.id} do not match the checksum that was sent with them",
                hint="send them again",
            )


def _update_all(digests: list[Digests | _Checksum], held: Buffer) -> None:
    with held.view() as view:
        for each in digests:
            each.update(view)


class _Body:
    """A source that is read from beginning to end; ``size`` is known for bytes and files."""

    def __init__(self, context: Context, source: Any) -> None:
        self._port = context.port
        self._source = source
        self._at = 0
        self.size: int | None = None if isinstance(source, StreamSource) else source.size

    async def read(self, size: int) -> bytes:
        """Read up to ``size`` bytes; empty at the end."""
        if isinstance(self._source, StreamSource):
            return await self._port.read(self._source.stream, size)
        data = await read_range(self._port, self._source, self._at, min(size, self._source.size - self._at))
        self._at += len(data)
        return data


async def _open(context: Context, given: Any) -> _Body:
    plain = isinstance(given, str | bytes | bytearray | memoryview) or hasattr(given, "__fspath__")
    if not plain and not hasattr(given, "read") and isinstance(given, Iterable | AsyncIterable):
        given = Pieces(given)
    return _Body(context, await open_source(context.port, given))

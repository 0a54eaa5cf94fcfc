"""The flow that joins several objects into one, if possible without their bytes passing through this process.

A service can copy parts of an upload from other objects. Every part but the last has a minimum size, so an object that
is too small is fetched and sent together with as many of the following bytes as a part needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdall.core.frozen import replace
from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    CopyPart,
    GetObject,
    HeadObject,
    ObjectHeaders,
    ObjectInfo,
    Part,
    PutObject,
    Upload,
    UploadPart,
)
from holdall.core.rules.object import MAX_OBJECT, MAX_PART, MIN_PART, check_object_request
from holdall.errors import InvalidOptionsError, InvalidRequestError
from holdall.files.mirror import mirror
from holdall.files.multipart import Have, upload_parts
from holdall.files.shelf import Shelf

_MOST_COPIED = MAX_PART // 5
"""The most bytes in one copied part."""


async def compose(
    shelf: Shelf,
    sources: Sequence[str],
    key: str,
    *,
    content_type: str | None = None,
    disposition: str | None = None,
    cache_control: str | None = None,
    metadata: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    if_absent: bool = False,
    if_match: str | None = None,
) -> ObjectInfo:
    """Join the bytes of several objects into one new object; the sources are not changed.

    Raises `PreconditionFailedError` if a source changes meanwhile. ``if_absent`` and ``if_match`` are as in `put`.
    """
    port, service = shelf.context.port, shelf.service
    if isinstance(sources, str) or not sources:
        raise InvalidOptionsError(
            "compose needs the keys of the objects to join", hint="pass a list of one or more keys"
        )
    put_id = port.new_id() if if_absent else None
    headers = ObjectHeaders(content_type, disposition, cache_control, dict(metadata or {}))
    given = PutObject(service, key, b"", headers, if_absent=put_id, if_match=if_match, tags=dict(tags or {}))
    check_object_request(given)
    outcomes = await port.gather([port.send(HeadObject(service, each)) for each in sources])
    infos = [outcome.result() for outcome in outcomes]
    total = sum(info.size for info in infos)
    if total > MAX_OBJECT:
        raise InvalidRequestError(f"the objects have {total:,} bytes together; the limit is {MAX_OBJECT:,}")
    if total < MIN_PART:
        pieces = await port.gather([_read(shelf, info, 0, info.size) for info in infos])
        body = b"".join([piece.result() for piece in pieces])
        info = await port.send(replace(given, body=body))
    else:

        async def fill(upload: Upload, have: Have) -> CompleteUpload:
            parts = await _Composition(shelf, upload, infos).send_parts()
            return CompleteUpload(service, upload, tuple(parts), if_absent=put_id, if_match=if_match)

        info = await upload_parts(port, BeginUpload(service, key, headers, given.tags), fill)
    await mirror(shelf.context, service, key)
    return info


async def _read(shelf: Shelf, info: ObjectInfo, start: int, size: int) -> bytes:
    if not size:
        return b""
    return (await shelf.context.port.send(GetObject(shelf.service, info.key, start, size, info.etag))).body


class _Composition:
    """The parts of an upload that are made from other objects."""

    def __init__(self, shelf: Shelf, upload: Upload, infos: Sequence[ObjectInfo]) -> None:
        self._shelf = shelf
        self._port, self._service = shelf.context.port, shelf.service
        self._upload = upload
        self._infos = infos
        self._parts: list[Part] = []
        self._held = b""

    async def send_parts(self) -> list[Part]:
        """All parts, in order."""
        for info in self._infos:
            await self._take(info)
        if self._held:
            await self._send_held()
        return self._parts

    async def _take(self, info: ObjectInfo) -> None:
        """Complete the held part, copy the rest as parts, and hold the bytes that are too few for a part."""
        start = 0
        if self._held:
            start = min(info.size, MIN_PART - len(self._held))
            self._held += await _read(self._shelf, info, 0, start)
            if len(self._held) < MIN_PART:
                return
            await self._send_held()
        while info.size - start >= MIN_PART:
            left = info.size - start
            size = left if left <= _MOST_COPIED else min(_MOST_COPIED, left - MIN_PART)
            copy = CopyPart(
                self._service, self._upload, len(self._parts) + 1, info.key, start, size, info.etag
            )
            self._parts.append(await self._port.send(copy))
            start += size
        self._held = await _read(self._shelf, info, start, info.size - start)

    async def _send_held(self) -> None:
        part = UploadPart(self._service, self._upload, len(self._parts) + 1, self._held)
        self._parts.append(await self._port.send(part))
        self._held = b""

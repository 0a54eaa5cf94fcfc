"""Uploads in parts: begun, filled and completed, or aborted together with all parts if anything goes wrong.

Nothing is visible under the key before the last request, which makes all of it visible or nothing. An upload that fails
or is cancelled is aborted, except in two cases: if it may have been completed, and if the caller wants to resume it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias
from zlib import crc32

from holdall.core.digests import Digests, hex_of
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    ListParts,
    ListUploads,
    ObjectInfo,
    Part,
    Upload,
    UploadPart,
)
from holdall.core.port import Port
from holdall.errors import (
    HoldallError,
    IntegrityError,
    InvalidRequestError,
    ObjectNotFoundError,
    OutcomeUnknown,
    PreconditionFailedError,
)

Have: TypeAlias = Mapping[int, Part]
"""The parts that an upload already has, by number."""

Fill: TypeAlias = Callable[[Upload, Have], Coroutine[Any, Any, CompleteUpload]]
"""The flow that sends the parts, and returns the request that completes the upload."""


async def upload_parts(port: Port, begin: BeginUpload, fill: Fill, *, resume: bool = False) -> ObjectInfo:
    """Upload an object in parts. ``resume`` continues an interrupted upload, and does not abort one that fails."""
    begun: list[Upload] = []
    completing = False
    try:
        have = await _find_upload(port, begin.service, begin.key, begun) if resume else {}
        if not begun:
            # even if the caller is cancelled now, the id is needed to abort the upload
            await port.finish(_begin(port, begin, begun))
        completion = await fill(begun[0], have)
        completing = True
        return await port.send(completion)
    except BaseException as error:
        unknown = completing and isinstance(error, OutcomeUnknown)
        if begun and not unknown and not (resume and _can_be_resumed(error)):
            await port.finish(_abort(port, begin.service, begun[0], error))
        raise


async def _begin(port: Port, request: BeginUpload, begun: list[Upload]) -> None:
    begun.append(await port.send(request))


async def _find_upload(port: Port, service: str, key: str, begun: list[Upload]) -> Have:
    """Find an interrupted upload of the same key: append it to ``begun``, and return its parts."""
    under_way = await port.send(ListUploads(service, key))
    for upload in reversed(under_way):
        if upload.key != key:
            continue
        try:
            have = await list_parts(port, service, upload)
        except ObjectNotFoundError:  # gone since it was listed
            continue
        begun.append(upload)
        return have
    return {}


async def list_parts(port: Port, service: str, upload: Upload) -> dict[int, Part]:
    """The parts that an upload has, by number."""
    found: dict[int, Part] = {}
    after: int | None = None
    while True:
        page = await port.send(ListParts(service, upload, after))
        found |= {part.number: part for part in page.parts}
        after = page.next
        if after is None:
            return found


async def _abort(port: Port, service: str, upload: Upload, error: BaseException) -> None:
    """Abort an upload because of an error; if that fails too, it is noted on the error."""
    try:
        await port.send(AbortUpload(service, upload))
    except HoldallError as another:
        error.add_note(f"the upload {upload.id} could not be aborted, so its parts remain: {another.code}")


def _can_be_resumed(error: BaseException) -> bool:
    """Whether the parts can be used by a later attempt: not if the bytes are wrong or refused."""
    return not isinstance(error, IntegrityError | InvalidRequestError | PreconditionFailedError)


async def send_part(port: Port, service: str, upload: Upload, number: int, data: bytes, have: Have) -> Part:
    """Send a part, unless the upload already has the same bytes."""
    known = have.get(number)
    if known is not None and known.size == len(data) and known.etag in await port.offload(_name_part, data):
        return known
    return await port.send(UploadPart(service, upload, number, data))


def _name_part(data: bytes) -> tuple[str, ...]:
    """The etags by which services know a part with these bytes: its MD5, or its size and CRC-32."""
    digests = Digests(["md5"])
    digests.update(data)
    assert digests.md5 is not None
    return hex_of(digests.md5), f"{len(data):x}-{crc32(data):08x}"

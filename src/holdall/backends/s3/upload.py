"""Uploads in parts.

S3 copies a range of an object as a part only if the object is larger than 5 MiB; smaller pieces are read and uploaded
here. S3 does not accept a digest for an object made of parts, so ``md5`` and ``sha256`` of a completion are ignored:
each part was signed with its own digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from holdall.backends.aws.courier import Pace
from holdall.backends.s3.creation import Creation
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.header import build_tag_header, http_headers
from holdall.backends.s3.reply import etag_of, part_page, reply_time, unquote
from holdall.backends.s3.retrieval import Reader
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyPart,
    GetObject,
    ListParts,
    ObjectInfo,
    Origin,
    Part,
    PartPage,
    Upload,
    UploadPart,
)
from holdall.core.requests import Done
from holdall.core.rules.object import MIN_PART
from holdall.errors import HoldallError, InvalidRequestError, ObjectNotFoundError


class Uploader:
    """Uploads to one bucket."""

    def __init__(self, delivery: Delivery, reader: Reader, creation: Creation) -> None:
        self._delivery = delivery
        self._calls = delivery.calls
        self._etags = delivery.etags
        self._reader = reader
        self._creation = creation

    async def begin(self, pace: Pace, request: BeginUpload) -> Upload:
        """Begin an upload. If its reply is lost, an upload without parts remains whose id is unknown."""
        headers = {**http_headers(request.headers), **build_tag_header(request.tags)}
        return await self.begin_with(pace, request.key, headers)

    async def begin_with(self, pace: Pace, key: str, headers: Mapping[str, str]) -> Upload:
        """Begin an upload of an object with these headers."""
        answer = await self._delivery.deliver(pace, self._calls.begin(key, headers))
        return Upload(key, answer.read().text("UploadId"))

    async def upload_part(self, pace: Pace, request: UploadPart) -> Part:
        """Upload a part."""
        reply = (await self._delivery.deliver(pace, self._calls.part(request))).reply
        return Part(request.number, etag_of(request.upload.key, reply.headers), len(request.body))

    async def copy_part(self, pace: Pace, request: CopyPart, origin: Origin | None = None) -> Part:
        """Copy a part from an object; with an ``origin``, from a large object there."""
        if request.size > MIN_PART or origin is not None:
            copied = (await self._delivery.deliver(pace, self._calls.copy_part(request, origin))).read()
            return Part(request.number, unquote(copied.text("ETag")), request.size)
        wanted = GetObject(request.service, request.source, request.start, request.size, request.if_match)
        body = (await self._reader.get(pace, wanted)).body
        if len(body) < request.size:
            raise InvalidRequestError(
                f"the object {request.source!r} ends before {request.size:,} bytes from {request.start:,} on"
            )
        return await self.upload_part(pace, UploadPart(request.service, request.upload, request.number, body))

    async def list_parts(self, pace: Pace, request: ListParts) -> PartPage:
        """A page of the uploaded parts."""
        answer = await self._delivery.deliver(pace, self._calls.list_parts(request))
        return part_page(answer.read())

    async def complete(self, pace: Pace, request: CompleteUpload) -> ObjectInfo:
        """Complete the upload; returns the object as it is now, or if it cannot be read, as it was created."""
        done = await self._creation.complete(pace, request)
        if isinstance(done, ObjectInfo):
            return done
        etag = unquote(done.read().get("ETag") or "")
        self._etags.learn_parts(etag, [part.etag for part in request.parts])
        try:
            found = await self._reader.head(pace, request.upload.key)
        except HoldallError:  # the object was still created
            found = None
        if found is not None and found.etag == etag:
            return found
        size = sum(part.size for part in request.parts)
        return ObjectInfo(request.upload.key, size, etag, reply_time(done.reply))

    async def abort(self, pace: Pace, request: AbortUpload) -> Done:
        """Abort an upload."""
        with suppress(ObjectNotFoundError):
            await self._delivery.deliver(pace, self._calls.abort(request))
        return Done()

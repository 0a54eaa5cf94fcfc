"""Copies within a bucket, of objects of any size.

Colourless. The source is looked at first: for its size, since S3 copies 5 GB at once and the rest in parts; for its
etag, so that what is copied is what was looked at; and for its headers, since the id of a put is not to be copied with
them. A copy that must not replace anything goes the way of a put or of an upload: not every server that honours
conditions there does so for copies.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdall.backends.aws.message import Reply
from holdall.backends.s3.creation import Creation
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.digests import Etags
from holdall.backends.s3.headers import http_headers
from holdall.backends.s3.incoming import unquoted
from holdall.backends.s3.outgoing import Outgoing
from holdall.backends.s3.reading import TRIES, Reading
from holdall.backends.s3.uploading import Uploading
from holdall.backends.s3.wire import Wire
from holdall.core.frozen import replace
from holdall.core.object_rules import MAX_PART, MIN_PART
from holdall.core.objects import (
    AbortUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    GetObject,
    ObjectInfo,
    PutObject,
)
from holdall.errors import PreconditionFailedError

__all__ = ["Copying"]

LARGEST_COPY = MAX_PART
PART = 1024**3
_UNNAMED = ("content-encoding", "content-language", "expires")
"""Headers that others may have put an object with, and that a copy keeps."""


class Copying:
    """Copies in one bucket."""

    def __init__(
        self,
        delivery: Delivery,
        outgoing: Outgoing,
        reading: Reading,
        etags: Etags,
        creation: Creation,
        uploading: Uploading,
    ) -> None:
        self._delivery = delivery
        self._outgoing = outgoing
        self._reading = reading
        self._etags = etags
        self._creation = creation
        self._uploading = uploading

    async def copy(self, wire: Wire, request: CopyObject) -> ObjectInfo:
        """Copy an object; anew when the source changes between two looks and nobody demanded a certain one."""
        for left in reversed(range(TRIES)):
            source, reply = await self._reading.head_in_full(wire, request.source, request.if_match)
            extra = {name: value for name in _UNNAMED if (value := reply.headers.get(name)) is not None}
            try:
                return await self._copied(wire, request, source, extra, reply)
            except PreconditionFailedError:
                if not left or request.if_match is not None or request.if_absent is not None:
                    raise
        raise AssertionError("a loop that returns or raises")

    async def _copied(
        self,
        wire: Wire,
        request: CopyObject,
        source: ObjectInfo,
        extra: Mapping[str, str],
        reply: Reply,
    ) -> ObjectInfo:
        if request.if_absent is not None and source.size <= MIN_PART:
            return await self._put(wire, request, source, extra)
        if request.if_absent is not None or source.size > LARGEST_COPY:
            return await self._in_parts(wire, request, source, extra)
        replaced = None
        if source.put_id is not None or request.source == request.key:
            replaced = {**http_headers(source.headers), **extra}
        call = self._outgoing.copy(request.source, request.key, source.etag, replaced)
        answer = await self._delivery.deliver(wire, call)
        result = answer.read()
        etag = unquoted(result.get("ETag") or "")
        if not etag:  # some servers do not say what they have made
            return await self._reading.head(wire, request.key)
        md5 = self._etags.md5(etag, answer.reply.headers)
        modified = result.time("LastModified").replace(microsecond=0)
        return replace(source, key=request.key, etag=etag, modified=modified, md5=md5, put_id=None)

    async def _put(
        self, wire: Wire, request: CopyObject, source: ObjectInfo, extra: Mapping[str, str]
    ) -> ObjectInfo:
        """A small one, by reading and putting it."""
        wanted = GetObject(request.service, request.source, if_match=source.etag)
        found = await self._reading.get(wire, wanted)
        put = PutObject(
            request.service,
            request.key,
            found.body,
            source.headers,
            sha256=source.sha256,
            if_absent=request.if_absent,
        )
        return await self._creation.put(wire, put, extra)

    async def _in_parts(
        self, wire: Wire, request: CopyObject, source: ObjectInfo, extra: Mapping[str, str]
    ) -> ObjectInfo:
        """A large one, or one that must not replace anything, as an upload whose parts S3 takes from the source."""
        headers = {**http_headers(source.headers, request.if_absent), **extra}
        service = request.service
        upload = await self._uploading.begin_with(wire, request.key, headers)
        try:
            parts = [
                await self._uploading.copied_part(
                    wire,
                    CopyPart(
                        service,
                        upload,
                        number,
                        request.source,
                        start,
                        min(PART, source.size - start),
                        source.etag,
                    ),
                )
                for number, start in enumerate(range(0, source.size, PART), 1)
            ]
            complete = CompleteUpload(service, upload, tuple(parts), if_absent=request.if_absent)
            return await self._uploading.complete(wire, complete)
        except Exception:
            await self._uploading.abort(wire, AbortUpload(service, upload))
            raise

"""Copies within a bucket, or from another one on the same server, of objects of any size.

The source is examined first: for its size, because S3 copies up to 5 GB at once and larger objects in parts; for its
etag, so that the copy is of the object that was examined; and for its headers, because the id of a put must not be
copied with them. AWS itself makes copies that must not replace anything; elsewhere they are made by a put or an upload,
because not every server that honours conditions there does so for copies. In that case the source is examined by
reading the first bytes, so that a small object takes only two requests.

A copy has the tags of its source. If they must be copied by hand, they are read if there are any: the reply to a GET
says so, but the reply to a HEAD does not on every server.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdall.backends.aws.courier import Pace
from holdall.backends.aws.message import Reply, Room
from holdall.backends.s3.condition import Conditions
from holdall.backends.s3.creation import Creation
from holdall.backends.s3.delivery import Answer, Delivery
from holdall.backends.s3.header import build_tag_header, http_headers
from holdall.backends.s3.reply import unquote
from holdall.backends.s3.retrieval import TRIES, Reader
from holdall.backends.s3.upload import Uploader
from holdall.core.frozen import replace
from holdall.core.objects import (
    AbortUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    GetObject,
    GetTags,
    ImportObject,
    ObjectInfo,
    Origin,
    PutObject,
)
from holdall.core.rules.object import MAX_PART, MIN_PART
from holdall.errors import MalformedReplyError, PreconditionFailedError

LARGEST_COPY = MAX_PART
PART = 1024**3
_UNNAMED = ("content-encoding", "content-language", "expires")
"""Headers that another program may have put an object with, and that a copy keeps."""

_COUNT = "x-amz-tagging-count"


class Copier:
    """Copies in one bucket."""

    def __init__(
        self,
        delivery: Delivery,
        reader: Reader,
        conditions: Conditions,
        creation: Creation,
        uploader: Uploader,
    ) -> None:
        self._delivery = delivery
        self._calls = delivery.calls
        self._etags = delivery.etags
        self._reader = reader
        self._conditions = conditions
        self._creation = creation
        self._uploader = uploader
        self._rooms: list[Room] = []

    async def copy(self, pace: Pace, request: CopyObject) -> ObjectInfo:
        """Copy an object."""
        if request.if_absent is None:
            return await self._replace(pace, request)
        if self._delivery.place.amazon and await self._conditions.can_refuse_existing(pace):
            return await self._create(pace, request, request.if_absent)
        room = self._rooms.pop() if self._rooms else Room()
        info = await self._create_by_hand(pace, request, request.if_absent, room)
        self._rooms[:] = [room]  # not after a failure: bytes may still arrive in it
        return info

    async def _replace(self, pace: Pace, request: CopyObject) -> ObjectInfo:
        """A copy that may replace an object; repeated if the source changes meanwhile, unless the caller passed its
        etag."""
        for left in reversed(range(TRIES)):
            source, reply = await self._reader.head_in_full(pace, request.source, request.if_match)
            try:
                if source.size > LARGEST_COPY:
                    return await self._copy_large(pace, request, source, reply)
                return await self._replace_once(pace, request, source, reply)
            except PreconditionFailedError:
                if not left or request.if_match is not None:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def _replace_once(
        self, pace: Pace, request: CopyObject, source: ObjectInfo, reply: Reply
    ) -> ObjectInfo:
        headers = None
        if source.put_id is not None or request.source == request.key:
            headers = {**http_headers(source.headers), **_other_headers(reply)}
        call = self._calls.copy(request.source, request.key, source.etag, headers)
        answer = await self._delivery.deliver(pace, call)
        return await self._describe_copy(pace, request, source, answer)

    async def _create(self, pace: Pace, request: CopyObject, put_id: str) -> ObjectInfo:
        """A copy that must not replace anything, made by AWS itself."""
        source, reply = await self._reader.head_in_full(pace, request.source, request.if_match)
        if source.size > LARGEST_COPY:
            return await self._copy_large(pace, request, source, reply)
        headers = {
            **http_headers(source.headers, None if request.unmarked else put_id),
            **_other_headers(reply),
        }
        call = self._calls.copy(request.source, request.key, source.etag, headers, refuse=True)
        done = await self._creation.copy(pace, call, request.key, put_id)
        return (
            done if isinstance(done, ObjectInfo) else await self._describe_copy(pace, request, source, done)
        )

    async def import_object(self, pace: Pace, request: ImportObject) -> ObjectInfo:
        """A copy from another bucket, whose object the caller has examined."""
        source, origin = request.source, request.origin
        copy = CopyObject(request.service, source.key, source.key)
        if source.size > LARGEST_COPY:
            return await self._copy_in_parts(pace, copy, source, {}, request.tags, origin)
        headers = None if source.put_id is None else http_headers(source.headers)
        call = self._calls.copy(source.key, source.key, source.etag, headers, origin=origin)
        return await self._describe_copy(pace, copy, source, await self._delivery.deliver(pace, call))

    async def _describe_copy(
        self, pace: Pace, request: CopyObject, source: ObjectInfo, answer: Answer
    ) -> ObjectInfo:
        """The object after a copy."""
        result = answer.read()
        etag = unquote(result.get("ETag") or "")
        if not etag:  # some servers do not return it
            return await self._reader.head(pace, request.key)
        return replace(
            source,
            key=request.key,
            etag=etag,
            modified=result.time("LastModified").replace(microsecond=0),
            md5=self._etags.md5(etag, answer.reply.headers),
            put_id=request.if_absent,
        )

    async def _create_by_hand(self, pace: Pace, request: CopyObject, put_id: str, room: Room) -> ObjectInfo:
        """A copy that must not replace anything: a small object is read and put, a larger one is copied in parts."""
        wanted = GetObject(request.service, request.source, 0, MIN_PART, request.if_match)
        found, reply = await self._reader.get_in_full(pace, wanted, room)
        if reply is None:  # it is empty, and so has no range
            wanted = GetObject(request.service, request.source, if_match=found.info.etag)
            found, reply = await self._reader.get_in_full(pace, wanted)
        assert reply is not None
        source = found.info
        tags = await self._fetch_tags(pace, source, reply)
        if source.size > MIN_PART:
            del found
            return await self._copy_in_parts(pace, request, source, _other_headers(reply), tags)
        if len(found.body) != source.size:
            raise MalformedReplyError(f"the reply has only a part of the object {request.source!r}")
        put = PutObject(
            request.service,
            request.key,
            found.body,
            source.headers,
            sha256=source.sha256 or request.sha256,
            if_absent=put_id,
            tags=tags,
        )
        return await self._creation.put(
            pace, put, _other_headers(reply), verified=source.sha256 is None, unmarked=request.unmarked
        )

    async def _fetch_tags(self, pace: Pace, source: ObjectInfo, reply: Reply) -> Mapping[str, str]:
        """The tags of an object, read if a reply to a GET says that it has some."""
        if reply.headers.get(_COUNT, "0") == "0":
            return {}
        return await self._reader.get_tags(pace, GetTags("", source.key))

    async def _copy_large(
        self, pace: Pace, request: CopyObject, source: ObjectInfo, reply: Reply
    ) -> ObjectInfo:
        """A copy of an object that S3 does not copy at once; ``reply`` is the answer to a HEAD."""
        counted: Reply | None = None
        if _COUNT not in reply.headers:  # on this server only a GET says whether there are tags
            look = GetObject("", source.key, 0, 1, source.etag)
            _, counted = await self._reader.get_in_full(pace, look)
        tags = await self._fetch_tags(pace, source, counted or reply)
        return await self._copy_in_parts(pace, request, source, _other_headers(reply), tags)

    async def _copy_in_parts(
        self,
        pace: Pace,
        request: CopyObject,
        source: ObjectInfo,
        others: Mapping[str, str],
        tags: Mapping[str, str],
        origin: Origin | None = None,
    ) -> ObjectInfo:
        """A copy as an upload whose parts S3 copies from the source: for large objects, and to replace nothing.

        ``others`` are headers that `ObjectHeaders` lacks.
        """
        put_id = None if request.unmarked else request.if_absent
        headers = {**http_headers(source.headers, put_id), **others, **build_tag_header(tags)}
        service = request.service
        upload = await self._uploader.begin_with(pace, request.key, headers)
        try:
            parts = [
                await self._uploader.copy_part(
                    pace,
                    CopyPart(
                        service,
                        upload,
                        number,
                        request.source,
                        start,
                        min(PART, source.size - start),
                        source.etag,
                    ),
                    origin,
                )
                for number, start in enumerate(range(0, source.size, PART), 1)
            ]
            complete = CompleteUpload(service, upload, tuple(parts), if_absent=request.if_absent)
            info = await self._uploader.complete(pace, complete)
        except Exception:
            await self._uploader.abort(pace, AbortUpload(service, upload))
            raise
        # not every server keeps the tags that an upload starts with
        if tags and not self._delivery.place.amazon:
            await self._delivery.deliver(pace, self._calls.put_tags(request.key, tags))
        return info


def _other_headers(reply: Reply) -> dict[str, str]:
    return {name: value for name in _UNNAMED if (value := reply.headers.get(name)) is not None}

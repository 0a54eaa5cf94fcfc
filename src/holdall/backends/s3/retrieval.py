"""Reads: an object's description, its bytes, and listings."""

from __future__ import annotations

from collections.abc import Mapping

from holdall.backends.aws.courier import Pace
from holdall.backends.aws.message import Reply, Room
from holdall.backends.s3.delivery import Delivery
from holdall.backends.s3.document import NoDocument, read_document
from holdall.backends.s3.reply import head_info, object_page, object_range, part_size, tags_of, upload_page
from holdall.core.objects import (
    GetObject,
    GetTags,
    ListObjects,
    ListUploads,
    MeasurePart,
    ObjectInfo,
    ObjectPage,
    ObjectRange,
    Upload,
)
from holdall.errors import (
    ConfigurationError,
    InvalidRequestError,
    ObjectNotFoundError,
    PreconditionFailedError,
)

TRIES = 3
"""How often to read an object that changes between two requests."""


class Reader:
    """Reads from one bucket, below a prefix."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._etags = delivery.etags
        self._calls = delivery.calls

    async def head(self, pace: Pace, key: str, if_match: str | None = None) -> ObjectInfo:
        """The description of an object."""
        return (await self.head_in_full(pace, key, if_match))[0]

    async def head_in_full(
        self, pace: Pace, key: str, if_match: str | None = None
    ) -> tuple[ObjectInfo, Reply]:
        """The same, with S3's whole reply."""
        reply = (await self._delivery.deliver(pace, self._calls.head(key, if_match))).reply
        info = head_info(key, reply, self._etags)
        _check_match(info, if_match)
        return info, reply

    async def measure_part(self, pace: Pace, request: MeasurePart) -> int | None:
        """The number of bytes of a part of an object."""
        answer = await self._delivery.deliver(pace, self._calls.head_part(request))
        return part_size(answer.reply)

    async def get(self, pace: Pace, request: GetObject) -> ObjectRange:
        """Bytes of an object."""
        return (await self.get_in_full(pace, request))[0]

    async def get_in_full(
        self, pace: Pace, request: GetObject, room: Room | None = None
    ) -> tuple[ObjectRange, Reply | None]:
        """The same, with S3's whole reply; None if the range begins after the end, which S3 treats as an error. With a
        ``room``, the bytes of a large object are valid only until something else is received there."""
        for _ in range(TRIES):
            try:
                answer = await self._delivery.deliver(pace, self._calls.get(request, room))
            except InvalidRequestError as error:
                if error.service_code != "InvalidRange":
                    raise
                refusal = error
            else:
                found = object_range(request, answer.reply, self._etags)
                _check_match(found.info, request.if_match)
                return found, answer.reply
            info = await self.head(pace, request.key, request.if_match)
            if info.size <= request.start:
                return ObjectRange(info, request.start, b""), None
        raise refusal

    async def get_tags(self, pace: Pace, request: GetTags) -> Mapping[str, str]:
        """The tags of an object. A server without tags may answer with the object itself."""
        reply = (await self._delivery.deliver(pace, self._calls.tags(request.key))).reply
        try:
            document = read_document(reply.body)
        except NoDocument:
            document = None
        if document is None or document.name != "Tagging":
            raise ConfigurationError(
                f"the server does not support tags: it did not return those of the object {request.key!r}",
                hint="use a server that supports object tags",
            )
        return tags_of(document)

    async def list_objects(self, pace: Pace, request: ListObjects) -> ObjectPage:
        """A page of a listing."""
        answer = await self._delivery.deliver(pace, self._calls.list_objects(request))
        return object_page(answer.read(), self._calls.prefix, request.after)

    async def list_uploads(self, pace: Pace, request: ListUploads) -> tuple[Upload, ...]:
        """All uploads in progress."""
        found: dict[Upload, None] = {}
        after = None
        while True:
            try:
                answer = await self._delivery.deliver(pace, self._calls.list_uploads(request.prefix, after))
            except ObjectNotFoundError:  # the reply of rclone if there has never been an upload
                return tuple(found)
            uploads, then = upload_page(answer.read(), self._calls.prefix)
            found |= dict.fromkeys(uploads)
            if then is None or then == after:
                return tuple(found)
            after = then


def _check_match(info: ObjectInfo, etag: str | None) -> None:
    """Check the etag, for servers that ignore the condition."""
    if etag is not None and etag != info.etag:
        raise PreconditionFailedError(
            f"the object {info.key!r} has changed: its etag is {info.etag}, not {etag}"
        )

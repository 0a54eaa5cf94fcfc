"""S3's replies as our own values.

Pure. An etag is returned without its quotes. `MalformedReplyError` if a reply lacks something required.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache

from holdall.backends.aws.message import Reply
from holdall.backends.s3.digest import Etags
from holdall.backends.s3.document import Document, NoDocument
from holdall.backends.s3.header import object_headers, put_id
from holdall.core.objects import (
    GetObject,
    ListedObject,
    ObjectInfo,
    ObjectPage,
    ObjectRange,
    Part,
    PartPage,
    PutObject,
    Upload,
)
from holdall.errors import MalformedReplyError

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})")


def object_info(key: str, reply: Reply, size: int, etags: Etags) -> ObjectInfo:
    """The description of an object in a reply."""
    headers = reply.headers
    modified = _http_time(headers.get("last-modified", ""))
    if modified is None:
        raise MalformedReplyError(f"the reply about the object {key!r} has no time of modification")
    etag = etag_of(key, headers)
    return ObjectInfo(
        key,
        size,
        etag,
        modified,
        object_headers(headers),
        etags.md5(etag, headers),
        _sha256(headers),
        put_id(headers),
        parts=etags.parts(etag, headers),
    )


def part_size(reply: Reply) -> int | None:
    """The length of the part that a HEAD was for; a server that does not support parts reports the whole object's."""
    return _length(reply) if "x-amz-mp-parts-count" in reply.headers else None


def head_info(key: str, reply: Reply, etags: Etags) -> ObjectInfo:
    """The description of an object in the reply to a HEAD, whose length is the object's."""
    length = _length(reply)
    if length is None:
        raise MalformedReplyError(f"the reply about the object {key!r} has no length")
    return object_info(key, reply, length, etags)


def _length(reply: Reply) -> int | None:
    length = reply.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None


def put_info(request: PutObject, reply: Reply, etags: Etags, put_id: str | None = None) -> ObjectInfo:
    """The description of an object after a put with this id; by default, the id in the request."""
    etag = etag_of(request.key, reply.headers)
    etags.learn(etag, request.md5, reply.headers)
    return ObjectInfo(
        request.key,
        len(request.body),
        etag,
        reply_time(reply),
        request.headers,
        request.md5 or etags.md5(etag, reply.headers),
        request.sha256,
        put_id or request.if_absent,
    )


def object_range(request: GetObject, reply: Reply, etags: Etags) -> ObjectRange:
    """The requested bytes. A server without support for ranges returns the whole object."""
    body = reply.body
    if reply.status == 206 or "content-range" in reply.headers:  # rclone uses the status 200 for ranges, too
        start, size = _range(request, reply)
        if start != request.start or (request.size is not None and len(body) > request.size):
            raise MalformedReplyError(
                f"the reply has other bytes of the object {request.key!r} than requested"
            )
        return ObjectRange(object_info(request.key, reply, size, etags), start, body)
    info = object_info(request.key, reply, len(body), etags)
    if request.start or request.size is not None:
        end = None if request.size is None else request.start + request.size
        body = body[request.start : end]
    return ObjectRange(info, request.start, body)


def _range(request: GetObject, reply: Reply) -> tuple[int, int]:
    """Where the bytes of a reply begin, and the size of the whole object."""
    found = _RANGE.fullmatch(reply.headers.get("content-range", ""))
    if found is None or int(found[2]) - int(found[1]) + 1 != len(reply.body):
        raise MalformedReplyError(
            f"the reply does not state which bytes of the object {request.key!r} it has"
        )
    return int(found[1]), int(found[3])


def etag_of(key: str, headers: Mapping[str, str]) -> str:
    """The etag in the headers of a reply."""
    etag = headers.get("etag")
    if not etag:
        raise MalformedReplyError(f"the reply about the object {key!r} has no etag")
    return unquote(etag)


def unquote(etag: str) -> str:
    """An etag without quotes and the mark of a weak one."""
    return etag.removeprefix("W/").strip('"')


def _sha256(headers: Mapping[str, str]) -> str | None:
    """The digest of the whole object; None for an object uploaded in parts, which has a digest of digests."""
    digest = headers.get("x-amz-checksum-sha256")
    if digest is None or "-" in digest or headers.get("x-amz-checksum-type") == "COMPOSITE":
        return None
    return digest


def reply_time(reply: Reply) -> datetime:
    """When the service answered, by its own clock if it reports the time."""
    return _http_time(reply.headers.get("date", "")) or datetime.now(UTC).replace(microsecond=0)


@lru_cache(64)
def _http_time(text: str) -> datetime | None:
    """A time in HTTP's format: ``Sat, 15 Nov 2025 05:40:00 GMT``."""
    try:
        return datetime(
            int(text[12:16]),
            _MONTHS[text[8:11]],
            int(text[5:7]),
            int(text[17:19]),
            int(text[20:22]),
            int(text[23:25]),
            tzinfo=UTC,
        )
    except (KeyError, ValueError):
        return None


# --- documents ----------------------------------------------------------------------------------------------


def object_page(listing: Document, prefix: str, after: str | None) -> ObjectPage:
    """A page of a listing, without the bucket's prefix; keys that some servers list again are left out."""
    encoding = listing.get("EncodingType")
    objects = tuple(
        ListedObject(
            _below(prefix, found.key("Key", encoding)),
            found.number("Size"),
            unquote(found.text("ETag")),
            found.time("LastModified"),
        )
        for found in listing.all("Contents")
    )
    if after is not None:
        objects = tuple(found for found in objects if found.key.encode() > after.encode())
    if not listing.is_true("IsTruncated"):
        return ObjectPage(objects, None)
    if not objects:
        raise NoDocument("it is truncated, but lists nothing")
    return ObjectPage(objects, objects[-1].key)


def _below(prefix: str, key: str) -> str:
    if not key.startswith(prefix):
        raise NoDocument("it lists keys that were not requested")
    return key[len(prefix) :]


def tags_of(tagging: Document) -> dict[str, str]:
    """The tags of an object."""
    return {
        tag.text("Key"): tag.get("Value") or "" for tags in tagging.all("TagSet") for tag in tags.all("Tag")
    }


def part_page(listing: Document) -> PartPage:
    """Some parts of an upload."""
    parts = tuple(
        Part(found.number("PartNumber"), unquote(found.text("ETag")), found.number("Size"))
        for found in listing.all("Part")
    )
    more = listing.is_true("IsTruncated") and parts
    return PartPage(parts, parts[-1].number if more else None)


def upload_page(listing: Document, prefix: str) -> tuple[list[Upload], tuple[str, str] | None]:
    """Some uploads in progress, and the markers with which to request the next ones."""
    encoding = listing.get("EncodingType")
    uploads = [
        Upload(_below(prefix, found.key("Key", encoding)), found.text("UploadId"))
        for found in listing.all("Upload")
    ]
    if not listing.is_true("IsTruncated"):
        return uploads, None
    return uploads, (listing.key("NextKeyMarker", encoding), listing.text("NextUploadIdMarker"))

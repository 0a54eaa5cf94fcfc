"""Copying an object from one service to another, which may belong to another database, with its headers and tags.

If both services are on one server, it can copy the object itself. Otherwise the bytes pass through here, a part at a
time, so that memory use does not depend on the object's size. Each read demands that the object is still the same; its
digests are checked before the copy becomes visible.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from holdall.core.context import Context
from holdall.core.digests import Digests
from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    DescribeService,
    GetObject,
    GetTags,
    HeadObject,
    ImportObject,
    ObjectInfo,
    Origin,
    Part,
    PutObject,
    ServiceTraits,
    Upload,
    UploadPart,
)
from holdall.core.rules.object import MAX_PART
from holdall.errors import ConfigurationError, IntegrityError, ObjectNotFoundError
from holdall.files.multipart import Have, upload_parts
from holdall.files.shelf import Shelf
from holdall.files.source import hash_bytes, split_parts

_DIGEST = re.compile(r"[0-9a-f]{32}(-[0-9]+)?")


async def find_object(context: Context, service: str, key: str) -> ObjectInfo | None:
    """An object without its bytes; None if it is missing."""
    try:
        return await context.port.send(HeadObject(service, key))
    except ObjectNotFoundError:
        return None


def compare_bytes(one: ObjectInfo, other: ObjectInfo) -> bool | None:
    """Whether two services have the same bytes; None if they have no digest in common to compare."""
    if one.size != other.size:
        return False
    if is_digest(one.etag) and one.etag == other.etag:
        return True
    known = [
        (getattr(one, name), getattr(other, name))
        for name in ("sha256", "md5")
        if getattr(one, name) is not None and getattr(other, name) is not None
    ]
    return all(ours == theirs for ours, theirs in known) if known else None


def is_digest(etag: str) -> bool:
    """Whether an etag is a digest of the bytes, as S3's are; any other etag is meaningful only to its own service."""
    return _DIGEST.fullmatch(etag) is not None


async def copy_object(
    source: Shelf,
    info: ObjectInfo,
    target: Shelf,
    wait: Callable[[int], Awaitable[None]] | None = None,
) -> ObjectInfo:
    """Copy an object, on condition that it stays the same, replacing any object with its key; return the copy.

    ``wait`` is awaited with the number of bytes before they are read.
    """
    port, service = source.context.port, source.service
    theirs, to = target.context.port, target.service
    traits: ServiceTraits = await theirs.send(DescribeService(to))
    tags = await _read_tags(source.context, service, info.key)
    if info.size <= traits.single_put:
        body = b""
        if info.size:
            if wait is not None:
                await wait(info.size)
            body = (await port.send(GetObject(service, info.key, if_match=info.etag))).body
        return await theirs.send(
            PutObject(to, info.key, body, info.headers, info.md5, info.sha256, tags=tags)
        )

    async def fill(upload: Upload, have: Have) -> CompleteUpload:
        digests = Digests(["sha256"] if info.sha256 else ["md5"] if info.md5 else [])
        parts: list[Part] = []
        for number, start, size in split_parts(info.size, traits.part_size):
            if wait is not None:
                await wait(size)
            piece = await port.send(GetObject(service, info.key, start, size, info.etag))
            await hash_bytes(port, digests, piece.body)
            parts.append(await theirs.send(UploadPart(to, upload, number, piece.body)))
        matches = digests.md5 in (None, info.md5) and digests.sha256 in (None, info.sha256)
        if digests.size != info.size or not matches:
            raise IntegrityError(
                f"the bytes of {info.key!r:.80} do not have the digests stored with it, so it was not copied"
            )
        return CompleteUpload(to, upload, tuple(parts), info.md5, info.sha256)

    return await upload_parts(theirs, BeginUpload(to, info.key, info.headers, tags), fill)


async def find_origin(source: Shelf, target: Shelf) -> Origin | None:
    """From where the target can import the source's objects; None if they are not on one server."""
    ours = (await source.context.port.send(DescribeService(source.service))).origin
    theirs = (await target.context.port.send(DescribeService(target.service))).origin
    return None if ours is None or theirs is None or ours.server != theirs.server else ours


async def import_object(source: Shelf, info: ObjectInfo, target: Shelf, origin: Origin) -> ObjectInfo:
    """The same as `copy_object`, by the server itself; `IntegrityError` if the copy is not like the source."""
    theirs, to = target.context.port, target.service
    tags = await _read_tags(source.context, source.service, info.key) if info.size > MAX_PART else {}
    copy = await theirs.send(ImportObject(to, origin, info, tags))
    if not (is_digest(copy.etag) and copy.etag == info.etag):
        copy = await theirs.send(HeadObject(to, info.key))
        if compare_bytes(info, copy) is False:
            raise IntegrityError(f"the server's copy of {info.key!r:.80} does not have its size or digests")
    return copy


async def _read_tags(context: Context, service: str, key: str) -> Mapping[str, str]:
    try:
        return await context.port.send(GetTags(service, key))
    except ConfigurationError:  # its server does not support tags
        return {}

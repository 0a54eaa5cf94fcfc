"""The flow that puts bytes under a key: in one request if they are few, in parts if they are many.

It is safe to stop anywhere: nothing is visible under the key before the last request, which makes all of it visible or
nothing. Expected digests and sizes are checked before that request. An upload that fails or is cancelled is aborted at
once; the parts that a killed process left stay invisible until the service deletes them or ``resume`` finds them.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from holdall.core.digests import Digests
from holdall.core.frozen import dataclass, replace
from holdall.core.objects import (
    BeginUpload,
    Checksum,
    CompleteUpload,
    DescribeService,
    HeadObject,
    ObjectHeaders,
    ObjectInfo,
    Part,
    PutObject,
    ServiceTraits,
    Upload,
)
from holdall.core.port import Port
from holdall.core.rules.object import MAX_OBJECT, MAX_PARTS, check_object_request
from holdall.errors import IntegrityError, InvalidRequestError, ObjectNotFoundError, PreconditionFailedError
from holdall.files.mirror import PLAN_COPIES
from holdall.files.multipart import Have, send_part, upload_parts
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf
from holdall.files.source import fit_part_size, hash_bytes, open_source, read_exactly, read_range, split_parts
from holdall.local.source import BytesSource, FileSource, StreamSource, check_unchanged, hash_range

_GROWTH = 1000
"""After this many parts of a stream, the part size doubles: the stream's length is unknown, and parts are limited."""

_TOGETHER = 16
"""After this many parts in each lane, all lanes wait for each other, so that a cancellation takes effect."""


@dataclass(frozen=True, slots=True)
class _Put:
    """One call of `put`: what it puts, still without its bytes, the expected digests, and the service's traits."""

    port: Port
    intent: PutObject
    traits: ServiceTraits
    md5: str | None
    sha256: str | None
    size: int | None
    meter: Meter
    resume: bool

    @property
    def begin_upload(self) -> BeginUpload:
        """The first request of an upload in parts."""
        intent = self.intent
        return BeginUpload(intent.service, intent.key, intent.headers, intent.tags)


async def put(
    shelf: Shelf,
    key: str,
    source: Any,
    *,
    content_type: str | None = None,
    disposition: str | None = None,
    cache_control: str | None = None,
    metadata: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    if_absent: bool = False,
    if_match: str | None = None,
    md5: str | None = None,
    sha256: str | None = None,
    size: int | None = None,
    checksums: Iterable[Checksum] = ("md5", "sha256"),
    progress: Progress | None = None,
    resume: bool = False,
) -> ObjectInfo:
    """Store bytes, a file (by its path) or a stream under a key, replacing any object there.

    With ``if_absent`` the object is stored only if the key is free, with ``if_match`` only if it replaces the object
    with this etag; otherwise `PreconditionFailedError` is raised. If the bytes do not have the given ``md5``,
    ``sha256`` (both base64) or ``size``, `IntegrityError` is raised and nothing is stored. ``progress`` is called with
    the number of bytes sent and the total. ``resume`` continues an interrupted upload of the same bytes, with the
    headers and tags that it was begun with; if this upload fails, a later call can resume it. Returns the stored
    object, with the requested ``checksums``.
    """
    context, service = shelf.context, shelf.service
    port = context.port
    headers = ObjectHeaders(content_type, disposition, cache_control, dict(metadata or {}))
    put_id = port.new_id() if if_absent else None
    intent = PutObject(service, key, b"", headers, if_absent=put_id, if_match=if_match, tags=dict(tags or {}))
    check_object_request(intent)  # before anything is read
    wanted: set[Checksum] = set(checksums)
    if md5 is not None:
        wanted.add("md5")
    if sha256 is not None:
        wanted.add("sha256")
    digests = Digests(wanted)
    traits = await port.send(DescribeService(service))
    job = _Put(port, intent, traits, md5, sha256, size, Meter(port, progress), resume)
    found = await open_source(port, source)
    if isinstance(found, StreamSource):
        info = await _put_stream(job, found, digests)
    else:
        info = await _put_known(job, found, digests)
    if traits.mirrors:
        await context.hook(PLAN_COPIES)(context, service, key)
    return replace(info, md5=digests.md5, sha256=digests.sha256, crc32c=digests.crc32c)


async def _put_known(job: _Put, source: BytesSource | FileSource, digests: Digests) -> ObjectInfo:
    """Put a source whose size is known: in one request, or in parts, several at a time."""
    _check_size(job, source.size)
    await job.meter.begin(source.size)
    if source.size <= job.traits.single_put:
        data = await _read_part(job, source, 0, source.size, digests)
        return await _put_at_once(job, data, digests)

    await _check_place(job)

    async def fill(upload: Upload, have: Have) -> CompleteUpload:
        send = _send_one_by_one if job.traits.parallel == 1 else _send_side_by_side
        parts = await send(job, source, digests, upload, have)
        await job.port.offload(check_unchanged, source)
        return _completion(job, upload, parts, digests)

    return await upload_parts(job.port, job.begin_upload, fill, resume=job.resume)


async def _put_stream(job: _Put, source: StreamSource, digests: Digests) -> ObjectInfo:
    """Put a stream, which can be read only once: in one request if it is short, else part by part."""
    if job.size is not None:
        _check_size(job, job.size)
    await job.meter.begin(job.size)
    first = await read_exactly(job.port, source.stream, job.traits.single_put + 1)
    if len(first) <= job.traits.single_put:
        _check_size(job, len(first))
        await hash_bytes(job.port, digests, first)
        return await _put_at_once(job, first, digests)
    await _check_place(job)
    beginning = [first]  # popped by fill, so that the bytes are not held until the end
    del first

    async def fill(upload: Upload, have: Have) -> CompleteUpload:
        parts = await _send_in_order(job, beginning.pop(), source, digests, upload, have)
        _check_size(job, digests.size)
        return _completion(job, upload, parts, digests)

    return await upload_parts(job.port, job.begin_upload, fill, resume=job.resume)


async def _check_place(job: _Put) -> None:
    """Check the condition before anything is sent; the last request checks it again."""
    intent = job.intent
    if intent.if_absent is None and intent.if_match is None:
        return
    try:
        etag = (await job.port.send(HeadObject(intent.service, intent.key))).etag
    except ObjectNotFoundError:
        etag = None
    if intent.if_absent is not None and etag is not None:
        raise PreconditionFailedError(f"the object {intent.key!r:.80} already exists")
    if intent.if_match is not None and etag != intent.if_match:
        raise PreconditionFailedError(
            f"the object {intent.key!r:.80} does not have the etag {intent.if_match!r:.80}"
        )


async def _put_at_once(job: _Put, data: bytes, digests: Digests) -> ObjectInfo:
    digests.check(job.intent.key, job.md5, job.sha256)
    info = await job.port.send(replace(job.intent, body=data, md5=digests.md5, sha256=digests.sha256))
    await job.meter.add(len(data))
    return info


def _completion(job: _Put, upload: Upload, parts: Sequence[Part], digests: Digests) -> CompleteUpload:
    """The last request; refused if the bytes do not have the expected digests."""
    intent = job.intent
    digests.check(intent.key, job.md5, job.sha256)
    return CompleteUpload(
        intent.service,
        upload,
        tuple(parts),
        digests.md5,
        digests.sha256,
        if_absent=intent.if_absent,
        if_match=intent.if_match,
    )


# --- parts ------------------------------------------------------------------------------------------------


async def _read_part(
    job: _Put, source: BytesSource | FileSource, start: int, size: int, digests: Digests | None = None
) -> bytes:
    data = await read_range(job.port, source, start, size, digests)
    if len(data) < size:
        raise IntegrityError(
            f"the source of {job.intent.key!r:.80} ended early, after {start + len(data):,} bytes"
        )
    return data


async def _send_one_by_one(
    job: _Put, source: BytesSource | FileSource, digests: Digests, upload: Upload, have: Have
) -> list[Part]:
    """Send one part after the other, reading and hashing in one pass."""
    parts = []
    for number, start, size in split_parts(source.size, job.traits.part_size):
        data = await _read_part(job, source, start, size, digests)
        parts.append(await send_part(job.port, job.intent.service, upload, number, data, have))
        del data  # before the next is read
        await job.meter.add(size)
    return parts


async def _send_side_by_side(
    job: _Put, source: BytesSource | FileSource, digests: Digests, upload: Upload, have: Have
) -> list[Part]:
    """Send several parts at a time, each read from its own position, and hash the source alongside."""
    failed = False

    async def hash_them(start: int, end: int) -> None:
        step = job.traits.part_size
        for at in range(start, end, step):
            if not failed:
                await job.port.offload(hash_range, source, digests, at, min(step, end - at))

    async def send_one(number: int, start: int, size: int) -> Part | None:
        nonlocal failed
        if failed:
            return None
        try:
            data = await _read_part(job, source, start, size)
            part = await send_part(job.port, job.intent.service, upload, number, data, have)
            await job.meter.add(size)
        except BaseException:
            failed = True
            raise
        return part

    places = split_parts(source.size, job.traits.part_size)
    parts: list[Part] = []
    together = _TOGETHER * job.traits.parallel
    for at in range(0, len(places), together):
        some = places[at : at + together]
        flows: list[Coroutine[Any, Any, Part | None]] = [send_one(*place) for place in some]
        if digests.wanted:
            flows.insert(0, hash_them(some[0][1], some[-1][1] + some[-1][2]))
        outcomes = await job.port.gather(flows, limit=job.traits.parallel)
        parts += [part for outcome in outcomes if (part := outcome.result()) is not None]
    return parts


async def _send_in_order(
    job: _Put, left: bytes, source: StreamSource, digests: Digests, upload: Upload, have: Have
) -> list[Part]:
    """Send one part after the other, as the stream returns them; ``left`` has the bytes that were already read."""
    parts: list[Part] = []
    while True:
        number = len(parts) + 1
        size = _part_size(job, number)
        data, left = left[:size], left[size:]
        if len(data) < size:
            data += await read_exactly(job.port, source.stream, size - len(data))
        if not data:
            return parts
        if number > MAX_PARTS or digests.size + len(data) > MAX_OBJECT:
            raise InvalidRequestError(
                f"the stream for {job.intent.key!r:.80} is too long; the limit is {MAX_OBJECT:,} bytes"
            )
        if job.size is not None and digests.size + len(data) > job.size:
            raise IntegrityError(
                f"the stream for {job.intent.key!r:.80} has more than the expected {job.size:,} bytes"
            )
        await hash_bytes(job.port, digests, data)
        parts.append(await send_part(job.port, job.intent.service, upload, number, data, have))
        await job.meter.add(len(data))


def _part_size(job: _Put, number: int) -> int:
    """The size of a part of a stream: the same for all parts if the stream's size is known."""
    if job.size is not None:
        return fit_part_size(job.size, job.traits.part_size)
    return job.traits.part_size << ((number - 1) // _GROWTH)


# --- what was expected ------------------------------------------------------------------------------------


def _check_size(job: _Put, size: int) -> None:
    if job.size is not None and size != job.size:
        raise IntegrityError(
            f"the source of {job.intent.key!r:.80} has {size:,} bytes, but {job.size:,} were expected"
        )
    if size > MAX_OBJECT:
        raise InvalidRequestError(
            f"the source of {job.intent.key!r:.80} has {size:,} bytes; the limit is {MAX_OBJECT:,}"
        )

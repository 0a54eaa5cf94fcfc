"""The flow that puts bytes under a key: at once when they are few, in parts when they are many.

Why it is safe wherever it stops: nothing can be seen under the key before the last request, and that one shows all of
it or nothing. What was expected of the bytes is checked before it. Parts of an upload that failed or was cancelled are
given up at once; those of a process that died stay unseen until the service, or ``resume``, finds them.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from holdall.core.digests import Digests
from holdall.core.frozen import dataclass, replace
from holdall.core.object_rules import MAX_OBJECT, MAX_PARTS, check_object_request
from holdall.core.objects import (
    BeginUpload,
    Checksum,
    CompleteUpload,
    DescribeService,
    HeadObject,
    ObjectHeaders,
    ObjectInfo,
    ObjectRequest,
    Part,
    PutObject,
    ServiceTraits,
    Upload,
)
from holdall.core.port import Port
from holdall.errors import IntegrityError, InvalidRequestError, ObjectNotFoundError, PreconditionFailedError
from holdall.files.mirror import mirror
from holdall.files.multipart import Have, send_part, upload_parts
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf
from holdall.files.source import hash_bytes, open_source, read_exactly, read_range, split_parts
from holdall.local.source import BytesSource, FileSource, StreamSource, check_unchanged, hash_range

_GROWTH = 1000
"""After so many parts of a stream they double in size: there may be 10,000, and the size of the stream is unknown."""

_TOGETHER = 16
"""After so many parts in each lane all wait for each other, so that a cancellation takes effect."""


@dataclass(frozen=True, slots=True)
class _Put:
    """What is to be done."""

    port: Port
    service: str
    key: str
    headers: ObjectHeaders
    traits: ServiceTraits
    if_absent: str | None
    if_match: str | None
    tags: Mapping[str, str]
    md5: str | None
    sha256: str | None
    size: int | None
    meter: Meter
    resume: bool

    @property
    def begin_upload(self) -> BeginUpload:
        """The first request, if it is sent in parts."""
        return BeginUpload(self.service, self.key, self.headers, self.tags)


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
    """Keep bytes, a file by its path, or a stream under a key, in place of whatever is there.

    ``if_absent``: only if nothing is there, ``if_match``: only in place of the object with this etag, else
    `PreconditionFailedError`. ``md5``, ``sha256`` (base64) and ``size`` are what the bytes must be: `IntegrityError`,
    and nothing is kept, when they are not. ``progress`` is called with the bytes that are done and all there are.
    ``resume`` continues an upload of the same bytes that broke off, and leaves one that fails to be resumed; the
    headers and tags are those it was begun with. Returns the object as it is stored, with the checksums asked for.
    """
    context, service = shelf.context, shelf.service
    port = context.port
    headers = ObjectHeaders(content_type, disposition, cache_control, dict(metadata or {}))
    put_id = port.new_id() if if_absent else None
    kept_tags = dict(tags or {})
    intent: ObjectRequest[Any] = PutObject(
        service, key, b"", headers, if_absent=put_id, if_match=if_match, tags=kept_tags
    )
    check_object_request(intent)  # before anything is read
    wanted: set[Checksum] = set(checksums)
    if md5 is not None:
        wanted.add("md5")
    if sha256 is not None:
        wanted.add("sha256")
    digests = Digests(wanted)
    traits = await port.send(DescribeService(service))
    meter = Meter(port, progress)
    job = _Put(
        port, service, key, headers, traits, put_id, if_match, kept_tags, md5, sha256, size, meter, resume
    )
    found = await open_source(port, source)
    if isinstance(found, StreamSource):
        info = await _put_stream(job, found, digests)
    else:
        info = await _put_known(job, found, digests)
    await mirror(context, service, key)
    return replace(info, md5=digests.md5, sha256=digests.sha256, crc32c=digests.crc32c)


async def _put_known(job: _Put, source: BytesSource | FileSource, digests: Digests) -> ObjectInfo:
    """Put what has a size: at once, or with several parts on their way at a time."""
    _check_size(job, source.size)
    await job.meter.begin(source.size)
    if source.size <= job.traits.single_put:
        data = await _read_part(job, source, 0, source.size, digests)
        return await _put_at_once(job, data, digests)

    await _check_place(job)

    async def fill(upload: Upload, have: Have) -> CompleteUpload:
        send = _one_by_one if job.traits.parallel == 1 else _side_by_side
        parts = await send(job, source, digests, upload, have)
        await job.port.offload(check_unchanged, source)
        return _completion(job, upload, parts, digests)

    return await upload_parts(job.port, job.begin_upload, fill, resume=job.resume)


async def _put_stream(job: _Put, source: StreamSource, digests: Digests) -> ObjectInfo:
    """Put what is read once: if it is not over soon, part by part."""
    if job.size is not None:
        _check_size(job, job.size)
    await job.meter.begin(job.size)
    first = await read_exactly(job.port, source.stream, job.traits.single_put + 1)
    if len(first) <= job.traits.single_put:
        _check_size(job, len(first))
        await hash_bytes(job.port, digests, first)
        return await _put_at_once(job, first, digests)
    await _check_place(job)
    beginning = [first]  # taken from there, so that it is not held to the end
    del first

    async def fill(upload: Upload, have: Have) -> CompleteUpload:
        parts = await _in_order(job, beginning.pop(), source, digests, upload, have)
        _check_size(job, digests.size)
        return _completion(job, upload, parts, digests)

    return await upload_parts(job.port, job.begin_upload, fill, resume=job.resume)


async def _check_place(job: _Put) -> None:
    """Refuse what would be refused in the end, before anything is sent; what comes meanwhile is seen then."""
    if job.if_absent is None and job.if_match is None:
        return
    try:
        etag = (await job.port.send(HeadObject(job.service, job.key))).etag
    except ObjectNotFoundError:
        etag = None
    if job.if_absent is not None and etag is not None:
        raise PreconditionFailedError(f"there is an object {job.key!r:.80} already")
    if job.if_match is not None and etag != job.if_match:
        raise PreconditionFailedError(f"the object {job.key!r:.80} is not the one that it was")


async def _put_at_once(job: _Put, data: bytes, digests: Digests) -> ObjectInfo:
    digests.check(job.key, job.md5, job.sha256)
    request = PutObject(
        job.service,
        job.key,
        data,
        job.headers,
        digests.md5,
        digests.sha256,
        job.if_absent,
        job.if_match,
        job.tags,
    )
    info = await job.port.send(request)
    await job.meter.add(len(data))
    return info


def _completion(job: _Put, upload: Upload, parts: Sequence[Part], digests: Digests) -> CompleteUpload:
    """The last request, if the bytes are what they should be."""
    digests.check(job.key, job.md5, job.sha256)
    return CompleteUpload(
        job.service,
        upload,
        tuple(parts),
        digests.md5,
        digests.sha256,
        if_absent=job.if_absent,
        if_match=job.if_match,
    )


# --- parts ------------------------------------------------------------------------------------------------


def _places(job: _Put, size: int) -> Sequence[tuple[int, int, int]]:
    return split_parts(size, max(job.traits.part_size, -(-size // MAX_PARTS)))


async def _read_part(
    job: _Put, source: BytesSource | FileSource, start: int, size: int, digests: Digests | None = None
) -> bytes:
    data = await read_range(job.port, source, start, size, digests)
    if len(data) < size:
        raise IntegrityError(f"the source of {job.key!r:.80} ended after {start + len(data):,} bytes")
    return data


async def _one_by_one(
    job: _Put, source: BytesSource | FileSource, digests: Digests, upload: Upload, have: Have
) -> list[Part]:
    """One part after the other, read and hashed in one pass."""
    parts = []
    for number, start, size in _places(job, source.size):
        data = await _read_part(job, source, start, size, digests)
        parts.append(await send_part(job.port, job.service, upload, number, data, have))
        del data  # before the next is read
        await job.meter.add(size)
    return parts


async def _side_by_side(
    job: _Put, source: BytesSource | FileSource, digests: Digests, upload: Upload, have: Have
) -> list[Part]:
    """Several parts at a time, each read where it stands, and beside them the hashing of all."""
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
            part = await send_part(job.port, job.service, upload, number, data, have)
            await job.meter.add(size)
        except BaseException:
            failed = True
            raise
        return part

    places = _places(job, source.size)
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


async def _in_order(
    job: _Put, left: bytes, source: StreamSource, digests: Digests, upload: Upload, have: Have
) -> list[Part]:
    """One part after the other, as a stream returns them; ``left`` is what was read of it already."""
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
            raise InvalidRequestError(f"the stream for {job.key!r:.80} is larger than any object can be")
        if job.size is not None and digests.size + len(data) > job.size:
            raise IntegrityError(f"more bytes came for {job.key!r:.80} than the {job.size:,} expected")
        await hash_bytes(job.port, digests, data)
        parts.append(await send_part(job.port, job.service, upload, number, data, have))
        await job.meter.add(len(data))


def _part_size(job: _Put, number: int) -> int:
    """How large a part of a stream is: as all others if it is known how many bytes come."""
    if job.size is not None:
        return max(job.traits.part_size, -(-job.size // MAX_PARTS))
    return job.traits.part_size << ((number - 1) // _GROWTH)


# --- what was expected ------------------------------------------------------------------------------------


def _check_size(job: _Put, size: int) -> None:
    if job.size is not None and size != job.size:
        raise IntegrityError(f"{size:,} bytes came for {job.key!r:.80}, and {job.size:,} were expected")
    if size > MAX_OBJECT:
        raise InvalidRequestError(f"{size:,} bytes are more than any object can have")

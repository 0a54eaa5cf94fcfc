"""Flows that read objects: whole, in ranges, or into files.

A large object is read in ranges, each on condition that the object is still the one that the first range came from. No
connection is held open, and an interrupted download can be resumed. A file appears under its name only when it is
complete and its digests are right.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.context import Context
from holdall.core.digests import Digests, PartDigests
from holdall.core.frozen import dataclass
from holdall.core.objects import DescribeService, GetObject, HeadObject, MeasurePart, ObjectInfo, ObjectRange
from holdall.core.port import Port
from holdall.core.rules.object import MIN_PART
from holdall.errors import (
    IntegrityError,
    InvalidOptionsError,
    InvalidRequestError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf
from holdall.files.source import fit_part_size, hash_bytes
from holdall.local.draft import (
    Draft,
    Visits,
    drop_draft,
    hash_draft,
    open_draft,
    place_draft,
    prepare_place,
    write_draft,
)

if TYPE_CHECKING:
    from pathlib import Path

_TURN = 64 * 1024**2
_PART_SIZES = (8, 16, 10, 15, 32, 50, 64, 100, 128, 256, 512)

Take: TypeAlias = Callable[[bytes], Coroutine[Any, Any, None]]
"""Takes the next bytes."""

Vet: TypeAlias = Callable[[ObjectInfo], None]
"""Inspects an object before any of its bytes are read, and refuses it by raising."""


async def head(shelf: Shelf, key: str) -> ObjectInfo:
    """An object's size, headers, etag and digests, without its bytes; `ObjectNotFoundError` if it is missing."""
    return await shelf.context.port.send(HeadObject(shelf.service, key))


async def exists(shelf: Shelf, key: str) -> bool:
    """Whether there is an object under the key."""
    try:
        await head(shelf, key)
    except ObjectNotFoundError:
        return False
    return True


async def get(
    shelf: Shelf, key: str, *, start: int = 0, size: int | None = None, verify: bool = True
) -> bytes:
    """The bytes of an object, or ``size`` of them from ``start`` on; `ObjectNotFoundError` if it is missing.

    A whole object is checked against the digests that were stored with it, if any: `IntegrityError` if they differ.
    ``verify=False`` skips the check.
    """
    if size == 0:
        if start < 0:
            raise InvalidRequestError(f"start must be 0 or more, not {start}")
        await head(shelf, key)
        return b""
    pieces: list[bytes] = []

    async def take(piece: bytes) -> None:
        pieces.append(piece)

    whole = start == 0 and size is None
    await _Download(Wanted(shelf, key, verify and whole), take).read(start, size)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def download(
    shelf: Shelf,
    key: str,
    to: Any,
    *,
    verify: bool = True,
    progress: Progress | None = None,
    resume: bool = False,
) -> ObjectInfo:
    """Write an object into a file, given by its path, or into a stream.

    The file appears under its name, replacing any file there, only when it is complete and its digests are right. A
    stream has already received all bytes when an `IntegrityError` reports that they are wrong. ``resume`` continues an
    interrupted download into the same file, if the object is still the same; if this download fails, a later call can
    resume it. Partial files that killed processes left in the directory are removed after an hour, or after a week if
    they could be resumed.
    """
    port = shelf.context.port
    wanted = Wanted(shelf, key, verify)
    meter = Meter(port, progress)
    if callable(getattr(to, "write", None)):
        return await read_into(wanted, partial(give, port, to), meter)
    return await read_into_file(wanted, await find_place(shelf.context, to), meter, resume=resume)


async def find_place(context: Context, to: Any) -> Path:
    """The path that the caller passed, after removing the files that killed downloads left beside it."""
    if not isinstance(to, str) and not hasattr(to, "__fspath__"):
        raise InvalidOptionsError(
            f"a download needs a path or a stream to write to, not a value of type {type(to).__name__}",
            hint="pass a path, or an object with a write method",
        )
    visits = context.state.of(Visits)
    return await context.port.offload(prepare_place, to, visits, context.port.now())


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object to read, and what to check: its stored digests, a SHA-256 it must have (base64), or anything else."""

    shelf: Shelf
    key: str
    verify: bool = True
    sha256: str | None = None
    vet: Vet | None = None


async def read_into(wanted: Wanted, take: Take, meter: Meter) -> ObjectInfo:
    """Pass the bytes of an object on, in order; whether they are correct is known only after the last."""
    return await _Download(wanted, take, meter).read()


async def read_into_file(wanted: Wanted, path: Path, meter: Meter, *, resume: bool = False) -> ObjectInfo:
    """Write an object into a file, as `download` does."""
    shelf, known = wanted.shelf, None
    port = shelf.context.port
    mark = port.new_id()[:16]
    if resume:
        known = await head(shelf, wanted.key)
        if wanted.vet is not None:
            wanted.vet(known)
        mark = resumable_mark(shelf.service, wanted.key, known.etag, path.name)
    draft = Draft(path, mark)
    try:
        await port.offload(open_draft, draft, resume)
        info = await _Download(wanted, draft, meter, known).read(draft.done)
        await port.offload(place_draft, draft)
    except BaseException as error:
        keep = resume and not isinstance(
            error, IntegrityError | InvalidRequestError | ObjectNotFoundError | PreconditionFailedError
        )
        await port.offload(drop_draft, draft, keep)
        raise
    return info


def resumable_mark(*parts: str) -> str:
    """The mark of a download that can be resumed: the same for the same object and target."""
    return sha256("\n".join(parts).encode()).hexdigest()[:16]


async def give(port: Port, stream: Any, piece: bytes) -> None:
    """Write a whole piece to the caller's stream, whose ``write`` may accept fewer bytes and return how many."""
    while piece:
        count = await port.call(stream.write, piece)
        if not isinstance(count, int) or count >= len(piece):
            return
        piece = piece[count:]


def guess_part_size(size: int, parts: int) -> int | None:
    """The size of an object's parts, if it was uploaded the way Holdall or common tools do; None otherwise."""
    sizes = (fit_part_size(size, MIN_PART), *(mebibytes * 1024**2 for mebibytes in _PART_SIZES))
    fitting = (each for each in sizes if -(-size // each) == parts)
    return next(fitting, size if parts == 1 and size else None)


class _Download:
    """An object being read: its bytes are passed on or written in order, checked at the end, and reported.

    ``known`` is the object that it must be.
    """

    def __init__(
        self, wanted: Wanted, to: Take | Draft, meter: Meter | None = None, known: ObjectInfo | None = None
    ) -> None:
        self._wanted = wanted
        self._to = to
        self._port = wanted.shelf.context.port
        self._service = wanted.shelf.service
        self._key = wanted.key
        self._meter = meter or Meter(self._port, None)
        self._known = known
        self._digests = self._digests_for(known) if known is not None else None
        self._at = self._end = 0

    async def read(self, start: int = 0, size: int | None = None) -> ObjectInfo:
        """Pass the bytes on; several ranges are fetched concurrently if the service's traits suggest it."""
        if isinstance(self._to, Draft) and self._digests is not None:
            for at in range(0, start, _TURN):  # the bytes that an earlier download left
                await self._port.offload(hash_draft, self._to, self._digests, at, min(_TURN, start - at))
        traits = await self._port.send(DescribeService(self._service))
        step = traits.part_size
        etag = self._known.etag if self._known is not None else None
        first = await self._port.send(self._range(start, step if size is None else min(step, size), etag))
        info = first.info
        if self._known is None:
            if self._wanted.vet is not None:
                self._wanted.vet(info)
            self._digests = self._digests_for(info)
        self._at = start
        self._end = info.size if size is None else min(info.size, start + size)
        await self._meter.begin(self._end, start)
        await self._take(first)
        del first
        while self._at < self._end:
            starts = range(self._at, self._end, step)[: traits.parallel]
            ranges = [self._range(each, min(step, self._end - each), info.etag) for each in starts]
            if len(ranges) == 1:
                await self._take(await self._port.send(ranges[0]))
                continue
            outcomes = await self._port.gather([self._port.send(each) for each in ranges], limit=len(ranges))
            while outcomes:  # so that no range is held longer than necessary
                await self._take(outcomes.pop(0).result())
        if isinstance(self._digests, PartDigests):
            await self._check_parts(info, self._digests)
        elif self._digests is not None:
            self._check(info, self._digests)
        return info

    def _digests_for(self, info: ObjectInfo) -> Digests | None:
        """The digests that the object was stored with; of two, SHA-256, which cannot be forged and is also faster."""
        if self._wanted.sha256 is not None:
            return Digests(["sha256"])
        if not self._wanted.verify:
            return None
        if info.parts is not None and not info.sha256 and not info.md5:
            size = guess_part_size(info.size, info.parts)
            return Digests([]) if size is None else PartDigests(size)
        return Digests(["sha256"] if info.sha256 else ["md5"] if info.md5 else [])

    def _range(self, start: int, size: int, etag: str | None) -> GetObject:
        return GetObject(self._service, self._key, start, size, etag)

    async def _take(self, piece: ObjectRange) -> None:
        body, left = piece.body, max(0, self._end - self._at)
        if piece.start != self._at or (left and not body) or len(body) > left:
            raise IntegrityError(f"the service returned other bytes of {self._key!r:.80} than were requested")
        if isinstance(self._to, Draft):
            await self._port.offload(write_draft, self._to, body, self._digests)
        else:
            if self._digests is not None:
                await hash_bytes(self._port, self._digests, body)
            await self._to(body)
        self._at += len(body)
        await self._meter.add(len(body))

    async def _check_parts(self, info: ObjectInfo, digests: PartDigests) -> None:
        """Check that the bytes have the etag. The part size was a guess, so the service is asked for it before a
        mismatch is reported."""
        self._check(info, digests)
        if digests.etag == info.etag or not await self._has_parts_of(info, digests.part_size):
            return
        raise IntegrityError(
            f"the bytes of {info.key!r:.80} have the etag {digests.etag}, but should have {info.etag}"
        )

    async def _has_parts_of(self, info: ObjectInfo, part_size: int) -> bool:
        for number, start in enumerate(range(0, info.size, part_size), 1):
            request = MeasurePart(self._service, self._key, number, info.etag)
            if await self._port.send(request) != min(part_size, info.size - start):
                return False
        return True

    def _check(self, info: ObjectInfo, digests: Digests) -> None:
        """Check that the bytes have the digests stored with the object, and the SHA-256 that the caller asked for."""
        if digests.size != info.size:
            raise IntegrityError(
                f"{digests.size:,} bytes of {info.key!r:.80} were received, but it has {info.size:,}"
            )
        for name, kept in (
            ("md5", info.md5),
            ("sha256", info.sha256 if self._wanted.verify else None),
            ("sha256", self._wanted.sha256),
        ):
            found = getattr(digests, name)
            if found is not None and kept is not None and kept != found:
                raise IntegrityError(
                    f"the bytes of {info.key!r:.80} have the {name} {found}, but should have {kept}"
                )

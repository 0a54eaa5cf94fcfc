"""One object on its way to the service of the same name: copied by the server if it can, otherwise read and written.

Every copy is checked against the digests of its source when it is made.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Literal, NamedTuple

from holdall.core.digests import Digests
from holdall.core.frozen import replace
from holdall.core.objects import GetObject, ListedObject, ObjectHeaders, ObjectInfo, Origin
from holdall.errors import (
    AccessDeniedError,
    ConfigurationError,
    IntegrityError,
    InvalidRequestError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from holdall.files.shelf import Shelf
from holdall.files.source import hash_bytes
from holdall.files.transfer import compare_bytes, copy_object, find_object, find_origin, import_object
from holdall.local.copy_manifest import Recorded, record_intents
from holdall.maintenance.copy.work import Work

_PIECE = 8 * 1024**2


class Result(NamedTuple):
    """What happened to an object; ``copy`` is the etag in the target to record, None to keep what is recorded."""

    name: Literal["copied", "same", "differing", "failed", "vanished"]
    origin: bytes = b""
    copy: str | None = None
    size: int = 0
    line: str = ""


class ObjectCopy:
    """The objects of one service; ``place`` is the service's name in the manifest."""

    def __init__(self, work: Work, service: str, place: str) -> None:
        self._work = work
        self._service = service
        self._place = place
        self._source = Shelf(work.source, service)
        self._target = Shelf(work.target, service)
        self._origin: Origin | None = None

    async def prepare(self) -> None:
        """Find out whether both services are on one server."""
        self._origin = await find_origin(self._source, self._target)

    async def copy(self, listed: ListedObject, recorded: Recorded | None, begun: Collection[bytes]) -> Result:
        """Copy an object, unless it is already there or another program has changed it there.

        ``recorded`` is what an earlier pass recorded of it, ``begun`` what was intended before an interruption.
        """
        work, key, origin = self._work, listed.key, make_print(listed)
        kept = Result("vanished")
        try:
            ours = await find_object(work.source, self._service, key)
            if ours is None:
                return kept
            theirs = await find_object(work.target, self._service, key)
            if theirs is not None and await self._is_same(ours, theirs):
                return Result("same", origin, theirs.etag)
            if theirs is not None and was_begun(theirs, begun):
                kept = Result("vanished", copy=theirs.etag)
            elif theirs is not None and not (_is_recorded(theirs, recorded) or work.options.overwrite):
                line = f"{key}: changed in the target, so it was not replaced"
                return Result("differing", line=line)
            intent = [(key, _describe_bytes(ours))]
            await work.offload(record_intents, self._place, intent)
            copy = await self._transfer(ours)
        except (ObjectNotFoundError, PreconditionFailedError):
            return kept  # it was replaced or deleted meanwhile: the next pass copies it
        except (IntegrityError, InvalidRequestError) as error:
            return Result("failed", line=f"{key}: {error.message}")
        return Result("copied", origin, copy.etag, ours.size)

    async def _transfer(self, info: ObjectInfo) -> ObjectInfo:
        """Let the server copy an object if it can, and otherwise read and write it."""
        if self._origin is not None:
            try:
                return await import_object(self._source, info, self._target, self._origin)
            except (AccessDeniedError, ConfigurationError):
                # the target's credentials do not permit reading the source, or the server does not copy
                self._origin = None
            except (IntegrityError, InvalidRequestError, ObjectNotFoundError):
                pass  # a refusal of this object only: reading it shows whether it can be copied
        return await copy_object(self._source, info, self._target, self._wait)

    async def _wait(self, size: int) -> None:
        """Wait until so many bytes may be read."""
        await self._work.pace.wait(self._work.source.port, size)

    async def _is_same(self, ours: ObjectInfo, theirs: ObjectInfo) -> bool:
        """Whether both have the same bytes and headers. If the services know no common digest, the bytes are read."""
        if not _has_same_headers(ours.headers, theirs.headers):
            return False
        same = compare_bytes(ours, theirs)
        if same is None:
            same = await self._hash(self._source, ours) == await self._hash(self._target, theirs)
        return same

    async def _hash(self, shelf: Shelf, info: ObjectInfo) -> str | None:
        """The SHA-256 of an object's bytes, which are read for it."""
        digests, port = Digests(["sha256"]), shelf.context.port
        for start in range(0, info.size, _PIECE):
            await self._wait(min(_PIECE, info.size - start))
            piece = await port.send(GetObject(shelf.service, info.key, start, _PIECE, info.etag))
            await hash_bytes(port, digests, piece.body)
        return digests.sha256


def make_print(listed: ListedObject) -> bytes:
    """What a listing shows of an object: different after each change of its bytes, headers or tags."""
    return f"{listed.etag} {listed.size} {listed.modified.isoformat()}".encode()


def _describe_bytes(info: ObjectInfo) -> bytes:
    """What is known of an object's bytes, to recognize a copy of it that was not recorded."""
    return json.dumps([info.size, info.etag, info.md5, info.sha256]).encode()


def _is_recorded(there: ObjectInfo, recorded: Recorded | None) -> bool:
    return recorded is not None and recorded.copy == there.etag


def was_begun(there: ObjectInfo, begun: Collection[bytes]) -> bool:
    """Whether this copy wrote the target's object just before it was interrupted; not if no digest shows that."""
    return any(_has_bytes(there, *json.loads(each)) for each in begun)


def _has_bytes(there: ObjectInfo, size: int, etag: str, md5: str | None, sha256: str | None) -> bool:
    return compare_bytes(replace(there, size=size, etag=etag, md5=md5, sha256=sha256), there) is True


def _has_same_headers(ours: ObjectHeaders, theirs: ObjectHeaders) -> bool:
    """Whether the target has the headers of the source; a service may add a content type of its own."""
    pairs = [
        (getattr(ours, name), getattr(theirs, name))
        for name in ("content_type", "disposition", "cache_control")
    ]
    return dict(ours.metadata) == dict(theirs.metadata) and all(
        one is None or one == other for one, other in pairs
    )

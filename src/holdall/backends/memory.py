"""The service that stores objects in this process's memory, for tests and for data that need not outlive the process.

A forked child has its own copy, as of any other object.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import md5
from typing import Any, TypeVar, cast

from holdall.backends.clock import read_seconds
from holdall.backends.fork import call_after_fork
from holdall.backends.refusal import (
    refuse_other,
    refuse_part,
    refuse_range,
    refuse_request,
    refuse_taken,
    refuse_upload,
)
from holdall.core.digests import Digests
from holdall.core.frozen import dataclass, replace
from holdall.core.object_url import (
    BaseUrl,
    DirectUpload,
    Download,
    sign_url,
    verified_download,
    verified_upload,
)
from holdall.core.objects import (
    AbortUpload,
    BeginUpload,
    CompleteUpload,
    CopyObject,
    CopyPart,
    DeleteObject,
    DeleteObjects,
    DeleteReport,
    DescribeService,
    GetObject,
    GetTags,
    HeadObject,
    ListedObject,
    ListObjects,
    ListParts,
    ListUploads,
    ObjectHeaders,
    ObjectInfo,
    ObjectPage,
    ObjectRange,
    ObjectRequest,
    Part,
    PartPage,
    PutObject,
    ServiceTraits,
    SignUrl,
    Upload,
    UploadPart,
)
from holdall.core.requests import Done, Request
from holdall.core.rules.object import check_object_request
from holdall.errors import ObjectNotFoundError, StoreClosedError

__all__ = ["MemoryService"]

R = TypeVar("R")
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class _Kept:
    """An object; ``upload`` is the id of the upload that created it."""

    info: ObjectInfo
    body: bytes
    tags: Mapping[str, str]
    upload: str | None = None


@dataclass(frozen=True, slots=True)
class _Begun:
    """An upload in progress, with the bytes of its parts."""

    key: str
    headers: ObjectHeaders
    tags: Mapping[str, str]
    parts: dict[int, tuple[Part, bytes]]


class MemoryService:
    """Objects in memory. ``secret`` and ``base_url`` are for signed URLs, as for a service on disk."""

    def __init__(
        self,
        *,
        secret: Sequence[str] = (),
        base_url: BaseUrl = None,
        clock: Callable[[], float] = read_seconds,
    ) -> None:
        self._secret = secret
        self._clock = clock
        self._closed = False
        self._objects: dict[str, _Kept] = {}
        self._order: list[bytes] = []
        self._uploads: dict[str, _Begun] = {}
        self._puts = 0
        self._lock = threading.Lock()
        self._answers: dict[type, Callable[[Any], Any]] = {
            DescribeService: lambda r: ServiceTraits(),
            HeadObject: lambda r: self._find(r.key).info,
            GetObject: self._get,
            GetTags: lambda r: dict(self._find(r.key).tags),
            ListObjects: self._list,
            PutObject: self._put,
            CopyObject: self._copy,
            DeleteObject: self._delete,
            DeleteObjects: self._delete_many,
            BeginUpload: self._begin,
            UploadPart: lambda r: self._keep_part(r.upload, r.number, bytes(r.body)),
            CopyPart: self._copy_part,
            ListParts: self._parts,
            ListUploads: self._under_way,
            CompleteUpload: self._complete,
            AbortUpload: self._abort,
            SignUrl: lambda r: sign_url(r, secret, base_url, clock()),
        }
        call_after_fork(self._renew_lock)

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request."""
        if self._closed:
            raise StoreClosedError("the file service is closed", hint="open it again")
        answer = self._answers.get(type(request))
        if answer is None:
            raise refuse_request(request)
        check_object_request(cast("ObjectRequest[object]", request))
        with self._lock:
            return cast("R", answer(request))

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request at once: nothing here blocks."""
        return self.send_blocking(request)

    def close(self) -> None:
        """Answer no more requests, and forget everything."""
        self._closed = True
        with self._lock:
            self._objects.clear()
            self._order.clear()
            self._uploads.clear()

    def verified_download(self, token: str) -> Download:
        """What the token of a download URL permits; `InvalidTokenError` if it is forged or expired."""
        return verified_download(token, self._secret, self._clock())

    def verified_upload(self, token: str) -> DirectUpload:
        """What the token of an upload URL permits; `InvalidTokenError` if it is forged or expired."""
        return verified_upload(token, self._secret, self._clock())

    def _renew_lock(self) -> None:
        """Replace the lock in a forked child, where the thread that held it does not exist."""
        self._lock = threading.Lock()

    # --- reads ---

    def _find(self, key: str, if_match: str | None = None) -> _Kept:
        kept = self._objects.get(key)
        if kept is None:
            raise ObjectNotFoundError(f"there is no object {key!r}")
        if if_match is not None and if_match != kept.info.etag:
            raise refuse_other(key)
        return kept

    def _get(self, request: GetObject) -> ObjectRange:
        kept = self._find(request.key, request.if_match)
        end = None if request.size is None else request.start + request.size
        return ObjectRange(kept.info, request.start, kept.body[request.start : end])

    def _list(self, request: ListObjects) -> ObjectPage:
        prefix = request.prefix.encode("utf-8", "surrogatepass")
        after = (request.after or "").encode("utf-8", "surrogatepass")
        start = max(bisect_left(self._order, prefix), bisect_right(self._order, after))
        window = self._order[start : start + request.limit + 1]
        infos = [self._objects[key.decode()].info for key in window if key.startswith(prefix)]
        objects = tuple(
            ListedObject(info.key, info.size, info.etag, info.modified) for info in infos[: request.limit]
        )
        return ObjectPage(objects, objects[-1].key if len(infos) > request.limit else None)

    # --- writes ---

    def _put(self, request: PutObject) -> ObjectInfo:
        digests = Digests()
        digests.update(request.body)
        digests.check(request.key, request.md5, request.sha256)
        self._check_place(request.key, request)
        return self._keep(
            request.key,
            bytes(request.body),
            request.headers,
            request.tags,
            digests.md5,
            digests.sha256,
            request.if_absent,
        )

    def _copy(self, request: CopyObject) -> ObjectInfo:
        kept = self._find(request.source, request.if_match)
        if request.if_absent is not None:
            self._check_absent(request.key)
        info = kept.info
        return self._keep(
            request.key, kept.body, info.headers, kept.tags, info.md5, info.sha256, request.if_absent
        )

    def _check_place(self, key: str, request: PutObject | CompleteUpload) -> None:
        """Refuse a put if its condition on the current object does not hold."""
        if request.if_absent is not None:
            self._check_absent(key)
        kept = self._objects.get(key)
        if request.if_match is not None and (kept is None or kept.info.etag != request.if_match):
            raise refuse_other(key)

    def _check_absent(self, key: str) -> None:
        if key in self._objects:
            raise refuse_taken(key)

    def _keep(
        self,
        key: str,
        body: bytes,
        headers: ObjectHeaders,
        tags: Mapping[str, str],
        md5: str | None,
        sha256: str | None,
        put_id: str | None,
        upload: str | None = None,
    ) -> ObjectInfo:
        if key not in self._objects:
            insort(self._order, key.encode())
        self._puts += 1
        info = ObjectInfo(
            key,
            len(body),
            f"{len(body):x}-{self._puts:x}",
            datetime.fromtimestamp(self._clock(), UTC),
            replace(headers, metadata=dict(headers.metadata)),
            md5=md5,
            sha256=sha256,
            put_id=put_id,
        )
        self._objects[key] = _Kept(info, body, dict(tags), upload)
        return info

    def _delete(self, request: DeleteObject) -> Done:
        kept = self._objects.get(request.key)
        if kept is not None and request.if_match not in (None, kept.info.etag):
            raise refuse_other(request.key)
        self._remove(request.key)
        return Done()

    def _delete_many(self, request: DeleteObjects) -> DeleteReport:
        for key in request.keys:
            self._remove(key)
        return DeleteReport({})

    def _remove(self, key: str) -> None:
        if self._objects.pop(key, None) is not None:
            del self._order[bisect_left(self._order, key.encode())]

    # --- uploads ---

    def _begin(self, request: BeginUpload) -> Upload:
        upload = Upload(request.key, os.urandom(16).hex())
        headers = replace(request.headers, metadata=dict(request.headers.metadata))
        self._uploads[upload.id] = _Begun(request.key, headers, dict(request.tags), {})
        return upload

    def _find_upload(self, upload: Upload) -> _Begun:
        begun = self._uploads.get(upload.id)
        if begun is None or begun.key != upload.key:
            raise refuse_upload(upload.id)
        return begun

    def _copy_part(self, request: CopyPart) -> Part:
        kept = self._find(request.source, request.if_match)
        if request.start + request.size > kept.info.size:
            raise refuse_range(request, kept.info.size)
        body = kept.body[request.start : request.start + request.size]
        return self._keep_part(request.upload, request.number, body)

    def _keep_part(self, upload: Upload, number: int, body: bytes) -> Part:
        part = Part(number, md5(body, usedforsecurity=False).hexdigest(), len(body))
        self._find_upload(upload).parts[number] = part, body
        return part

    def _parts(self, request: ListParts) -> PartPage:
        parts: Mapping[int, tuple[Part, bytes]] = self._find_upload(request.upload).parts
        found = [parts[number][0] for number in sorted(parts) if number > (request.after or 0)]
        return PartPage(tuple(found[:_PAGE]), found[_PAGE - 1].number if len(found) > _PAGE else None)

    def _under_way(self, request: ListUploads) -> tuple[Upload, ...]:
        found = [
            Upload(begun.key, id)
            for id, begun in self._uploads.items()
            if begun.key.startswith(request.prefix)
        ]
        return tuple(sorted(found, key=lambda upload: upload.key.encode()))

    def _complete(self, request: CompleteUpload) -> ObjectInfo:
        upload = request.upload
        there = self._objects.get(upload.key)
        if there is not None and there.upload == upload.id:
            return there.info  # repeated, because the reply was lost
        begun = self._find_upload(upload)
        self._check_place(upload.key, request)
        bodies = [_take_part(upload, begun, part) for part in request.parts]
        digests = Digests()
        for body in bodies:
            digests.update(body)
        digests.check(upload.key, request.md5, request.sha256)
        info = self._keep(
            upload.key,
            b"".join(bodies),
            begun.headers,
            begun.tags,
            request.md5,
            request.sha256,
            request.if_absent,
            upload.id,
        )
        del self._uploads[upload.id]
        return info

    def _abort(self, request: AbortUpload) -> Done:
        begun = self._uploads.get(request.upload.id)
        if begun is not None and begun.key == request.upload.key:
            del self._uploads[request.upload.id]
        return Done()


def _take_part(upload: Upload, begun: _Begun, part: Part) -> bytes:
    kept, body = begun.parts.get(part.number, (None, b""))
    if kept is None or kept.etag != part.etag:
        raise refuse_part(upload.key, part, missing=kept is None)
    return body

"""The service that stores objects as files below a directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from holdall.backends.clock import read_seconds
from holdall.backends.disk.attribute import Attributes
from holdall.backends.disk.directory import Directories
from holdall.backends.disk.listing import Listings
from holdall.backends.disk.object import Objects
from holdall.backends.disk.scratch import Scratch
from holdall.backends.disk.snapshot import Gate, Snapshots, adopt_tree
from holdall.backends.disk.transfer import copy_range, read_range, write_at
from holdall.backends.disk.upload import Uploads
from holdall.backends.refusal import refuse_request
from holdall.core.digests import Digests
from holdall.core.frozen import replace
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
    ListObjects,
    ListParts,
    ListUploads,
    ObjectInfo,
    ObjectRange,
    ObjectRequest,
    PutObject,
    ServiceTraits,
    SignUrl,
    UploadPart,
)
from holdall.core.requests import Done, Request
from holdall.core.rules.object import check_object_request
from holdall.core.snapshots import AdoptObjects, BeginSnapshot, EndSnapshot, LinkSnapshot
from holdall.errors import (
    HoldallError,
    PreconditionFailedError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreNotWritableError,
)

if TYPE_CHECKING:
    from holdall.backends.port.reader import Reader

R = TypeVar("R")

_LARGE = 64 * 1024


class DiskService:
    """Objects as files below ``root``, which is created with the first object; several processes may share it.

    ``secret`` signs URLs, which begin with ``base_url``, where the web application serves this service's files.
    ``clock`` decides when URLs have expired, and which drafts are old enough to be litter.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        secret: Sequence[str] = (),
        base_url: BaseUrl = None,
        clock: Callable[[], float] = read_seconds,
    ) -> None:
        self.root = Path(root).absolute()
        self._secret = secret
        self._clock = clock
        self._closed = False
        self._reader: Reader | None = None
        directories = Directories(self.root)
        self._scratch = Scratch(directories, clock)
        gate = Gate(directories)
        snapshots = Snapshots(self.root, gate)
        self._objects = Objects(directories, self._scratch, gate)
        uploads = Uploads(directories, self._scratch, self._objects)
        self._answers: dict[type, Callable[[Any], Any]] = {
            DescribeService: lambda r: ServiceTraits(place=str(self.root), snapshots=True),
            HeadObject: self._head,
            GetObject: self._get,
            GetTags: self._tags,
            ListObjects: Listings(directories).page,
            PutObject: self._put,
            CopyObject: self._copy,
            DeleteObject: self._delete,
            DeleteObjects: self._delete_many,
            BeginUpload: lambda r: uploads.begin(r.key, r.headers, r.tags),
            UploadPart: lambda r: uploads.put_part(r.upload, r.number, r.body),
            CopyPart: uploads.copy_part,
            ListParts: lambda r: uploads.parts(r.upload, r.after),
            ListUploads: lambda r: uploads.under_way(r.prefix),
            CompleteUpload: uploads.complete,
            AbortUpload: lambda r: uploads.abort(r.upload),
            SignUrl: lambda r: sign_url(r, secret, base_url, clock()),
        }
        self._upkeep: dict[type, Callable[[Any], Any]] = {
            BeginSnapshot: lambda r: snapshots.begin(),
            LinkSnapshot: lambda r: snapshots.link(r.id),
            EndSnapshot: lambda r: snapshots.end(r.id),
            AdoptObjects: lambda r: adopt_tree(Path(r.directory), self.root),
        }

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request in this thread."""
        if self._closed:
            raise StoreClosedError(f"the file service of {self.root} is closed", hint="open it again")
        answer = self._answers.get(type(request))
        if answer is not None:
            check_object_request(cast("ObjectRequest[object]", request))
        elif (answer := self._upkeep.get(type(request))) is None:
            raise refuse_request(request)
        try:
            return cast("R", answer(request))
        except HoldallError:
            raise  # some of ours are also OSErrors
        except OSError as error:
            raise translate_error(error, self.root, request.writes) from error

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer the request in a thread if it may block the event loop."""
        if type(request) in (DescribeService, SignUrl):
            return self.send_blocking(request)
        # a large read deserves its own thread
        is_large = isinstance(request, GetObject) and (request.size or 0) > _LARGE
        if not request.writes and not is_large:
            return await self._find_reader().read(self.send_blocking, request)  # type: ignore[no-any-return]
        import asyncio  # async programs have it; others need not load it

        from holdall.backends.port.awaiting import see_through

        answer = asyncio.to_thread(self.send_blocking, request)
        # a write is completed even if a closing event loop cancels all its tasks
        return await (see_through(answer) if request.writes else answer)

    def _find_reader(self) -> Reader:
        if self._reader is None:
            from holdall.backends.port.reader import Reader  # loads asyncio

            self._reader = Reader("holdall-disk", min(32, (os.cpu_count() or 1) + 4))
        return self._reader

    def close(self) -> None:
        """Answer no more requests."""
        self._closed = True
        if self._reader is not None:
            self._reader.close()

    def verified_download(self, token: str) -> Download:
        """What the token of a download URL permits; `InvalidTokenError` if it is forged or expired."""
        return verified_download(token, self._secret, self._clock())

    def verified_upload(self, token: str) -> DirectUpload:
        """What the token of an upload URL permits; `InvalidTokenError` if it is forged or expired."""
        return verified_upload(token, self._secret, self._clock())

    # --- answers ---

    def _head(self, request: HeadObject) -> ObjectInfo:
        with self._objects.open(request.key) as found:
            return found.info

    def _get(self, request: GetObject) -> ObjectRange:
        with self._objects.open(request.key, request.if_match) as found:
            rest = max(0, found.stat.st_size - request.start)
            size = rest if request.size is None else min(rest, request.size)
            return ObjectRange(found.info, request.start, read_range(found.file, request.start, size))

    def _tags(self, request: GetTags) -> Mapping[str, str]:
        with self._objects.open(request.key) as found:
            return dict(found.attributes.tags or {}) if found.attributes is not None else {}

    def _put(self, request: PutObject) -> ObjectInfo:
        digests = Digests()
        digests.update(request.body)
        digests.check(request.key, request.md5, request.sha256)
        absent = request.if_absent is not None
        if absent:
            self._objects.check_absent(request.key)
        if request.if_match is not None:
            self._objects.check_match(request.key, request.if_match)
        attributes = Attributes(
            request.headers, digests.md5, digests.sha256, request.if_absent, tags=request.tags or None
        )
        with self._scratch.draft() as draft:
            write_at(draft.file, request.body)
            return self._objects.publish(
                request.key, draft, attributes, absent=absent, if_match=request.if_match
            )

    def _copy(self, request: CopyObject) -> ObjectInfo:
        absent = request.if_absent is not None
        with self._objects.open(request.source, request.if_match) as found, self._scratch.draft() as draft:
            if absent:
                self._objects.check_absent(request.key)
            size = found.stat.st_size
            if copy_range(found.file, 0, size, draft.file, 0) != size:
                raise PreconditionFailedError(
                    f"the object {request.source!r} was truncated while it was copied"
                )
            attributes = replace(found.attributes or Attributes(), put_id=request.if_absent, upload=None)
            return self._objects.publish(request.key, draft, attributes, absent=absent)

    def _delete(self, request: DeleteObject) -> Done:
        if request.if_match is not None:
            self._objects.delete_match(request.key, request.if_match)
            return Done()
        for error in self._objects.delete([request.key]).values():
            raise error
        return Done()

    def _delete_many(self, request: DeleteObjects) -> DeleteReport:
        failures = self._objects.delete(request.keys)
        return DeleteReport(
            {key: str(translate_error(error, self.root, True)) for key, error in failures.items()}
        )


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_WRITABLE = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
    *(errno.EEXIST, errno.ENAMETOOLONG),
}


def translate_error(error: OSError, root: Path, writes: bool) -> StoreError:
    """The error to raise for a system error in the root of a service."""
    why = error.strerror or str(error)
    if writes and error.errno in _FULL:
        return StoreFullError(
            f"no space is left for {root} ({why})", hint="free some space and try again; nothing was written"
        )
    if writes and error.errno in _NOT_WRITABLE:
        return StoreNotWritableError(
            f"{root} cannot be written: {why}",
            hint="check that it is a directory without symbolic links, and that this process may write in it",
        )
    return StoreError(f"{root} cannot be {'written' if writes else 'read'}: {why}")

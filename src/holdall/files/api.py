"""``db.files``: bytes under keys, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from holdall.core.context import Context
from holdall.core.cursor import AwaitingPages, BlockingPages
from holdall.core.internal import internal
from holdall.core.objects import ListedObject
from holdall.core.port import run, wait
from holdall.core.shell import awaiting, blocking
from holdall.files import composition, download, mirror, upkeep, upload
from holdall.files.handle import AsyncObjectHandle, ObjectHandle
from holdall.files.listing import Listing
from holdall.files.piece import Pieces
from holdall.files.shelf import Shelf


class _Files:
    @internal
    def __init__(self, context: Context, service: str) -> None:
        self._context = Shelf(context, service)

    @property
    def service(self) -> str:
        """The service's name."""
        return self._context.service


class Files(_Files):
    """The files of one service; ``files["archive"]`` gives access to those of the service ``archive``."""

    def __getitem__(self, service: str) -> Files:
        return Files(self._context.context, service)

    put = blocking(upload.put)
    get = blocking(download.get)
    head = blocking(download.head)
    exists = blocking(download.exists)
    download = blocking(download.download)
    copy = blocking(upkeep.copy)
    compose = blocking(composition.compose)
    delete = blocking(upkeep.delete)
    delete_many = blocking(upkeep.delete_many)
    delete_prefix = blocking(upkeep.delete_prefix)
    url = blocking(upkeep.url)
    upload_url = blocking(upkeep.upload_url)
    verify_download = blocking(upkeep.verify_download)
    verify_upload = blocking(upkeep.verify_upload)
    check_mirrors = blocking(mirror.check_mirrors)

    def stream(
        self, key: str, *, start: int = 0, size: int | None = None, if_match: str | None = None
    ) -> Iterator[bytes]:
        """Iterate over the bytes from ``start`` on, or ``size`` of them, in pieces, to pass them on as they arrive.

        All pieces come from one object: the one with the etag ``if_match``, or the one that exists when the first piece
        is fetched. They are not checked against its digests. A slow reader holds no connection and at most 2 MB.
        """
        return BlockingPages(
            Pieces(self._context, key, start, size, if_match=if_match), self._context.context
        )

    def open(self, key: str) -> ObjectHandle:
        """Open an object in a ``with`` block, to read it in pieces and from any position."""
        return ObjectHandle(self._context, key)

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        """Iterate over the objects whose keys begin with a prefix, in key order; pages are fetched as you iterate."""
        listing = Listing(self._context.context, self.service, prefix)
        while (page := run(listing.next_page(), self._context.context)) is not None:
            yield from page.objects


class AsyncFiles(_Files):
    """The files of one service; ``files["archive"]`` gives access to those of the service ``archive``."""

    def __getitem__(self, service: str) -> AsyncFiles:
        return AsyncFiles(self._context.context, service)

    put = awaiting(upload.put)
    get = awaiting(download.get)
    head = awaiting(download.head)
    exists = awaiting(download.exists)
    download = awaiting(download.download)
    copy = awaiting(upkeep.copy)
    compose = awaiting(composition.compose)
    delete = awaiting(upkeep.delete)
    delete_many = awaiting(upkeep.delete_many)
    delete_prefix = awaiting(upkeep.delete_prefix)
    url = awaiting(upkeep.url)
    upload_url = awaiting(upkeep.upload_url)
    verify_download = awaiting(upkeep.verify_download)
    verify_upload = awaiting(upkeep.verify_upload)
    check_mirrors = awaiting(mirror.check_mirrors)

    def stream(
        self, key: str, *, start: int = 0, size: int | None = None, if_match: str | None = None
    ) -> AsyncIterator[bytes]:
        """Iterate over the bytes from ``start`` on, or ``size`` of them, in pieces, to pass them on as they arrive.

        All pieces come from one object: the one with the etag ``if_match``, or the one that exists when the first piece
        is fetched. They are not checked against its digests. A slow reader holds no connection and at most 2 MB.
        """
        return AwaitingPages(
            Pieces(self._context, key, start, size, if_match=if_match), self._context.context
        )

    def open(self, key: str) -> AsyncObjectHandle:
        """Open an object in an ``async with`` block, to read it in pieces and from any position."""
        return AsyncObjectHandle(self._context, key)

    async def list(self, prefix: str = "") -> AsyncIterator[ListedObject]:
        """Iterate over the objects whose keys begin with a prefix, in key order; pages are fetched as you iterate."""
        listing = Listing(self._context.context, self.service, prefix)
        while (page := await wait(listing.next_page(), self._context.context)) is not None:
            for each in page.objects:
                yield each

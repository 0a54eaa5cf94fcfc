"""``db.files``: bytes under keys, in both colours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from holdall.core.context import Context
from holdall.core.objects import ListedObject
from holdall.core.port import run
from holdall.core.shell import awaiting, blocking
from holdall.files import composing, getting, keeping, mirroring, putting
from holdall.files.handle import AsyncObjectHandle, ObjectHandle
from holdall.files.keeping import Listing
from holdall.files.shelf import Shelf

__all__ = ["AsyncFiles", "Files"]


class Files:
    """The files of one service; ``files["archive"]`` are those of another."""

    def __init__(self, context: Context, service: str) -> None:
        self._context = Shelf(context, service)

    @property
    def service(self) -> str:
        """The service's name."""
        return self._context.service

    def __getitem__(self, service: str) -> Files:
        return Files(self._context.context, service)

    put = blocking(putting.put)
    get = blocking(getting.get)
    download = blocking(getting.download)
    head = blocking(getting.head)
    exists = blocking(getting.exists)
    copy = blocking(keeping.copy)
    compose = blocking(composing.compose)
    delete = blocking(keeping.delete)
    delete_many = blocking(keeping.delete_many)
    delete_prefix = blocking(keeping.delete_prefix)
    url = blocking(keeping.url)
    upload_url = blocking(keeping.upload_url)
    check_mirrors = blocking(mirroring.check_mirrors)

    def open(self, key: str) -> ObjectHandle:
        """An object to read from in a ``with`` block, in pieces and from any place."""
        return ObjectHandle(self._context.context, self.service, key)

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        """The objects whose keys begin with a prefix, in the order of the keys; fetched as you iterate."""
        listing = Listing(self._context.context, self.service, prefix)
        while (page := run(listing.next_page())) is not None:
            yield from page.objects


class AsyncFiles:
    """The files of one service; ``files["archive"]`` are those of another."""

    def __init__(self, context: Context, service: str) -> None:
        self._context = Shelf(context, service)

    @property
    def service(self) -> str:
        """The service's name."""
        return self._context.service

    def __getitem__(self, service: str) -> AsyncFiles:
        return AsyncFiles(self._context.context, service)

    put = awaiting(putting.put)
    get = awaiting(getting.get)
    download = awaiting(getting.download)
    head = awaiting(getting.head)
    exists = awaiting(getting.exists)
    copy = awaiting(keeping.copy)
    compose = awaiting(composing.compose)
    delete = awaiting(keeping.delete)
    delete_many = awaiting(keeping.delete_many)
    delete_prefix = awaiting(keeping.delete_prefix)
    url = awaiting(keeping.url)
    upload_url = awaiting(keeping.upload_url)
    check_mirrors = awaiting(mirroring.check_mirrors)

    def open(self, key: str) -> AsyncObjectHandle:
        """An object to read from in an ``async with`` block, in pieces and from any place."""
        return AsyncObjectHandle(self._context.context, self.service, key)

    async def list(self, prefix: str = "") -> AsyncIterator[ListedObject]:
        """The objects whose keys begin with a prefix, in the order of the keys; fetched as you iterate."""
        listing = Listing(self._context.context, self.service, prefix)
        while (page := await listing.next_page()) is not None:
            for each in page.objects:
                yield each

"""Blobs opened as temporary files on this machine, complete and verified, for programs that need a path."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.content import request_bytes
from holdall.attachments.blob.flow import find
from holdall.core.context import Context
from holdall.core.internal import internal
from holdall.core.port import run, wait
from holdall.files.download import read_into_file
from holdall.files.progress import Meter
from holdall.local.temporary import make_directory, open_file, remove_directory

if TYPE_CHECKING:
    from pathlib import Path


async def fetch_copy(context: Context, blob: Blob) -> Path:
    """Download a blob into a new temporary directory, which the caller removes; return the file's path."""
    port = context.port
    extension = blob.filename.extension
    directory = await port.offload(make_directory)
    path = directory / f"ActiveStorage-{blob.id}-{f'.{extension}' if extension else ''}"
    try:
        await read_into_file(request_bytes(context, blob), path, Meter(port, None))
    except BaseException:
        await port.offload(remove_directory, directory, None)
        raise
    return path


class BlobHandle:
    """A blob as a temporary file, deleted afterwards: ``with db.blobs.open(blob) as file:``, or ``async with``."""

    @internal
    def __init__(self, context: Context, blob: Blob | str) -> None:
        self._context = context
        self._blob = blob
        self._directory: Path | None = None
        self._file: BinaryIO | None = None

    async def _open(self) -> BinaryIO:
        blob = self._blob if isinstance(self._blob, Blob) else await find(self._context, self._blob)
        path = await fetch_copy(self._context, blob)
        self._directory = path.parent
        self._file = await self._context.port.offload(open_file, path)
        return self._file

    async def _close(self) -> None:
        if self._directory is not None:
            await self._context.port.offload(remove_directory, self._directory, self._file)
            self._directory = self._file = None

    def __enter__(self) -> BinaryIO:
        return run(self._open(), self._context)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run(self._close(), self._context)

    async def __aenter__(self) -> BinaryIO:
        return await wait(self._open(), self._context)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await wait(self._close(), self._context)

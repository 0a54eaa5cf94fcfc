"""The bytes of a blob: downloads, streams and URLs."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from holdall.attachments.blob.blob import Blob
from holdall.attachments.blob.delivery import Disposition, delivery_of
from holdall.attachments.blob.flow import find
from holdall.core.context import Context
from holdall.core.objects import ObjectInfo
from holdall.errors import IntegrityError, InvalidOptionsError
from holdall.files import download as file_download
from holdall.files import upkeep
from holdall.files.download import Wanted, find_place, give, read_into, read_into_file
from holdall.files.piece import Pieces
from holdall.files.progress import Meter, Progress
from holdall.files.shelf import Shelf


def request_bytes(context: Context, blob: Blob, *, verify: bool = True) -> Wanted:
    """Describe the download of a blob, whose bytes must be those that were uploaded.

    Its checksum is an MD5 or, if Rails was configured so, a SHA-256 after ``sha256:``.
    """
    kind, _, digest = (blob.checksum or "").rpartition(":")
    md5 = "" if kind else digest
    sha256 = blob.sha256 or (digest if kind == "sha256" else None)

    def vet(info: ObjectInfo) -> None:
        if info.size != blob.byte_size or (info.md5 and md5 and info.md5 != md5):
            raise IntegrityError(f"the bytes of blob {blob.id} are not those that were uploaded")

    shelf = Shelf(context, blob.service_name)
    return Wanted(shelf, blob.key, verify, sha256 if verify else None, vet if verify else None)


async def download(
    context: Context,
    blob: Blob | str,
    to: Any = None,
    *,
    start: int = 0,
    size: int | None = None,
    verify: bool = True,
    progress: Progress | None = None,
    resume: bool = False,
) -> Any:
    """Return a blob's bytes, or ``size`` of them from ``start`` on. With ``to``, write all of them to a file or stream.

    A complete download is verified against the blob's digest: `IntegrityError` if it differs.
    """
    found = blob if isinstance(blob, Blob) else await find(context, blob)
    wanted, meter = request_bytes(context, found, verify=verify), Meter(context.port, progress)
    if start or size is not None:
        if to is not None:
            raise InvalidOptionsError(
                "a range of bytes cannot be written to a file", hint="leave out to=, or start= and size="
            )
        return await file_download.get(wanted.shelf, found.key, start=start, size=size)
    if to is None:
        pieces: list[bytes] = []

        async def take(piece: bytes) -> None:
            pieces.append(piece)

        await read_into(wanted, take, meter)
        return b"".join(pieces)
    if callable(getattr(to, "write", None)):
        return await read_into(wanted, partial(give, context.port, to), meter)
    return await read_into_file(wanted, await find_place(context, to), meter, resume=resume)


def new_pieces(context: Context, blob: Blob, start: int, size: int | None) -> Pieces:
    """A cursor over a blob's bytes. The size and MD5 that the service reports must be those of the blob."""
    wanted = request_bytes(context, blob)
    return Pieces(wanted.shelf, wanted.key, start, size, vet=wanted.vet)


async def url(
    context: Context,
    blob: Blob | str,
    *,
    expires: float | timedelta = 300,
    disposition: Disposition = "inline",
    filename: str | None = None,
) -> str:
    """Return a temporary URL for the bytes, directly in the service.

    It expires after ``expires``, a number of seconds or a timedelta. Types that a browser could execute are always
    served as downloads, even with ``disposition="inline"``.
    """
    found = blob if isinstance(blob, Blob) else await find(context, blob)
    shelf = Shelf(context, found.service_name)
    kind, header = delivery_of(found.content_type, filename or found.filename, disposition)
    return await upkeep.url(shelf, found.key, expires=expires, content_type=kind, disposition=header)

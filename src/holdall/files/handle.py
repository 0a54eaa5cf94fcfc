"""Objects opened for reading in a ``with`` or ``async with`` block, in pieces and from any position.

A handle holds no connection: each piece is a separate range request, on condition that the object is still the one that
was opened. Up to a few megabytes are read ahead at a time, so most small reads need no request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Self

from holdall.core.cursor import AwaitingPages, BlockingPages
from holdall.core.internal import internal
from holdall.core.objects import DescribeService, GetObject, HeadObject, ObjectInfo
from holdall.core.port import run, wait
from holdall.errors import IntegrityError, InvalidOptionsError, InvalidRequestError
from holdall.files.piece import Pieces
from holdall.files.shelf import Shelf

_PIECE = 1024 * 1024
_LEAST = 256 * 1024


class _Position:
    """The position in an object, shared by the sync and the async handle."""

    def __init__(self, shelf: Shelf, key: str) -> None:
        self._shelf = shelf
        self.context = shelf.context
        self._key = key
        self.info: ObjectInfo | None = None
        self._step = _PIECE
        self._ahead = _LEAST
        self.at = 0
        self._held = b""
        self._held_at = 0
        self.closed = False

    async def open(self) -> None:
        port = self.context.port
        self.info = await port.send(HeadObject(self._shelf.service, self._key))
        self._step = (await port.send(DescribeService(self._shelf.service))).part_size

    async def read(self, size: int | None) -> bytes:
        """Up to ``size`` bytes; if that is negative or None, all that are left."""
        info = self.require_open()
        left = max(0, info.size - self.at)
        wanted = left if size is None or size < 0 else min(size, left)
        pieces = []
        while wanted:
            skip = await self._hold_from_here(wanted)
            piece = self._held[skip : skip + wanted]
            pieces.append(piece)
            self.at += len(piece)
            wanted -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _hold_from_here(self, wanted: int) -> int:
        """Return where the current position is in the held bytes, fetching them first if they do not include it.

        Sequential reads fetch more each time; a read after a seek fetches little.
        """
        skip = self.at - self._held_at
        if not 0 <= skip < len(self._held):
            assert self.info is not None
            reads_on = self.at == self._held_at + len(self._held)
            self._ahead = min(self._step, self._ahead * 2 if reads_on and self._held else _LEAST)
            self._held = b""
            size = min(self._step, max(self._ahead, wanted))
            request = GetObject(self._shelf.service, self._key, self.at, size, self.info.etag)
            found = await self.context.port.send(request)
            if found.start != self.at or not found.body:
                raise IntegrityError(
                    f"the service returned other bytes of {self._key!r:.80} than were requested"
                )
            self._held, self._held_at = found.body, self.at
            skip = 0
        return skip

    def pieces(self, start: int, size: int | None, piece_size: int, ahead: int) -> Pieces:
        """A cursor over the pieces of a range."""
        info = self.require_open()
        return Pieces(self._shelf, self._key, start, size, known=info, piece_size=piece_size, ahead=ahead)

    def seek(self, offset: int, whence: int) -> int:
        info = self.require_open()
        base = {0: 0, 1: self.at, 2: info.size}.get(whence)
        if base is None or base + offset < 0:
            raise InvalidOptionsError(
                f"the offset {offset} from whence={whence} is not a position in the object",
                hint="whence must be 0, 1 or 2, and the position must not be before the beginning",
            )
        self.at = base + offset
        return self.at

    def require_open(self) -> ObjectInfo:
        """The object; refused if the handle is not open."""
        if self.closed or self.info is None:
            raise InvalidRequestError("the object is not open", hint="read it inside its with block")
        return self.info

    def close(self) -> None:
        self.closed = True
        self._held = b""


class _Handle:
    @internal
    def __init__(self, shelf: Shelf, key: str) -> None:
        self._place = _Position(shelf, key)

    @property
    def info(self) -> ObjectInfo:
        """The object's size, headers, etag and digests."""
        return self._place.require_open()

    def tell(self) -> int:
        """Where the next read begins."""
        return self._place.at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to another position, counted from the beginning (0), from here (1) or from the end (2)."""
        return self._place.seek(offset, whence)

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True


class ObjectHandle(_Handle):
    """An object that is open for reading."""

    def read(self, size: int | None = -1) -> bytes:
        """Read up to ``size`` bytes, or all that are left; empty at the end."""
        return run(self._place.read(size), self._place.context)

    def pieces(
        self, start: int = 0, size: int | None = None, *, piece_size: int = _PIECE, ahead: int = 2
    ) -> Iterator[bytes]:
        """Iterate over the bytes from ``start`` on, or ``size`` of them, in pieces, whatever the handle's position.

        At most ``ahead`` pieces are fetched and held at a time; no request is open between two of them. They are not
        checked against the object's digests.
        """
        return BlockingPages(self._place.pieces(start, size, piece_size, ahead), self._place.context)

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read(_PIECE):
            yield piece

    def close(self) -> None:
        """Close the handle and free the bytes that it holds."""
        self._place.close()

    def __enter__(self) -> Self:
        run(self._place.open(), self._place.context)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncObjectHandle(_Handle):
    """An object that is open for reading."""

    async def read(self, size: int | None = -1) -> bytes:
        """Read up to ``size`` bytes, or all that are left; empty at the end."""
        return await wait(self._place.read(size), self._place.context)

    def pieces(
        self, start: int = 0, size: int | None = None, *, piece_size: int = _PIECE, ahead: int = 2
    ) -> AsyncIterator[bytes]:
        """Iterate over the bytes from ``start`` on, or ``size`` of them, in pieces, whatever the handle's position.

        At most ``ahead`` pieces are fetched and held at a time; no request is open between two of them. They are not
        checked against the object's digests.
        """
        return AwaitingPages(self._place.pieces(start, size, piece_size, ahead), self._place.context)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.read(_PIECE):
            yield piece

    async def close(self) -> None:
        """Close the handle and free the bytes that it holds."""
        self._place.close()

    async def __aenter__(self) -> Self:
        await wait(self._place.open(), self._place.context)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._place.close()

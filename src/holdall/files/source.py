"""Flows that read what the caller passed: ranges of bytes and files, and streams piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdall.core.buffer import Buffer
from holdall.core.digests import Digests
from holdall.core.port import Port
from holdall.core.rules.object import MAX_PARTS
from holdall.local.source import BytesSource, FileSource, Source, fill_buffer, find_source

_PIECE = 1024 * 1024
_FEW = 64 * 1024
"""Up to this many bytes are copied and hashed faster than a thread could take over."""


async def open_source(port: Port, given: Any) -> Source:
    """Recognize what the caller passed: bytes, the path of a file, or a stream."""
    if isinstance(given, bytes):
        return BytesSource(memoryview(given), len(given))
    return await port.offload(find_source, given)


async def read_range(
    port: Port, source: BytesSource | FileSource, start: int, size: int, digests: Digests | None = None
) -> bytes:
    """Read a range of a source and hash it; the result is shorter if the source ends.

    Raises `IntegrityError` if a file that is read as a whole changes meanwhile.
    """
    if isinstance(source, BytesSource) and size <= _FEW:
        data = bytes(source.data[start : start + size])
        if digests is not None:
            digests.update(data)
        return data
    buffer = Buffer(size)
    is_whole = start == 0 and size == source.size
    count = await port.offload(fill_buffer, source, buffer, start, digests, is_whole)
    return buffer.take(count)


async def read_exactly(port: Port, stream: Any, size: int) -> bytes:
    """Read exactly this many bytes of a stream, fewer only at its end."""
    pieces: list[bytes] = []
    have = 0
    while have < min(size, _FEW):
        piece = await port.read(stream, min(_PIECE, size - have))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        have += len(piece)
    if have >= size:
        return b"".join(pieces)
    buffer = Buffer(size)
    while pieces:
        buffer.write(pieces.pop(0))
    while have < size and (piece := await port.read(stream, min(_PIECE, size - have))):
        buffer.write(piece)
        have += len(piece)
    return buffer.take()


async def hash_bytes(port: Port, digests: Digests, data: bytes) -> None:
    """Add bytes to digests."""
    if len(data) <= _FEW or not digests.wanted:
        digests.update(data)
    else:
        await port.offload(digests.update, data)


def fit_part_size(size: int, least: int) -> int:
    """How long the parts of an object of this size are: at least so long that there are not too many."""
    return max(least, -(-size // MAX_PARTS))


def split_parts(size: int, least: int) -> Sequence[tuple[int, int, int]]:
    """Split this many bytes into parts of at least ``least`` bytes: the number, start and size of each."""
    part_size = fit_part_size(size, least)
    starts = range(0, size, part_size)
    return [(number, start, min(part_size, size - start)) for number, start in enumerate(starts, 1)]


class Continued:
    """A stream whose first bytes have been read already."""

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first = memoryview(first)
        self._stream = stream

    def read(self, size: int) -> Any:
        """Return the bytes read before, then those of the stream; awaitable if the stream is async."""
        if len(self._first):
            piece, self._first = self._first[:size], self._first[size:]
            return bytes(piece)
        return self._stream.read(size)

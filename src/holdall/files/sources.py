"""Sources: where the bytes of an object come from, read in pieces of a size that we choose.

Bytes and files know their size, and any piece of them can be read at any time. A stream is read once, from where it
stands. Everything is read through `port.read`, which in async code reads plain files in a thread; so whatever takes a
while here, hashing and writing included, is done in a ``read`` (`aside`).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeAlias

from holdall.core.digests import Digests
from holdall.core.port import Port
from holdall.errors import IntegrityError, InvalidOptionsError

__all__ = [
    "BytesSource",
    "FileSource",
    "Source",
    "StreamSource",
    "aside",
    "filled",
    "hash_range",
    "hashed",
    "parts_of",
    "piece_of",
    "source_of",
]

_PIECE = 1024 * 1024
_FEW = 64 * 1024


class BytesSource:
    """Bytes at hand."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self.size = len(data)

    def fill(self, room: io.BytesIO, start: int, size: int) -> None:
        """Write a piece."""
        room.write(self._data[start : start + size])

    def read_into(self, digests: Digests, start: int, size: int) -> None:
        """Take a range into digests."""
        digests.update(self._data[start : start + size])

    async def check_unchanged(self, port: Port) -> None:
        """Nobody can change them."""


class FileSource:
    """A file by its path; ``measured`` is what tells it from any other, and from itself when it was written to."""

    def __init__(self, path: Path, size: int, measured: tuple[int, ...]) -> None:
        self._path = path
        self.size = size
        self._measured = measured

    def fill(self, room: io.BytesIO, start: int, size: int) -> None:
        """Write a piece; less of it where the file ends. It is opened for each, as several are read at once."""
        done = 0
        with self._path.open("rb", buffering=0) as file, room.getbuffer() as view:
            file.seek(start)
            while done < size and (count := file.readinto(view[done:size])):
                done += count
        room.seek(done)

    def read_into(self, digests: Digests, start: int, size: int) -> None:
        """Take a range into digests; less of it where the file ends."""
        with self._path.open("rb", buffering=0) as file:
            file.seek(start)
            while size and (piece := file.read(min(_PIECE, size))):
                digests.update(piece)
                size -= len(piece)

    async def check_unchanged(self, port: Port) -> None:
        """Refuse bytes of a file that was written to while it was read."""
        if (await port.call(_measured, self._path)) != self._measured:
            raise IntegrityError(f"the file {self._path.name!r:.80} was changed while it was read")


class StreamSource:
    """Something with a ``read``, in either colour."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream


Source: TypeAlias = BytesSource | FileSource | StreamSource


async def source_of(port: Port, given: object) -> Source:
    """What a caller means: bytes, the path of a file, or a stream."""
    if isinstance(given, bytes | bytearray | memoryview):
        return BytesSource(memoryview(given).cast("B"))
    if isinstance(given, io.BytesIO):
        return BytesSource(memoryview(given.getvalue())[given.tell() :])  # its buffer would be locked by us
    if isinstance(given, str | Path) or hasattr(given, "__fspath__"):
        path = Path(given)
        measured = await port.call(_measured, path)
        return FileSource(path, measured[0], measured)
    if isinstance(given, io.TextIOBase):
        raise InvalidOptionsError(
            "a stream of text was given", hint='open the file for bytes: open(path, "rb")'
        )
    if callable(getattr(given, "read", None)):
        return StreamSource(given)
    raise InvalidOptionsError(
        f"a {type(given).__name__} was given",
        hint="give bytes, a path, or a stream of bytes with a read method",
    )


def _measured(path: Path) -> tuple[int, ...]:
    found = path.stat()
    if S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a directory")
    if not S_ISREG(found.st_mode):
        raise InvalidOptionsError(
            f"{path} is no ordinary file, and nobody knows its size", hint="open it, and give the stream"
        )
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev


async def filled(port: Port, stream: Any, size: int) -> bytes:
    """Exactly so many bytes of a stream, fewer only at its end."""
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
    room = _room(size)
    while pieces:
        room.write(pieces.pop(0))
    while have < size and (piece := await port.read(stream, min(_PIECE, size - have))):
        room.write(piece)
        have += len(piece)
    return _bytes_in(room)


def _room(size: int) -> io.BytesIO:
    """Memory for so many bytes.

    It is taken here, by whoever runs the flow, and not by a thread that reads: each thread keeps a heap of its own,
    which is as large for good as what it once had to hold. And what is in it becomes bytes without being copied.
    """
    room = io.BytesIO()
    if size:
        room.seek(size - 1)
        room.write(b"\0")
        room.seek(0)
    return room


def _bytes_in(room: io.BytesIO) -> bytes:
    """What was written."""
    room.truncate()
    return room.getvalue()


async def aside(port: Port, work: Callable[[], object]) -> None:
    """Do what takes a while where it does not keep others waiting."""
    await port.read(_Aside(work), 1)


async def piece_of(
    port: Port, source: FileSource | BytesSource, start: int, size: int, digests: Digests | None = None
) -> bytes:
    """A piece of a source, taken into digests on the way; less of it where the source ends."""
    room = _room(size)

    def read() -> None:
        source.fill(room, start, size)
        if digests is not None:
            with room.getbuffer() as view:
                digests.update(view[: room.tell()])

    await aside(port, read)
    return _bytes_in(room)


async def hashed(port: Port, digests: Digests, data: bytes) -> None:
    """Take bytes into digests."""
    await aside(port, partial(digests.update, data))


async def hash_range(
    port: Port, digests: Digests, source: FileSource | BytesSource, start: int, size: int
) -> None:
    """Take a range of a source into digests, without holding it."""
    await aside(port, partial(source.read_into, digests, start, size))


class _Aside:
    """Work that looks like a stream. It is let go of when it is done: a thread may be slow to forget what it did."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work: Callable[[], object] | None = work

    def read(self, size: int) -> bytes:
        work, self._work = self._work, None
        assert work is not None
        work()
        return b""


def parts_of(size: int, part_size: int) -> Sequence[tuple[int, int, int]]:
    """The parts of so many bytes: number, start and size of each."""
    starts = range(0, size, part_size)
    return [(number, start, min(part_size, size - start)) for number, start in enumerate(starts, 1)]

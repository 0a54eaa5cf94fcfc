"""Sources: what the caller passes to be stored. The size of bytes and files is known; a stream is read only once.

`find_source` tells them apart. Any range of bytes or of a file can be read at any time, also several concurrently.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.frozen import dataclass
from holdall.errors import IntegrityError, InvalidOptionsError

if TYPE_CHECKING:
    from holdall.core.buffer import Buffer
    from holdall.core.digests import Digests

_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BytesSource:
    """Bytes in memory."""

    data: memoryview
    size: int


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file, by its path; ``state`` is different for every file, and changes when the file is written to."""

    path: Path
    size: int
    state: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StreamSource:
    """An object with a ``read`` method, sync or async; it is read from its current position."""

    stream: Any


Source: TypeAlias = BytesSource | FileSource | StreamSource


def find_source(given: Any) -> Source:
    """Recognize what the caller passed: bytes, the path of a file, or a stream."""
    if isinstance(given, bytes | bytearray | memoryview):
        data = memoryview(given).cast("B")
        return BytesSource(data, len(data))
    if isinstance(given, io.BytesIO):
        data = memoryview(given.getvalue())[given.tell() :]  # getbuffer() would lock it
        return BytesSource(data, len(data))
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        try:
            state = _measure(path)
        except OSError as error:
            if isinstance(given, str):
                error.add_note(
                    "hint: a string is the path of a file; to store the text itself, pass text.encode()"
                )
            raise
        return FileSource(path, state[0], state)
    if isinstance(given, io.TextIOBase):
        raise InvalidOptionsError(
            "the stream returns text, not bytes", hint='open the file in binary mode: open(path, "rb")'
        )
    if callable(getattr(given, "read", None)):
        return StreamSource(given)
    raise InvalidOptionsError(
        f"a value of type {type(given).__name__} cannot be stored as a file",
        hint="pass bytes, a path, or a stream of bytes with a read method",
    )


def _measure(path: Path) -> tuple[int, ...]:
    found = path.stat()
    if S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a directory")
    if not S_ISREG(found.st_mode):
        raise InvalidOptionsError(
            f"{path} is not a regular file, so its size is unknown", hint="open it, and pass the stream"
        )
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev


def fill_buffer(
    source: BytesSource | FileSource, buffer: Buffer, start: int, digests: Digests | None, is_whole: bool
) -> int:
    """Fill a buffer with a range, hash it, and return its size, which is smaller if the source ends.

    ``is_whole``: the range is the whole source; a file is then refused if it has changed.
    """
    with buffer.view() as view:
        if isinstance(source, BytesSource):
            piece = source.data[start : start + len(view)]
            done = len(piece)
            view[:done] = piece
        else:
            done = 0
            with source.path.open("rb", buffering=0) as file:  # opened per range, as several are read at once
                file.seek(start)
                while done < len(view) and (count := file.readinto(view[done:])):
                    done += count
        if digests is not None:
            digests.update(view[:done])
    if is_whole:
        check_unchanged(source)
    return done


def hash_range(source: BytesSource | FileSource, digests: Digests, start: int, size: int) -> None:
    """Hash a range, up to the end of the source."""
    if isinstance(source, BytesSource):
        digests.update(source.data[start : start + size])
        return
    with source.path.open("rb", buffering=0) as file:
        hash_file(file, digests, start, size)


def hash_file(file: Any, digest: Any, start: int, size: int) -> None:
    """Hash a range of an open file, up to its end; ``digest`` is anything with an ``update`` method."""
    file.seek(start)
    while size and (piece := file.read(min(_PIECE, size))):
        digest.update(piece)
        size -= len(piece)


def check_unchanged(source: BytesSource | FileSource) -> None:
    """Refuse a file that was written to while it was read."""
    if isinstance(source, FileSource) and _measure(source.path) != source.state:
        raise IntegrityError(f"the file {source.path.name!r:.80} was changed while it was read")

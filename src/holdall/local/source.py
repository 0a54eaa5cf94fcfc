"""Sources: what a caller gives to be stored. Bytes and files know their size; a stream is read once, from where it is.

`find_source` tells them apart. Any range of bytes or of a file can be read at any time, also several at once.
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
    """A file by its path; ``state`` differs from that of any other file, and changes when the file is written to."""

    path: Path
    size: int
    state: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StreamSource:
    """An object with a ``read`` method, plain or async."""

    stream: Any


Source: TypeAlias = BytesSource | FileSource | StreamSource


def find_source(given: Any) -> Source:
    """What a caller means: bytes, the path of a file, or a stream."""
    if isinstance(given, bytes | bytearray | memoryview):
        data = memoryview(given).cast("B")
        return BytesSource(data, len(data))
    if isinstance(given, io.BytesIO):
        data = memoryview(given.getvalue())[given.tell() :]  # a view of its own buffer would lock it
        return BytesSource(data, len(data))
    if isinstance(given, str | os.PathLike):
        path = Path(given)
        state = _measure(path)
        return FileSource(path, state[0], state)
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


def _measure(path: Path) -> tuple[int, ...]:
    found = path.stat()
    if S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"{path} is a directory")
    if not S_ISREG(found.st_mode):
        raise InvalidOptionsError(
            f"{path} is not an ordinary file, so its size is unknown", hint="open it, and give the stream"
        )
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev


def is_directory(given: Any) -> bool:
    """Whether a path leads to a directory."""
    return Path(given).is_dir()


def fill_buffer(
    source: BytesSource | FileSource, buffer: Buffer, start: int, digests: Digests | None, is_whole: bool
) -> int:
    """Fill a buffer with a range, hash it on the way, and return its size: less where the source ends.

    ``is_whole``: this is all of the source, so that a file must not have changed.
    """
    with buffer.view() as view:
        if isinstance(source, BytesSource):
            piece = source.data[start : start + len(view)]
            done = len(piece)
            view[:done] = piece
        else:
            done = 0
            with source.path.open("rb", buffering=0) as file:  # for each range, as several are read at once
                file.seek(start)
                while done < len(view) and (count := file.readinto(view[done:])):
                    done += count
        if digests is not None:
            digests.update(view[:done])
    if is_whole:
        check_unchanged(source)
    return done


def hash_range(source: BytesSource | FileSource, digests: Digests, start: int, size: int) -> None:
    """Hash a range; less of it where the source ends."""
    if isinstance(source, BytesSource):
        digests.update(source.data[start : start + size])
        return
    with source.path.open("rb", buffering=0) as file:
        file.seek(start)
        while size and (piece := file.read(min(_PIECE, size))):
            digests.update(piece)
            size -= len(piece)


def check_unchanged(source: BytesSource | FileSource) -> None:
    """Refuse a file that was written to while it was read."""
    if isinstance(source, FileSource) and _measure(source.path) != source.state:
        raise IntegrityError(f"the file {source.path.name!r:.80} was changed while it was read")

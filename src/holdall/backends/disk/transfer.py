"""Moves bytes between memory and files, and between files, until all are moved."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterable, Iterator

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 20
_CANNOT = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.ETXTBSY}


def checksum(pieces: Iterable[bytes | memoryview]) -> str:
    """A checksum that detects damaged or truncated bytes, but not deliberate changes."""
    size = found = 0
    for piece in pieces:
        size += len(piece)
        found = zlib.crc32(piece, found)
    return f"{size:x}-{found:08x}"


def write_at(file: int, body: bytes | memoryview, offset: int = 0) -> None:
    """Write all bytes from an offset of the file on, at most a megabyte at once.

    Linux keeps what one call writes in pages of that size, and making room for large pages may take longer than the
    write itself.
    """
    rest = memoryview(body)
    while rest:
        written = os.pwrite(file, rest[:_PIECE], offset)
        rest = rest[written:]
        offset += written


def read_range(file: int, start: int, size: int) -> bytes:
    """Up to ``size`` bytes; fewer only at the end of the file."""
    body = os.pread(file, size, start)
    if len(body) == size or not body:
        return body
    found = [body]
    while body and (size := size - len(body)):
        start += len(body)
        body = os.pread(file, size, start)
        found.append(body)
    return b"".join(found)


def read_file(directory: int, name: str) -> bytes:
    """Read a small file."""
    file = os.open(name, READ, dir_fd=directory)
    try:
        return read_range(file, 0, os.fstat(file).st_size)
    finally:
        os.close(file)


def write_file(directory: int, name: str, text: bytes) -> None:
    """Write a small file."""
    file = os.open(name, WRITE, 0o666, dir_fd=directory)
    try:
        write_at(file, text)
    finally:
        os.close(file)


def pieces(file: int, start: int, size: int) -> Iterator[memoryview]:
    """The bytes of a range in pieces, each valid until the next is requested; fewer bytes at the end of the file."""
    room = memoryview(bytearray(min(_PIECE, size)))
    while size:
        count = os.preadv(file, [room[: min(len(room), size)]], start)
        if not count:
            return
        yield room[:count]
        start += count
        size -= count


def copy_range(source: int, start: int, size: int, target: int, offset: int) -> int:
    """Copy a range into another file, inside the kernel if possible; returns the number of bytes."""
    done = _copy_by_system(source, start, size, target, offset)
    for piece in pieces(source, start + done, size - done):
        write_at(target, piece, offset + done)
        done += len(piece)
    return done


def _copy_by_system(source: int, start: int, size: int, target: int, offset: int) -> int:
    """How many bytes the kernel has copied, perhaps without reading them."""
    done = 0
    if not hasattr(os, "copy_file_range"):
        return done
    while done < size:
        try:
            count = os.copy_file_range(source, target, size - done, start + done, offset + done)
        except OSError as error:
            if error.errno in _CANNOT:
                return done
            raise
        if not count:
            return done
        done += count
    return done

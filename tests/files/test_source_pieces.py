"""Reading from sources: exactly the requested number of bytes, however few a stream returns at a time."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdall.backends.memory import MemoryService
from holdall.backends.port.blocking import BlockingPort
from holdall.core.digests import Digests
from holdall.core.port import run
from holdall.errors import IntegrityError
from holdall.files.source import open_source, read_exactly, read_range, split_parts
from holdall.local.source import BytesSource, FileSource, StreamSource, check_unchanged, hash_range

PORT = BlockingPort(MemoryService())


class Pieces:
    """A stream that returns one of the given pieces at a time, and no more bytes than requested."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = [piece for piece in pieces if piece]
        self.requested: list[int] = []

    def read(self, size: int) -> bytes:
        self.requested.append(size)
        if not self._pieces:
            return b""
        piece = self._pieces.pop(0)
        if len(piece) > size:
            self._pieces.insert(0, piece[size:])
        return piece[:size]


@given(pieces=st.lists(st.binary(max_size=60_000), max_size=6), size=st.integers(0, 200_000))
def test_a_stream_is_read_until_it_has_enough_bytes_or_ends(pieces: list[bytes], size: int) -> None:
    whole = b"".join(pieces)
    stream = Pieces(pieces)
    assert run(read_exactly(PORT, stream, size)) == whole[:size]
    assert run(read_exactly(PORT, stream, len(whole) + 1)) == whole[size:]


def test_at_most_a_megabyte_is_requested_from_a_stream_at_a_time() -> None:
    stream = Pieces([bytes(5_000_000)])
    assert run(read_exactly(PORT, stream, 4_000_000)) == bytes(4_000_000)
    assert max(stream.requested) == 1024 * 1024
    assert sum(stream.requested) == 4_000_000


@pytest.mark.parametrize("given_as", ["bytes", "file"])
def test_any_piece_can_be_read_and_hashed_at_any_time(given_as: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 10
    path = tmp_path / "file"
    path.write_bytes(data)
    source = run(open_source(PORT, data if given_as == "bytes" else path))
    assert not isinstance(source, StreamSource)
    assert source.size == len(data)
    for start, size in ((0, 0), (0, 10), (300, 700), (2_500, 100), (5_000, 10), (0, 10_000)):
        digests, again = Digests(["md5"]), Digests(["md5"])
        piece = run(read_range(PORT, source, start, size, digests))
        assert piece == data[start : start + size]
        hash_range(source, again, start, size)
        assert (digests.md5, digests.size) == (again.md5, len(piece))
        assert run(read_range(PORT, source, start, size)) == piece


def test_the_type_of_the_argument_selects_the_kind_of_source(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"bytes")
    kinds: list[tuple[Any, type[Any]]] = [
        (b"bytes", BytesSource),
        (bytearray(b"bytes"), BytesSource),
        (memoryview(b"bytes"), BytesSource),
        (io.BytesIO(b"bytes"), BytesSource),
        (str(path), FileSource),
        (path, FileSource),
        (Pieces([]), StreamSource),
    ]
    for given_one, kind in kinds:
        found = run(open_source(PORT, given_one))
        assert type(found) is kind
        assert isinstance(found, StreamSource) or found.size == 5
    wide = memoryview(bytearray(12)).cast("I")
    measured = run(open_source(PORT, wide))
    assert isinstance(measured, BytesSource)
    assert measured.size == 12


def test_a_source_does_not_keep_the_callers_buffer() -> None:
    buffer = io.BytesIO(b"bytes")
    source = run(open_source(PORT, buffer))
    buffer.write(b"other, and longer")
    buffer.close()
    assert isinstance(source, BytesSource)
    assert run(read_range(PORT, source, 0, 5)) == b"bytes"


def test_a_file_that_was_replaced_with_the_same_times_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"bytes")
    source = run(open_source(PORT, path))
    assert isinstance(source, FileSource)
    check_unchanged(source)
    other = tmp_path / "other"
    other.write_bytes(b"BYTES")
    times = path.stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(path)
    with pytest.raises(IntegrityError, match="was changed while it was read"):
        check_unchanged(source)


@given(size=st.integers(0, 1000), part=st.integers(1, 300))
def test_parts_cover_everything_once(size: int, part: int) -> None:
    places = split_parts(size, part)
    assert [number for number, _, _ in places] == list(range(1, len(places) + 1))
    assert sum(length for _, _, length in places) == size
    at = 0
    for _, start, length in places:
        assert start == at
        assert 0 < length <= part
        at += length

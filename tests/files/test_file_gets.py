"""Getting objects: ranges, verification, and downloads into files and streams."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from rig.files import PART, Rig, Way, everywhere, in_memory, in_small_parts, open_rig, pattern
from rig.wrapper import Wrapper

from holdall.core.objects import GetObject, ServiceTraits
from holdall.core.port import Send
from holdall.core.requests import Request
from holdall.errors import (
    IntegrityError,
    InvalidOptionsError,
    InvalidRequestError,
    ObjectNotFoundError,
    PreconditionFailedError,
)

BIG = 11_000_003


def names_in(directory: Path) -> set[str]:
    """The names in a directory, without those of the service."""
    return {path.name for path in directory.iterdir()} - {"files", "source"}


@in_small_parts
async def test_any_range_of_an_object_can_be_read(files: Rig) -> None:
    data = pattern(5 * PART + 7)
    await files.files.put("it", data)
    edges = (0, 1, PART - 1, PART, PART + 1, 3 * PART, len(data) - 1, len(data), len(data) + 1)
    for start in edges:
        assert await files.files.get("it", start=start) == data[start:]
        for size in (*edges, 10**9):
            assert await files.files.get("it", start=start, size=size) == data[start : start + size]
    assert files.service.largest_get <= PART


@everywhere
async def test_an_object_and_its_ranges_come_back(files: Rig) -> None:
    data = pattern(BIG)
    await files.files.put("it", data)
    await files.files.put("empty", b"")
    assert await files.files.get("it") == data
    assert await files.files.get("it", start=BIG - 5) == data[-5:]
    assert await files.files.get("it", start=4_999_999, size=6_000_000) == data[4_999_999:10_999_999]
    assert await files.files.get("it", start=BIG + 1) == b""
    assert await files.files.get("empty") == await files.files.get("empty", size=10) == b""


@everywhere
async def test_a_missing_object_is_reported(files: Rig) -> None:
    with pytest.raises(ObjectNotFoundError):
        await files.files.get("missing")
    with pytest.raises(ObjectNotFoundError):
        await files.files.get("missing", size=0)
    with pytest.raises(ObjectNotFoundError):
        await files.files.head("missing")
    with pytest.raises(ObjectNotFoundError):
        await files.files.download("missing", files.directory / "target")
    with pytest.raises(ObjectNotFoundError):
        await files.files.download("missing", files.directory / "target", resume=True)
    assert names_in(files.directory) == set()
    assert await files.files.exists("missing") is False
    await files.files.put("missing", b"")
    assert await files.files.exists("missing") is True


@in_memory
async def test_an_invalid_range_is_refused(files: Rig) -> None:
    await files.files.put("it", b"some bytes")
    for start, size in ((-1, None), (-1, 5), (-1, 0), (0, -1), (3, -7)):
        with pytest.raises(InvalidRequestError):
            await files.files.get("it", start=start, size=size)


@in_small_parts
async def test_an_object_that_is_replaced_during_a_get_is_not_mixed(files: Rig) -> None:
    old, new = pattern(5 * PART), bytes(5 * PART)
    await files.files.put("it", old)
    replaced: list[str] = []

    def replace_it(request: Any) -> None:
        if isinstance(request, GetObject) and request.start == 0 and not replaced:
            replaced.append("once")
            files.db.files.put("it", new)

    async def replace_it_here(request: Any) -> None:
        if isinstance(request, GetObject) and request.start == 0 and not replaced:
            replaced.append("once")
            await files.db.files.put("it", new)

    files.service.after = replace_it if files.colour == "blocking" else replace_it_here
    with pytest.raises(PreconditionFailedError):
        await files.files.get("it")
    assert await files.files.get("it") == new


# --- verification ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 9_000_000])
def test_a_flipped_byte_on_disk_is_found_when_the_whole_object_is_read(size: int) -> None:
    data = pattern(size)
    with open_rig(Way("disk", "blocking")) as files:
        files.db.files.put("it", data)
        path = files.object_file(data)
        times = path.stat()
        with path.open("r+b") as file:
            file.seek(size // 2)
            file.write(bytes([data[size // 2] ^ 1]))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as bit rot would leave it
        with pytest.raises(IntegrityError, match="have the sha256"):
            files.db.files.get("it")
        target = files.directory / "target"
        target.write_bytes(b"mine")
        with pytest.raises(IntegrityError):
            files.db.files.download("it", target)
        with pytest.raises(IntegrityError):
            files.db.files.download("it", target, resume=True)
        assert target.read_bytes() == b"mine"
        assert names_in(files.directory) == {"target"}
        assert files.db.files.get("it", verify=False) != data
        assert len(files.db.files.get("it", start=1)) == size - 1
        files.db.files.download("it", target, verify=False)
        assert target.stat().st_size == size


@in_small_parts
async def test_other_bytes_than_requested_are_detected(files: Rig) -> None:
    await files.files.put("it", pattern(5 * PART))

    class WrongRangeService(Wrapper):
        """Returns the beginning of an object, whatever range is requested."""

        async def _answer(self, send: Send, request: Request[Any]) -> Any:
            if isinstance(request, GetObject):
                request = GetObject(request.service, request.key, 0, request.size, request.if_match)
            return await send(self.inner, request)

    files.service.inner = WrongRangeService(files.service.inner)
    async with files.open_handle("it") as handle:
        handle.seek(PART)
        with pytest.raises(IntegrityError, match="other bytes"):
            await handle.read()
        with pytest.raises(IntegrityError, match="other bytes"):
            _ = [piece async for piece in handle.pieces(piece_size=PART)]
    with pytest.raises(IntegrityError, match="other bytes"):
        await files.files.get("it", verify=False)
    with pytest.raises(IntegrityError, match="other bytes"):
        await files.files.download("it", files.directory / "target", verify=False)
    assert names_in(files.directory) == set()


# --- downloads ------------------------------------------------------------------------------------------


class ShortWriter(io.RawIOBase):
    """A stream that accepts a few bytes at a time, as raw streams may."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.taken += bytes(data[:33])
        return len(data[:33])


class Writer:
    """A stream whose write returns None instead of the number of bytes."""

    def __init__(self) -> None:
        self.taken = b""

    def write(self, data: bytes) -> None:
        self.taken += data


class AsyncWriter:
    """The same, with an async write."""

    def __init__(self) -> None:
        self.taken = b""

    async def write(self, data: bytes) -> None:
        self.taken += data


@in_small_parts
async def test_an_object_is_written_into_any_stream(files: Rig) -> None:
    data = pattern(5 * PART + 1)
    await files.files.put("it", data)
    plain = io.BytesIO()
    info = await files.files.download("it", plain)
    assert (info.size, plain.getvalue()) == (len(data), data)
    writers: list[Any] = [ShortWriter(), Writer()]
    if files.colour == "awaiting":
        writers.append(AsyncWriter())
    for writer in writers:
        await files.files.download("it", writer)
        assert writer.taken == data


@everywhere
async def test_a_download_to_a_path_replaces_an_existing_file(files: Rig) -> None:
    target = files.directory / "target"
    for data in (b"", b"few", pattern(BIG)):
        await files.files.put("it", data)
        for given in (target, str(target)):
            info = await files.files.download("it", given)
            assert info.size == len(data)
            assert target.read_bytes() == data
    assert names_in(files.directory) == {"target"}


@in_memory
async def test_a_download_can_have_a_target_with_a_long_name(files: Rig) -> None:
    await files.files.put("it", b"bytes")
    for name in ("x" * 255, "ü" * 127, "😀" * 63):
        for resume in (False, True):
            await files.files.download("it", files.directory / name, resume=resume)
            assert (files.directory / name).read_bytes() == b"bytes"


@in_memory
async def test_an_impossible_target_is_refused_before_anything_is_fetched(files: Rig) -> None:
    await files.files.put("it", b"bytes")
    files.service.requests.clear()
    with pytest.raises(InvalidOptionsError, match=r"there is no directory .*missing"):
        await files.files.download("it", files.directory / "missing" / "target")
    with pytest.raises(InvalidOptionsError, match="is a directory"):
        await files.files.download("it", files.directory)
    for nonsense in (None, 17, [b""]):
        with pytest.raises(InvalidOptionsError, match="needs a path or a stream"):
            await files.files.download("it", nonsense)
    assert files.service.requests == []


@in_small_parts
async def test_a_failed_download_keeps_the_existing_file_and_leaves_nothing_else(files: Rig) -> None:
    await files.files.put("it", pattern(9 * PART))
    target = files.directory / "target"
    target.write_bytes(b"mine")
    seen: list[set[str]] = []

    def fail(request: Any) -> None:
        if isinstance(request, GetObject) and request.start >= 5 * PART:
            seen.append(names_in(files.directory))
            assert target.read_bytes() == b"mine"
            raise ConnectionResetError("the network is gone")

    files.service.before = fail
    with pytest.raises(ConnectionResetError):
        await files.files.download("it", target)
    assert len(seen[0]) == 2, "the bytes received so far are beside it, under another name"
    assert names_in(files.directory) == {"target"}
    assert target.read_bytes() == b"mine"


# --- resuming -------------------------------------------------------------------------------------------


def fail_reads(start: int) -> Any:
    """A function for `InterceptedService.before` that fails reads from this position on."""

    def fail(request: Any) -> None:
        if isinstance(request, GetObject) and request.start >= start:
            raise ConnectionResetError("the network is gone")

    return fail


@in_small_parts
async def test_an_interrupted_download_is_resumed(files: Rig) -> None:
    data = pattern(9 * PART)
    await files.files.put("it", data)
    target = files.directory / "target"

    files.service.before = fail_reads(6 * PART)
    with pytest.raises(ConnectionResetError):
        await files.files.download("it", target, resume=True)
    files.service.before = lambda request: None
    (partial,) = names_in(files.directory)
    have = (files.directory / partial).stat().st_size
    assert 3 * PART <= have <= 6 * PART
    files.service.requests.clear()
    calls: list[tuple[int, int | None]] = []
    info = await files.files.download("it", target, resume=True, progress=lambda *call: calls.append(call))
    assert info.size == len(data)
    assert target.read_bytes() == data
    assert sorted(request.start for request in files.service.list_sent(GetObject)) == list(
        range(have, 9 * PART, PART)
    )
    assert (calls[0], calls[-1]) == ((have, 9 * PART), (9 * PART, 9 * PART))
    assert names_in(files.directory) == {"target"}


@in_small_parts
async def test_a_partial_download_of_another_version_is_not_resumed(files: Rig) -> None:
    old, new = pattern(9 * PART), bytes(9 * PART)
    await files.files.put("it", old)
    target = files.directory / "target"

    files.service.before = fail_reads(6 * PART)
    with pytest.raises(ConnectionResetError):
        await files.files.download("it", target, resume=True)
    files.service.before = lambda request: None
    await files.files.put("it", new)
    await files.files.download("it", target, resume=True)
    assert target.read_bytes() == new


@in_small_parts
async def test_a_complete_partial_file_is_only_renamed(files: Rig) -> None:
    data = pattern(5 * PART)
    await files.files.put("it", data)
    target = files.directory / "target"

    files.service.before = fail_reads(1)
    with pytest.raises(ConnectionResetError):
        await files.files.download("it", target, resume=True)
    files.service.before = lambda request: None
    (partial,) = names_in(files.directory)
    (files.directory / partial).write_bytes(data)
    files.service.requests.clear()
    await files.files.download("it", target, resume=True)
    assert target.read_bytes() == data
    assert [request.start for request in files.service.list_sent(GetObject)] == [len(data)]


@in_small_parts
async def test_a_damaged_partial_file_is_detected_and_removed(files: Rig) -> None:
    data = pattern(5 * PART)
    await files.files.put("it", data)
    target = files.directory / "target"

    files.service.before = fail_reads(1)
    with pytest.raises(ConnectionResetError):
        await files.files.download("it", target, resume=True)
    files.service.before = lambda request: None
    (partial,) = names_in(files.directory)
    (files.directory / partial).write_bytes(bytes(PART))
    with pytest.raises(IntegrityError):
        await files.files.download("it", target, resume=True)
    assert names_in(files.directory) == set()
    await files.files.download("it", target, resume=True)
    assert target.read_bytes() == data


@in_memory
async def test_two_targets_in_a_directory_do_not_share_a_partial_file(files: Rig) -> None:
    files.service.traits = ServiceTraits(2 * PART, PART, 1)
    await files.files.put("it", pattern(5 * PART))

    files.service.before = fail_reads(1)
    for name in (
        "a name longer than most names of files are, one",
        "a name longer than most names of files are, two",
    ):
        with pytest.raises(ConnectionResetError):
            await files.files.download("it", files.directory / name, resume=True)
    assert len(names_in(files.directory)) == 2

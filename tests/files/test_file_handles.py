"""Handles: read an object like a file, from any position, as it was when the handle was opened."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from io import BytesIO
from threading import Barrier
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    ServiceUnavailableError,
)

DATA = pattern(5 * PART + 7)


@in_small_parts
async def test_a_handle_reads_seeks_and_tells(files: Rig) -> None:
    await files.files.put("it", DATA, content_type="text/plain")
    async with files.open_handle("it") as handle:
        assert handle.info.size == len(DATA)
        assert handle.info.headers.content_type == "text/plain"
        assert (handle.readable(), handle.seekable(), handle.tell()) == (True, True, 0)
        assert await handle.read(3) == DATA[:3]
        assert handle.tell() == 3
        assert handle.seek(PART) == PART
        assert await handle.read(2 * PART) == DATA[PART : 3 * PART]
        assert handle.seek(-5, 1) == 3 * PART - 5
        assert await handle.read(10) == DATA[3 * PART - 5 : 3 * PART + 5]
        assert handle.seek(-7, 2) == len(DATA) - 7
        assert await handle.read() == DATA[-7:]
        assert await handle.read() == await handle.read(5) == b""
        assert handle.seek(10, 2) == len(DATA) + 10
        assert await handle.read(1) == b""
        handle.seek(0)
        assert await handle.read(None) == DATA
        assert await handle.read(0) == b""


@everywhere
async def test_iterating_a_handle_yields_the_whole_object(files: Rig) -> None:
    data = pattern(11_000_000)
    await files.files.put("it", data)
    async with files.open_handle("it") as handle:
        pieces = [piece async for piece in handle]
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 1024 * 1024
    await files.files.put("empty", b"")
    async with files.open_handle("empty") as handle:
        assert await handle.read() == b""
        assert [piece async for piece in handle] == []


@in_small_parts
async def test_small_reads_share_requests(files: Rig) -> None:
    await files.files.put("it", DATA)
    async with files.open_handle("it") as handle:
        for _ in range(len(DATA)):
            await handle.read(1)
    assert len(files.service.list_sent(GetObject)) == 6
    assert files.service.largest_get == PART


def test_sequential_reads_fetch_more_and_more_and_a_read_elsewhere_fetches_little() -> None:
    least, part = 256 * 1024, 1024**2
    with open_rig(Way("memory", "blocking")) as files:
        files.service.traits = ServiceTraits(part, part, 1)
        files.db.files.put("it", pattern(5 * part))
        files.service.requests.clear()
        with files.db.files.open("it") as handle:
            for _ in range(10):
                handle.read(least)
            handle.seek(0)
            handle.read(1)
        sizes = [request.size for request in files.service.list_sent(GetObject)]
    assert sizes == [least, 2 * least, part, part, least]


@given(
    steps=st.lists(st.tuples(st.integers(0, 2), st.integers(-300, 600), st.integers(-1, 300)), max_size=12)
)
def test_a_handle_behaves_like_a_file(steps: list[tuple[int, int, int]]) -> None:
    with open_rig(Way("memory", "blocking", 1)) as files:
        files.db.files.put("it", DATA)
        model = BytesIO(DATA)
        with files.db.files.open("it") as handle:
            for whence, offset, size in steps:
                base = (0, model.tell(), len(DATA))[whence]
                if base + offset < 0:
                    with pytest.raises(InvalidOptionsError):
                        handle.seek(offset, whence)
                else:
                    assert handle.seek(offset, whence) == model.seek(offset, whence)
                assert handle.read(size) == model.read(size)
                assert handle.tell() == model.tell()


@in_small_parts
async def test_a_handle_fails_if_its_object_is_replaced_or_deleted(files: Rig) -> None:
    await files.files.put("it", DATA)
    async with files.open_handle("it") as handle:
        assert await handle.read(5) == DATA[:5]
        await files.files.put("it", bytes(len(DATA)))
        assert await handle.read(PART - 5) == DATA[5:PART], "the buffered bytes are still valid"
        with pytest.raises(PreconditionFailedError):
            await handle.read(1)
    async with files.open_handle("it") as handle:
        assert await handle.read(5) == bytes(5)
        await files.files.delete("it")
        with pytest.raises(ObjectNotFoundError):
            await handle.read()


@in_memory
async def test_a_handle_can_be_read_only_in_its_block(files: Rig) -> None:
    await files.files.put("it", DATA)
    handle = files.open_handle("it")
    with pytest.raises(InvalidRequestError, match="not open"):
        await handle.read(1)
    async with handle:
        await handle.read(1)
    with pytest.raises(InvalidRequestError, match="not open"):
        handle.seek(0)
    with pytest.raises(InvalidRequestError, match="not open"):
        _ = handle.info
    with pytest.raises(InvalidRequestError, match="not open"):
        await handle.read(1)
    async with files.open_handle("it") as another:
        await another.close()
        with pytest.raises(InvalidRequestError, match="not open"):
            await another.read(1)
    with pytest.raises(ObjectNotFoundError):
        async with files.open_handle("missing"):
            pass


@in_memory
async def test_impossible_positions_are_refused(files: Rig) -> None:
    await files.files.put("it", DATA)
    async with files.open_handle("it") as handle:
        for offset, whence in ((-1, 0), (-1, 1), (-len(DATA) - 1, 2), (0, 3)):
            with pytest.raises(InvalidOptionsError):
                handle.seek(offset, whence)
        assert handle.tell() == 0


@in_small_parts
async def test_empty_or_short_replies_are_detected(files: Rig) -> None:
    await files.files.put("it", DATA)
    given: tuple[int, int]

    class WrongRangeService(Wrapper):
        async def _answer(self, send: Send, request: Request[Any]) -> Any:
            if isinstance(request, GetObject):
                request = GetObject(request.service, request.key, *given)
            return await send(self.inner, request)

    async with files.open_handle("it") as handle:
        files.service.inner = WrongRangeService(files.service.inner)
        given = 10**6, 1
        with pytest.raises(IntegrityError, match="other bytes"):
            await handle.read()
        given = 0, PART - 1
        with pytest.raises(IntegrityError, match="other bytes"):
            await anext(aiter(handle.pieces(0, PART, piece_size=PART)))  # a short piece is not passed on


def test_libraries_that_expect_files_can_read_from_handles() -> None:
    with open_rig(Way("memory", "blocking")) as files:
        zipped, tarred = BytesIO(), BytesIO()
        with zipfile.ZipFile(zipped, "w") as archive:
            archive.writestr("a.txt", DATA)
        with tarfile.open(fileobj=tarred, mode="w") as tar:
            member = tarfile.TarInfo("a.txt")
            member.size = len(DATA)
            tar.addfile(member, BytesIO(DATA))
        files.db.files.put("zip", zipped.getvalue())
        files.db.files.put("tar", tarred.getvalue())
        with files.db.files.open("zip") as handle, zipfile.ZipFile(handle) as archive:
            assert archive.read("a.txt") == DATA
        with files.db.files.open("tar") as handle, tarfile.open(fileobj=handle) as tar:
            found = tar.extractfile("a.txt")
            assert found is not None
            assert found.read() == DATA
        target = BytesIO()
        with files.db.files.open("zip") as handle:
            shutil.copyfileobj(handle, target)
        assert target.getvalue() == zipped.getvalue()


def test_a_handle_can_be_the_source_of_a_put() -> None:
    with open_rig(Way("disk", "blocking", 1)) as files:
        files.db.files.put("it", DATA)
        with files.db.files.open("it") as handle:
            handle.seek(7)
            files.db.files.put("rest", handle)
        assert files.db.files.get("rest") == DATA[7:]


# --- pieces -----------------------------------------------------------------------------------------------


@everywhere
async def test_pieces_come_in_order(files: Rig) -> None:
    data = pattern(2_500_000)
    await files.files.put("it", data)
    async with files.open_handle("it") as handle:
        pieces = [piece async for piece in handle.pieces()]
        assert b"".join(pieces) == data
        assert [len(piece) for piece in pieces] == [1024**2, 1024**2, 2_500_000 - 2 * 1024**2]
        assert files.service.largest_get == 1024**2
        some = [piece async for piece in handle.pieces(5, 1000, piece_size=300, ahead=3)]
        assert some == [data[5:305], data[305:605], data[605:905], data[905:1005]]
        assert [piece async for piece in handle.pieces(2_499_999, 10)] == [data[-1:]]
        assert [piece async for piece in handle.pieces(2_500_000)] == []
        assert [piece async for piece in handle.pieces(7, 0)] == []
        assert handle.tell() == 0


@in_memory
async def test_pieces_are_fetched_no_further_ahead_than_the_bound(files: Rig) -> None:
    await files.files.put("it", DATA)
    under_way = 0

    def begin(request: Any) -> None:
        nonlocal under_way
        under_way += 1

    def end(request: Any) -> None:
        nonlocal under_way
        under_way -= 1

    async with files.open_handle("it") as handle:
        files.service.before, files.service.after = begin, end
        taken = 0
        async for piece in handle.pieces(piece_size=PART, ahead=2):
            taken += 1
            assert len(piece) <= PART
            assert len(files.service.list_sent(GetObject)) == min(6, taken + taken % 2)
            assert under_way == 0
            if taken == 5:
                break
    assert (taken, under_way) == (5, 0)


def test_pieces_are_fetched_in_parallel() -> None:
    both = Barrier(2)
    with open_rig(Way("memory", "blocking")) as files:
        files.db.files.put("it", DATA)
        with files.db.files.open("it") as handle:
            files.service.before = lambda request: both.wait(120)
            pieces = handle.pieces(size=4 * PART, piece_size=PART, ahead=2)
            assert next(pieces) == DATA[:PART]
            assert [len(piece) for piece in pieces] == [PART] * 3


@in_memory
async def test_a_failed_piece_can_be_retried_after_the_pieces_before_it(
    files: Rig,
) -> None:
    await files.files.put("it", DATA)
    fails, failing = True, PART

    def fail(request: Any) -> None:
        if fails and request.start == failing:
            raise ServiceUnavailableError("it is away")

    async with files.open_handle("it") as handle:
        files.service.before = fail
        given = handle.pieces(piece_size=PART)
        pieces = given if files.colour == "awaiting" else handle._inner.pieces(piece_size=PART)
        step: Any = (lambda: anext(pieces)) if files.colour == "awaiting" else _make_step(pieces)
        assert await step() == DATA[:PART]
        with pytest.raises(ServiceUnavailableError):
            await step()
        failing = 3 * PART  # when it fails, the piece after it has already arrived
        assert await step() == DATA[PART : 2 * PART]
        assert await step() == DATA[2 * PART : 3 * PART]
        with pytest.raises(ServiceUnavailableError):
            await step()
        fails = False
        assert await step() == DATA[3 * PART : 4 * PART]


def _make_step(pieces: Any) -> Any:
    async def step() -> bytes:
        return cast("bytes", next(pieces))

    return step


@in_memory
async def test_pieces_fail_if_the_object_is_replaced_or_the_handle_is_closed(files: Rig) -> None:
    await files.files.put("it", DATA)
    async with files.open_handle("it") as handle:
        await files.files.put("it", DATA[::-1])
        with pytest.raises(PreconditionFailedError):
            _ = [piece async for piece in handle.pieces()]
        for start, size, options in ((-1, None, {}), (0, -1, {}), (0, None, {"ahead": 0})):
            with pytest.raises(InvalidOptionsError, match="1 or more"):
                _ = [piece async for piece in handle.pieces(start, size, **options)]
    with pytest.raises(InvalidRequestError, match="not open"):
        _ = [piece async for piece in handle.pieces()]

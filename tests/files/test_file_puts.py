"""Putting objects: every kind of source, sizes around the limits, expected digests, headers and checksums."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Callable
from hashlib import md5, sha256
from pathlib import Path
from typing import Any

import pytest
from rig.files import PART, Rig, Way, everywhere, in_memory, in_small_parts, open_rig, pattern

from holdall.core.objects import (
    BeginUpload,
    CompleteUpload,
    ListedObject,
    ObjectHeaders,
    PutObject,
    ServiceTraits,
    UploadPart,
)
from holdall.core.rules.object import MAX_OBJECT
from holdall.errors import (
    IntegrityError,
    InvalidObjectKeyError,
    InvalidOptionsError,
    InvalidRequestError,
    PreconditionFailedError,
)

MIB = 1024 * 1024


def md5_of(data: bytes) -> str:
    return b64encode(md5(data, usedforsecurity=False).digest()).decode()


def sha256_of(data: bytes) -> str:
    return b64encode(sha256(data).digest()).decode()


class Trickle:
    """A stream that returns fewer bytes than requested, as sockets do."""

    def __init__(self, data: bytes, at_a_time: int = 7) -> None:
        self._data = io.BytesIO(data)
        self._at_a_time = at_a_time

    def read(self, size: int) -> bytes:
        return self._data.read(min(size, self._at_a_time))


class AsyncTrickle:
    """The same, with an async read."""

    def __init__(self, data: bytes, at_a_time: int = 7) -> None:
        self._inner = Trickle(data, at_a_time)

    async def read(self, size: int) -> bytes:
        return self._inner.read(size)


class OwnPath:
    """An object that is not a path but has `__fspath__`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


SOURCES: dict[str, Callable[[Rig, bytes], Any]] = {
    "bytes": lambda files, data: data,
    "bytearray": lambda files, data: bytearray(data),
    "memoryview": lambda files, data: memoryview(data),
    "BytesIO": lambda files, data: io.BytesIO(data),
    "Path": lambda files, data: files.file(data),
    "str": lambda files, data: str(files.file(data)),
    "own path": lambda files, data: OwnPath(files.file(data)),
    "buffered stream": lambda files, data: io.BufferedReader(io.BytesIO(data)),
    "trickle": lambda files, data: Trickle(data),
    "async trickle": lambda files, data: AsyncTrickle(data),
}


@in_small_parts
@pytest.mark.parametrize("kind", SOURCES)
async def test_every_kind_of_source_is_stored_at_every_size(files: Rig, kind: str) -> None:
    if kind == "async trickle" and files.colour == "blocking":
        kind = "trickle"
    limit = 2 * PART
    for size in (0, 1, PART, limit - 1, limit, limit + 1, 3 * PART - 1, 3 * PART, 3 * PART + 1, 7 * PART + 3):
        data = pattern(size)
        info = await files.files.put("it", SOURCES[kind](files, data))
        assert (info.key, info.size, info.md5, info.sha256) == ("it", size, md5_of(data), sha256_of(data))
        assert await files.files.get("it") == data
    assert await files.uploads() == ()
    assert await files.keys() == ["it"]


@in_small_parts
async def test_up_to_the_limit_one_request_is_sent_and_beyond_it_parts(files: Rig) -> None:
    await files.files.put("small", pattern(2 * PART))
    assert [type(request) for request in files.service.requests] == [PutObject]
    for source in (pattern(3 * PART + 1), io.BufferedReader(io.BytesIO(pattern(3 * PART + 1)))):
        files.service.requests.clear()
        await files.files.put("large", source)
        parts = {part.number: len(part.body) for part in files.service.list_sent(UploadPart)}
        assert parts == {1: PART, 2: PART, 3: PART, 4: 1}
        assert not files.service.list_sent(PutObject)


@everywhere
async def test_objects_around_the_real_limit_come_back_unchanged(files: Rig) -> None:
    for size in (8 * MIB, 8 * MIB + 1):
        data = pattern(size)
        for source in (data, files.file(data), Trickle(data, MIB)):
            info = await files.files.put("it", source)
            assert (info.size, info.md5, info.sha256) == (size, md5_of(data), sha256_of(data))
            assert await files.files.get("it") == data
    assert await files.uploads() == ()


@everywhere
async def test_an_object_has_the_headers_it_was_put_with(files: Rig) -> None:
    given: Any = {"content_type": "text/plain", "disposition": "inline", "cache_control": "max-age=60"}
    metadata = {"colour": "grün", "shape-of-it": "round"}
    for size in (5, 9 * MIB):
        put = await files.files.put("it", pattern(size), metadata=metadata, **given)
        wanted = ObjectHeaders("text/plain", "inline", "max-age=60", metadata)
        found = await files.files.head("it")
        assert put.headers == found.headers == wanted
        assert (put.size, put.etag) == (found.size, found.etag)


@everywhere
async def test_a_stream_is_read_from_its_current_position(files: Rig) -> None:
    plain = io.BytesIO(b"skipped, kept")
    plain.seek(9)
    await files.files.put("plain", plain)
    with files.file(b"skipped, kept").open("rb") as stream:
        stream.seek(9)
        await files.files.put("stream", stream)
    assert await files.files.get("plain") == await files.files.get("stream") == b"kept"


@in_memory
async def test_a_buffer_can_be_closed_after_a_put_that_failed(files: Rig) -> None:
    with pytest.raises(IntegrityError), io.BytesIO(b"some bytes") as buffer:
        await files.files.put("it", buffer, size=3)


# --- expected digests and sizes -------------------------------------------------------------------------


@in_small_parts
@pytest.mark.parametrize("size", [5, 5 * PART])
@pytest.mark.parametrize("kind", ["bytes", "Path", "trickle"])
@pytest.mark.parametrize("expected", ["md5", "sha256", "size", "too few"])
async def test_unexpected_bytes_leave_nothing(files: Rig, size: int, kind: str, expected: str) -> None:
    cases: dict[str, dict[str, Any]] = {
        "md5": {"md5": md5_of(b"others")},
        "sha256": {"sha256": sha256_of(b"others")},
        "size": {"size": size + 1},
        "too few": {"size": size - 1},
    }
    wrong = cases[expected]
    with pytest.raises(IntegrityError):
        await files.files.put("it", SOURCES[kind](files, pattern(size)), **wrong)
    assert await files.is_clean()
    assert not files.service.list_sent(CompleteUpload)


@everywhere
async def test_unexpected_bytes_do_not_replace_the_existing_object(files: Rig) -> None:
    await files.files.put("it", b"old")
    for data in (b"new", pattern(9 * MIB)):
        with pytest.raises(IntegrityError):
            await files.files.put("it", data, md5=md5_of(b"others"))
        with pytest.raises(IntegrityError):
            await files.files.put("it", Trickle(data, MIB), sha256=sha256_of(b"others"))
    assert await files.files.get("it") == b"old"
    assert await files.uploads() == ()


@everywhere
async def test_the_expected_bytes_are_stored(files: Rig) -> None:
    for data in (b"", b"few", pattern(8 * MIB + 1)):
        expected: Any = {"md5": md5_of(data), "sha256": sha256_of(data), "size": len(data)}
        await files.files.put("it", data, **expected)
        await files.files.put("it", Trickle(data, MIB), **expected)
        assert await files.files.get("it") == data


@in_small_parts
async def test_a_stream_with_too_many_bytes_is_not_read_to_its_end(files: Rig) -> None:
    class Endless:
        given = 0

        def read(self, size: int) -> bytes:
            self.given += size
            return b"x" * size

    stream = Endless()
    with pytest.raises(IntegrityError):
        await files.files.put("it", stream, size=4 * PART)
    assert stream.given < 8 * PART
    assert await files.is_clean()


@pytest.mark.parametrize("parallel", [1, 3])
def test_if_the_size_is_known_the_parts_are_large_enough_for_the_limit_on_their_number(parallel: int) -> None:
    size = 12_345 * 10
    with open_rig(Way("memory", "blocking")) as files:
        files.service.traits = ServiceTraits(5, 5, parallel)
        for source in (Trickle(pattern(size), 10_000), pattern(size)):
            files.service.requests.clear()
            files.db.files.put("it", source, size=size)
            parts = files.service.list_sent(UploadPart)
            assert {len(part.body) for part in parts if part.number < len(parts)} == {13}
            assert len(parts) == -(-size // 13)
        files.service.traits = None
        assert files.db.files.get("it") == pattern(size)


@in_memory
async def test_parts_of_a_stream_of_unknown_size_grow_so_that_ten_thousand_are_enough(files: Rig) -> None:
    files.service.traits = ServiceTraits(1, 1, 1)
    size = 1000 * 1 + 1000 * 2 + 5
    await files.files.put("it", Trickle(pattern(size), size))
    sizes = [len(part.body) for part in files.service.list_sent(UploadPart)]
    assert sizes == [1] * 1000 + [2] * 1000 + [4, 1]
    files.service.traits = None
    assert await files.files.get("it") == pattern(size)


@in_memory
async def test_an_impossible_put_is_refused_before_anything_is_read(files: Rig) -> None:
    class Untouched:
        def read(self, size: int) -> bytes:
            raise AssertionError("it was read")

    with pytest.raises(InvalidRequestError, match="bytes; the limit is"):
        await files.files.put("it", Untouched(), size=MAX_OBJECT + 1)
    for key, options in [("", {}), ("a/../b", {}), ("it", {"metadata": {"UPPER": "x"}})]:
        given: Any = options
        with pytest.raises((InvalidObjectKeyError, InvalidRequestError)):
            await files.files.put(key, Untouched(), **given)
    assert files.service.requests == []


# --- if absent ------------------------------------------------------------------------------------------


@everywhere
async def test_with_if_absent_the_first_put_wins(files: Rig) -> None:
    for key, data in (("small", b"first"), ("large", pattern(8 * MIB + 1))):
        first = await files.files.put(key, data, if_absent=True)
        assert first.put_id is not None or files.way.kind == "S3"
        for again in (b"second", pattern(9 * MIB), Trickle(b"third")):
            with pytest.raises(PreconditionFailedError):
                await files.files.put(key, again, if_absent=True)
        assert await files.files.get(key) == data
    assert await files.uploads() == ()
    await files.files.delete("small")
    await files.files.put("small", b"another", if_absent=True)
    assert await files.files.get("small") == b"another"


@in_small_parts
async def test_with_if_absent_no_part_is_sent_if_the_object_exists_and_a_race_is_detected(files: Rig) -> None:
    await files.files.put("there", b"first")
    for source in (pattern(5 * PART), Trickle(pattern(5 * PART))):
        with pytest.raises(PreconditionFailedError):
            await files.files.put("there", source, if_absent=True)
    assert not files.service.list_sent(BeginUpload)

    def put_first(request: Any) -> None:
        if isinstance(request, CompleteUpload):
            files.service.inner.send_blocking(PutObject("main", "late", b"another writer"))

    files.service.before = put_first
    with pytest.raises(PreconditionFailedError):
        await files.files.put("late", pattern(5 * PART), if_absent=True)
    assert await files.files.get("late") == b"another writer"
    assert await files.uploads() == ()


# --- checksums ------------------------------------------------------------------------------------------


@in_small_parts
async def test_only_the_requested_checksums_are_computed(files: Rig) -> None:
    for data in (b"123456789", pattern(5 * PART)):
        none = await files.files.put("it", data, checksums=())
        assert (none.md5, none.sha256, none.crc32c) == (None, None, None)
        one = await files.files.put("it", data, checksums=["crc32c"])
        assert (one.md5, one.sha256) == (None, None)
        assert one.crc32c is not None
        expected = await files.files.put("it", data, checksums=["crc32c"], md5=md5_of(data))
        assert (expected.md5, expected.sha256, expected.crc32c) == (md5_of(data), None, one.crc32c)
    small = await files.files.put("it", b"123456789", checksums=["crc32c"])
    assert small.crc32c == b64encode(bytes.fromhex("e3069283")).decode()
    unknown: Any = ["crc64"]
    with pytest.raises(InvalidOptionsError, match="unknown checksum: crc64"):
        await files.files.put("it", b"x", checksums=unknown)


# --- invalid sources ------------------------------------------------------------------------------------


@in_memory
async def test_a_value_that_is_not_a_source_of_bytes_is_refused_with_a_hint(files: Rig) -> None:
    cases: list[tuple[object, str]] = [
        (None, "of type NoneType cannot be stored"),
        (17, "of type int cannot be stored"),
        (["a", "b"], "of type list cannot be stored"),
        (io.StringIO("text"), "the stream returns text"),
    ]
    for source, message in cases:
        with pytest.raises(InvalidOptionsError, match=message) as caught:
            await files.files.put("it", source)
        assert caught.value.hint
    assert await files.is_clean()


@in_memory
async def test_a_path_must_be_that_of_a_regular_file(files: Rig) -> None:
    with pytest.raises(FileNotFoundError):
        await files.files.put("it", files.directory / "missing")
    with pytest.raises(IsADirectoryError):
        await files.files.put("it", files.directory)
    with pytest.raises(InvalidOptionsError, match="not a regular file"):
        await files.files.put("it", "/dev/zero")
    assert await files.is_clean()


@in_memory
async def test_a_stream_of_text_is_refused(files: Rig) -> None:
    class Text:
        def read(self, size: int) -> str:
            return "text"

    with pytest.raises(TypeError, match="must return bytes, not str"):
        await files.files.put("it", Text())
    assert await files.is_clean()


@in_small_parts
async def test_if_a_stream_fails_no_upload_begins_or_it_is_aborted(files: Rig) -> None:
    class Broken:
        def __init__(self, after: int) -> None:
            self._left = after

        def read(self, size: int) -> bytes:
            if self._left <= 0:
                raise ConnectionResetError("the other side is gone")
            size = min(size, self._left)
            self._left -= size
            return b"x" * size

    for after in (0, PART, 3 * PART):
        with pytest.raises(ConnectionResetError):
            await files.files.put("it", Broken(after))
        assert await files.is_clean()
    assert len(files.service.list_sent(BeginUpload)) == 1


# --- a source that changes ------------------------------------------------------------------------------


@in_small_parts
@pytest.mark.parametrize("how", ["grows", "shrinks", "is written to", "is replaced", "is gone"])
@pytest.mark.parametrize("size", [2 * PART, 5 * PART])
async def test_a_file_that_changes_while_it_is_read_is_not_stored(files: Rig, how: str, size: int) -> None:
    path = files.file(pattern(size))
    other = files.file(bytes(size), "other")

    def change() -> None:
        if how == "grows":
            with path.open("ab") as file:
                file.write(b"more")
        elif how == "shrinks":
            with path.open("r+b") as file:
                file.truncate(size - 10)
        elif how == "is written to":
            path.write_bytes(bytes(size))
        elif how == "is replaced":
            other.replace(path)
        else:
            path.unlink(missing_ok=True)

    changed: list[str] = []

    def once(done: int, total: int | None) -> None:
        if not changed and (size == 2 * PART or done):
            changed.append(how)
            change()

    with pytest.raises(FileNotFoundError if how == "is gone" else IntegrityError):
        await files.files.put("it", path, progress=once)
    assert await files.is_clean()


# --- sync and async -------------------------------------------------------------------------------------


@in_memory
async def test_sync_and_async_see_the_same_objects(files: Rig) -> None:
    await files.files.put("it", b"here")
    if files.colour == "awaiting":
        assert files.db.sync.files.get("it") == b"here"
        assert [type(each) for each in files.db.sync.files.list()] == [ListedObject]
    else:
        assert files.db.files["main"].get("it") == b"here"

"""Resumable uploads: bytes from any number of requests become one blob, and a sweep deletes unfinished uploads."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from hashlib import md5, sha1, sha256
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from attachments_rig import Rig, Way, ask_for_small_parts, everywhere, in_memory, open_rig
from gem import Gem
from rig.clock import Clock, TimedPort
from rig.colour import run_in
from rig.files import bucket_service, pattern
from rig.recorder import Recorder
from rig.torture import ROUNDS, SEED

from holdall import AsyncDatabase, Database
from holdall.attachments.upkeep.sweep import SweepReport
from holdall.attachments.upload.arrival import add_number
from holdall.attachments.upload.resumable import choose_part_size
from holdall.attachments.upload.upload import GRACE
from holdall.backends.memory import MemoryService
from holdall.core.frozen import replace
from holdall.core.objects import (
    AbortUpload,
    CompleteUpload,
    ListUploads,
    PutObject,
    UploadPart,
)
from holdall.core.requests import Scan, TransactWrite
from holdall.core.rules.object import MAX_OBJECT, MAX_PART
from holdall.errors import (
    IntegrityError,
    InvalidOptionsError,
    InvalidRequestError,
    RecordNotFound,
    ServiceUnavailableError,
    UploadConflictError,
)

DATA = b"\x89PNG\r\n\x1a\n and then some bytes, 50 in all together .."
DAY = 86400


class BrokenStream:
    """A stream whose connection breaks after some bytes."""

    def __init__(self, data: bytes, most: int = 3) -> None:
        self._stream = BytesIO(data)
        self._most = most

    def read(self, size: int) -> bytes:
        if not (data := self._stream.read(min(size, self._most))):
            raise ConnectionResetError
        return data


@contextmanager
def small(way: Way) -> Iterator[Rig]:
    with open_rig(way) as db:
        db.service.inner = ask_for_small_parts(db.service.inner)
        yield db


def _ways(name: str) -> list[Way]:
    return [Way("A", "memory", "blocking"), Way("B", "memory", "awaiting")]


in_small_parts = run_in(_ways, small)


def checksum_of(data: bytes, digest: Callable[..., Any] = md5) -> str:
    return b64encode(digest(data).digest()).decode()


async def start(db: Rig, size: int = len(DATA), **options: Any) -> Any:
    return await db.blobs.start_upload(
        filename="photo.png", byte_size=size, content_type="text/plain", **options
    )


async def fetch_leftovers(db: Rig) -> tuple[set[str], int]:
    """The keys in the service, and the number of its unfinished uploads."""
    keys = {each.key for each in db.database.files.list()} if db.way.colour == "blocking" else set()
    if db.way.colour == "awaiting":
        keys = {each.key async for each in db.database.files.list()}
    port = db.database._context.port
    return keys, len(await port.send(ListUploads("default")))


@everywhere
async def test_the_bytes_of_several_requests_become_a_blob_that_can_be_attached(db: Rig) -> None:
    upload = await start(db, metadata={"identified": True, "custom": {"from": "here"}})
    assert (upload.offset, upload.is_complete, upload.metadata) == (0, False, {"custom": {"from": "here"}})
    for at, end in ((0, 7), (7, 8), (8, len(DATA))):
        upload = await db.blobs.continue_upload(upload, at, DATA[at:end])
        assert await db.blobs.find_upload(upload.id) == upload
        assert (upload.offset, upload.is_complete) == (end, end == len(DATA))
    blob = await db.blobs.find(upload.id)
    assert (blob.byte_size, blob.checksum, blob.is_composed) == (len(DATA), None, True)
    assert (blob.is_identified, blob.content_type) == (False, "text/plain")
    person = await db.create(avatar=await db.blobs.signed_id(blob, purpose="attach"))
    found = (await db.load(person)).avatar.blob
    assert (found, found.content_type, found.is_identified) == (blob, "image/png", True)
    assert await db.blobs.download(found) == DATA
    assert await fetch_leftovers(db) == ({blob.key}, 0)
    await db.check()


@in_small_parts
async def test_a_file_of_many_parts_is_joined_by_the_service_and_never_held_whole(db: Rig) -> None:
    upload = await start(db)
    upload = await db.blobs.continue_upload(upload, 0, BytesIO(DATA[:23]))
    upload = await db.blobs.continue_upload(upload, 23, iter([DATA[23:24], DATA[24:36]]))
    assert (upload.offset, len(db.recorder.list_sent(UploadPart))) == (36, 3)
    upload = await db.blobs.continue_upload(upload, 36, DATA[36:])
    assert upload.is_complete
    bodies = [request.body for request in db.recorder.list_sent(PutObject, UploadPart)]
    assert max(map(len, bodies)) == 10
    blob = await db.blobs.find(upload.id)
    assert await db.blobs.download(blob) == DATA
    assert await fetch_leftovers(db) == ({blob.key}, 0)


@in_small_parts
async def test_a_file_uploaded_in_one_request_has_its_digests(db: Rig) -> None:
    upload = await start(db, checksum=checksum_of(DATA))
    await db.blobs.continue_upload(upload.id, 0, DATA)
    blob = await db.blobs.find(upload.id)
    assert (blob.checksum, blob.sha256) == (checksum_of(DATA), checksum_of(DATA, sha256))
    assert not blob.is_composed
    assert await db.blobs.download(blob) == DATA


@in_memory
async def test_an_empty_file_is_complete_at_once(db: Rig) -> None:
    upload = await start(db, 0)
    assert upload.is_complete
    assert await db.blobs.download(upload.id) == b""
    assert await db.blobs.continue_upload(upload, 0, b"") == upload


@in_small_parts
async def test_bytes_received_before_the_connection_broke_are_kept(db: Rig) -> None:
    upload = await start(db)
    for end in (17, 25):
        with pytest.raises(ConnectionResetError):
            await db.blobs.continue_upload(upload, upload.offset, BrokenStream(DATA[upload.offset : end]))
        upload = await db.blobs.find_upload(upload.id)
        assert upload.offset == end
    with pytest.raises(ConnectionResetError):  # all bytes arrived, but the end of the stream did not
        await db.blobs.continue_upload(upload, 25, BrokenStream(DATA[25:]))
    upload = await db.blobs.find_upload(upload.id)
    assert (upload.offset, upload.is_complete) == (len(DATA), False)
    assert (await db.blobs.continue_upload(upload, len(DATA), b"")).is_complete
    assert await db.blobs.download(upload.id) == DATA


@in_small_parts
async def test_many_small_requests_are_merged(db: Rig) -> None:
    db.service.inner = ask_for_small_parts(db.service.inner, part_size=60)
    upload = await start(db, 90)
    for at in range(90):
        upload = await db.blobs.continue_upload(upload, at, bytes([at]))
    sizes = [len(request.body) for request in db.recorder.list_sent(PutObject, UploadPart)]
    assert sizes == [*[1] * 32, 33, *[1] * 26, 60, *[1] * 30, 30]
    assert await db.blobs.download(upload.id) == bytes(range(90))
    assert await fetch_leftovers(db) == ({(await db.blobs.find(upload.id)).key}, 0)


# --- refusals -----------------------------------------------------------------------------------------------


@in_small_parts
async def test_bytes_at_a_wrong_offset_or_beyond_the_end_are_refused(db: Rig) -> None:
    upload = await start(db, 30)
    upload = await db.blobs.continue_upload(upload, 0, DATA[:14])
    for offset in (0, 10, 15, -1):
        with pytest.raises(UploadConflictError, match="is at byte 14 of 30") as conflict:
            await db.blobs.continue_upload(upload, offset, b"x")
        assert conflict.value.offset == 14
    for source in (DATA[14:31], iter([DATA[14:31]])):
        with pytest.raises(InvalidRequestError, match="more have arrived"):
            await db.blobs.continue_upload(upload, upload.offset, source)
        upload = await db.blobs.find_upload(upload.id)
    assert upload.offset == 20  # the part that was complete is kept
    upload = await db.blobs.continue_upload(upload, 20, DATA[20:30])
    with pytest.raises(UploadConflictError):  # as a client does after a lost reply
        await db.blobs.continue_upload(upload, 20, DATA[20:30])
    assert await db.blobs.download(upload.id) == DATA[:30]


@in_memory
async def test_bad_options_are_refused_before_anything_is_written(db: Rig) -> None:
    db.recorder.forget()
    for wrong in (
        {"byte_size": -1},
        {"byte_size": True},
        {"byte_size": 6 * 1024**4},
        {"filename": ""},
        {"expires": 0},
        {"metadata": {"custom": {"much": "x" * 3000}}},
    ):
        with pytest.raises(InvalidRequestError):
            await db.blobs.start_upload(**{"filename": "a.txt", "byte_size": 5} | wrong)
    assert [request for request in db.recorder.requests if request.writes] == []
    upload = await start(db)
    for wrong_checksum in ("crc:x", "sha1", checksum_of(DATA)):
        with pytest.raises(InvalidOptionsError, match="checksum"):
            await db.blobs.continue_upload(upload, 0, DATA, checksum=wrong_checksum)
    for nothing in ("", "nothing"):
        with pytest.raises(RecordNotFound):
            await db.blobs.find_upload(nothing)


@in_small_parts
async def test_with_a_checksum_a_request_keeps_all_its_bytes_or_none(db: Rig) -> None:
    upload = await start(db)
    upload = await db.blobs.continue_upload(
        upload, 0, DATA[:12], checksum=f"sha1:{checksum_of(DATA[:12], sha1)}"
    )
    for source, error in (
        (BytesIO(DATA[12:45]), IntegrityError),
        (BrokenStream(DATA[12:40]), ConnectionResetError),
    ):
        with pytest.raises(error):
            await db.blobs.continue_upload(upload, 12, source, checksum=f"md5:{checksum_of(b'others')}")
        assert await db.blobs.find_upload(upload.id) == upload
    upload = await db.blobs.continue_upload(
        upload, 12, BytesIO(DATA[12:]), checksum=f"sha256:{checksum_of(DATA[12:], sha256)}"
    )
    assert await db.blobs.download(upload.id) == DATA


@in_small_parts
async def test_an_upload_with_a_wrong_checksum_is_deleted(db: Rig) -> None:
    for end in (20, len(DATA)):
        upload = await start(db, checksum=checksum_of(b"another file"))
        if end < len(DATA):
            await db.blobs.continue_upload(upload, 0, DATA[:end])
        with pytest.raises(IntegrityError, match="MD5"):
            await db.blobs.continue_upload(upload, end % len(DATA), DATA[end % len(DATA) :])
        with pytest.raises(RecordNotFound):
            await db.blobs.find_upload(upload.id)
    assert await fetch_leftovers(db) == (set(), 0)


@in_small_parts
async def test_parts_that_the_service_has_lost_end_the_upload(db: Rig) -> None:
    port = db.database._context.port
    for end in (15, 45):
        upload = await start(db)
        await db.blobs.continue_upload(upload, 0, DATA[:end])
        for each in await port.send(ListUploads("default")):
            await port.send(AbortUpload("default", each))
        with pytest.raises(IntegrityError, match="lost or rejected"):
            await db.blobs.continue_upload(upload, end, DATA[end:])
        with pytest.raises(RecordNotFound):
            await db.blobs.find_upload(upload.id)
    assert await fetch_leftovers(db) == (set(), 0)


@in_small_parts
async def test_parts_that_the_service_refuses_end_the_upload(db: Rig) -> None:
    upload = await start(db)

    def refuse(request: Any) -> None:
        if isinstance(request, CompleteUpload):
            raise InvalidRequestError("the numbers of parts have gaps")

    db.recorder.before = refuse
    with pytest.raises(IntegrityError, match="lost or rejected"):
        await db.blobs.continue_upload(upload, 0, DATA)
    assert await fetch_leftovers(db) == (set(), 0)


# --- concurrent requests --------------------------------------------------------------------------------------


def interrupt(db: Rig, what: Callable[[], Any], kind: type[Any], count: int = 1) -> None:
    """Call a function right before a request of a kind is sent."""
    left = count

    async def before(request: Any) -> None:
        nonlocal left
        left -= isinstance(request, kind)
        if left == 0:
            db.recorder.before = lambda request: None
            await what()

    def before_blocking(request: Any) -> None:
        with pytest.raises(StopIteration):
            before(request).send(None)

    db.recorder.before = before if db.way.colour == "awaiting" else before_blocking


@in_small_parts
async def test_of_two_concurrent_requests_one_is_refused_and_its_part_replaces_nothing(db: Rig) -> None:
    upload = await start(db)

    async def overtake() -> None:
        await db.blobs.continue_upload(upload, 0, DATA[:25])

    interrupt(db, overtake, UploadPart)
    with pytest.raises(UploadConflictError) as conflict:
        await db.blobs.continue_upload(upload, 0, b"." * 30)
    assert conflict.value.offset == 25
    small, other = await start(db, 9), partial(db.blobs.continue_upload, offset=0, source=DATA[:3])
    interrupt(db, partial(other, small), PutObject)
    with pytest.raises(UploadConflictError):
        await db.blobs.continue_upload(small, 0, b"....")
    await db.blobs.continue_upload(small, 3, DATA[3:9])
    assert await db.blobs.download(small.id) == DATA[:9]
    await db.blobs.continue_upload(upload, 25, DATA[25:])
    assert await db.blobs.download(upload.id) == DATA
    assert await fetch_leftovers(db) == ({(await db.blobs.find(each.id)).key for each in (upload, small)}, 0)


@in_small_parts
async def test_concurrent_requests_complete_an_upload_once(db: Rig) -> None:
    for size in (8, 25):
        for kind in (PutObject if size == 8 else CompleteUpload, TransactWrite):
            upload = await start(db, size)
            with pytest.raises(ConnectionResetError):
                await db.blobs.continue_upload(upload, 0, BrokenStream(DATA[:size]))
            finish = partial(db.blobs.continue_upload, upload, size, b"")
            interrupt(db, finish, kind)
            assert (await finish()).is_complete
            assert await db.blobs.download(upload.id) == DATA[:size]
    await db.check()


def test_concurrent_clients_of_one_upload_upload_the_whole_file() -> None:
    data = pattern(300)
    chances = Random(SEED)

    async def act(db: AsyncDatabase, id: str) -> int:
        """Upload as a client does, in random portions, until all is done; return how many portions were refused."""
        refused = 0
        while True:
            upload = await db.blobs.find_upload(id)
            if upload.is_complete:
                return refused
            portion = data[upload.offset : upload.offset + chances.randint(0, 40)]

            async def send(portion: bytes = portion) -> AsyncIterator[bytes]:
                for each in portion:
                    await asyncio.sleep(0)
                    yield bytes([each])

            with suppress(UploadConflictError):
                await db.blobs.continue_upload(upload, upload.offset, send())
                continue
            refused += 1

    async def main() -> None:
        service = ask_for_small_parts(MemoryService())
        async with AsyncDatabase("memory:", files=service) as db:
            for _ in range(3 * ROUNDS):
                upload = await db.blobs.start_upload(filename="a.bin", byte_size=len(data))
                refused = await asyncio.gather(*(act(db, upload.id) for _ in range(4)))
                assert sum(refused) > 0
                assert await db.blobs.download(upload.id) == data

    asyncio.run(main())


# --- the end --------------------------------------------------------------------------------------------------


@in_small_parts
async def test_a_cancelled_upload_leaves_nothing_but_its_marker(db: Rig) -> None:
    upload = await start(db)
    await db.blobs.continue_upload(upload, 0, DATA[:25])
    late = await start(db)

    async def cancel() -> None:
        await db.blobs.cancel_upload(late)

    interrupt(db, cancel, UploadPart)
    with pytest.raises(RecordNotFound):
        await db.blobs.continue_upload(late, 0, DATA[:25])
    for _ in range(2):
        await db.blobs.cancel_upload(upload)
    with pytest.raises(RecordNotFound):
        await db.blobs.continue_upload(upload, 25, DATA[25:])
    assert await fetch_leftovers(db) == (set(), 0)
    db.clock.forward(DAY + GRACE.total_seconds() + 3600)
    assert await db.blobs.sweep() == SweepReport(0, 2, 0)
    assert await count_items(db) == 0


@in_small_parts
async def test_an_upload_cancelled_during_its_completion_does_not_become_a_blob(db: Rig) -> None:
    for size in (8, 25):
        upload = await start(db, size)
        interrupt(db, partial(db.blobs.cancel_upload, upload), TransactWrite)
        with pytest.raises(RecordNotFound, match="cancelled"):
            await db.blobs.continue_upload(upload, 0, DATA[:size])
        with pytest.raises(RecordNotFound):
            await db.blobs.find(upload.id)
    assert await fetch_leftovers(db) == (set(), 0)
    await db.check()


@in_small_parts
async def test_cancelling_a_complete_upload_deletes_its_blob_unless_it_is_attached(db: Rig) -> None:
    loose, held = await start(db), await start(db)
    for upload in (loose, held):
        await db.blobs.continue_upload(upload, 0, DATA)
    await db.create(avatar=await db.blobs.find(held.id))
    for upload in (loose, held):
        await db.blobs.cancel_upload(upload)
        with pytest.raises(RecordNotFound):
            await db.blobs.find_upload(upload.id)
    with pytest.raises(RecordNotFound):
        await db.blobs.find(loose.id)
    assert await db.blobs.download(held.id) == DATA
    await db.check()


@in_small_parts
async def test_an_expired_upload_is_refused_and_later_swept_with_its_bytes(db: Rig) -> None:
    upload = await start(db, expires=timedelta(hours=1))
    await db.blobs.continue_upload(upload, 0, DATA[:25])
    done = await start(db)
    await db.blobs.continue_upload(done, 0, DATA)
    held = await start(db)
    await db.blobs.continue_upload(held, 0, DATA[:12])
    await db.blobs.continue_upload(held, 12, DATA[12:])
    await db.create(avatar=await db.blobs.find(held.id))

    def refuse(request: Any) -> None:
        if isinstance(request, UploadPart):
            raise ServiceUnavailableError("cut off on purpose")

    db.recorder.after = refuse
    broken = await start(db)
    with pytest.raises(ServiceUnavailableError):
        await db.blobs.continue_upload(broken, 0, DATA)
    db.recorder.after = lambda request: None
    db.clock.forward(3601)
    with pytest.raises(RecordNotFound):
        await db.blobs.continue_upload(upload, 25, DATA[25:])
    with pytest.raises(RecordNotFound):
        await db.blobs.find_upload(upload.id)
    db.clock.forward(GRACE.total_seconds() - 3600)
    assert await db.blobs.sweep() == SweepReport(0, 0, 0)
    db.clock.forward(3 * 3600)
    assert await db.blobs.sweep() == SweepReport(0, 1, 0)
    db.clock.forward(DAY)
    assert await db.blobs.sweep() == SweepReport(1, 1, 1)
    assert await fetch_leftovers(db) == ({(await db.blobs.find(held.id)).key}, 0)
    assert await count_items(db) == 0
    await db.check()


async def count_items(db: Rig) -> int:
    """The number of items of uploads and markers."""
    found = await Gem(db).send(Scan(db.database._context.settings.table_name))
    kinds = [item.get("_type", {}).get("S", "") for item in found.items]
    return sum(kind.startswith(("holdall.Upload", "holdall.Unattached")) for kind in kinds)


def test_uploads_to_a_bucket_are_interrupted_resumed_cancelled_and_swept() -> None:
    data = pattern(12 * 1024**2)
    service = Recorder(bucket_service(f"resumable/{uuid4().hex}"))
    with Database("memory:", files=service) as db:
        upload = db.blobs.start_upload(filename="a.bin", byte_size=len(data), checksum=checksum_of(data))

        def lose(request: Any) -> None:
            if isinstance(request, UploadPart):
                raise ServiceUnavailableError("its reply was lost on purpose")

        service.after = lose
        with pytest.raises(ServiceUnavailableError):  # this leaves a gap in the part numbers
            db.blobs.continue_upload(upload, 0, data)
        service.after = lambda request: None
        with pytest.raises(ConnectionResetError):
            db.blobs.continue_upload(upload, 0, BrokenStream(data[: 6 * 1024**2], 1024**2))
        upload = db.blobs.find_upload(upload.id)
        assert upload.offset == 6 * 1024**2
        upload = db.blobs.continue_upload(upload, upload.offset, iter([data[upload.offset :]]))
        blob = db.blobs.find(upload.id)
        assert (blob.checksum, blob.is_composed) == (checksum_of(data), False)
        assert [part.number for part in service.list_sent(CompleteUpload)[0].parts] == [2, 3, 4]
        assert db.blobs.download(blob) == data
        assert [each.key for each in db.files.list()] == [blob.key]
        for cancels in (True, False):
            given_up = db.blobs.start_upload(filename="a.bin", byte_size=len(data))
            db.blobs.continue_upload(given_up, 0, data[: 6 * 1024**2])
            if cancels:
                db.blobs.cancel_upload(given_up)
        clock = Clock(ticking=True)
        clock.forward(DAY + GRACE.total_seconds() + 3600)
        db._context = replace(db._context, port=TimedPort(db._context.port, clock))
        assert db.blobs.sweep() == SweepReport(1, 2, 0)
        assert list(db.files.list()) == []
        assert service.send_blocking(ListUploads("default")) == ()
    assert max(len(request.body) for request in service.list_sent(PutObject, UploadPart)) == 5 * 1024**2


# --- ids and sources ------------------------------------------------------------------------------------------


@in_memory
async def test_a_signed_id_of_an_upload_is_valid_for_uploads_only(db: Rig) -> None:
    upload = await start(db, 0)
    signed = {
        purpose: await db.blobs.signed_id(upload.id, purpose=purpose)
        for purpose in ("upload", "attach", "blob")
    }
    assert await db.blobs.find_signed_upload(signed["upload"]) == upload
    assert [await db.blobs.find_signed_upload(signed[each]) for each in ("attach", "blob")] == [None, None]
    assert await db.blobs.find_signed(signed["upload"]) is None
    await db.blobs.cancel_upload(upload)
    assert await db.blobs.find_signed_upload(signed["upload"]) is None


@in_small_parts
async def test_a_file_and_an_async_stream_can_be_sources_too(db: Rig, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA[:33])
    upload = await start(db)
    await db.blobs.continue_upload(upload, 0, path)

    async def rest() -> AsyncIterator[bytes]:
        yield DATA[33:40]
        yield DATA[40:]

    await db.blobs.continue_upload(upload, 33, rest() if db.way.colour == "awaiting" else iter([DATA[33:]]))
    assert await db.blobs.download(upload.id) == DATA


def test_the_part_size_keeps_the_number_and_size_of_parts_within_limits() -> None:
    least = 5 * 1024**2
    for size in (0, 9000 * least, 9000 * least + 1, MAX_OBJECT):
        chosen = choose_part_size(size, least)
        assert (chosen == least) is (size <= 9000 * least)
        assert chosen * 9000 >= size
        assert chosen <= MAX_PART


def test_added_numbers_are_merged_into_runs() -> None:
    runs: list[list[int]] = []
    for number in (1, 2, 3, 5, 8, 9):
        runs = add_number(runs, number)
    assert runs == [[1, 3], [5, 5], [8, 9]]

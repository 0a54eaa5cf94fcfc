"""Attaching, replacing, detaching, purging: the behaviour that users see, in both modes of a table."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attachments_rig import Rig, everywhere, file, in_memory, names_of, row_of

from holdall import Database, Model, has_one_attached
from holdall.core.requests import BatchGet, Query
from holdall.errors import (
    AttachmentNotLoadedError,
    ConfigurationError,
    ForeignKeyViolation,
    InvalidFileError,
    InvalidOptionsError,
    InvalidTokenError,
    RecordNotFound,
    TransactionTooLarge,
)


@everywhere
async def test_a_file_is_stored_with_its_owner_and_read_back(db: Rig) -> None:
    person = await db.create(avatar=file(b"\x89PNG\r\n\x1a\n", "ada.png"))
    assert person.avatar.attached
    stored = (await db.load(person)).avatar
    assert (str(stored.filename), stored.blob.content_type, stored.blob.byte_size) == (
        "ada.png",
        "image/png",
        8,
    )
    assert stored.blob.attachments_count == 1
    assert await db.blobs.download(stored.blob) == b"\x89PNG\r\n\x1a\n"
    await db.check()


@everywhere
async def test_replacing_purges_the_old_file_and_serves_the_new(db: Rig) -> None:
    person = await db.create(avatar=file(b"old"), portrait=file(b"old too"))
    old = [(await db.load(person, "avatar", "portrait")).avatar.blob, person.portrait.blob]
    async with db.db.transaction() as tx:
        person = await tx.get(db.model, person.id)
        person.avatar = file(b"new", "new.txt")
        person.portrait = file(b"new too", "new.txt")
    person = await db.load(person, "avatar", "portrait")
    assert [await db.blobs.download(person.avatar.blob), await db.blobs.download(person.portrait.blob)] == [
        b"new",
        b"new too",
    ]
    assert await db.count(old[1]) is None  # dependent="purge": purged right after the commit
    assert await db.count(old[0]) == 0
    await db.drain()
    assert await db.count(old[0]) is None
    assert not await db.files.exists(old[0].key)
    await db.check()


@everywhere
async def test_detaching_keeps_the_blob_and_purging_removes_it(db: Rig) -> None:
    person = await db.create(avatar=file())
    blob = person.avatar.blob
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).avatar.detach()
    assert not (await db.load(person)).avatar.attached
    assert await db.count(blob) == 0
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).avatar.attach(blob)
    assert await db.count(blob) == 1
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).avatar.purge()
    assert await db.find(blob) is None
    assert not await db.files.exists(blob.key)


@everywhere
async def test_many_files_keep_their_order_and_appending_only_appends(db: Rig) -> None:
    person = await db.create(documents=[file(name="1.txt"), file(name="2.txt")])
    async with db.db.transaction() as tx:
        again = await tx.get(db.model, person.id)
        again.documents.attach(file(name="3.txt"), file(name="0.txt"))
    found = (await db.load(person)).documents
    assert names_of(found) == ["1.txt", "2.txt", "3.txt", "0.txt"]
    assert len(found) == 4
    async with db.db.transaction() as tx:
        again = await tx.get(db.model, person.id, include=["documents"])
        again.documents.detach(again.documents.attachments[1])
        assert len(again.documents) == 3
    assert names_of((await db.load(person)).documents) == ["1.txt", "3.txt", "0.txt"]
    await db.check()


@everywhere
async def test_assigning_an_empty_list_clears_and_one_job_purges_all(db: Rig) -> None:
    person = await db.create(documents=[file(name=f"{n}.txt") for n in range(3)])
    blobs = person.documents.blobs
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).documents = []
    assert [await db.count(blob) for blob in blobs] == [0, 0, 0]
    await db.drain()
    assert [await db.count(blob) for blob in blobs] == [None, None, None]
    await db.check()


@everywhere
async def test_one_blob_twice_makes_two_rows_and_is_counted_down_once(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"shared", filename="shared.txt")
    person = await db.create(documents=[blob, blob])
    assert await db.count(blob) == 2
    db.recorder.forget()
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).documents = None
    assert await db.count(blob) == 0
    await db.check()


@everywhere
async def test_deleting_the_owner_releases_its_blobs(db: Rig) -> None:
    shared = await db.blobs.create_and_upload(b"shared", filename="shared.txt")
    person = await db.create(avatar=shared, documents=[file(), shared], scan=file(b"kept"))
    kept, gone = person.scan.blob, person.documents.blobs[0]
    other = await db.create(avatar=shared)
    async with db.db.transaction() as tx:
        tx.delete(db.model.key(person.id))
    await db.drain()
    assert await db.count(shared) == 1
    assert await db.count(gone) is None
    assert await db.count(kept) == 0  # dependent=False
    assert (await db.load(other)).avatar.attached
    assert [row_of(each) for each in await db.blobs.attachments(shared)] == [
        (db.model.__name__, other.id, "avatar")
    ]
    await db.check()


@everywhere
async def test_a_shared_blob_outlives_all_but_its_last_attachment(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"shared", filename="shared.txt")
    people = [await db.create(avatar=blob) for _ in range(3)]
    assert await db.blobs.purge(blob) is False
    with pytest.raises(ForeignKeyViolation):
        await db.blobs.delete(blob)
    for left, person in zip((2, 1, None), people, strict=True):
        async with db.db.transaction() as tx:
            (await tx.get(db.model, person.id)).avatar.purge()
        assert await db.count(blob) == left


@in_memory
async def test_attaching_a_blob_again_adds_no_second_row(db: Rig) -> None:
    person = await db.create(avatar=file(), documents=[file(name="1.txt")])
    loaded = await db.load(person)
    async with db.db.transaction() as tx:
        again = await tx.get(db.model, person.id)
        again.avatar.attach(loaded.avatar.blob)
        again.documents.attach(loaded.documents.blobs[0])
    later = await db.load(person)
    assert later.avatar.attachment == loaded.avatar.attachment
    assert later.documents.attachments == loaded.documents.attachments
    await db.drain()
    assert await db.count(loaded.avatar.blob) == 1


@in_memory
async def test_a_recorded_attachment_is_visible_at_once_and_dropped_with_its_transaction(db: Rig) -> None:
    person = await db.create(avatar=file(name="old.txt"))
    with suppress(RuntimeError):
        async with db.db.transaction() as tx:
            again = await tx.get(db.model, person.id)
            again.avatar.attach(b"new", filename="new.txt")
            assert (again.avatar.attached, str(again.avatar.filename)) == (True, "new.txt")
            raise RuntimeError
    assert str((await db.load(person)).avatar.filename) == "old.txt"
    assert len(await _objects(db)) == 1
    await db.check()


@in_memory
async def test_reading_attachments_that_were_not_loaded_is_an_error(db: Rig) -> None:
    person = await db.create(avatar=file())
    plain = await db.db.get(db.model, person.id)
    db.recorder.forget()
    with pytest.raises(AttachmentNotLoadedError, match="include"):
        _ = plain.avatar.attached
    with pytest.raises(AttachmentNotLoadedError):
        list(plain.documents)
    assert db.recorder.requests == []


@in_memory
async def test_owners_are_loaded_with_a_query_each_and_their_blobs_in_one_batch(db: Rig) -> None:
    people = [await db.create(avatar=file(), documents=[file(), file()]) for _ in range(10)]
    plain = [await db.db.get(db.model, person.id) for person in people]
    db.recorder.forget()
    loading = db.database.load(plain, "avatar", "documents")
    if db.way.colour == "awaiting":
        await loading
    assert all(each.avatar.attached and len(each.documents) == 2 for each in plain)
    assert len(db.recorder.list_sent(Query)) == 10
    batches = 1 if db.way.mode == "A" else 3  # mode B also reads the slots, and the rows again
    assert len(db.recorder.list_sent(BatchGet)) == batches
    assert len(db.recorder.requests) == 10 + batches


def _numbers() -> Iterator[bytes]:
    yield b"one "
    yield b"two"


class Upload:
    """An upload as web frameworks pass it."""

    def __init__(self, data: bytes) -> None:
        self.filename = "upload.txt"
        self.content_type = "text/csv"
        self.file = io.BytesIO(data)


@in_memory
async def test_paths_files_uploads_iterators_and_bytes_can_be_attached(db: Rig, tmp_path: Path) -> None:
    path = tmp_path / "path.txt"
    path.write_bytes(b"of a path")
    with path.open("rb") as opened:
        opened.read()  # its position does not matter: it is stored from the beginning
        person = await db.create(documents=[path, opened, Upload(b"of an upload")])
        assert not opened.closed
    async with db.db.transaction() as tx:
        again = await tx.get(db.model, person.id)
        again.documents.attach(_numbers(), filename="numbers.txt")
        again.documents.attach(bytearray(b"of an array"), filename="array")
    found = (await db.load(person)).documents
    assert [await db.blobs.download(blob) for blob in found.blobs] == [
        b"of a path",
        b"of a path",
        b"of an upload",
        b"one two",
        b"of an array",
    ]
    assert names_of(found) == ["path.txt", "path.txt", "upload.txt", "numbers.txt", "array"]
    assert [blob.content_type for blob in found.blobs][2:] == [
        "text/csv",
        "text/plain",
        "application/octet-stream",
    ]


@in_memory
async def test_a_stream_that_was_read_before_is_refused(db: Rig) -> None:
    numbers = _numbers()
    list(numbers)
    with pytest.raises(InvalidOptionsError, match="read before"):
        async with db.db.transaction() as tx:
            tx.create(db.model, name="Bob").avatar.attach(numbers, filename="numbers.txt")
    assert await _objects(db) == []
    person = await db.create(avatar=file(b""))
    assert person.avatar.blob.byte_size == 0


@in_memory
@pytest.mark.parametrize(
    "given",
    [b"without a name", 7, {"filename": "x"}, {"io": b"", "filename": "x", "nmae": 1}, io.StringIO("text")],
)
async def test_invalid_attachments_are_refused_before_any_upload(db: Rig, given: Any) -> None:
    with pytest.raises(InvalidOptionsError):
        await db.create(avatar=given)
    assert await _objects(db) == []


@in_memory
async def test_files_that_a_declaration_does_not_accept_are_refused(db: Rig) -> None:
    picture = b"GIF89a"
    await db.create(photos=[file(picture, "a.gif")])
    for wrong in (
        [file(b"text", "a.gif.txt")],
        [file(picture + b"." * 100, "a.gif")],
        [file(picture, f"{n}.gif") for n in range(4)],
    ):
        with pytest.raises(InvalidFileError, match="photos"):
            await db.create(photos=wrong)
    text = await db.blobs.create_and_upload(b"text", filename="a.txt")
    with pytest.raises(InvalidFileError, match="photos"):
        await db.create(photos=[text])
    await db.check()


@in_memory
async def test_a_limit_counts_stored_files_when_others_are_added(db: Rig) -> None:
    person = await db.create(photos=[file(b"GIF89a", f"{n}.gif") for n in range(2)])
    for names, fits in ((["2.gif", "3.gif"], False), (["2.gif"], True), (["3.gif"], False)):
        try:
            async with db.db.transaction() as tx:
                again = await tx.get(db.model, person.id)
                again.photos.attach(*(file(b"GIF89a", name) for name in names))
        except InvalidFileError:
            assert not fits
        else:
            assert fits
    assert names_of((await db.load(person, "photos")).photos) == ["0.gif", "1.gif", "2.gif"]


@everywhere
async def test_a_signed_id_attaches_only_if_that_is_its_purpose(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"bytes", filename="a.txt")
    seen = await db.blobs.signed_id(blob)
    with pytest.raises(InvalidTokenError):
        await db.create(avatar=seen)
    person = await db.create(avatar=await db.blobs.signed_id(blob, purpose="attach"))
    assert (await db.load(person)).avatar.blob == blob
    assert await db.blobs.find_signed(seen) == blob
    assert await db.blobs.find_signed(seen + "x") is None
    with pytest.raises(RecordNotFound):
        await db.create(
            avatar=await db.blobs.signed_id("00000000-0000-4000-8000-000000000000", purpose="attach")
        )


@pytest.mark.parametrize(
    ("secret", "problem"),
    [("s" * 40, InvalidTokenError), (None, ConfigurationError)],
    ids=["with a secret", "without a secret"],
)
def test_a_string_that_is_a_path_is_refused_with_advice(secret: str | None, problem: type[Exception]) -> None:
    class Poster(Model):
        picture = has_one_attached()

    with Database("memory:", files="memory:", manage_table=True, secret=secret) as db:
        advice = r"must be the signed id(?s:.*)pathlib\.Path"
        with pytest.raises(problem, match=advice), db.transaction() as tx:
            tx.create(Poster).picture = "poster.png"
        assert list(db.scan(Poster)) == []


@in_memory
async def test_detaching_fifty_one_blobs_at_once_is_refused_and_changes_nothing(db: Rig) -> None:
    ids = [await db.blobs.create_and_upload(b"x", filename=f"{n}.txt") for n in range(51)]
    first = await db.create(documents=ids[:20])
    for start in (20, 40):
        async with db.db.transaction() as tx:
            (await tx.get(db.model, first.id)).documents.attach(*ids[start : start + 20])
    with pytest.raises(TransactionTooLarge):
        async with db.db.transaction() as tx:
            (await tx.get(db.model, first.id)).documents.detach()
    assert len((await db.load(first)).documents) == 51


async def _objects(db: Rig) -> list[str]:
    found = db.database.files.list()
    return [each.key async for each in found] if db.way.colour == "awaiting" else [each.key for each in found]


@in_memory
async def test_a_failing_nested_transaction_drops_its_recorded_changes(db: Rig) -> None:
    person = await db.create(avatar=file(name="old.txt"))
    fresh = db.model(name="Bob")
    fresh.documents.attach(file(name="before.txt"))
    async with db.db.transaction() as outer:
        mine = await outer.get(db.model, person.id)
        with suppress(RuntimeError):
            async with db.db.transaction() as inner:
                (await inner.get(db.model, person.id)).avatar = file(name="inner.txt")
                inner.create(fresh)
                fresh.documents.attach(file(name="inner.txt"))
                fresh.avatar = file(name="inner.txt")
                raise RuntimeError
        assert (len(fresh.documents), fresh.avatar.attached) == (1, False)
        mine.documents.attach(file(name="outer.txt"))
        outer.create(fresh)
        fresh.documents.attach(file(name="outer.txt"))
    assert names_of((await db.load(fresh)).documents) == ["before.txt", "outer.txt"]
    stored = await db.load(person)
    assert (str(stored.avatar.filename), names_of(stored.documents)) == ("old.txt", ["outer.txt"])
    assert len(await _objects(db)) == 4
    await db.check()


@in_memory
async def test_a_retried_attempt_attaches_to_an_outer_item_only_once(db: Rig) -> None:
    fresh = db.model(name="Bob")
    attempts: list[int] = []

    class Again(Exception):
        retryable = True

    async def body(tx: Any) -> None:
        tx.create(fresh)
        fresh.documents.attach(file(name="only.txt"))
        attempts.append(1)
        if len(attempts) < 3:
            raise Again

    await db.db.run(body)
    assert len(attempts) == 3
    assert names_of((await db.load(fresh)).documents) == ["only.txt"]

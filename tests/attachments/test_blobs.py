"""``db.blobs``, method by method, without owners."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from decimal import Decimal
from hashlib import md5
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from attachments_rig import SECRET, Rig, User, file, in_memory
from gem import Gem
from rig.files import bucket_service

from holdall import Database
from holdall.attachments import Blob
from holdall.attachments.picture.derived import preview_owner, variant_owner
from holdall.core.objects import GetObject, HeadObject, PutObject
from holdall.core.requests import BatchWrite, PutItem, TransactWrite, UpdateItem
from holdall.errors import (
    ForeignKeyViolation,
    IntegrityError,
    InvalidFileError,
    InvalidOptionsError,
    ObjectNotFoundError,
    RecordNotFound,
)

PICTURE = b"\x89PNG\r\n\x1a\n" + b"." * 20
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def checksum(data: bytes) -> str:
    return b64encode(md5(data).digest()).decode()


# --- storing ----------------------------------------------------------------------------------------------


@in_memory
async def test_a_file_is_stored_with_the_headers_to_serve_it_with(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(
        PICTURE,
        filename="Ada Ö.png",
        metadata={"identified": "no", "analyzed": True, "width": 7, "custom": {"Colour": "red", "n": 5}},
    )
    (put,) = db.recorder.list_sent(PutObject)
    assert (put.key, put.headers.content_type) == (blob.key, "image/png")
    assert put.headers.disposition.startswith("inline; ")
    assert put.headers.disposition.endswith("Ada%20%C3%96.png")
    assert put.headers.metadata == {"colour": "red", "n": "5"}
    found = await db.blobs.find(blob.id)
    custom = {"Colour": "red", "n": 5}
    assert found.metadata == blob.metadata == {"identified": True, "width": 7, "custom": custom}
    assert (found.byte_size, found.checksum, found.attachments_count) == (28, checksum(PICTURE), 0)
    assert (found.content_type, str(found.filename), found.service_name) == (
        "image/png",
        "Ada Ö.png",
        "default",
    )
    assert len(found.key) == 28
    assert (found.is_image, found.is_identified, found.is_analyzed, found.is_composed) == (
        True,
        True,
        False,
        False,
    )


@in_memory
async def test_a_declared_type_can_be_kept_but_dangerous_content_is_served_as_a_download(db: Rig) -> None:
    page = b"<html><script>"
    detected = await db.blobs.create_and_upload(page, filename="a.txt", content_type="text/plain")
    kept = await db.blobs.create_and_upload(page, filename="a.txt", content_type="text/plain", identify=False)
    by_name = await db.blobs.create_and_upload(b"a,b", filename="a.csv", identify=False)
    assert [each.content_type for each in (detected, kept, by_name)] == [
        "text/html",
        "text/plain",
        "text/csv",
    ]
    put = db.recorder.list_sent(PutObject)[0]
    assert put.headers.content_type == "application/octet-stream"
    assert put.headers.disposition.startswith("attachment; ")


@in_memory
async def test_a_stored_blob_cannot_be_uploaded_again(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"bytes", filename="a.txt", service="other")
    assert blob.service_name == "other"
    assert await db.blobs.download(blob) == b"bytes"
    for given in (blob, await db.blobs.signed_id(blob)):
        with pytest.raises(InvalidOptionsError, match="already stored"):
            await db.blobs.create_and_upload(given)
    with pytest.raises(InvalidOptionsError, match="filename"):
        await db.blobs.create_and_upload(b"bytes")


# --- uploads by clients -----------------------------------------------------------------------------------


async def create_direct(db: Rig, data: bytes, **options: Any) -> tuple[Blob, Any]:
    found: tuple[Blob, Any] = await db.blobs.create_before_direct_upload(
        byte_size=len(data), checksum=checksum(data), **{"filename": "a.png", **options}
    )
    return found


async def put_to(db: Rig, signed: Any, data: bytes) -> None:
    """Upload the bytes as the web application does for a client's PUT."""
    permitted = db.service.inner.verified_upload(signed.url.rpartition("/")[2])  # type: ignore[attr-defined]
    assert (permitted.size, permitted.md5) == (len(data), checksum(data))
    await db.files.put(permitted.key, data, content_type=permitted.headers.content_type)


@in_memory
async def test_a_client_s_upload_is_identified_when_it_is_attached(db: Rig) -> None:
    data = PICTURE + b"." * 5000
    blob, signed = await create_direct(
        db,
        data,
        content_type="text/plain",
        metadata={"identified": True, "composed": True, "size": [1, 2.5, {"a": None}], "custom": {"x": "y"}},
    )
    sent = {"size": [1, Decimal("2.5"), {"a": None}], "custom": {"x": "y"}}
    assert (await db.blobs.find(blob.id)).metadata == sent
    assert (blob.content_type, blob.is_identified) == ("text/plain", False)
    assert signed.headers["Content-Type"] == "text/plain"
    await put_to(db, signed, data)
    db.recorder.forget()
    person = await db.create(avatar=await db.blobs.signed_id(blob, purpose="attach"))
    (read,) = db.recorder.list_sent(GetObject)
    assert (read.start, read.size) == (0, 4096)
    found = (await db.load(person)).avatar.blob
    assert (found.content_type, found.metadata) == ("image/png", {**sent, "identified": True})
    db.recorder.forget()
    await db.create(avatar=blob)
    assert db.recorder.list_sent(GetObject) == []
    await db.check()


@in_memory
async def test_a_client_s_upload_is_identified_before_it_is_accepted(db: Rig) -> None:
    blob, signed = await create_direct(db, b"<html>", content_type="image/png")
    await put_to(db, signed, b"<html>")
    with pytest.raises(InvalidFileError, match="photos: files of type text/html"):
        await db.create(photos=[blob])
    large, signed = await create_direct(db, PICTURE * 4)
    await put_to(db, signed, PICTURE * 4)
    with pytest.raises(InvalidFileError, match="photos: a file of 112 bytes"):
        await db.create(photos=[large])
    assert await db.count(blob) == await db.count(large) == 0


@in_memory
async def test_attaching_before_the_client_has_uploaded_is_an_error(db: Rig) -> None:
    blob, _ = await create_direct(db, PICTURE)
    with pytest.raises(ObjectNotFoundError, match=f"the bytes of blob {blob.id} have not been uploaded"):
        await db.create(avatar=blob)
    assert await db.count(blob) == 0
    await db.check()


@in_memory
async def test_an_invalid_size_or_expiry_is_refused_before_anything_is_written(db: Rig) -> None:
    for size in (-1, True):
        with pytest.raises(InvalidOptionsError, match="byte_size"):
            await db.blobs.create_before_direct_upload(filename="a", byte_size=size, checksum=checksum(b""))
    for expires in (0, timedelta(days=1, seconds=1)):  # bytes uploaded after the sweep would never be deleted
        with pytest.raises(InvalidOptionsError, match="expires"):
            await create_direct(db, b"bytes", expires=expires)
    assert db.recorder.list_sent(PutItem, BatchWrite) == []


def test_a_client_uploads_to_a_bucket_with_only_the_signed_url() -> None:
    service = bucket_service(f"blobs/{uuid4().hex}")
    with Database("memory:", files=service, secret=SECRET) as db:
        db.table.create()
        blob, signed = db.blobs.create_before_direct_upload(
            filename="a.png",
            byte_size=len(PICTURE),
            checksum=checksum(PICTURE),
            content_type="image/png",
            metadata={"custom": {"colour": "red"}},
        )
        headers = {name: value for name, value in signed.headers.items() if name.lower() != "content-length"}
        with urlopen(Request(signed.url, PICTURE, headers, method="PUT")) as reply:
            assert reply.status == 200
        with db.transaction() as tx:
            tx.create(User, name="Ada").avatar = blob
        assert db.blobs.download(blob) == PICTURE
        info = db.files.head(blob.key)
        assert (info.headers.content_type, dict(info.headers.metadata)) == ("image/png", {"colour": "red"})
        with urlopen(db.blobs.url(blob)) as reply:
            assert (reply.read(), reply.headers["content-type"]) == (PICTURE, "image/png")
            assert reply.headers["content-disposition"].startswith("inline; ")


# --- finding ----------------------------------------------------------------------------------------------


@in_memory
async def test_an_unknown_blob_is_not_found(db: Rig) -> None:
    for id in (UNKNOWN, "", "#", f"{UNKNOWN}#VariantRecord"):
        with pytest.raises(RecordNotFound, match="there is no blob"):
            await db.blobs.find(id)
    for act in (db.blobs.download, db.blobs.url, db.blobs.attachments):
        with pytest.raises(RecordNotFound):
            await act(UNKNOWN)
    with pytest.raises(RecordNotFound):
        await db.blobs.compose([UNKNOWN], filename="a")
    assert await db.blobs.purge(UNKNOWN)
    await db.blobs.delete(UNKNOWN)


@in_memory
async def test_a_signed_id_finds_its_blob_for_its_purpose_until_it_expires(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"bytes", filename="a.txt")
    text = await db.blobs.signed_id(blob, expires=timedelta(minutes=1))
    assert await db.blobs.find_signed(text) == blob
    assert await db.blobs.find_signed(text, purpose="attach") is None
    db.clock.forward(61)
    assert await db.blobs.find_signed(text) is None
    lasting = await db.blobs.signed_id(blob.id, purpose="attach")
    assert await db.blobs.find_signed(lasting, purpose="attach") == blob
    await db.blobs.purge(blob)
    assert await db.blobs.find_signed(lasting, purpose="attach") is None
    with pytest.raises(InvalidOptionsError, match="expires"):
        await db.blobs.signed_id(blob, expires=0)


# --- bytes ------------------------------------------------------------------------------------------------


@in_memory
async def test_bytes_are_downloaded_whole_in_part_and_into_a_file(db: Rig, tmp_path: Path) -> None:
    blob = await db.blobs.create_and_upload(b"0123456789", filename="a.txt")
    assert await db.blobs.download(blob) == await db.blobs.download(blob.id) == b"0123456789"
    assert await db.blobs.download(blob, start=2, size=3) == b"234"
    assert await db.blobs.download(blob, start=8) == b"89"
    seen: list[tuple[int, int | None]] = []
    place = tmp_path / "file"
    await db.blobs.download(blob, place, progress=lambda *now: seen.append(now))
    assert place.read_bytes() == b"0123456789"
    assert (seen[0], seen[-1]) == ((0, 10), (10, 10))
    with (tmp_path / "stream").open("wb") as stream:
        await db.blobs.download(blob, stream)
    assert (tmp_path / "stream").read_bytes() == b"0123456789"
    with pytest.raises(InvalidOptionsError, match="range"):
        await db.blobs.download(blob, place, start=1)


@in_memory
@pytest.mark.parametrize("damaged", [b"bytez", b"byte"])
async def test_damaged_bytes_are_detected_and_leave_no_file(
    db: Rig, damaged: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    blob = await db.blobs.create_and_upload(b"bytes", filename="a.txt")
    await db.files.put(blob.key, damaged)
    with pytest.raises(IntegrityError):
        await db.blobs.download(blob)
    with pytest.raises(IntegrityError):
        await db.blobs.download(blob, tmp_path / "file")
    with pytest.raises(IntegrityError):
        async with open_blob(db, blob):
            raise AssertionError("the blob was opened")
    assert await db.blobs.download(blob, verify=False) == damaged
    assert list(tmp_path.iterdir()) == []


@asynccontextmanager
async def open_blob(db: Rig, blob: Blob | str) -> AsyncIterator[Any]:
    handle = db.database.blobs.open(blob)
    if db.way.colour == "awaiting":
        async with handle as file:
            yield file
    else:
        with handle as file:
            yield file


@in_memory
async def test_an_opened_blob_is_a_temporary_file(
    db: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    blob = await db.blobs.create_and_upload(b"bytes", filename="Ada.Tar.GZ")
    plain = await db.blobs.create_and_upload(b"", filename="plain")
    with suppress(ZeroDivisionError):
        async with open_blob(db, blob) as file, open_blob(db, plain.id) as empty:
            assert Path(file.name).name == f"ActiveStorage-{blob.id}-.GZ"
            assert Path(empty.name).name == f"ActiveStorage-{plain.id}-"
            assert (file.read(), Path(empty.name).read_bytes()) == (b"bytes", b"")
            raise ZeroDivisionError
    assert file.closed
    assert empty.closed
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RecordNotFound):
        async with open_blob(db, UNKNOWN):
            raise AssertionError("the blob was opened")


@in_memory
async def test_blobs_are_composed_into_one_without_a_checksum(db: Rig) -> None:
    first = await db.blobs.create_and_upload(b"a,b\n", filename="1.csv")
    second, signed = await create_direct(db, b"c,d\n", filename="2.csv")
    with pytest.raises(ObjectNotFoundError):
        await db.blobs.compose([first, second], filename="early.csv")
    await put_to(db, signed, b"c,d\n")
    made = await db.blobs.compose(
        [first, second.id, first],
        filename="all.csv",
        metadata={"analyzed": True, "pages": 3, "custom": {"from": "two"}},
    )
    found = await db.blobs.find(made.id)
    assert (found.byte_size, found.content_type, found.checksum, found.sha256) == (12, "text/csv", None, None)
    assert found.metadata == {
        "composed": True,
        "identified": True,
        "pages": 3,
        "custom": {"from": "two"},
    }
    assert found.is_composed
    assert await db.blobs.download(found) == b"a,b\nc,d\na,b\n"
    info = await db.files.head(found.key)
    assert (info.headers.content_type, dict(info.headers.metadata)) == ("text/csv", {"from": "two"})
    assert info.headers.disposition.startswith('attachment; filename="all.csv"')
    person = await db.create(avatar=made)
    assert (await db.load(person)).avatar.blob.attachments_count == 1
    elsewhere = await db.blobs.create_and_upload(b"e,f\n", filename="3.csv", service="other")
    for wrong in ([first, elsewhere], []):
        with pytest.raises(InvalidOptionsError):
            await db.blobs.compose(wrong, filename="all.csv")
    await db.check()


@in_memory
async def test_a_url_shows_pictures_inline_and_dangerous_content_as_a_download(db: Rig) -> None:
    shown = await db.blobs.create_and_upload(PICTURE, filename="a.png")
    page = await db.blobs.create_and_upload(b"<html>", filename="a.html")
    for blob, wanted, kind, how in (
        (shown, "inline", "image/png", "inline"),
        (shown.id, "attachment", "image/png", "attachment"),
        (page, "inline", "application/octet-stream", "attachment"),
    ):
        url = await db.blobs.url(blob, disposition=wanted, filename="given.name")
        served = db.service.inner.verified_download(url.rpartition("/")[2])  # type: ignore[attr-defined]
        assert served.headers.content_type == kind
        assert served.headers.disposition.startswith(f'{how}; filename="given.name"')


# --- changes ----------------------------------------------------------------------------------------------


@in_memory
async def test_concurrent_changes_of_different_metadata_are_all_kept(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(PICTURE, filename="a.png", metadata={"old": 1, "gone": 2})

    async def meddle() -> None:
        await db.blobs.update_metadata(blob, {"height": 8})

    db.in_between(meddle, UpdateItem, TransactWrite)
    nested = {"deep": [1, {"a": True}]}
    changed = await db.blobs.update_metadata(blob, {"width": 7, "gone": None, "nested": nested})
    expected = {"identified": True, "old": 1, "height": 8, "width": 7, "nested": nested}
    assert changed.metadata == (await db.blobs.find(blob.id)).metadata == expected
    assert (await db.blobs.update_metadata(blob.id, {})).metadata == expected


@in_memory
async def test_updating_the_metadata_of_a_purged_blob_does_not_restore_it(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(b"bytes", filename="a.txt")

    async def meddle() -> None:
        assert await db.blobs.purge(blob)

    db.in_between(meddle, UpdateItem, TransactWrite)
    with pytest.raises(RecordNotFound):
        await db.blobs.update_metadata(blob, {"width": 7})
    with pytest.raises(RecordNotFound):
        await db.blobs.update_metadata(blob, {"width": 7})
    assert await Gem(db).blob(blob.id) is None


@in_memory
async def test_unattached_blobs_are_deleted_with_their_bytes(db: Rig) -> None:
    loose = [await db.blobs.create_and_upload(b"bytes", filename="a.txt") for _ in range(3)]
    held = (await db.create(avatar=file())).avatar.blob
    assert await db.blobs.purge(loose[0])
    await db.blobs.delete(loose[1].id)
    await db.blobs.purge_later(loose[2], held.id)
    assert await db.find(loose[2]) is not None
    await db.drain()
    assert [await db.find(each) for each in loose] == [None] * 3
    assert [await db.files.exists(each.key) for each in (*loose, held)] == [False] * 3 + [True]
    assert await db.blobs.purge(held) is False
    with pytest.raises(ForeignKeyViolation, match=held.id):
        await db.blobs.delete(held)
    assert await db.blobs.download(held) == b"bytes"


@in_memory
async def test_a_refused_purge_has_no_effect_later(db: Rig) -> None:
    person = await db.create(scan=file(b"kept"))  # dependent=False
    blob = person.scan.blob
    db.clock.forward(timedelta(days=3).total_seconds())
    await db.blobs.sweep()
    assert await db.blobs.purge(blob) is False
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).scan = None
    db.clock.forward(timedelta(days=3).total_seconds())
    await db.blobs.sweep()
    assert await db.blobs.download(blob) == b"kept"


@in_memory
async def test_variants_and_previews_that_the_gem_made_are_purged_with_their_blob(db: Rig) -> None:
    gem = Gem(db)
    blob = await gem.create_blob(b"picture")
    key = (await db.blobs.find(blob)).key
    digest = "QsWopah8rouPxjSmU/zito5qML0="
    variant, preview, kept = [await gem.create_blob() for _ in range(3)]
    await gem.create_variant(blob, digest)
    await gem.attach(variant_owner(blob, digest), "image", variant)
    await gem.attach(preview_owner(blob), "preview_image", preview)
    await gem.attach(preview_owner(blob), "preview_image", kept)
    person = await db.create(avatar=await db.blobs.find(kept))
    derived = [(await db.blobs.find(id)).key for id in (variant, preview)]
    assert len(await gem.variants(blob)) == 1
    assert await db.blobs.purge(blob)
    assert [await gem.blob(id) for id in (blob, variant, preview)] == [None] * 3
    assert await gem.variants(blob) == []
    assert await gem.rows(variant_owner(blob, digest)) == await gem.rows(preview_owner(blob)) == []
    assert [await db.files.exists(each) for each in (key, *derived)] == [False] * 3
    assert (await db.load(person)).avatar.blob.attachments_count == 1
    assert await db.blobs.download(kept) == b"of the gem"


@in_memory
async def test_variants_without_a_record_are_purged_with_their_picture(db: Rig) -> None:
    blob = await db.blobs.create_and_upload(PICTURE, filename="a.png")
    other = await db.blobs.create_and_upload(PICTURE, filename="a.png")
    for each in (blob, other):
        await db.files.put(f"variants/{each.key}/0123", b"small")
    assert await db.blobs.purge(blob)
    assert not await db.files.exists(f"variants/{blob.key}/0123")
    assert await db.files.exists(f"variants/{other.key}/0123")


# --- deduplication ----------------------------------------------------------------------------------------


async def dedupe(db: Rig, **options: Any) -> Blob:
    found: Blob = await db.blobs.create_and_upload(
        **{"given": b"same", "filename": "a.txt", "dedupe": True, **options}
    )
    return found


@in_memory
async def test_the_same_file_is_stored_once(db: Rig) -> None:
    first = await dedupe(db)
    assert await dedupe(db) == first
    others = [
        await dedupe(db, filename="b.txt"),
        await dedupe(db, given=b"other"),
        await dedupe(db, service="other"),
        await dedupe(db, dedupe=False),
        await dedupe(db, content_type="text/csv", identify=False),
    ]
    assert len({first, *others}) == 6
    bodies = [request.key for request in db.recorder.list_sent(PutObject)]
    keys = [each.key for each in (first, *others) if each.service_name == "default"]
    stored = [key for key in bodies if await db.files.exists(key)]
    assert sorted(stored) == sorted(keys)
    await db.check()


@in_memory
async def test_the_same_file_is_stored_again_if_the_first_is_gone(db: Rig) -> None:
    first = await dedupe(db)

    async def meddle() -> None:
        assert await db.blobs.purge(first)

    db.in_between(meddle, PutObject)
    second = await dedupe(db)
    assert second != first
    assert await db.blobs.download(second) == b"same"
    assert await dedupe(db) == second
    await db.check()


@in_memory
async def test_the_same_file_is_stored_again_if_the_first_is_about_to_be_swept(db: Rig) -> None:
    old = await dedupe(db)
    db.clock.forward(timedelta(days=1, hours=23).total_seconds())
    new = await dedupe(db)
    db.clock.forward(timedelta(hours=3).total_seconds())
    await db.blobs.sweep()
    assert await db.find(old) is None
    assert await db.blobs.download(new) == b"same"
    await db.create(avatar=new)
    db.clock.forward(timedelta(days=30).total_seconds())
    assert await dedupe(db) == new


@in_memory
async def test_of_two_concurrent_equal_files_one_is_stored(db: Rig) -> None:
    others: list[Blob] = []

    async def meddle() -> None:
        others.append(await dedupe(db))

    db.in_between(meddle)
    assert await dedupe(db) == others[0]
    kept = [each.key for each in db.recorder.list_sent(PutObject) if await db.files.exists(each.key)]
    assert kept == [others[0].key]
    assert len(db.recorder.list_sent(HeadObject)) < 10
    await db.check()

"""Holdall's rows are those of the gem activestorage-aws-record, which may use the same table at the same time."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

import pytest
from attachments_rig import Rig, everywhere, file, in_memory, names_of
from gem import Gem

from holdall.attachments.home import Owner
from holdall.errors import IntegrityError


def owner_of(db: Rig, person: object) -> Owner:
    return Owner(db.model.__name__, person.id)  # type: ignore[attr-defined]


@in_memory
async def test_holdall_writes_the_same_items_as_the_gem(db: Rig) -> None:
    person = await db.create(
        avatar={"io": b"bytes", "filename": "a.txt", "metadata": {"custom": {"from": "home"}}}
    )
    gem, blob = Gem(db), person.avatar.blob
    item = dict(await gem.blob(blob.id) or {})
    theirs = gem.blob_item(blob.id, blob.key, b"bytes")
    own = {name for name in item if name.startswith("hd_")}
    assert own == {"hd_sha256", f"hd_ref_{person.avatar.attachment.id}"}
    assert item.keys() - own == theirs.keys() | {"as_checksum"}
    assert item["as_checksum"] == {"S": "SzpiGLs+OnMD6KFxpg/Pkg=="}
    fixed = ("id", "key", "content_type", "byte_size", "service_name", "entity")
    for name in ("pk", "sk", "as_index_pk", "as_index_sk", *(f"as_{each}" for each in fixed)):
        assert item.get(name) == theirs.get(name)
    done = {"identified": {"BOOL": True}, "analyzed": {"BOOL": True}}
    assert item["as_metadata"] == {"M": {"custom": {"M": {"from": {"S": "home"}}}, **done}}
    assert len(item["as_created_at"]["S"]) == len("2026-06-02T10:11:12.123456Z")
    assert item["as_attachments_count"] == {"N": "1"}
    (row,) = await gem.rows(owner_of(db, person))
    assert {name: value for name, value in row.items() if name.startswith("as_") and "index" not in name} == {
        "as_id": {"S": person.avatar.attachment.id},
        "as_record_type": {"S": db.model.__name__},
        "as_record_id": {"S": person.id},
        "as_name": {"S": "avatar"},
        "as_blob_id": {"S": blob.id},
        "as_created_at": row["as_created_at"],
        "as_entity": {"S": "Attachment"},
    }
    assert await gem.variants(blob.id) == []


@everywhere
async def test_the_gem_s_rows_are_read_replaced_and_counted(db: Rig) -> None:
    person, gem = await db.create(), Gem(db)
    first, second = await gem.create_blob(), await gem.create_blob(b"another")
    await gem.attach(owner_of(db, person), "avatar", first)
    await gem.attach(owner_of(db, person), "documents", first)
    loaded = await db.load(person)
    assert (loaded.avatar.blob.id, names_of(loaded.documents)) == (first, ["gem.txt"])
    assert await db.blobs.download(first) == b"of the gem"
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).avatar.attach(await db.blobs.find(second))
    rows = await gem.rows(owner_of(db, person), "avatar")
    assert [row["as_blob_id"]["S"] for row in rows] == [second]
    assert [(await gem.blob(id) or {})["as_attachments_count"]["N"] for id in (first, second)] == ["1", "1"]
    await db.drain()
    assert await gem.blob(first) is not None


@everywhere
async def test_the_next_change_removes_a_second_row_that_the_gem_added(db: Rig) -> None:
    person, gem = await db.create(avatar=file(name="ours.txt")), Gem(db)
    theirs = await gem.create_blob()
    await gem.attach(owner_of(db, person), "avatar", theirs)
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).avatar = file(name="last.txt")
    assert names_of([(await db.load(person)).avatar.attachment]) == ["last.txt"]
    assert len(await gem.rows(owner_of(db, person), "avatar")) == 1
    await db.drain()
    assert await gem.blob(theirs) is None


@everywhere
async def test_a_row_that_the_gem_removed_is_not_found_and_the_slot_is_repaired(db: Rig) -> None:
    person, gem = await db.create(avatar=file()), Gem(db)
    (row,) = await gem.rows(owner_of(db, person))
    await gem.detach(row)
    assert not (await db.load(person)).avatar.attached
    async with db.db.transaction() as tx:
        (await tx.get(db.model, person.id)).avatar = file(name="next.txt")
    assert str((await db.load(person)).avatar.filename) == "next.txt"
    assert len(await gem.rows(owner_of(db, person))) == 1


@in_memory
async def test_a_row_whose_blob_is_missing_is_skipped_and_can_be_deleted(db: Rig) -> None:
    person, gem = await db.create(documents=[file(name="kept.txt")]), Gem(db)
    lost = await gem.create_blob()
    await gem.attach(owner_of(db, person), "documents", lost)
    await gem.attach(owner_of(db, person), "avatar", lost)
    await gem.destroy_blob(lost)
    loaded = await db.load(person)
    assert (names_of(loaded.documents), loaded.avatar.attached) == (["kept.txt"], False)
    findings = (await db.blobs.check()).findings
    assert {finding.problem for finding in findings} == {"row"}
    async with db.db.transaction() as tx:
        tx.delete(db.model.key(person.id))
    assert await gem.rows(owner_of(db, person)) == []
    await db.drain()
    await db.check()


@in_memory
async def test_a_checksum_of_rails_may_be_a_sha256(db: Rig) -> None:
    gem = Gem(db)
    id = await gem.create_blob(b"of the gem")
    digest = b64encode(sha256(b"of the gem").digest()).decode()
    await gem.set_checksum(id, f"sha256:{digest}")
    assert await db.blobs.download(id) == b"of the gem"
    await db.files.put((await db.blobs.find(id)).key, b"of the gum")
    with pytest.raises(IntegrityError):
        await db.blobs.download(id)


@in_memory
async def test_a_reindex_adds_the_references_of_the_gem_s_rows(db: Rig) -> None:
    person, gem = await db.create(), Gem(db)
    blob = await gem.create_blob()
    await gem.attach(owner_of(db, person), "documents", blob)
    assert await db.blobs.attachments(blob) == []
    assert await db.blobs.reindex() == 1
    assert [each.record_id for each in await db.blobs.attachments(blob)] == [person.id]
    await db.check()


@in_memory
async def test_a_wrong_count_is_found_and_repaired(db: Rig) -> None:
    person, gem = await db.create(avatar=file()), Gem(db)
    await gem.miscount(person.avatar.blob.id)
    (finding,) = (await db.blobs.check()).findings
    assert (finding.problem, finding.repair) == ("count", "set the count to 1")
    assert (await db.blobs.check(repair=True)).repaired == 1
    await db.check()
    assert await db.count(person.avatar.blob) == 1

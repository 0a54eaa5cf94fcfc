"""The doctor finds faults of slots, intents, variants and claims, and repairs them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from doctor_rig import Fault, Patient, Ward, confirm_fault, list_cases, open_store
from PIL import Image
from rig.colour import finish
from rig.recorder import Recorder

from holdall import Attachable, Database, Key, Model, Variant, has_many_attached, has_one_attached
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import PutItem, Scan, TransactWrite
from holdall.core.port import run
from holdall.maintenance import DoctorReport
from holdall.tables.claim import claim
from holdall.testing.clock import Clock


class Album(Model, name="DoctorAlbum"):
    name: Key[str]
    cover = has_one_attached()
    papers = has_many_attached(in_batches=True)


class Library(Patient):
    """A database with albums."""

    async def examine(self, **options: Any) -> DoctorReport:
        return await super().examine(**{"models": [Album], **options})


@contextmanager
def open_library(ward: Ward) -> Iterator[Library]:
    with tempfile.TemporaryDirectory() as folder, open_store(ward.store, Path(folder)) as db:
        db.table.create(models=[Album])
        with db.transaction() as tx:
            album = tx.create(Album, name="one")
            album.cover.attach(b"cover", filename="cover.bin")
            album.papers.attach(b"paper", filename="paper.bin")
        yield Library(db, ward.colour)


SLOT = {"_type": "holdall.AttachmentSlot"}
OWNER = "ActiveStorage#Owner#DoctorAlbum#one"


def name_intent(library: Library) -> None:
    library.put(OWNER, "ActiveStorage#AttachmentSlot#papers", **SLOT, intents={"0000/1"})


def lose_job(library: Library) -> None:
    row = library.find(as_entity="Attachment", as_name="papers")
    values: dict[str, Any] = {"ids": {row["as_id"]["S"]}, "how": "purge", "state": "kept"}
    library.put("holdall#AttachmentIntent#0000", "0", _type="holdall.AttachmentIntent", **values)
    name_intent(library)


def lose_source(library: Library) -> None:
    place = "ActiveStorage#Blob#gone", "ActiveStorage#VariantRecord#small"
    library.put(*place, as_blob_id="gone", as_variation_digest="small", as_entity="VariantRecord")


FAULTS = {
    "a slot names a missing attachment": Fault(
        lambda library: library.alter({"attachment_id": {"S": "x"}}, **SLOT),
        "blobs",
        "it names attachment x, which does not exist",
        True,
    ),
    "a slot names another blob": Fault(
        lambda library: library.alter({"blob_id": {"S": "x"}}, **SLOT),
        "blobs",
        "it names blob x, but its attachment has blob",
        True,
    ),
    "a slot cannot be read": Fault(
        lambda library: library.alter({"attachment_id": {"N": "1"}}, **SLOT),
        "blobs",
        "it cannot be read: ",
        False,
    ),
    "a slot names a missing intent": Fault(
        name_intent,
        "blobs",
        "it names the intent 0000/1, which does not exist",
        True,
    ),
    "the job of an intent is missing": Fault(
        lose_job,
        "blobs",
        "its files were removed, but the job that deletes them does not exist",
        True,
    ),
    "a blob cannot be read": Fault(
        lambda library: library.alter({"as_key": None}, as_entity="Blob"),
        "blobs",
        "it cannot be read: 'as_key' is missing",
        False,
    ),
    "an attachment cannot be read": Fault(
        lambda library: library.alter({"as_record_id": None}, as_entity="Attachment", as_name="papers"),
        "blobs",
        "it cannot be read: 'as_record_id' is missing",
        False,
    ),
    "an attachment has no blob": Fault(
        lambda library: library.alter({"as_blob_id": None}, as_entity="Attachment", as_name="papers"),
        "blobs",
        "it cannot be read: 'as_blob_id' is missing",
        False,
    ),
    "a reference leads nowhere": Fault(
        lambda library: library.alter({"hd_ref_x": {"S": "nowhere"}}, as_entity="Blob"),
        "blobs",
        "lacks 0 references, and has 1 wrong ones",
        True,
    ),
    "the source of a variant is missing": Fault(lose_source, "blobs", "its source is missing", True),
}


@pytest.mark.parametrize(("ward", "fault"), list_cases(FAULTS))
def test_each_planted_fault_is_found_and_repaired_if_possible(ward: Ward, fault: Fault) -> None:
    with open_library(ward) as library:
        finish(ward.colour, confirm_fault(library, fault))


def test_a_repaired_slot_names_the_attachment_that_exists() -> None:
    with open_library(Ward("memory", "blocking")) as library:
        before = library.find(**SLOT)
        library.alter({"attachment_id": {"S": "x"}, "blob_id": {"S": "y"}}, **SLOT)
        library.db.doctor(models=[Album], repair=True)
        assert library.find(**SLOT) == {**before, "version": {"N": "2"}}
        library.forget(as_entity="Attachment", as_name="cover")
        library.db.doctor(models=[Album], repair=True)
        assert library.find(**SLOT)["version"] == {"N": "3"}
        assert "attachment_id" not in library.find(**SLOT)


def test_the_job_of_an_intent_deletes_its_files_after_a_repair() -> None:
    with open_library(Ward("memory", "blocking")) as library:
        db = library.db
        lose_job(library)
        assert db.doctor(models=[Album], repair=True).is_healthy
        db.worker().drain()
        assert not db.get_one(Album.key(name="one"), include=["papers"]).papers.attached
        assert db.doctor(models=[Album]).findings == ()


class Memo(Attachable):
    """An owner stored elsewhere, because a table with a numeric sort key holds no models."""

    record_type = "Memo"
    cover = has_one_attached()

    def __init__(self, id: str) -> None:
        self.id = id  # type: ignore[misc]

    def is_persisted(self) -> bool:
        return True


def test_a_table_with_a_numeric_sort_key_is_checked_too() -> None:
    with Database("memory:") as db:
        db.table.create(mode="B")
        memo = Memo("one")
        memo.cover.attach(b"cover", filename="cover.bin")
        with db.saving(memo):
            pass
        db.jobs.enqueue("doctor_memo", key="one")
        assert db.doctor(segments=2).findings == ()
        (item,) = [
            item
            for page in db.pages(Scan(db.table.name, consistent=True))
            for item in page.items
            if item.get("_type") == {"S": "holdall.AttachmentSlot"}
        ]
        db.send(PutItem(db.table.name, {**item, "attachment_id": {"S": "x"}}))
        (finding,) = db.doctor(segments=2).findings
        assert finding.subject == "slot cover of Memo one"
        assert db.doctor(repair=True).is_healthy
        assert db.doctor().findings == ()
        found = Memo("one")
        db.load([found], "cover")
        assert found.cover.attached


def make_thumb(db: Database) -> tuple[str, str]:
    """Store a picture with a variant, and return the ids of the two blobs."""
    data = BytesIO()
    Image.new("RGB", (8, 8)).save(data, "PNG")
    blob = db.blobs.create_and_upload(data.getvalue(), filename="a.png")
    with db.transaction() as tx:
        tx.get_one(Album, name="one").cover.attach(blob)
    db.worker().drain()
    return blob.id, db.blobs.variant(blob, Variant(resize_to_limit=(2, 2))).id


def test_a_variant_whose_bytes_are_lost_is_made_again(holdall_clock: Clock) -> None:
    with open_library(Ward("memory", "blocking")) as library:
        db = library.db
        source, thumb = make_thumb(db)
        assert db.doctor(models=[Album]).findings == ()
        db.files.delete(db.blobs.find(thumb).key)
        (finding,) = db.doctor(models=[Album]).findings
        assert (finding.subject, finding.repair is None) == (f"blob {thumb}", False)
        assert db.doctor(models=[Album], repair=True).is_healthy
        assert db.doctor(models=[Album]).findings == ()
        again = db.blobs.variant(source, Variant(resize_to_limit=(2, 2)))
        assert again.id != thumb
        assert len(db.blobs.download(again)) == again.byte_size
        assert db.doctor(models=[Album]).findings == ()


def test_a_variant_of_a_lost_source_is_deleted_unless_a_sweep_will_do_that(holdall_clock: Clock) -> None:
    with open_library(Ward("memory", "blocking")) as library:
        db = library.db
        source, thumb = make_thumb(db)
        key = db.blobs.find(thumb).key
        holdall_clock.advance(3 * 86400)
        db.blobs.sweep()  # deletes the marker of the upload
        library.forget(as_entity="Attachment", as_name="cover")
        library.forget(as_entity="Blob", as_id=source)
        subjects = [each.subject for each in db.doctor(models=[Album], only=["blobs"]).findings]
        assert any(each.startswith("variant ") for each in subjects)
        row = library.forget(
            as_entity="Attachment", as_name="image"
        )  # a purge deletes the row before the slot
        subjects = [each.subject for each in db.doctor(models=[Album], only=["blobs"]).findings]
        assert not any(each.startswith("slot image") for each in subjects)
        library.write(row)
        hour = {"pk": "holdall#Unattached", "sk": f"{holdall_clock.now():%Y%m%dT%H}"}
        library.put(**hour, _type="holdall.UnattachedHour", hour=hour["sk"])
        library.put(f"holdall#Unattached#{hour['sk']}#{source[-1]}", source, blob_id=source)
        subjects = [each.subject for each in db.doctor(models=[Album], only=["blobs"]).findings]
        assert not any(each.startswith("variant ") for each in subjects), "a purge may be in progress"
        library.delete(f"holdall#Unattached#{hour['sk']}#{source[-1]}", source)
        db.doctor(models=[Album], only=["blobs"], repair=True)
        assert db.doctor(models=[Album], only=["blobs"]).findings == ()
        assert key not in [each.key for each in db.files.list()]


def test_a_claim_is_released_once_its_put_must_have_ended(holdall_clock: Clock) -> None:
    with open_library(Ward("memory", "blocking")) as library:
        db = library.db
        db.files.put("stored", b"bytes")
        (service,) = db._services.urls
        for key in ("stored", "claimed"):
            assert run(claim(db._context, service, key, "first"))
        holdall_clock.advance(86400)
        assert db.doctor(models=[Album], only=["blobs"]).findings == (), "the put may be in progress"
        holdall_clock.advance(86400)
        (finding,) = db.doctor(models=[Album], only=["blobs"]).findings
        assert finding.subject == f"key 'claimed' of file service {service}"
        assert not run(claim(db._context, service, "claimed", "second"))
        assert db.doctor(models=[Album], only=["blobs"], repair=True).is_healthy
        assert run(claim(db._context, service, "claimed", "second"))
        assert not run(claim(db._context, service, "stored", "second"))


def test_a_claim_made_again_meanwhile_is_not_released(holdall_clock: Clock) -> None:
    table = Recorder(EmbeddedBackend(None))
    with Database("memory:", backend=table) as db:
        db.table.create()
        (service,) = db._services.urls
        assert run(claim(db._context, service, "claimed", "first"))
        holdall_clock.advance(2 * 86400)

        def claim_again(request: Any) -> None:
            if isinstance(request, TransactWrite):
                table.before = lambda _: None
                assert run(claim(db._context, service, "claimed", "first"))

        table.before = claim_again
        (finding,) = db.doctor(models=[Album], only=["blobs"], repair=True).findings
        assert not finding.repaired
        assert not run(claim(db._context, service, "claimed", "second"))

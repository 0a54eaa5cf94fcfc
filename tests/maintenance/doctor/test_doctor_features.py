"""The doctor finds faults of jobs, blobs, artifacts and the archive, and repairs those that it can."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from doctor_rig import Fault, Patient, Ward, confirm_fault, list_cases, list_wards, open_store
from rig.colour import finish as finish_in
from rig.colour import run_in
from rig.recorder import Recorder

from holdall import Archive, Database, Key, Model, field, has_one_attached, job
from holdall.artifacts import ArtifactSettings
from holdall.attachments.upload.upload import new_key
from holdall.backends.embedded import EmbeddedBackend
from holdall.core import DeleteItem, Query, Scan, encode_item
from holdall.core.port import run
from holdall.errors import HoldallError
from holdall.jobs.flow import enqueue_next
from holdall.jobs.lease import finish, take
from holdall.maintenance import DoctorReport
from holdall.maintenance.doctor import job as doctor_job
from holdall.maintenance.doctor.key_filter import KeyFilter
from holdall.maintenance.doctor.work import Work
from holdall.tables.flow import discover
from holdall.testing.clock import Clock


class Photo(Model, name="DoctorPhoto"):
    name: Key[str]
    picture = has_one_attached()


class Diary(
    Model, name="DoctorDiary", archive=Archive(after_days=365, timestamp="at", key="diaries/{partitionKey}")
):
    name: Key[str]
    at: datetime = field(read_only=True)
    text: str = ""


@job("doctor_work")
def work(number: int) -> None:
    """Do nothing."""


@job("doctor_rare", every=timedelta(days=36525))
def rare() -> None:
    """Do nothing; the next run is in 2070."""


OLD = datetime.now(UTC) - timedelta(days=1000)
MODELS: list[type[Model]] = [Photo, Diary]


class Clinic(Patient):
    """A database with items and files of every feature."""

    async def examine(self, **options: Any) -> DoctorReport:
        return await super().examine(**{"models": MODELS, **options})


@contextmanager
def open_clinic(ward: Ward) -> Iterator[Clinic]:
    with tempfile.TemporaryDirectory() as folder, open_store(ward.store, Path(folder)) as db:
        db.table.create(models=MODELS)
        fill(db)
        yield Clinic(db, ward.colour)


def fill(db: Database) -> None:
    with db.transaction() as tx:
        for name in ("one", "two"):
            photo = tx.create(Photo, name=name)
            photo.picture.attach(name.encode() * 100, filename=f"{name}.bin")
        tx.create(Diary, name="ada", at=OLD, text="tea")
        tx.create(Diary, name="bob", at=OLD, text="coffee")
        tx.enqueue(work, 1)
        tx.enqueue(work, 2, key="two")
    run(enqueue_next(db._context, rare))  # as a worker does when it starts
    db.archive.run(Diary, force=True)
    db.artifacts.put("app", b"first")
    db.artifacts.publish("app")
    db.artifacts.put("app", b"second")
    db.artifacts.publish("app")
    db.artifacts.put_alias("app", "prod", version=1, secondary_version=2, secondary_version_weight=10)
    db.artifacts.put_alias("app", "beta", version=1)
    db.artifacts.start_rollout("app", "beta", 2, [(10, timedelta(hours=9))])
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "page.html").write_text("hello")
        db.artifacts.put("site", Path(folder))


everywhere = run_in(list_wards, open_clinic)


@everywhere
async def test_a_healthy_database_with_everything_has_no_findings(clinic: Clinic) -> None:
    report = await clinic.examine()
    assert report.findings == ()
    assert {each.model: each.items for each in report.figures} == {"DoctorDiary": 2, "DoctorPhoto": 2}


JOBS = {"_type": "holdall.Job", "pk": "holdall#Job#"}
RARE = {"_type": "holdall.Occurrence", "pk": "holdall#Schedule#doctor_rare"}
META = "__app-meta"
LONG_AGO = {"S": "2020-01-01T00:00:00.000000Z"}


def lose_rollout(clinic: Clinic) -> None:
    clinic.forget(**JOBS, job_name="holdall.rollout")
    clinic.change(META, "rollout#beta", update_at=LONG_AGO)


FAULTS = {
    "a job cannot be read": Fault(
        lambda clinic: clinic.alter({"job_args": {"S": "?"}}, **JOBS),
        "jobs",
        "is not a job",
        True,
    ),
    "a lease ended long ago": Fault(
        lambda clinic: clinic.alter(
            {"job_lease": {"S": "x"}, "job_lease_until": LONG_AGO, "job_lease_seconds": {"N": "60"}}, **JOBS
        ),
        "jobs",
        "the lease of its worker ended at 2020-01-01",
        False,
    ),
    "the key of a job is not reserved": Fault(
        lambda clinic: clinic.forget(_type="holdall.JobKey"),
        "jobs",
        "its key 'two' is not reserved",
        True,
    ),
    "a key is reserved for a missing job": Fault(
        lambda clinic: clinic.forget(**JOBS, job_key="two"),
        "jobs",
        "which does not exist, so no job with it can be enqueued",
        True,
    ),
    "a queue is not listed": Fault(
        lambda clinic: clinic.forget(_type="holdall.Queue"),
        "jobs",
        "it has jobs, but is not in the list of queues",
        True,
    ),
    "a key has no job": Fault(
        lambda clinic: clinic.alter({"job_id": None}, _type="holdall.JobKey"),
        "jobs",
        "it cannot be read: 'job_id' is missing",
        False,
    ),
    "the job of an occurrence is missing": Fault(
        lambda clinic: clinic.forget(**JOBS, job_name="doctor_rare"),
        "jobs",
        "which was enqueued for that, does not exist",
        False,
    ),
    "an occurrence has no job": Fault(
        lambda clinic: clinic.alter({"job_id": None}, **RARE),
        "jobs",
        "it cannot be read: 'job_id' is missing",
        False,
    ),
    "no worker enqueues a recurring job": Fault(
        lambda clinic: clinic.forget(**RARE),
        "jobs",
        "it should run (every:3155760000), but no run is enqueued; is a worker running for queue default?",
        False,
    ),
    "the count of a blob is wrong": Fault(
        lambda clinic: clinic.alter({"as_attachments_count": {"N": "7"}}, as_entity="Blob"),
        "blobs",
        "has an attachment count of 7, but 1 refer to it",
        True,
    ),
    "the blob of an attachment is missing": Fault(
        lambda clinic: clinic.forget(as_entity="Blob"),
        "blobs",
        "which is missing",
        True,
    ),
    "an attachment is missing": Fault(
        lambda clinic: clinic.forget(as_entity="Attachment"),
        "blobs",
        "has an attachment count of 1, but 0 refer to it",
        True,
    ),
    "the bytes of a blob are missing": Fault(
        lambda clinic: clinic.db.files.delete(clinic.find(as_entity="Blob")["as_key"]["S"]),
        "blobs",
        "are missing",
        False,
    ),
    "the bytes of a blob have another size": Fault(
        lambda clinic: clinic.db.files.put(clinic.find(as_entity="Blob")["as_key"]["S"], b"x"),
        "blobs",
        "bytes, but has 1",
        False,
    ),
    "an alias serves a missing version": Fault(
        lambda clinic: clinic.delete("app", "000001"),
        "artifacts",
        "it serves version 1, which does not exist",
        False,
    ),
    "an alias serves a deleted version": Fault(
        lambda clinic: clinic.change("app", "000002", is_deleted={"BOOL": True}),
        "artifacts",
        "it serves version 2, which is deleted",
        False,
    ),
    "an artifact is not listed": Fault(
        lambda clinic: clinic.delete("holdall#Artifacts", "app"),
        "artifacts",
        "it is missing from the list of names",
        True,
    ),
    "the bytes of a version are missing": Fault(
        lambda clinic: clinic.lose("versioned-artifacts/app/000002"),
        "artifacts",
        "its bytes are missing",
        False,
    ),
    "a publisher died": Fault(
        lambda clinic: clinic.change(
            "__app-meta",
            "head",
            reserving_00={"S": "2020-01-01T00:00:00.000000+0000|x"},
            reserved_00={"N": "3"},
        ),
        "artifacts",
        "version 3 was reserved and not published",
        True,
    ),
    "the note of a version lacks an alias": Fault(
        lambda clinic: clinic.change(META, "version#000002", served_by={"SS": ["beta"]}),
        "artifacts",
        "version 2 is not recorded as served by it",
        True,
    ),
    "the note of a version names a missing alias": Fault(
        lambda clinic: clinic.change(META, "version#000002", served_by={"SS": ["beta", "prod", "old"]}),
        "artifacts",
        "version 2 is recorded as served by it",
        True,
    ),
    "the note of a version is missing": Fault(
        lambda clinic: clinic.delete(META, "version#000002"),
        "artifacts",
        "version 2 is not recorded as served by it",
        True,
    ),
    "the note of an alias is missing": Fault(
        lambda clinic: clinic.delete(META, "alias#prod"),
        "artifacts",
        "its history has change 1, but its note counts 0, so the alias cannot be changed",
        True,
    ),
    "a change is missing from the history of an alias": Fault(
        lambda clinic: clinic.delete(META, "history#prod#000000001"),
        "artifacts",
        "its history ends with change 0, but it was changed 1 times",
        False,
    ),
    "an alias cannot be read": Fault(
        lambda clinic: clinic.change("__app-alias", "prod", version=None),
        "artifacts",
        "it cannot be read: 'version' is missing",
        False,
    ),
    "the job of a rollout is missing": Fault(
        lambda clinic: lose_rollout(clinic),
        "artifacts",
        "the job that begins its next stage does not exist",
        True,
    ),
    "a name is listed without an artifact": Fault(
        lambda clinic: clinic.put("holdall#Artifacts", "ghost", _type="holdall.ArtifactName"),
        "artifacts",
        "it is listed, but has no versions",
        True,
    ),
    "a purge of a version did not end": Fault(
        lambda clinic: clinic.put(META, "purge#000009", key="versioned-artifacts/app/000009"),
        "artifacts",
        "version 9 was purged, but its bytes may be left",
        True,
    ),
    "a purge of LATEST did not end": Fault(
        lambda clinic: clinic.change(
            META, "head", purging={"M": {"etag": {"S": "x"}, "id": {"S": "x"}, "at": LONG_AGO}}
        ),
        "artifacts",
        "LATEST was purged, but its bytes may be left",
        True,
    ),
    "the bytes of a directory's file are missing": Fault(
        lambda clinic: clinic.lose("versioned-artifacts/__files/"),
        "artifacts",
        "its bytes are missing",
        False,
    ),
    "the owner of an attachment is missing": Fault(
        lambda clinic: clinic.delete("DoctorPhoto#one", "#"),
        "orphans",
        "its owner, DoctorPhoto one, does not exist",
        False,
    ),
    "an archived object is missing": Fault(
        lambda clinic: clinic.lose("diaries/ada"),
        "archive",
        "no readable object of this item was found",
        False,
    ),
    "a pointer is damaged": Fault(
        lambda clinic: clinic.alter({"_archive": {"S": "?"}}, _type="DoctorDiary"),
        "archive",
        "1 of 2 archived items cannot be read",
        True,
    ),
}


@pytest.mark.parametrize(("ward", "fault"), list_cases(FAULTS))
def test_each_planted_fault_is_found_and_repaired_if_possible(ward: Ward, fault: Fault) -> None:
    with open_clinic(ward) as clinic:
        finish_in(ward.colour, confirm_fault(clinic, fault))


def test_an_alias_without_its_note_can_be_changed_after_a_repair(holdall_clock: Clock) -> None:
    with open_clinic(Ward("memory", "blocking")) as clinic:
        clinic.delete(META, "alias#prod")
        with pytest.raises(HoldallError):
            clinic.db.artifacts.put_alias("app", "prod", version=2)
        assert clinic.db.doctor(models=MODELS, repair=True).is_healthy
        clinic.db.artifacts.put_alias("app", "prod", version=2)
        assert clinic.db.doctor(models=MODELS).findings == ()


def test_a_rollout_continues_after_a_repair(holdall_clock: Clock) -> None:
    with open_clinic(Ward("memory", "blocking")) as clinic:
        db = clinic.db
        clinic.forget(**JOBS, job_name="holdall.rollout")
        holdall_clock.advance(10 * 3600)
        db.worker().drain()
        assert db.artifacts.rollout("app", "beta").state == "running"
        assert db.doctor(models=MODELS, repair=True).is_healthy
        db.worker().drain()
        assert db.artifacts.rollout("app", "beta").state == "done"
        assert db.doctor(models=MODELS).findings == ()


def test_recurring_jobs_that_run_on_time_have_no_findings(holdall_clock: Clock) -> None:
    @job("doctor_often", every=timedelta(minutes=10))
    def often() -> None:
        """Do nothing."""

    with open_clinic(Ward("memory", "blocking")) as clinic:
        db, context = clinic.db, clinic.db._context
        run(enqueue_next(context, often))
        for _ in range(3):
            holdall_clock.advance(600)
            (waiting,) = db.jobs.list(name="doctor_often")
            record = run(take(context, waiting, "token", 60))
            assert record is not None
            assert db.doctor(models=MODELS).findings == (), "a worker has the job"
            run(finish(context, record))
            assert db.doctor(models=MODELS).findings == (), (
                "the run ended, and the next one is not enqueued yet"
            )
            run(enqueue_next(context, often))
        db.jobs.delete(db.jobs.list(name="doctor_often")[0].id)
        assert db.doctor(models=MODELS).findings == (), "the next run is due in ten minutes"
        holdall_clock.advance(3600)
        assert db.doctor(models=MODELS).findings == ()
        holdall_clock.advance(1200)
        assert [each.subject for each in db.doctor(models=MODELS).findings] == ["recurring job doctor_often"]
        run(enqueue_next(context, often))
        assert db.doctor(models=MODELS).findings == ()


def test_faults_that_only_the_whole_table_shows_are_found_once_with_segments() -> None:
    with open_clinic(Ward("memory", "blocking")) as clinic:
        clinic.forget(_type="holdall.Queue")
        clinic.forget(**JOBS, job_key="two")
        report = clinic.db.doctor(models=MODELS, segments=5)
        assert [each.subject for each in report.findings] == ["queue default", "key of doctor_work two"]
        assert clinic.db.doctor(models=MODELS, segments=5, repair=True).repaired == 2
        assert clinic.db.doctor(models=MODELS, segments=5).findings == ()


@pytest.mark.parametrize("most", [10_000, 5])
def test_the_jobs_of_keys_are_not_read_one_by_one(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_job, "_MOST", most)
    table = Recorder(EmbeddedBackend(None))
    with Database("memory:", backend=table) as db:
        db.table.create()
        with db.transaction() as tx:
            for number in range(40):
                tx.enqueue(work, number, key=str(number))
        run(enqueue_next(db._context, rare))
        assert db.doctor(only=["jobs"]).findings == ()
        Patient(db, "blocking").forget(**JOBS, job_key="17")
        rows = [item for page in db.pages(Scan(db.table.name, consistent=True)) for item in page.items]
        rows.sort(
            key=lambda item: item["pk"]["S"].startswith("holdall#Job#")
        )  # sorts each key before its job
        table.forget()
        visit = Work(db._context, [], {}, repair=True, segments=1, rate=None, progress=None)
        check = doctor_job.JobCheck(visit, run(discover(db._context)), KeyFilter())
        for item in rows:
            run(check.visit([item]))
        run(check.finish([check]))
        (finding,) = visit.report().findings
        assert (finding.subject, finding.repaired) == ("key of doctor_work 17", True)
        assert len(table.list_sent(Scan)) == (0 if most > 40 else 1)
        read = sum(page.scanned for request, page in table.exchanges if isinstance(request, Query))
        assert read < 40


def test_unreferenced_files_are_found_once_they_are_old(holdall_clock: Clock) -> None:
    with open_clinic(Ward("memory", "blocking")) as clinic:
        db = clinic.db
        db.blobs.create_and_upload(b"never attached", filename="a.bin")
        clinic.forget(_type="DoctorDiary", pk="DoctorDiary#ada")
        assert db.doctor(models=MODELS).is_healthy, "the files may still be in use"
        holdall_clock.advance(8 * 86400)
        report = db.doctor(models=MODELS)
        assert [each[:4] for each in report.findings] == [
            ("orphans", "notice", "DoctorDiary", "objects of its archive that no item points to: 1"),
            (
                "orphans",
                "notice",
                "blobs",
                "not attached to anything: 1; left by unfinished uploads: 0",
            ),
        ]
        before = len(list(db.files.list()))
        assert db.doctor(models=MODELS, repair=True).repaired == 2
        assert len(list(db.files.list())) == before - 2
        assert db.doctor(models=MODELS).findings == ()


def test_a_database_without_files_has_no_findings() -> None:
    with Database(backend=EmbeddedBackend(None)) as db:
        db.table.create()
        assert db.doctor(only=["blobs", "artifacts", "archive", "orphans"]).findings == ()


def test_artifacts_in_their_own_table_are_checked() -> None:
    with Database("memory:", artifacts=ArtifactSettings(table="apps")) as db:
        db.table.create()
        db.artifacts.put("app", b"first")
        assert db.doctor(only=["artifacts"]).findings == ()
        db.send(DeleteItem("apps", encode_item({"pk": "holdall#Artifacts", "sk": "app"})))
        assert [each.message for each in db.doctor(only=["artifacts"]).findings] == [
            "it is missing from the list of names"
        ]
        assert db.doctor(only=["artifacts"], repair=True).is_healthy
        assert db.doctor(only=["artifacts"]).findings == ()


def test_work_in_progress_has_no_findings(holdall_clock: Clock) -> None:
    with open_clinic(Ward("memory", "blocking")) as clinic:
        db, context = clinic.db, clinic.db._context
        db.blobs.create_before_direct_upload(
            filename="a.bin", byte_size=3, checksum="rL0Y20zC+Fzt72VPzMSk2A=="
        )
        begun = db.blobs.start_upload(filename="b.bin", byte_size=10)
        db.blobs.continue_upload(begun, 0, b"12345")
        db.files.put(new_key(context.port), b"its transaction has not committed yet")
        db.files.put("versioned-artifacts/__incoming/x", b"its put has not ended yet")
        for each in db.jobs.list(name="doctor_work"):
            assert run(take(context, each, "token", 60)) is not None
        report = db.doctor(models=MODELS)
        assert report.findings == ()


def test_a_purge_that_is_about_to_end_is_not_a_finding(holdall_clock: Clock) -> None:
    with open_clinic(Ward("memory", "blocking")) as clinic:
        db = clinic.db
        db.artifacts.put("brief", b"x")
        db.artifacts.purge("brief")
        clinic.put("holdall#Artifacts", "brief", _type="holdall.ArtifactName")  # the last step of the purge
        assert db.doctor(models=MODELS).findings == ()
        holdall_clock.advance(3601)
        (finding,) = db.doctor(models=MODELS, repair=True).findings
        assert (finding.subject, finding.repaired) == ("artifact brief", True)


def test_files_in_use_have_no_findings(tmp_path: Path) -> None:
    with open_store("file", tmp_path) as db:
        db.table.create(models=MODELS)
        fill(db)
        failures: list[HoldallError] = []

        def write() -> None:
            try:
                for number in range(15):
                    blob = db.blobs.create_and_upload(b"new" * number, filename="new.bin")
                    with db.transaction() as tx:
                        tx.get_one(Photo, name="one").picture.attach(blob)
                        tx.create(Photo, name=f"photo {number}").picture.attach(blob)
                        if number:
                            old = tx.get_one(Photo, name=f"photo {number - 1}")
                            old.picture.purge()
                            tx.delete(old)
                    db.artifacts.put("app", str(number).encode())
                    db.artifacts.publish("app")
                    db.artifacts.put_alias("app", "prod", version=number + 3)
                    db.artifacts.put(f"brief {number}", b"x")
                    db.artifacts.purge(f"brief {number}")
            except HoldallError as error:
                failures.append(error)

        writer = Thread(target=write)
        writer.start()
        while writer.is_alive():
            assert db.doctor(models=MODELS, store_figures=False, segments=2).findings == ()
        writer.join()
        assert failures == []


def test_a_feature_that_cannot_be_checked_is_a_finding() -> None:
    with open_clinic(Ward("memory", "blocking")) as clinic:
        clinic.alter({"as_service_name": {"S": "attic"}}, as_entity="Blob")
        (finding,) = clinic.db.doctor(models=MODELS).findings
        assert finding.check == "blobs"
        assert "there is no file service 'attic'" in finding.message

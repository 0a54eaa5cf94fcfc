"""The doctor finds faults of tables, items and unique values, and repairs those that it can."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from doctor_rig import (
    MODELS,
    Fault,
    Patient,
    Person,
    Visit,
    Ward,
    confirm_fault,
    everywhere,
    fill,
    list_cases,
    open_patient,
)
from rig.colour import finish

from holdall import Archive, Database, Index, Key, Model, has_one_attached
from holdall.backends.memory import MemoryService
from holdall.core import PutItem, Scan
from holdall.core.objects import DescribeService
from holdall.core.requests import CreateTable, SetTtl
from holdall.core.schema import KeyAttribute, TableSchema
from holdall.errors import EndpointError, HoldallError, InvalidOptionsError
from holdall.maintenance import DoctorReport
from holdall.testing.clock import Clock

ADA = ("DoctorPerson#ada", "#")
EVE = ("DoctorPerson#eve", "#")
EMAIL = "holdall#Unique#DoctorPerson#email#"


@everywhere
async def test_a_healthy_database_has_no_findings(patient: Patient) -> None:
    shown: list[DoctorReport] = []
    report = await patient.examine(progress=shown.append)
    assert report.findings == ()
    assert report.is_healthy
    assert report.scanned >= 4
    assert [(each.model, each.items) for each in report.figures] == [("DoctorPerson", 3), ("DoctorVisit", 1)]
    assert all(each.bytes > 0 for each in report.figures)
    assert shown[-1] == report


@everywhere
async def test_figures_are_stored_for_later(patient: Patient) -> None:
    assert patient.db.figures() == []
    await patient.examine(store_figures=False)
    assert patient.db.figures() == []
    report = await patient.examine()
    assert patient.db.figures() == list(report.figures)
    if patient.colour == "awaiting":
        assert await patient.db.aio.figures() == list(report.figures)
    assert (await patient.examine()).is_healthy


FAULTS = {
    "an index attribute is missing": Fault(
        lambda patient: patient.change(*ADA, gsi1_pk=None, gsi1_sk=None),
        "items",
        "gsi1_pk",
        True,
    ),
    "an index attribute is wrong": Fault(
        lambda patient: patient.change(*ADA, gsi1_pk={"S": "DoctorPerson#by_town#Rome"}),
        "items",
        "gsi1_pk",
        True,
    ),
    "a field is of another type": Fault(
        lambda patient: patient.change(*ADA, age={"S": "old"}),
        "items",
        "it cannot be read",
        False,
    ),
    "a field is missing": Fault(
        lambda patient: patient.change(*ADA, town=None),
        "items",
        "it cannot be read",
        False,
    ),
    "an item is under another key": Fault(
        lambda patient: patient.change(*EVE, name={"S": "mallory"}),
        "items",
        "its fields belong under the key DoctorPerson#mallory / #",
        False,
    ),
    "a time of expiry is text": Fault(
        lambda patient: patient.change("DoctorVisit#ada", "p5011", _ttl={"S": "soon"}),
        "items",
        "_ttl",
        True,
    ),
    "a value is not reserved": Fault(
        lambda patient: patient.delete(EMAIL + "ada@example.com", "#"),
        "unique",
        "its email is not reserved",
        True,
    ),
    "a value is reserved for a missing item": Fault(
        lambda patient: patient.put(
            EMAIL + "zoe@example.com", "#", _type="holdall.Unique", owner_pk="DoctorPerson#zoe", owner_sk="#"
        ),
        "unique",
        "reserved for DoctorPerson#zoe / #, which does not exist",
        True,
    ),
    "a value is reserved for an item without it": Fault(
        lambda patient: patient.put(
            EMAIL + "old@example.com", "#", _type="holdall.Unique", owner_pk=ADA[0], owner_sk="#"
        ),
        "unique",
        "reserved for DoctorPerson#ada / #, which does not have it",
        True,
    ),
    "a value is reserved for another item": Fault(
        lambda patient: patient.put(
            EMAIL + "ada@example.com", "#", _type="holdall.Unique", owner_pk=EVE[0], owner_sk="#"
        ),
        "unique",
        "its email is reserved for DoctorPerson#eve / #, which does not have it",
        True,
    ),
    "two items have the same value": Fault(
        lambda patient: patient.change(*EVE, email={"S": "ada@example.com"}),
        "unique",
        "its email is the same as that of DoctorPerson#ada / #",
        False,
    ),
}


@pytest.mark.parametrize(("ward", "fault"), list_cases(FAULTS))
def test_each_planted_fault_is_found_and_repaired_if_possible(ward: Ward, fault: Fault) -> None:
    with open_patient(ward) as patient:
        finish(ward.colour, confirm_fault(patient, fault))


@everywhere
async def test_a_repaired_value_is_unique_again(patient: Patient) -> None:
    patient.delete(EMAIL + "ada@example.com", "#")
    await patient.examine(repair=True)
    found = patient.db.get_by(Person, email="ada@example.com")
    assert found is not None
    assert found.name == "ada"


# --- configuration and tables -----------------------------------------------------------------------------


class Letter(Model, name="DoctorLetter", indexes=[Index("by_town", key=["town"], slot=2)]):
    number: Key[int]
    town: str
    scan = has_one_attached(service="attic")


class Passing(Model, table="doctor-passing", ttl="until"):
    number: Key[int]
    until: int | None = None


@pytest.fixture
def db() -> Iterator[Database]:
    with Database("memory:") as found:
        yield found


def list_findings(report: DoctorReport, check: str) -> list[tuple[str, str]]:
    return [(each.subject, each.message) for each in report.findings if each.check == check]


def test_missing_tables_are_found_and_not_created(db: Database) -> None:
    report = db.doctor(models=[Person, Passing])
    assert list_findings(report, "tables") == [
        ("table holdall", "it does not exist; DoctorPerson cannot be used"),
        ("table doctor-passing", "it does not exist; Passing cannot be used"),
    ]
    assert not db.table.exists()


def test_a_missing_index_is_found_and_created(db: Database) -> None:
    db.table.create()
    report = db.doctor(models=[Person])
    ((subject, message),) = list_findings(report, "tables")
    assert subject == "index gsi1 of table holdall"
    assert message.startswith("it does not exist, but DoctorPerson needs it")
    assert db.doctor(models=[Person], repair=True).is_healthy
    assert db.doctor(models=[Person]).findings == ()


def test_expiry_that_is_off_is_found_and_turned_on(db: Database) -> None:
    db.send(CreateTable(TableSchema("doctor-passing", KeyAttribute("_id", "N"))))
    ((subject, message),) = list_findings(db.doctor(models=[Passing]), "tables")
    assert (subject, message) == ("table doctor-passing", "items should expire by until, but expiry is off")
    assert db.doctor(models=[Passing], repair=True).is_healthy
    assert db.doctor(models=[Passing]).findings == ()


def test_a_table_that_expires_items_by_another_attribute_is_found(db: Database) -> None:
    db.send(CreateTable(TableSchema("doctor-passing", KeyAttribute("_id", "N"))))
    db.send(SetTtl("doctor-passing", "other"))
    ((_, message),) = list_findings(db.doctor(models=[Passing]), "tables")
    assert message == "items expire by other, but Passing needs until"


def test_a_table_with_wrong_keys_is_found(db: Database) -> None:
    db.send(CreateTable(TableSchema("doctor-passing", KeyAttribute("id", "N"))))
    ((subject, _),) = list_findings(db.doctor(models=[Passing]), "tables")
    assert subject == "table doctor-passing"


def test_a_file_service_that_is_not_configured_is_found(db: Database) -> None:
    db.table.create(models=[Letter])
    report = db.doctor(models=[Letter])
    assert list_findings(report, "configuration") == [
        ("DoctorLetter.scan", "its files belong in the file service attic, which is not configured")
    ]


class FailingService(MemoryService):
    """A file service that stops answering while ``is_down`` is set."""

    is_down = False

    def send_blocking(self, request: Any) -> Any:
        if self.is_down and not isinstance(request, DescribeService):
            raise EndpointError("the bucket is closed")
        return super().send_blocking(request)


def test_a_file_service_that_does_not_answer_is_found() -> None:
    files = FailingService()
    files.is_down = True
    with Database("memory:", files={"main": files}) as db:
        db.table.create()
        report = db.doctor(only=["configuration", "permissions"])
        assert [each[2:4] for each in report.findings] == [("file service main", "the bucket is closed")]
        assert {each.reason for each in report.untried} == {"the service cannot be used"}


def test_a_file_service_that_no_longer_answers_is_found_once() -> None:
    files = FailingService()
    with Database("memory:", files=files) as db:
        db.table.create()
        for name in ("a", "b"):
            db.blobs.create_and_upload(b"bytes", filename=name)
            db.artifacts.put(name, b"bytes")
        files.is_down = True
        report = db.doctor()
        assert [each.subject for each in report.findings] == ["file service default"]
        report = db.doctor(only=["blobs", "artifacts", "orphans"])
        assert {each.subject for each in report.findings} == {"file service default"}
        report = db.doctor(only=["artifacts"])
        assert [each.subject for each in report.findings] == ["file service default"]


@pytest.mark.parametrize("only", ["items", [], ["everything"]], ids=["text", "nothing", "unknown"])
def test_an_invalid_choice_of_checks_is_refused(db: Database, only: Any) -> None:
    with pytest.raises(InvalidOptionsError, match="only must be a list of checks"):
        db.doctor(only=only)


def test_only_the_first_findings_are_kept(db: Database) -> None:
    db.table.create(models=[Person])
    with db.bulk(Visit) as bulk:
        for number in range(1100):
            bulk.put(Visit(person="ada", number=number))
    for page in db.pages(Scan(db.table.name)):
        for item in page.items:
            db.send(PutItem(db.table.name, {**item, "number": {"S": "x"}}))
    report = db.doctor(models=[Visit], only=["items"])
    assert (len(report.findings), report.found) == (1000, 1100)


def fill_visits(db: Database, count: int) -> None:
    db.table.create(models=[Person, Visit])
    with db.bulk(Visit) as bulk:
        for number in range(count):
            bulk.put(Visit(person=f"person {number}", number=number))


@everywhere
async def test_segments_find_the_same_as_one_reader(patient: Patient) -> None:
    db = patient.db
    fill_visits(db, 60)
    for page in db.pages(Scan(db.table.name)):
        for item in page.items:
            if item["_type"] == {"S": "DoctorVisit"} and item["number"]["N"] < "3":
                db.send(PutItem(db.table.name, {**item, "number": {"S": "x"}}))
    alone = await patient.examine(store_figures=False)
    shown: list[DoctorReport] = []
    together = await patient.examine(store_figures=False, segments=7, progress=shown.append)
    assert alone.found > 10
    assert set(together.findings) == set(alone.findings)
    assert together[1:4] == alone[1:4]
    assert [each[:3] for each in together.figures] == [each[:3] for each in alone.figures]
    assert shown[-1] == together


class Kept(Model, name="DoctorKept", archive=Archive(after_days=1, timestamp="at", key="{partitionKey}")):
    id: Key[str]
    at: datetime


def test_the_rate_limits_the_items_read_per_second(db: Database, holdall_clock: Clock) -> None:
    fill_visits(db, 50)
    begin = holdall_clock.now()
    assert db.doctor(models=[Visit], only=["items"], store_figures=False).scanned == 50
    assert holdall_clock.now() == begin
    db.doctor(models=[Visit], only=["items"], store_figures=False, rate=10)
    db.doctor(models=[Kept], only=["archive"], rate=10)
    assert 8 <= (holdall_clock.now() - begin).total_seconds() <= 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segments": 0}, "segments must be a whole number from 1 to 1,000, not 0"),
        ({"rate": 0}, "rate must be a number of items per second above 0, not 0"),
        ({"progress": 1}, "progress must be callable, not 1"),
    ],
    ids=["segments", "rate", "progress"],
)
def test_invalid_options_are_refused(db: Database, options: Any, message: str) -> None:
    with pytest.raises(InvalidOptionsError, match=message):
        db.doctor(**options)


def test_a_time_of_expiry_in_milliseconds_is_found(db: Database) -> None:
    db.table.create(models=[Passing])
    db.create(Passing, number=1, until=4_102_444_800)
    assert db.doctor(models=[Passing]).findings == ()
    db.create(Passing, number=2, until=4_102_444_800_000)
    (finding,) = db.doctor(models=[Passing]).findings
    assert (finding.subject, finding.severity) == ("Passing 2", "warning")
    assert finding.message == "it does not expire before the year 5138: until must be in seconds since 1970"


def test_a_server_that_does_not_answer_is_the_only_finding() -> None:
    url = "dynamodb://doctor?region=eu-central-1&endpoint=http://127.0.0.1:9"
    with Database(url, credentials=lambda: ("a", "b", None, None), max_attempts=1) as db:
        (finding,) = db.doctor(models=[Person], only=["permissions", "tables", "items"]).findings
        assert (finding.check, finding.subject) == ("configuration", "table doctor")


def test_missing_credentials_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with Database("dynamodb://doctor?region=eu-central-1&endpoint=http://127.0.0.1:9") as db:
        (finding,) = db.doctor(only=["tables"]).findings
        assert finding.check == "configuration"
        assert "credentials" in finding.message


def test_a_table_with_a_numeric_sort_key_can_be_checked(db: Database) -> None:
    db.table.create(mode="B")
    keys = {"pk": {"S": "theirs"}, "sk": {"N": "1"}}
    schema = db.table.describe().schema
    assert schema.sort is not None
    db.send(PutItem(db.table.name, {schema.partition.name: keys["pk"], schema.sort.name: keys["sk"]}))
    report = db.doctor()
    assert (report.findings, report.scanned) == ((), 1)


def test_a_database_in_use_has_no_findings(tmp_path: Path) -> None:
    with Database(f"embedded:{tmp_path / 'a.db'}?durability=normal") as db:
        db.table.create(models=MODELS)
        fill(db)
        failures: list[HoldallError] = []

        def write() -> None:
            try:
                for number in range(150):
                    with db.transaction() as tx:
                        ada, bob = tx.get_one(Person, name="ada"), tx.get_one(Person, name="bob")
                        ada.email, bob.email = bob.email, ada.email
                        ada.town = f"town {number}"
                        tx.create(Person, name=f"new {number}", town="x", email=f"{number}@example.com")
                        if number:
                            tx.delete(tx.get_one(Person, name=f"new {number - 1}"))
            except HoldallError as error:
                failures.append(error)

        writer = Thread(target=write)
        writer.start()
        while writer.is_alive():
            assert db.doctor(models=MODELS, only=["items", "unique"], store_figures=False).findings == ()
        writer.join()
        assert failures == []

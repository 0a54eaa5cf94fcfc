"""The doctor finds which actions are denied, by requests that change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from denying_server import Denying, denying
from doctor_rig import MODELS
from rig.files import bucket_service, s3_service
from rig.servers import ENVIRONMENT, sign_in, started

from holdall import Database
from holdall.core import Scan

TABLE = (
    "GetItem",
    "Query",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "ConditionCheckItem",
    "BatchGetItem",
    "Scan",
)
FILES = ("ListBucket", "GetObject", "PutObject", "DeleteObject")
ACTIONS = [*(f"dynamodb:{each}" for each in TABLE), *(f"s3:{each}" for each in FILES)]


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[Database, Denying]]:
    """A database with a table, a bucket, and a server before both that can deny."""
    server = started("ministack")
    bucket_service("").close()  # makes the bucket
    with denying(server) as guard:
        url = f"dynamodb://doctor-{uuid4()}?region={ENVIRONMENT['AWS_REGION']}&endpoint={guard.url}"
        with Database(url, credentials=sign_in, files=s3_service(guard.url, uuid4().hex)) as db:
            db.table.create()
            yield db, guard


def test_with_all_permissions_nothing_is_found_and_nothing_is_written(
    guarded: tuple[Database, Denying],
) -> None:
    db, guard = guarded
    report = db.doctor(only=["permissions"])
    assert report.findings == ()
    assert set(ACTIONS) <= guard.seen, "they were not tried"
    assert [item for page in db.pages(Scan(db.table.name)) for item in page.items] == []
    assert list(db.files.list()) == []


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_that_is_denied_is_found(guarded: tuple[Database, Denying], action: str) -> None:
    db, guard = guarded
    guard.denied.add(action)
    try:
        report = db.doctor(only=["configuration", "permissions"])
    finally:
        guard.denied.clear()
    (finding,) = report.findings
    assert finding.check == "permissions"
    assert finding.message.startswith(f"{action} is denied; ")
    kind = f"table {db.table.name}" if action.startswith("dynamodb:") else "file service "
    assert finding.subject.startswith(kind)


def test_without_permission_to_scan_the_rest_is_left_out(guarded: tuple[Database, Denying]) -> None:
    db, guard = guarded
    guard.denied.add("dynamodb:Scan")
    try:
        report = db.doctor()
    finally:
        guard.denied.clear()
    assert [each.check for each in report.findings] == ["permissions"]
    assert report.scanned == 0


def test_without_permission_to_describe_the_table_that_is_found(guarded: tuple[Database, Denying]) -> None:
    db, guard = guarded
    guard.denied.add("dynamodb:DescribeTable")
    try:
        report = db.doctor(only=["configuration"])
    finally:
        guard.denied.clear()
    (finding,) = report.findings
    assert finding.subject == f"table {db.table.name}"


def test_figures_that_may_not_be_stored_are_a_notice(guarded: tuple[Database, Denying]) -> None:
    db, guard = guarded
    db.table.create(models=MODELS)
    guard.denied.add("dynamodb:BatchWriteItem")
    try:
        report = db.doctor(models=MODELS, only=["items"])
    finally:
        guard.denied.clear()
    (finding,) = report.findings
    assert (finding.severity, finding.subject) == ("notice", "figures")
    assert len(report.figures) == 2

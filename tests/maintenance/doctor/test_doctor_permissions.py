"""The doctor finds out which actions are denied, with requests that change nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from denying_server import DenyingServer, serve_denials
from doctor_rig import MODELS
from rig.files import BUCKET, bucket_service
from rig.servers import ENVIRONMENT, sign_in, start_server

from holdall import Database, Index, Key, Model, SortKey
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.s3.service import S3Service
from holdall.core import CreateTable, DescribeTtl, KeyAttribute, Scan, TableSchema
from holdall.core.objects import ListUploads
from holdall.errors import InvalidOptionsError
from holdall.maintenance.doctor.trial import UNTRIED
from holdall.tables import PolicyFeature
from holdall.tables.export.policy import OBJECT_ACTIONS, TABLE_ACTIONS

NEEDS = {
    **{f"dynamodb:{each}": feature for feature, found in TABLE_ACTIONS.items() for each in found},
    **{f"s3:{each}": feature for feature, found in OBJECT_ACTIONS.items() for each in found},
}
ACTIONS = sorted(NEEDS.keys() - UNTRIED.keys())
"""All actions in policies that the doctor tries."""


class Ledger(Model, table="DoctorLedgers", layout="plain", indexes=[Index("by_size", key=["size", "unit"])]):
    number: Key[int]
    part: SortKey[bytes]
    size: int = 0
    unit: str = "kg"


class Guarded(NamedTuple):
    """A database behind a server that can deny requests, and the same database without that server."""

    db: Database
    guard: DenyingServer
    direct: Database

    @property
    def own_table(self) -> str:
        return f"{self.db._context.settings.table_prefix}DoctorLedgers"

    def read_all(self) -> list[Any]:
        """The content of the tables and the bucket, and the settings of the tables."""
        found: list[Any] = []
        for table in (self.db.table.name, self.own_table):
            pages = self.direct.pages(Scan(table, consistent=True))
            found.append(sorted(str(item) for page in pages for item in page.items))
            found.append(self.direct.send(DescribeTtl(table)))
        objects = list(self.direct.files.list())
        found += [(each, self.direct.files.get(each.key)) for each in objects]
        return [*found, self.direct.send(ListUploads("default")), self.direct.table.describe()]


def open_service(url: str, prefix: str) -> S3Service:
    """A service that assumes that its server honours conditions, as AWS does."""
    endpoint = resolve_endpoint("s3", endpoint=url, environment=ENVIRONMENT)
    source = find_credentials(environment=ENVIRONMENT)
    return S3Service(BUCKET, endpoint, source, prefix=prefix, conditional_puts=True)


@pytest.fixture(scope="module")
def server_scene() -> Iterator[Guarded]:
    """A database with two tables, indexes, items and files."""
    server = start_server("ministack")
    bucket_service("").close()  # creates the bucket
    name, prefix = f"doctor-{uuid4()}", uuid4().hex
    with serve_denials(server) as guard:

        def open_at(url: str) -> Database:
            address = (
                f"dynamodb://{name}?region={ENVIRONMENT['AWS_REGION']}&endpoint={url}&table_prefix={prefix}-"
            )
            return Database(address, credentials=sign_in, files=open_service(url, prefix))

        with open_at(guard.url) as db, open_at(server) as direct:
            direct.table.create(models=[*MODELS, Ledger])
            direct.create(Ledger, number=1, part=b"x")
            direct.files.put("a", b"1")
            yield Guarded(db, guard, direct)


@pytest.fixture
def scene(server_scene: Guarded) -> Iterator[Guarded]:
    yield server_scene
    server_scene.guard.permit_all()
    server_scene.guard.seen.clear()


def examine(guarded: Guarded, **options: Any) -> Any:
    return guarded.db.doctor(only=["permissions"], models=[*MODELS, Ledger], **options)


def test_with_all_permissions_nothing_is_found_and_nothing_is_changed(scene: Guarded) -> None:
    before = scene.read_all()
    report = examine(scene)
    assert (report.findings, report.untried) == ((), ())
    report = examine(scene, features=[*TABLE_ACTIONS])
    assert report.findings == ()
    assert list_untried(report).keys() == UNTRIED.keys() - {"kms:GenerateDataKey"}
    assert set(ACTIONS) <= {action for action, _ in scene.guard.seen}, "some actions were not tried"
    assert scene.read_all() == before


def features_of(message: str) -> set[str]:
    found = re.search(r"; ([a-z, ]+) needs? it$", message)
    assert found is not None, message
    return set(re.split(", | and ", found[1]))


@pytest.mark.parametrize("action", ACTIONS)
def test_a_denied_action_is_found_with_the_features_that_need_it(scene: Guarded, action: str) -> None:
    before = scene.read_all()
    scene.guard.denied.add(action)
    report = examine(scene, features=[*TABLE_ACTIONS])
    scene.guard.permit_all()
    assert scene.read_all() == before
    assert report.findings
    kind, _, name = action.partition(":")
    policies = TABLE_ACTIONS if kind == "dynamodb" else OBJECT_ACTIONS
    users: set[str] = {each for each in TABLE_ACTIONS if name in policies.get(each, ())}
    for finding in report.findings:
        assert finding.check == "permissions"
        assert finding.message.startswith(f"{action} is denied"), finding
    first = report.findings[0]
    table = scene.db.table.name
    assert first.subject.startswith(f"table {table}" if kind == "dynamodb" else "file service default (s3://")
    assert features_of(first.message) == users


@pytest.mark.parametrize("feature", TABLE_ACTIONS)
def test_the_policy_of_a_feature_is_sufficient(scene: Guarded, feature: PolicyFeature) -> None:
    tables, objects = TABLE_ACTIONS[feature], OBJECT_ACTIONS.get(feature, ())
    scene.guard.allowed = {*(f"dynamodb:{each}" for each in tables), *(f"s3:{each}" for each in objects)}
    scene.guard.allowed.add("dynamodb:DescribeTable")
    report = examine(scene, features=[feature])
    assert report.findings == ()
    assert {each.action for each in report.untried} == scene.guard.allowed & UNTRIED.keys()


def list_findings(report: Any) -> list[tuple[str, str]]:
    return [(each.subject, each.message.partition(" is denied")[0]) for each in report.findings]


def list_untried(report: Any) -> dict[str, str]:
    return {each.action: each.reason for each in report.untried}


def test_each_table_and_each_index_is_tried(scene: Guarded) -> None:
    own = scene.own_table
    put, query = ("dynamodb:PutItem", own), ("dynamodb:Query", f"{own}/index/by_size")
    scene.guard.denied |= {put, query}
    report = examine(scene)
    assert list_findings(report) == [(f"table {own}", put[0]), (f"index by_size of table {own}", query[0])]
    assert features_of(report.findings[0].message).isdisjoint({"jobs", "attachments", "artifacts"})


def test_without_permission_to_describe_a_table_nothing_else_is_tried_on_it(scene: Guarded) -> None:
    own = scene.own_table
    scene.guard.denied.add(("dynamodb:DescribeTable", own))
    report = examine(scene, features=["reads"])
    assert list_findings(report) == [(f"table {own}", "dynamodb:DescribeTable")]
    assert {(each.action, each.subject) for each in report.untried} == {
        (f"dynamodb:{name}", f"table {own}") for name in ("GetItem", "BatchGetItem", "Query")
    }


@pytest.mark.parametrize("naming", [False, True])
def test_without_permission_to_list_s3_reports_missing_objects_as_forbidden(
    scene: Guarded, naming: bool
) -> None:
    scene.guard.denied.add("s3:ListBucket")
    scene.guard.naming = naming
    report = examine(scene, features=["files"])
    (finding,) = report.findings
    assert (
        finding.message
        == "s3:ListBucket is denied, so S3 reports a missing object as forbidden; files needs it"
    )
    reason = "the request needs s3:ListBucket, too"
    tried = ("GetObject", "GetObjectTagging", "DeleteObject", "PutObjectTagging")
    assert list_untried(report) == {f"s3:{each}": reason for each in tried}


def test_conditions_on_objects_need_permission_to_read(scene: Guarded) -> None:
    scene.guard.denied.add("s3:GetObject")
    report = examine(scene, features=["files"])
    assert [action for _, action in list_findings(report)] == ["s3:GetObject"]
    reason = "the request needs s3:GetObject, too"
    assert list_untried(report) == {"s3:DeleteObject": reason, "s3:PutObjectTagging": reason}


def test_a_denied_use_of_a_kms_key_is_reported(scene: Guarded) -> None:
    scene.guard.encrypted = scene.guard.naming = True
    scene.guard.denied.add("kms:Decrypt")
    report = examine(scene, features=["archive"])
    (finding,) = report.findings
    assert finding.message == "kms:Decrypt is denied on the key that encrypts its data; archive needs it"
    assert list_untried(report) == {"s3:GetObject": "the request needs kms:Decrypt, too"}


def test_options_in_the_url_of_a_service_need_further_permissions(
    scene: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    options = f"endpoint={scene.guard.url}&acl=private&encryption=aws:kms&kms_key=k"
    scene.guard.naming = True
    with Database("memory:", files=f"s3://{BUCKET}/{uuid4().hex}?{options}") as db:
        db.table.create()
        permitted = db.doctor(only=["permissions"], features=["files"])
        scene.guard.denied.add("s3:PutObjectAcl")
        denied = db.doctor(only=["permissions"], features=["files"])
        assert list(db.files.list()) == []
    assert permitted.findings == ()
    assert list_untried(permitted).keys() == {"kms:Decrypt", "kms:GenerateDataKey"}
    assert [action for _, action in list_findings(denied)] == ["s3:PutObjectAcl"]


def test_credentials_that_s3_refuses_are_a_configuration_fault(scene: Guarded) -> None:
    scene.guard.refused = "InvalidAccessKeyId"
    report = scene.db.doctor(only=["configuration", "permissions"], features=["files"])
    (finding,) = report.findings
    assert (finding.check, finding.subject) == ("configuration", "file service default")
    assert "InvalidAccessKeyId" in finding.message
    assert {each.subject.partition(" (")[0] for each in report.untried} == {"file service default"}


@pytest.mark.parametrize("code", ["InvalidAccessKeyId", "InternalError"])
def test_a_service_that_refuses_everything_gets_only_one_request(
    scene: Guarded, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    scene.guard.refused = code
    url = f"s3://{BUCKET}?endpoint={scene.guard.url}&max_attempts=1"
    with Database("memory:", files=url) as db:
        db.table.create()
        report = db.doctor(only=["permissions"], features=["archive"])
    assert scene.guard.seen == {("s3:ListBucket", BUCKET)}
    assert list_untried(report).keys() == {f"s3:{each}" for each in OBJECT_ACTIONS["archive"]}


def test_a_key_that_kms_refuses_is_reported(scene: Guarded) -> None:
    scene.guard.refused = "KMS.DisabledException"
    report = examine(scene, features=["archive"])
    words = "KMS refuses to use the key that encrypts its data (KMS.DisabledException); archive needs it"
    assert {each.message for each in report.findings} == {words}


def test_the_table_of_artifacts_is_tried(scene: Guarded) -> None:
    name = f"artifacts-{uuid4()}"
    options: dict[str, Any] = {"credentials": sign_in, "artifacts": f"table={name}"}
    with Database(scene.db._context.settings.url, **options, files="memory:") as db:
        db.send(CreateTable(TableSchema(name, KeyAttribute("pk"), KeyAttribute("sk"))))
        scene.guard.denied.add(("dynamodb:UpdateItem", name))
        report = db.doctor(only=["permissions"])
    assert list_findings(report) == [(f"table {name}", "dynamodb:UpdateItem")]
    assert features_of(report.findings[0].message) == {"artifacts"}


def test_checks_that_read_tables_need_permission_to_scan(scene: Guarded) -> None:
    scene.guard.denied.add("dynamodb:Scan")
    assert examine(scene, features=["models"]).findings == ()
    report = scene.db.doctor(features=["models"])
    (finding,) = report.findings
    assert finding.message == "dynamodb:Scan is denied; doctor needs it"
    assert report.scanned == 0


def test_without_permission_to_scan_one_table_the_others_are_read(scene: Guarded) -> None:
    scene.guard.denied.add(("dynamodb:Scan", scene.own_table))
    report = scene.db.doctor(models=[*MODELS, Ledger], store_figures=False)
    assert list_findings(report) == [(f"table {scene.own_table}", "dynamodb:Scan")]
    assert [each.model for each in report.figures] == ["DoctorPerson", "DoctorVisit"]


def test_without_permission_to_describe_the_table_that_is_the_only_finding(scene: Guarded) -> None:
    scene.guard.denied.add("dynamodb:DescribeTable")
    report = scene.db.doctor()
    assert list_findings(report) == [(f"table {scene.db.table.name}", "dynamodb:DescribeTable")]


def test_without_permission_to_store_figures_there_is_a_notice(scene: Guarded) -> None:
    scene.guard.denied.add("dynamodb:BatchWriteItem")
    report = scene.db.doctor(models=MODELS, only=["items"])
    (finding,) = report.findings
    assert (finding.severity, finding.subject) == ("notice", "figures")
    assert len(report.figures) == 2


def test_async_programs_can_check_permissions(scene: Guarded) -> None:
    scene.guard.denied.add("s3:PutObject")
    report = asyncio.run(scene.db.aio.doctor(only=["permissions"], features=["archive"]))
    assert [action for _, action in list_findings(report)] == ["s3:PutObject"]


@pytest.mark.parametrize("url", ["memory:", "embedded:"])
def test_a_store_without_permissions_has_no_findings(url: str, tmp_path: Path) -> None:
    here = f"{url}{tmp_path / 'a.db'}" if url == "embedded:" else url
    named = {"one": "memory:", "two": f"file:{tmp_path / 'files'}", "both": "mirror:one,two"}
    with Database(here, files=named) as db:
        db.table.create()
        db.files["two"].put("a", b"1")
        report = db.doctor(only=["permissions"])
    assert (report.findings, report.untried) == ((), ())


def test_a_service_that_cannot_be_opened_is_a_configuration_fault() -> None:
    with Database("memory:", files="s3://?region=eu-west-1") as db:
        db.table.create()
        (finding,) = db.doctor().findings
    assert (finding.check, finding.subject) == ("configuration", "file service default")


def test_only_features_with_a_policy_can_be_checked() -> None:
    wrong: list[Any] = ["model", [], ["model"]]
    with Database("memory:") as db:
        for features in wrong:
            with pytest.raises(InvalidOptionsError, match=r"features must be a list|no policy for 'model'"):
                db.doctor(features=features)

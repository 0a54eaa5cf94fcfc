"""The permissions of each feature: it sends only what its policy allows, and the guide lists the same actions."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from rig.wrapper import Wrapper

import holdall
from holdall import (
    Archive,
    Database,
    Index,
    Key,
    Model,
    SortKey,
    features,
    field,
    has_many_attached,
    has_one_attached,
)
from holdall.backends.embedded import EmbeddedBackend
from holdall.backends.memory import MemoryService
from holdall.core import TransactWrite, objects, requests
from holdall.core.port import Send
from holdall.core.requests import Request
from holdall.tables import PolicyFeature
from holdall.tables.export.policy import ACTIONS, OBJECT_ACTIONS, TABLE_ACTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "deploying.md"
ROWS = dict(re.findall(r"^\| `(\w+)` \| .+? \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
SOURCE = Path(holdall.__file__).parent

ACTIONS_OF_REQUESTS = {
    "GetItem": "GetItem",
    "TransactGet": "GetItem",
    "BatchGet": "BatchGetItem",
    "PutItem": "PutItem",
    "UpdateItem": "UpdateItem",
    "DeleteItem": "DeleteItem",
    "Check": "ConditionCheckItem",
    "ConditionCheck": "ConditionCheckItem",
    "BatchWrite": "BatchWriteItem",
    "Query": "Query",
    "Scan": "Scan",
    "DescribeTable": "DescribeTable",
    "DescribeTtl": "DescribeTimeToLive",
    "CreateTable": "CreateTable",
    "AddIndex": "UpdateTable",
    "RemoveIndex": "UpdateTable",
    "SetTtl": "UpdateTimeToLive",
}
TAGGING = {"GetObjectTagging", "PutObjectTagging"}
ACTIONS_OF_OBJECT_REQUESTS: dict[str, set[str]] = {
    "DescribeService": set(),
    "HeadObject": {"GetObject"},
    "GetObject": {"GetObject"},
    "MeasurePart": {"GetObject"},
    "GetTags": {"GetObjectTagging"},
    "ListObjects": {"ListBucket"},
    "SignUrl": {"GetObject"},
    "PutObject": {"PutObject"},
    "CopyObject": {"GetObject", "PutObject", *TAGGING},
    "ImportObject": {"GetObject", "PutObject", *TAGGING},
    "DeleteObject": {"DeleteObject"},
    "DeleteObjects": {"DeleteObject"},
    "BeginUpload": {"PutObject"},
    "UploadPart": {"PutObject"},
    "CopyPart": {"GetObject", "PutObject"},
    "CompleteUpload": {"PutObject"},
    "ListParts": {"ListMultipartUploadParts"},
    "ListUploads": {"ListBucketMultipartUploads"},
    "AbortUpload": {"AbortMultipartUpload"},
}


class ActionRecorder(Wrapper):
    """Wraps a backend or a file service, and records the actions that its requests need."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.needed: set[str] = set()

    async def _answer(self, send: Send, request: Any) -> Any:
        parts = request.actions if isinstance(request, TransactWrite) else [request]
        for name in (type(part).__name__ for part in parts):
            self.needed |= (
                ACTIONS_OF_OBJECT_REQUESTS[name]
                if name in ACTIONS_OF_OBJECT_REQUESTS
                else {ACTIONS_OF_REQUESTS[name]}
            )
        if getattr(request, "tags", None):
            self.needed.add("PutObjectTagging")
        return await send(self.inner, request)


class Parcel(Model):
    name: Key[str]
    label: str = field(unique=True)
    weight: int = 0


class Box(Model):
    name: Key[str]
    weight: int = 0


class Shelf(Model):
    name: Key[str]
    cover = has_one_attached()
    papers = has_many_attached()


class Visit(Model, archive=Archive(timestamp="at", after_days=1, key="visits/{partitionKey}/{sortKey}")):
    page: Key[str]
    at: SortKey[datetime]
    trace: str = ""


class Crate(Model, table="Crates", indexes=[Index("by_size", key=["size"])]):
    name: Key[str]
    size: str


SECRET = "a secret of some length"


@holdall.job("deploying.weigh", transactional=True)
def weigh(tx: Any, parcel: Parcel) -> None:
    parcel.weight += 1


def use_models(db: Database) -> None:
    def change(tx: Any, weight: int) -> None:
        first, second = tx.get_one(Parcel, "a"), tx.get_one(Parcel, "b")
        first.weight = second.weight + weight

    db.run(lambda tx: [tx.create(Parcel, name=name, label=name) for name in "abc"])
    db.run(lambda tx: tx.create(Visit, page="home", at=datetime(2020, 1, 1, tzinfo=UTC)))
    db.run(change, 5)
    db.run(lambda tx: setattr(tx.get_one(Parcel, "b"), "weight", 7))
    db.run(lambda tx: tx.delete(tx.get_one(Parcel, "c")))
    read(db)


def clear(tx: Any) -> None:
    for name in "ab":
        tx.delete(tx.get_one(Parcel, name))
    tx.delete(tx.get_one(Visit, page="home", at=datetime(2020, 1, 1, tzinfo=UTC)))


def read(db: Database) -> None:
    db.get(Parcel, "a")
    db.get_all([Parcel.key("a"), Parcel.key("b")])
    db.get_all([Parcel.key("a"), Parcel.key("b")], consistent=False)
    db.get_by(Parcel, label="a")
    db.query(Visit, page="home").all()
    db.run(lambda tx: [tx.get_one(Parcel, name).weight for name in "ab"], read_only=True)


def use_jobs(db: Database) -> None:
    db.run(lambda tx: tx.enqueue(weigh, tx.create(Parcel, name="d", label="d"), key="k"))
    db.worker().drain()
    db.jobs.counts()


def use_attachments(db: Database) -> None:
    def fill(tx: Any, data: bytes) -> None:
        shelf = tx.get(Shelf, "blue", create_if_missing=True, include=["cover", "papers"])
        shelf.cover = {"io": data, "filename": "cover.gif"}
        shelf.papers.attach(data, filename="paper.txt")

    db.run(fill, b"GIF89a")
    db.run(fill, b"GIF89b")
    upload = db.blobs.start_upload(filename="film.mp4", byte_size=3)
    db.blobs.continue_upload(upload, 0, b"abc")
    db.run(lambda tx: tx.delete(tx.get_one(Shelf, "blue")))
    db.worker().drain()
    db.blobs.sweep()


def use_artifacts(db: Database) -> None:
    db.artifacts.publish("app", b"1")
    db.artifacts.publish("app", b"2")
    db.artifacts.put_alias("app", "prod", 1)
    db.artifacts.put_alias("app", "prod", 2)
    db.artifacts.alias("app", "prod")
    db.artifacts.download("app", 1)
    db.artifacts.rollback_alias("app", "prod")
    list(db.artifacts.versions("app"))
    db.artifacts.delete("app", 2)
    db.artifacts.purge("app", 2)


def use_archive(db: Database) -> None:
    for day in (1, 2):
        at = datetime(2020, 1, day, tzinfo=UTC)
        db.run(lambda tx, at: tx.create(Visit, page="old", at=at, trace="x" * 2000), at)
    db.archive.run(Visit)
    db.archive.sweep(Visit)
    db.archive.report(Visit)
    db.archive.restore_all(Visit)


def use_bulk(db: Database) -> None:
    with db.bulk(Box) as bulk:
        for name in "pq":
            bulk.put(Box(name=name))
    db.update_all(Box, {"weight": 1}, name="p")
    db.delete_all(Box, name="p")


def use_files(db: Database) -> None:
    db.files.put("a", b"1", tags={"kind": "test"})
    db.files.put("b", io.BytesIO(bytes(20_000_000)))
    db.files.copy("a", "c")
    db.files.get("a")
    db.files.url("a")
    list(db.files.list())
    db.files.delete("a")


def use_copy(db: Database) -> None:
    with Database("memory:") as other:
        db.copy_to(other)
        other.copy_to(db, overwrite=True, delete=True)
    db.load_lines(list(db.dump_lines()))


FEATURES: dict[PolicyFeature, Callable[[Database], Any]] = {
    "models": use_models,
    "reads": read,
    "bulk": use_bulk,
    "scan": lambda db: list(db.scan(Parcel)),
    "migrate": lambda db: db.migrate(Parcel),
    "jobs": use_jobs,
    "files": use_files,
    "attachments": use_attachments,
    "artifacts": use_artifacts,
    "archive": use_archive,
    "copy": use_copy,
    "doctor": lambda db: db.doctor(models=[Parcel, Shelf, Visit], features=["doctor"]),
    "plan": lambda db: (db.table.plan(models=[Parcel]), db.table.describe()),
    "create": lambda db: db.table.create(models=[Crate]),
}


@pytest.fixture
def recorders() -> Iterator[tuple[ActionRecorder, ActionRecorder, Database]]:
    table, files = (
        ActionRecorder(EmbeddedBackend(None)),
        ActionRecorder(MemoryService(secret=[SECRET], base_url="https://files.example")),
    )
    with Database(backend=table, files=files, secret=SECRET) as db:
        db.table.create(models=[Parcel, Shelf, Visit])
        use_models(db)
        table.needed.clear()
        yield table, files, db


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_needs_no_more_than_its_policy_allows(
    feature: PolicyFeature, recorders: tuple[ActionRecorder, ActionRecorder, Database]
) -> None:
    table, files, db = recorders
    if feature == "models":
        db.run(clear)
    if feature == "doctor":
        for fill in (use_jobs, use_artifacts, use_archive, use_attachments):
            fill(db)
        db.blobs.continue_upload(db.blobs.start_upload(filename="film.mp4", byte_size=3), 0, b"ab")
        table.needed.clear()
        files.needed.clear()
    FEATURES[feature](db)
    assert table.needed <= {*TABLE_ACTIONS[feature]}
    assert files.needed <= {*OBJECT_ACTIONS.get(feature, ())}
    assert table.needed | files.needed


def test_every_feature_is_tested() -> None:
    assert FEATURES.keys() == TABLE_ACTIONS.keys() == {*get_args(PolicyFeature)}
    assert {feature.name for feature in features.FEATURES} <= FEATURES.keys()


MODULES: dict[str, tuple[PolicyFeature, ...]] = {
    "transactions": ("models",),
    "transactions/bulk": ("bulk",),
    "transactions/table_run/checkpoint.py": ("bulk",),
    "transactions/query/scan.py": ("scan",),
    "transactions/migration": ("migrate",),
    "transactions/move": ("migrate",),
    "jobs": ("jobs",),
    "files": ("files",),
    "attachments": ("attachments",),
    "attachments/upkeep/audit.py": ("scan", "attachments"),
    "attachments/upkeep/inventory.py": ("scan", "attachments"),
    "artifacts": ("artifacts",),
    "artifacts/catalogue.py": ("scan", "artifacts"),
    "archive": ("archive",),
    "maintenance": ("copy",),
    "maintenance/doctor": ("doctor",),
}
"""The features of each room or module that sends requests; the longest path applies."""

TRIALS = "maintenance/doctor/trial.py"
"""The module that tries out the actions of all features, so no single policy covers it."""


HELPERS = {
    "put_all": {"BatchWrite"},
    "delete_all": {"BatchWrite"},
    "fetch": {"GetItem", "BatchGet"},
    "fetch_all": {"GetItem", "BatchGet"},
}
"""Functions that read or write records, and the requests that they send."""


def find_requests(module: Path) -> set[str]:
    """The classes of the requests that a module makes, directly or through `HELPERS`."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            func = node.func
            found.add(func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", ""))
        elif isinstance(node, ast.ImportFrom) and node.module == "holdall.tables.record":
            found |= {name for each in node.names for name in HELPERS.get(each.name, ())}
    return found & {*ACTIONS_OF_REQUESTS, *ACTIONS_OF_OBJECT_REQUESTS}


def test_the_actions_of_all_requests_are_known() -> None:
    found = [*vars(requests).values(), *vars(objects).values()]
    kinds = [each for each in found if isinstance(each, type) and issubclass(each, Request)]
    named = {each.__name__ for each in kinds if not each.__subclasses__()}
    whole = {"TransactWrite", "DeleteTable"}  # needs only the actions of its parts; no feature sends it
    assert named - whole == {*ACTIONS_OF_REQUESTS, *ACTIONS_OF_OBJECT_REQUESTS} - {"Check", "ConditionCheck"}


@pytest.mark.parametrize("home", MODULES)
def test_a_module_makes_only_requests_that_the_policies_of_its_features_allow(home: str) -> None:
    allowed = {action for each in MODULES[home] for action in TABLE_ACTIONS[each]}
    allowed |= {action for each in MODULES[home] for action in OBJECT_ACTIONS.get(each, ())}
    found = 0
    for module in sorted(SOURCE.rglob("*.py")):
        path = module.relative_to(SOURCE).as_posix()
        homes = [each for each in MODULES if path == each or path.startswith(f"{each}/")]
        if path == TRIALS or not homes or max(homes, key=len) != home:
            continue
        names = find_requests(module)
        found += bool(names)
        needed = {ACTIONS_OF_REQUESTS[name] for name in names & ACTIONS_OF_REQUESTS.keys()}
        needed |= {action for name in names for action in ACTIONS_OF_OBJECT_REQUESTS.get(name, ())}
        assert needed <= allowed, f"{path} needs more than its policies allow"
    assert found


@pytest.mark.parametrize("feature", TABLE_ACTIONS)
def test_the_page_lists_what_the_policies_allow(feature: PolicyFeature) -> None:
    def list_actions(row: str) -> set[str]:
        named = set(re.findall(r"`([A-Z]\w+)`", row))
        return named | {
            action for other in re.findall(r"`([a-z]+)`", row) for action in list_actions(ROWS[other])
        }

    assert list_actions(ROWS[feature]) == {*TABLE_ACTIONS[feature]}


def test_the_exported_policy_allows_all_actions_except_creating_tables() -> None:
    creating = {"CreateTable", "UpdateTable", "UpdateTimeToLive"}
    every = {action for actions in TABLE_ACTIONS.values() for action in actions} - creating
    assert {action.removeprefix("dynamodb:") for action in ACTIONS} == every

"""The permissions that the guide to deploying lists: each feature sends nothing that its row does not allow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import holdall
from holdall import Archive, Database, Key, Model, SortKey, field, has_many_attached, has_one_attached
from holdall.core import TransactWrite
from holdall.tables.export.policy import ACTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "deploying.md"
ROWS = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))

OF_REQUESTS = {
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
}


class Gate:
    """A backend in memory that notes the actions that its requests need."""

    def __init__(self) -> None:
        self.inner = Database("memory:")
        self.needed: set[str] = set()

    def note(self, request: Any) -> Any:
        parts = request.actions if isinstance(request, TransactWrite) else [request]
        self.needed |= {OF_REQUESTS[type(part).__name__] for part in parts}
        return request

    def send_blocking(self, request: Any) -> Any:
        return self.inner.send(self.note(request))

    async def send_awaiting(self, request: Any) -> Any:
        return await self.inner.aio.send(self.note(request))

    def close(self) -> None:
        self.inner.close()


class Parcel(Model):
    name: Key[str]
    label: str = field(unique=True)
    weight: int = 0


class Shelf(Model):
    name: Key[str]
    cover = has_one_attached()
    papers = has_many_attached()


class Visit(Model, archive=Archive(timestamp="at", after_days=1, key="visits/{partitionKey}/{sortKey}")):
    page: Key[str]
    at: SortKey[datetime]
    trace: str = ""


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


FEATURES: dict[str, Callable[[Database], Any]] = {
    "models: `get`, `query`, transactions": use_models,
    "reads alone": read,
    "`db.scan`": lambda db: list(db.scan(Parcel)),
    "`holdall migrate`": lambda db: db.migrate(Parcel),
    "jobs and workers": use_jobs,
    "attachments": use_attachments,
    "artifacts": use_artifacts,
    "archive runs and upkeep": use_archive,
    "`holdall table plan`, `describe`": lambda db: (db.table.plan(models=[Parcel]), db.table.describe()),
}


def allowed(feature: str) -> set[str]:
    """The actions of a row; "as models" and "as reads" refer to other rows."""
    text = ROWS[feature]
    named = set(re.findall(r"`([A-Z]\w+)`", text))
    if text.startswith("as models"):
        named |= allowed("models: `get`, `query`, transactions")
    elif text.startswith("as reads"):
        named |= allowed("reads alone")
    return named


@pytest.fixture
def gate() -> Iterator[tuple[Gate, Database]]:
    gate = Gate()
    gate.inner.table.create(models=[Parcel, Shelf, Visit])
    with Database(backend=gate, files="memory:", secret="a secret of some length") as db:
        use_models(db)
        gate.needed.clear()
        yield gate, db


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.replace("`", ""))
def test_a_feature_needs_no_more_than_its_row_allows(feature: str, gate: tuple[Gate, Database]) -> None:
    backend, db = gate
    if feature.startswith("models"):
        db.run(clear)
    FEATURES[feature](db)
    assert backend.needed
    assert backend.needed <= allowed(feature)


def test_the_exported_policy_is_what_the_page_lists() -> None:
    creating = {"CreateTable", "UpdateTable", "UpdateTimeToLive"}
    listed = {action for feature in FEATURES for action in allowed(feature)} - creating
    assert {action.removeprefix("dynamodb:") for action in ACTIONS} == listed

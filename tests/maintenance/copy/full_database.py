"""A database with items and files of every feature, and what an application sees of them."""

from __future__ import annotations

import base64
import io
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pypdfium2
import pytest

from holdall import (
    Archive,
    Database,
    Index,
    Key,
    Model,
    SortKey,
    Template,
    Variant,
    field,
    has_many_attached,
    has_one_attached,
    job,
)
from holdall.core.port import run
from holdall.errors import UniqueViolationError
from holdall.jobs import Job, declared_jobs
from holdall.jobs.flow import enqueue_next
from holdall.jobs.lease import take

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
OLD = datetime(2020, 1, 1, tzinfo=UTC)


class Person(Model, name="CopiedPerson"):
    number: Key[int]
    mail: str = field(unique=True)
    picture = has_one_attached(variants={"small": Variant(resize_to_limit=(1, 1))})
    papers = has_many_attached()


class Purchase(
    Model,
    name="CopiedPurchase",
    indexes=[Index("by_product", key=["product"])],
    archive=Archive(after_days=30, timestamp="placed_at", key="purchases/{partitionKey}"),
):
    number: Key[int]
    product: str
    placed_at: datetime
    note: str


class Town(Model, table="copied-towns"):
    name: Key[str]
    people: int


class Session(Model, name="CopiedSession", ttl="until"):
    number: Key[int]
    until: datetime


class Client(Model, name="CopiedClient", collection="copied_client"):
    client: Key[str]
    city: str


class Invoice(Model, name="CopiedInvoice", collection="copied_client"):
    client: Key[str]
    number: SortKey[int]
    cents: int


class Ticket(
    Model,
    name="CopiedTicket",
    table="copied-tickets",
    indexes=[Index("byPriority", sort_key=["priority"], local=True), Index("byOwner", key=["owner"])],
):
    project: Key[str]
    number: SortKey[int]
    priority: int
    owner: str


class Parcel(
    Model,
    name="CopiedParcel",
    table="copied-design",
    layout=Template(
        pk="TOWN#{town}", sk="PARCEL#{number:05d}", gsi1=("STATE#{state}", "{number:05d}"), type="kind"
    ),
):
    town: Key[str]
    number: SortKey[int]
    state: str


class Depot(
    Model,
    name="CopiedDepot",
    table="copied-design",
    layout=Template(pk="TOWN#{town}", sk="DEPOT", type="kind"),
):
    town: Key[str]
    street: str


ran: Counter[str] = Counter()
"""The number of runs of each job, by its argument."""


@job("copied-ok")
def succeed(name: str) -> None:
    ran[name] += 1


@job("copied-dead", retries=0)
def die() -> None:
    raise ValueError("as usual")


MODELS: list[Any] = [Person, Purchase, Town, Session, Client, Invoice, Ticket, Parcel, Depot]
TABLES = ["copied-towns", "copied-tickets", "copied-design"]


def make_pdf() -> bytes:
    paper, written = pypdfium2.PdfDocument.new(), io.BytesIO()
    paper.new_page(59, 84)
    paper.save(written)
    return written.getvalue()


def fill(db: Database) -> None:
    """Create items and files of every feature."""
    db.table.create(models=MODELS)
    with db.transaction() as tx:
        for number in range(4):
            person = tx.create(Person, number=number, mail=f"m{number}@example.org")
            if number % 2:
                person.picture.attach(PICTURE, filename="p.png", content_type="image/png")
        for number in range(6):
            tx.create(Purchase, number=number, product="tea", placed_at=OLD, note="n" * 500)
        for name in ("Ulm", "Bern"):
            tx.create(Town, name=name, people=len(name))
        tx.create(Session, number=1, until=datetime.now(UTC) + timedelta(days=1))
        tx.create(Client, client="ada", city="Ulm")
        tx.create(Invoice, client="ada", number=9, cents=900)
        for number in range(3):
            tx.create(Ticket, project="web", number=number, priority=9 - number, owner="ada")
            tx.create(Parcel, town="Ulm", number=number, state="open")
        tx.create(Depot, town="Ulm", street="Hafengasse")
    with db.transaction() as tx:
        tx.get_one(Person, number=1).papers.attach(make_pdf(), filename="paper.pdf")
    person = db.get_one(Person.key(number=1), include=["picture", "papers"])
    assert person.picture.blob is not None
    db.blobs.variant(person.picture.blob, Variant(resize_to_limit=(1, 1)))
    db.blobs.preview(person.papers.blobs[0])
    db.worker().drain()
    db.jobs.enqueue(die)
    db.worker().drain()
    assert db.archive.run(Purchase).archived == 6
    for version in (b"one", b"two"):
        db.artifacts.put("app", version)
        db.artifacts.publish("app")
    db.artifacts.put_alias("app", "prod", version=1, by="ada", reason="first")
    db.artifacts.put_alias("app", "prod", version=1, secondary_version=2, secondary_version_weight=20)
    db.artifacts.put_alias("app", "next", version=1)
    db.artifacts.start_rollout("app", "next", 2, [(5, 3600), (50, None)], by="ada")
    for number in range(30):
        db.files.put(f"files/{number}", bytes([number]) * 100, metadata={"n": str(number)})
    db.jobs.enqueue(succeed, "waiting", key="one")
    db.jobs.enqueue(succeed, "later", delay=3600)
    held = db.jobs.get(db.jobs.enqueue(succeed, "held", queue="slow").id)
    assert held is not None
    assert run(take(db._context, held, "token", 60)) is not None
    recurring: Job[*tuple[Any, ...]] = job("copied-hourly", every=timedelta(hours=1))(die.function)
    run(enqueue_next(db._context, recurring))
    del declared_jobs()[recurring.name]  # the doctor of another test would report that no worker enqueues it


def change(db: Database, seed: str) -> None:
    """Create, change and delete items and files of several features."""
    chance = Random(seed)
    with db.transaction() as tx:
        for town in tx.scan(Town):
            town.people += chance.randrange(1, 9)
        tx.create(Town, name=f"Town {seed}", people=1)
    with db.transaction() as tx:
        people = list(tx.scan(Person))
        number = max((each.number for each in people), default=0) + 1
        person = tx.create(Person, number=number, mail=f"m{number}@example.org")
        person.picture.attach(PICTURE, filename="p.png", content_type="image/png")
        for each in chance.sample(people, min(1, len(people))):
            tx.delete(each)
    db.worker().drain()
    db.jobs.enqueue(succeed, seed)
    db.artifacts.put("app", seed.encode())
    db.artifacts.publish("app")
    keys = [each.key for each in db.files.list("files/")]
    for key in chance.sample(keys, min(6, len(keys))):
        if chance.random() < 0.4:
            db.files.delete(key)
        else:
            db.files.put(key, chance.randbytes(50))


def describe(db: Database) -> dict[str, Any]:
    """What an application sees. Waiting and running jobs are given as paused, because a copy pauses them."""
    with db.transaction(read_only=True) as tx:
        people = {each.number: each for each in tx.scan(Person)}
        tx.load(list(people.values()), "picture", "papers")
        pictures = {number: each.picture.blob for number, each in people.items() if each.picture.blob}
        papers = {number: person.papers.blobs for number, person in people.items()}
        bought = {each.number: each.note for each in tx.query(Purchase, index="by_product", product="tea")}
    return {
        "people": {number: each.mail for number, each in people.items()},
        "pictures": {number: db.blobs.download(each) for number, each in pictures.items()},
        "papers": {
            number: [(each.filename, db.blobs.download(each)) for each in some]
            for number, some in papers.items()
        },
        "media": sorted(
            (each.filename, db.blobs.download(each))
            for some in papers.values()
            for paper in some
            for each in [db.blobs.preview(paper)]
        ),
        "purchases": bought,
        "sessions": [each.until for each in db.scan(Session)],
        "client": [str(each) for each in db.query((Client, Invoice), client="ada")],
        "tickets": [
            [(each.number, each.priority) for each in db.query(Ticket, index="byPriority", project="web")],
            sorted(each.number for each in db.query(Ticket, index="byOwner", owner="ada")),
        ],
        "design": [
            [str(each) for each in db.query((Parcel, Depot), town="Ulm")],
            [each.number for each in db.query(Parcel, index="gsi1", state="open")],
        ],
        "towns": {each.name: each.people for each in db.scan(Town)},
        "versions": {
            each.version: db.artifacts.download("app", each.version) for each in db.artifacts.versions("app")
        },
        "aliases": {
            name: (
                [list(arm) for arm in db.artifacts.alias("app", name).arms],
                str(db.artifacts.alias_history("app", name)),
            )
            for name in ("prod", "next")
        },
        "rollout": str(db.artifacts.rollout("app", "next")),
        "files": {
            each.key: (db.files.get(each.key), dict(db.files.head(each.key).headers.metadata))
            for each in db.files.list("files/")
        },
        "jobs": sorted(
            (each.arguments, each.queue, each.key or "", "dead" if each.state == "dead" else "paused")
            for each in db.jobs.list()
        ),
    }


def use(db: Database) -> None:
    """Work with a copy of a filled database: check that it is complete, and that everything can be changed."""
    report = db.doctor(models=MODELS)
    assert not report.findings, report.findings
    waiting = db.jobs.list(state="paused")
    assert db.jobs.resume() == len(waiting)
    with pytest.raises(UniqueViolationError), db.transaction() as tx:
        tx.create(Person, number=99, mail="m1@example.org")
    ran.clear()
    db.worker(queues=["default", "slow"]).drain()
    assert (ran["waiting"], ran["held"], ran["later"]) == (1, 1, 0)
    for number in range(6):
        with db.transaction() as tx:  # the purchase is archived; the write restores it
            tx.get_one(Purchase, number=number).note = "read"
    assert db.artifacts.advance_rollout("app", "next").percent == 50
    assert db.artifacts.advance_rollout("app", "next").state == "done"
    assert db.artifacts.rollback_alias("app", "prod").versions == ("1",)
    db.artifacts.put("app", b"three")
    assert db.artifacts.publish("app").version == "3"
    with db.transaction() as tx:
        tx.delete(tx.get_one(Person, number=1))
    db.worker().drain()
    assert not [each for each in db.blobs.scan().blobs if each.filename == "paper.pdf"]
    report = db.doctor(models=MODELS)
    assert not report.findings, report.findings

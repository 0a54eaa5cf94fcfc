"""A database with something of everything in it, and what an application sees of that."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from random import Random
from typing import Any

from holdall import Archive, Database, Index, Key, Model, Variant, field, has_one_attached, job
from holdall.core.port import run
from holdall.jobs.lease import take

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
OLD = datetime(2020, 1, 1, tzinfo=UTC)


class Person(Model, name="CopiedPerson"):
    number: Key[int]
    mail: str = field(unique=True)
    picture = has_one_attached(variants={"small": Variant(resize_to_limit=(1, 1))})


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


@job("copied-ok")
def succeed(name: str) -> None: ...


@job("copied-dead", retries=0)
def die() -> None:
    raise ValueError("as usual")


MODELS: list[Any] = [Person, Purchase, Town]


def fill(db: Database) -> None:
    """Something of everything."""
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
    person = db.get_one(Person.key(number=1), include=["picture"])
    assert person.picture.blob is not None
    db.blobs.variant(person.picture.blob, Variant(resize_to_limit=(1, 1)))
    db.worker().drain()
    db.jobs.enqueue(die)
    db.worker().drain()
    assert db.archive.run(Purchase).archived == 6
    for version in (b"one", b"two"):
        db.artifacts.put("app", version)
        db.artifacts.publish("app")
    db.artifacts.put_alias("app", "prod", version=1, secondary_version=2, secondary_version_weight=20)
    for number in range(30):
        db.files.put(f"files/{number}", bytes([number]) * 100, metadata={"n": str(number)})
    db.jobs.enqueue(succeed, "waiting", key="one")
    db.jobs.enqueue(succeed, "later", delay=3600)
    held = db.jobs.get(db.jobs.enqueue(succeed, "held", queue="slow").id)
    assert held is not None
    assert run(take(db._context, held, "token", 60)) is not None


def change(db: Database, seed: str) -> None:
    """Something new, changed and deleted of everything."""
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
    """What an application sees; waiting and running jobs as paused ones."""
    with db.transaction(read_only=True) as tx:
        people = {each.number: each for each in tx.scan(Person)}
        tx.load(list(people.values()), "picture")
        pictures = {number: each.picture.blob for number, each in people.items() if each.picture.blob}
        bought = {each.number: each.note for each in tx.query(Purchase, index="by_product", product="tea")}
    return {
        "people": {number: each.mail for number, each in people.items()},
        "pictures": {number: db.blobs.download(each) for number, each in pictures.items()},
        "purchases": bought,
        "towns": {each.name: each.people for each in db.scan(Town)},
        "versions": {
            each.version: db.artifacts.download("app", each.version) for each in db.artifacts.versions("app")
        },
        "alias": [list(arm) for arm in db.artifacts.alias("app", "prod").arms],
        "files": {
            each.key: (db.files.get(each.key), dict(db.files.head(each.key).headers.metadata))
            for each in db.files.list("files/")
        },
        "jobs": sorted(
            (each.arguments, each.queue, each.key or "", "dead" if each.state == "dead" else "paused")
            for each in db.jobs.list()
        ),
    }

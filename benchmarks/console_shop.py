"""A database for the console: 1,000,000 items of a model, some of them archived, and many records of each feature."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from random import Random
from uuid import UUID

from holdall import Archive, Database, Index, Key, Model, SortKey, field, has_many_attached
from holdall.core import BatchWrite, GetItem, Item, PutItem, Scan
from holdall.jobs import JobRecord, Lease
from holdall.jobs.record import encode_job

__all__ = ["ARTIFACT", "COLD", "COUNT", "OWNER", "Purchase", "Shopper", "fill"]

COUNT = 1_000_000
COLD = 100
ARTIFACT = "the-model"
OWNER = "shopper-1"

_PER_CUSTOMER = 1_000
_BATCH = 25
_JOBS = {"default": (4_000, 200, 2_000, 600), "mail": (1_500, 50, 800, 300), "reports": (500, 10, 200, 100)}
"""For each queue, how many jobs wait, run, are dead and are paused."""
_VERSIONS, _ALIASES, _MOVES, _ARTIFACTS = 2_000, 40, 60, 200
_BLOBS, _OWNED = 400, 200
_ERROR = (
    "Traceback (most recent call last):\n" + '  File "/app/shop.py", line 7, in charge\n    pay(card)\n' * 20
)


class Purchase(
    Model,
    archive=Archive(after_days=365, timestamp="placed_at"),
    indexes=[Index("by_product", key=["product"], sort_key=["placed_at"])],
):
    """A purchase of a customer."""

    customer: Key[str]
    number: SortKey[int]
    product: str
    quantity: int = 1
    price: float = 9.9
    paid: bool = True
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    address: dict[str, str] = field(default_factory=dict)
    placed_at: datetime


class Shopper(Model):
    """A customer who uploads pictures."""

    id: Key[str]
    pictures = has_many_attached()


def fill(db: Database) -> None:
    """Fill an empty database."""
    db.table.create(models=[Purchase, Shopper])
    _fill_items(db)
    _fill_jobs(db)
    _fill_artifacts(db)
    _fill_blobs(db)


def _write(db: Database, items: Iterable[Item]) -> None:
    name, puts = db.table.name, list(items)
    for at in range(0, len(puts), _BATCH):
        db.send(BatchWrite(tuple(PutItem(name, item) for item in puts[at : at + _BATCH])))


# --- items ------------------------------------------------------------------------------------------------


def _fill_items(db: Database) -> None:
    """Write one customer's items through the model and copy them for the others; a tenth of the items is in the index.

    The first items of that customer are old and get archived.
    """
    for start in range(0, _PER_CUSTOMER, 100):
        with db.transaction() as tx:
            for number in range(start, start + 100):
                tx.create(_make(number))
    name, key = db.table.name, db.table.layout().partition.name
    items = [item for page in db.pages(Scan(name)) for item in page.items if "customer" in item]
    assert len(items) == _PER_CUSTOMER
    assert db.archive.run(Purchase, force=True).archived == COLD
    bare = [{at: value for at, value in item.items() if not at.startswith("gsi")} for item in items]
    for other in range(1, COUNT // _PER_CUSTOMER):
        changed: Item = {"customer": {"S": f"customer-{other}"}, key: {"S": f"Purchase#customer-{other}"}}
        _write(db, ({**item, **changed} for item in (items if other % 10 == 0 else bare)))


def _make(number: int) -> Purchase:
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(days=900 if number < COLD else 30)
    return Purchase(
        customer="customer-0",
        number=number,
        product=f"product-{number % 97}",
        tags={"beans", "gift"},
        address={"street": f"{number % 211} Mill Lane", "city": "Zürich"},
        placed_at=start + timedelta(seconds=number),
    )


# --- jobs -------------------------------------------------------------------------------------------------


def _fill_jobs(db: Database) -> None:
    random, layout = Random(7), db.table.layout()
    now = datetime.now(UTC)
    for queue, (waiting, running, dead, paused) in _JOBS.items():
        db.jobs.enqueue("first", queue=queue)  # registers the queue
        jobs = [_make_job(random, queue, now) for _ in range(waiting)]
        lease = Lease("x", now + timedelta(minutes=1), 60.0)
        jobs += [_make_job(random, queue, now, lease=lease, attempts=1) for _ in range(running)]
        jobs += [
            _make_job(random, queue, now, error=f"{_ERROR}ValueError: {n}", attempts=11, died=now)
            for n in range(dead)
        ]
        jobs += [_make_job(random, queue, now, paused=True) for _ in range(paused)]
        _write(db, (encode_job(layout, job).stored for job in jobs))


def _make_job(random: Random, queue: str, now: datetime, **given: object) -> JobRecord:
    due = now - timedelta(seconds=random.random() * 3600)
    values = {"due": due, "enqueued": due, **given}
    if values.get("died") is not None:
        values["died"] = due
    arguments = f'["order-{random.randrange(10**6)}",{{"note":"{"x" * 100}"}}]'
    id = str(UUID(int=random.getrandbits(128)))
    return JobRecord(id, f"job-{random.randrange(20)}", queue, arguments, **values)  # type: ignore[arg-type]


# --- artifacts --------------------------------------------------------------------------------------------


def _fill_artifacts(db: Database) -> None:
    """Publish artifacts; for one of them, copy the first version to the following numbers."""
    for name in (ARTIFACT, *(f"model-{n:03}" for n in range(_ARTIFACTS))):
        db.artifacts.put(name, b"content", content_type="text/plain", tags={"team": "x"})
        db.artifacts.publish(name)
        db.artifacts.put_alias(name, "live", version=1)
        db.artifacts.put_alias(name, "next", version=1)
    row, note = _find(db, ARTIFACT, "000001"), _find(db, f"__{ARTIFACT}-meta", "version#000001")
    numbers = [f"{number:06d}" for number in range(2, _VERSIONS + 1)]
    _write(db, ({**row, "sk": {"S": number}} for number in numbers))
    _write(db, ({**note, "sk": {"S": f"version#{number}"}} for number in numbers))
    for number in range(_ALIASES):
        db.artifacts.put_alias(ARTIFACT, f"test-{number:02}", weights={1 + number: 60, 2 + number: 40})
    for number in range(_MOVES):
        db.artifacts.put_alias(ARTIFACT, "live", weights={1900 + number: 90, 1901 + number: 10}, by="x")


def _find(db: Database, pk: str, sk: str) -> Item:
    found = db.send(GetItem(db.table.name, {"pk": {"S": pk}, "sk": {"S": sk}})).item
    assert found is not None
    return found


# --- files ------------------------------------------------------------------------------------------------


def _fill_blobs(db: Database) -> None:
    for number in range(_BLOBS):
        db.blobs.create_and_upload(BytesIO(b"%d" % number), filename=f"file-{number}.txt")
    for start in range(0, _OWNED, 20):
        with db.transaction() as tx:
            owner = tx.create(Shopper, id=OWNER) if start == 0 else tx.get_one(Shopper, id=OWNER)
            for number in range(start, start + 20):
                owner.pictures.attach(
                    b"%d" % number, filename=f"picture-{number}.png", content_type="image/png"
                )

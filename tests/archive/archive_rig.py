"""Where the tests of the archive run: in the one table and in the model's own table, on every store, in both colours.

A test is written once, as ``async def test(db: Rig)``.

- ``@in_memory``: in memory only, for tests that do not depend on the store. Each kind of table runs in one of the
  colours, in turn; under torture each kind runs in both.
- ``@everywhere``: one kind of table in memory and the other with files (embedded and disk) or on ministack, in turn.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import uuid4

import pytest
from rig.clock import Clock
from rig.colour import COLOURS, Awaited, Colour, here_and_elsewhere, run_in, take_turns
from rig.database import FeatureRig, find_address, open_recorded
from rig.recorder import Recorder
from rig.servers import ENVIRONMENT, start_server
from rig.torture import TORTURE

from holdall import Index, Key, Model, SortKey, field
from holdall.archive import Archive
from holdall.archive.pointer import POINTER
from holdall.backends.aws.credentials import find_credentials
from holdall.backends.aws.endpoint import resolve_endpoint
from holdall.backends.disk import DiskService
from holdall.backends.memory import MemoryService
from holdall.backends.s3.service import S3Service
from holdall.core.port import Backend
from holdall.core.requests import GetItem, PutItem, UpdateItem

__all__ = [
    "BEFORE",
    "Goods",
    "NOW",
    "OLD",
    "Order",
    "Rig",
    "Sale",
    "WRITES",
    "Way",
    "assign",
    "every_write",
    "everywhere",
    "in_memory",
    "open_rig",
    "open_service",
    "write_once",
]

Home = Literal["one table", "own table"]
HOMES: tuple[Home, ...] = ("one table", "own table")
T = TypeVar("T")
NOW = datetime.now(UTC).replace(microsecond=0)
OLD = NOW - timedelta(days=100)
TEMPLATE = "orders/{partitionKey}/{sortKey}"


class Goods(Model, abstract=True):
    customer: Key[str]
    number: SortKey[str]
    placed_at: datetime
    product: str | None = None
    quantity: int = 1
    note: str | None = None
    tags: set[str] = field(default_factory=set)


class Order(
    Goods,
    archive=Archive(timestamp="placed_at", after_days=30, key=TEMPLATE),
    indexes=[Index("by_product", key=["product"], sort_key=["placed_at"])],
):
    """An item in the one table."""


class Sale(
    Goods,
    table="sales",
    archive=Archive(timestamp="placed_at", after_days=30, key=TEMPLATE),
    indexes=[
        Index("by_product", key=["product"], sort_key=["placed_at"], sparse=True),
        Index("quantities", key=["product"], sort_key=["number"], include=["quantity"], sparse=True),
    ],
):
    """An item in its own table, with an index that holds some of its fields."""


@dataclass(frozen=True)
class Way:
    """A kind of table, a store and a colour."""

    home: Home
    store: str
    colour: Colour

    def __str__(self) -> str:
        return f"{self.home}, {self.store}, {self.colour}"


class Rig(FeatureRig):
    """A database, and orders of one model in it."""

    MOMENT = UpdateItem
    way: Way

    def __init__(self, db: Any, way: Way, recorder: Recorder, service: Recorder, clock: Clock) -> None:
        super().__init__(db, way, recorder, service, clock)
        self.model: Any = Order if way.home == "one table" else Sale

    @property
    def archive(self) -> Any:
        """``db.archive``; every method can be awaited."""
        return Awaited(self.database.archive)

    def key(self, number: str = "1", customer: str = "ada") -> Any:
        """The key of an order."""
        return self.model.key(customer=customer, number=number)

    async def create(self, number: str = "1", customer: str = "ada", **values: Any) -> Any:
        """Create an old order with these values."""
        given = {"placed_at": OLD, "product": "tea", "note": "green", "tags": {"a", "b"}, **values}
        async with self.db.transaction() as tx:
            return tx.create(self.model, customer=customer, number=number, **given)

    async def create_many(self, count: int, **values: Any) -> None:
        """Create orders with the numbers 000, 001 and so on; the quantity of each is its number."""
        for number in range(count):
            await self.create(f"{number:03}", quantity=number, **values)

    async def run(self, **options: Any) -> Any:
        """Archive the items that are old enough."""
        return await self.archive.run(self.model, **{"force": True, **options})

    async def get(self, number: str = "1", customer: str = "ada") -> Any:
        """An order as its model shows it; None if it does not exist."""
        found = await self.db.get(self.key(number, customer))
        return None if found is None else found.to_dict()

    async def all(self) -> dict[str, Any]:
        """All orders by their numbers."""
        return {each.number: each.to_dict() async for each in self.db.scan(self.model)}

    # --- direct access to the table -----------------------------------------------------------------------

    @property
    def table(self) -> str:
        """The name of the table."""
        settings = self.database._context.settings
        return settings.table_name if self.way.home == "one table" else f"{settings.table_prefix}sales"

    def key_of(self, number: str = "1", customer: str = "ada") -> dict[str, Any]:
        """The key of an order in the table."""
        if self.way.home == "own table":
            return {"_id": {"S": customer}, "_sk": {"S": number}}
        partition, sort = self.key(number, customer).encoded
        return {"pk": {"S": partition}, "sk": {"S": sort}}

    async def fetch_stored(self, number: str = "1", customer: str = "ada") -> Any:
        """An order as stored."""
        read = GetItem(self.table, self.key_of(number, customer), True)
        return (await self.db.send(read)).item

    async def is_cold(self, number: str = "1", customer: str = "ada") -> bool:
        """Whether an order is archived."""
        return POINTER in await self.fetch_stored(number, customer)

    async def put_raw(self, item: Any) -> None:
        """Store an item unchanged."""
        await self.db.send(PutItem(self.table, item))


# --- every kind of write --------------------------------------------------------------------------------------

BEFORE = {
    "customer": "ada",
    "number": "1",
    "placed_at": OLD,
    "product": "tea",
    "quantity": 1,
    "note": "green",
    "tags": {"a", "b"},
}


async def assign(db: Rig, tx: Any) -> None:
    (await tx.get_one(db.key())).quantity = 5


async def change_in_place(db: Rig, tx: Any) -> None:
    (await tx.get_one(db.key())).tags.add("c")


async def increment(db: Rig, tx: Any) -> None:
    (await tx.get_one(db.key())).field("quantity").increment_by(2)


async def remove(db: Rig, tx: Any) -> None:
    (await tx.get_one(db.key())).note = None


async def move(db: Rig, tx: Any) -> None:
    (await tx.get_one(db.key())).product = "coffee"


async def leave_index(db: Rig, tx: Any) -> None:
    (await tx.get_one(db.key())).product = None


async def update_blindly(db: Rig, tx: Any) -> None:
    tx.update(db.model, {"customer": "ada", "number": "1", "note": "green"}, {"note": "red"})


async def put_blindly(db: Rig, tx: Any) -> None:
    values = {"placed_at": OLD, "note": "put"}
    tx.create_or_put(db.model, {"customer": "ada", "number": "1"}, values)


async def delete(db: Rig, tx: Any) -> None:
    tx.delete(await tx.get_one(db.key()))


async def delete_blindly(db: Rig, tx: Any) -> None:
    tx.delete(db.key())


WRITES: list[tuple[Any, dict[str, Any] | None]] = [
    (assign, {"quantity": 5}),
    (change_in_place, {"tags": {"a", "b", "c"}}),
    (increment, {"quantity": 3}),
    (remove, {"note": None}),
    (move, {"product": "coffee"}),
    (leave_index, {"product": None}),
    (update_blindly, {"note": "red"}),
    (put_blindly, {"note": "put", "product": None, "tags": set()}),
    (delete, None),
    (delete_blindly, None),
]
every_write = pytest.mark.parametrize(
    ("write", "changes"), [pytest.param(*each, id=each[0].__name__) for each in WRITES]
)


async def write_once(db: Rig, write: Any) -> None:
    """Write in a transaction with a single attempt."""
    async with db.db.transaction() as tx:
        await write(db, tx)


# --- how tests run --------------------------------------------------------------------------------------------


@contextmanager
def open_rig(way: Way) -> Iterator[Rig]:
    """Open a new database for a test."""
    with tempfile.TemporaryDirectory() as directory, open_service(way.store, directory) as service:
        address = find_address(way.store, directory, "archived")
        address[2]["manage_table"] = True
        with open_recorded(way.colour, address, service) as (db, table, recorded, clock):
            yield Rig(db, way, table, recorded, clock)


@contextmanager
def open_service(store: str, directory: str) -> Iterator[Backend]:
    """The service of a store."""
    if store == "memory":
        yield MemoryService()
    elif store == "file":
        yield DiskService(Path(directory, "files"))
    else:
        endpoint = resolve_endpoint("s3", endpoint=start_server(store), environment=ENVIRONMENT)
        source = find_credentials(environment=ENVIRONMENT)
        with closing(S3Service("archived", endpoint, source, prefix=uuid4().hex)) as service:
            service.create_bucket()
            yield service


def _in_memory(name: str) -> list[Way]:
    if TORTURE:
        return [Way(home, "memory", colour) for home in HOMES for colour in COLOURS]
    turn = take_turns(name)
    return [Way(HOMES[0], "memory", COLOURS[turn]), Way(HOMES[1], "memory", COLOURS[1 - turn])]


def _everywhere(name: str) -> list[Way]:
    """In memory one home in one colour, elsewhere the other home in the other colour, in turn."""
    ways = here_and_elsewhere(["file", "ministack"], name)
    if TORTURE:
        return [Way(home, *way) for home in HOMES for way in ways]
    turn = take_turns(name, "home")
    return [Way(HOMES[(turn + (store == "memory")) % 2], store, colour) for store, colour in ways]


everywhere = run_in(_everywhere, open_rig)
in_memory = run_in(_in_memory, open_rig)

"""The orders as a Holdall model, and Holdall's side of the races against other libraries' models."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from typing import Any

from benchmarks.model_items import BULK, COUNT, FIELDS, TABLE, documents, values
from benchmarks.model_worker import Side
from benchmarks.wire_client import REGION, Client
from holdall import Database, Key, Model, SortKey, Transaction, field
from holdall.core import (
    DescribeTable,
    DescribeTtl,
    KeyAttribute,
    Page,
    Query,
    Request,
    TableDescription,
    TableSchema,
    TtlDescription,
)

__all__ = ["Order", "client", "fill", "open_bulk_writer", "open_decoder", "open_querier", "read_all"]

read_all = attrgetter(*FIELDS)
"""Every field of an order."""


class Order(Model):
    """An order with ten fields."""

    customer: Key[str]
    number: SortKey[str]
    product: str
    quantity: int
    price: float
    paid: bool
    placed_at: datetime
    note: str | None = None
    tags: list[str] = field(default_factory=list)
    address: dict[str, str] = field(default_factory=dict)


def fill(db: Database, count: int) -> None:
    """Put that many orders into a database."""
    for start in range(0, count, COUNT):
        with db.transaction() as tx:
            for number in range(start, start + COUNT):
                tx.create(Order, **values(number))


def _open_reader(db: Database) -> Side:
    customer = values(0)["customer"]
    return Side(lambda: [read_all(order) for order in db.query(Order, customer=customer)])


def open_decoder(endpoint: str) -> Side:
    """Open a query whose page is already in memory, so that only the model layer has work to do."""
    return _open_reader(Database(backend=_Canned()))


def open_querier(endpoint: str) -> Side:
    """Open a query on a server, in a table that is created and filled first."""
    db = Database(f"dynamodb://{TABLE}-queried?endpoint={endpoint}&region={REGION}")
    db.table.create()
    fill(db, COUNT)
    return _open_reader(db)


def open_bulk_writer(endpoint: str) -> Side:
    """Open a bulk write of new orders to the canned server, after a check on ministack that reads the orders back."""
    canned, server = (
        Database(f"dynamodb://{TABLE}?endpoint={each}&region={REGION}") for each in endpoint.split()
    )
    orders = [values(number) for number in range(BULK)]

    def write(db: Database) -> list[tuple[Any, ...]]:
        with db.bulk(Order) as bulk:
            for order in orders:
                bulk.put(Order(**order))
        return []

    def read_back() -> list[tuple[Any, ...]]:
        server.table.create()
        write(server)
        return _open_reader(server).read()

    return Side(lambda: write(canned), lambda written: read_back())


def client(endpoint: str) -> Client:
    """Open models on the canned server; a transaction reads two orders and moves one piece from one to the other."""
    db = Database(f"dynamodb://{TABLE}?endpoint={endpoint}&region={REGION}")
    customer = values(0)["customer"]
    numbers = [values(number)["number"] for number in range(COUNT)]

    def move(tx: Transaction, one: str, other: str) -> None:
        source = tx.get_one(Order, customer=customer, number=one)
        target = tx.get_one(Order, customer=customer, number=other)
        source.quantity -= 1
        target.quantity += 1

    return Client(
        {
            "get": lambda number: read_all(
                db.get_one(Order, customer=customer, number=numbers[number % COUNT])
            ),
            "query": lambda number: [read_all(order) for order in db.query(Order, customer=customer)],
            "change": lambda number: db.run(move, numbers[number % COUNT], numbers[(number + 1) % COUNT]),
        },
        close=db.close,
    )


class _Canned:
    """A store with canned replies."""

    def __init__(self) -> None:
        items = tuple(documents())
        schema = TableSchema(TABLE, KeyAttribute("pk"), KeyAttribute("sk"))
        self._replies: dict[type[Request[Any]], Any] = {
            Query: Page(items, len(items), len(items), None),
            DescribeTable: TableDescription(schema, "ACTIVE", {}, len(items), 0),
            DescribeTtl: TtlDescription("_ttl"),
        }

    def send_blocking(self, request: Request[Any]) -> Any:
        """Return the page, or the description of the table."""
        return self._replies[type(request)]

    async def send_awaiting(self, request: Request[Any]) -> Any:
        """Return the same."""
        return self.send_blocking(request)

    def close(self) -> None:
        """Do nothing."""

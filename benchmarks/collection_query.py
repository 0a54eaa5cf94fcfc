"""A query of 100 items of two models that share a partition, against a plain query of 100 items of one model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, time_pair
from benchmarks.model_items import COUNT, values
from benchmarks.model_ours import Order, fill, read_all
from holdall import Database, Key, Model, SortKey, field

BAR = 1.2
PER_SLICE = 10


class Fields(Model, abstract=True):
    """The fields of an order."""

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


class Purchase(Fields, collection="customer"):
    """Half of the items."""


class Sale(Fields, collection="customer"):
    """The other half."""


def figures(workshop: Path) -> Iterator[Figure]:
    """Iteration without reading a field, in a transaction, and with every field read."""
    with Database(f"embedded:{workshop / 'collection_query.db'}", durability="normal") as db:
        db.table.create()
        fill(db, COUNT)
        with db.transaction() as tx:
            for number in range(COUNT):
                tx.create((Purchase, Sale)[number % 2], **values(number))
        customer = values(0)["customer"]
        mixed = db.query((Purchase, Sale), customer=customer).all()
        plain = db.query(Order, customer=customer).all()
        assert sorted(map(read_all, mixed), key=str) == sorted(map(read_all, plain), key=str)

        def touch(models: Any, count: int) -> None:
            for _ in range(count):
                for _item in db.query(models, customer=customer):
                    pass

        def touch_in_transaction(models: Any, count: int) -> None:
            for _ in range(count):
                with db.transaction() as tx:
                    for _item in tx.query(models, customer=customer):
                        pass

        def read(models: Any, count: int) -> None:
            for _ in range(count):
                for item in db.query(models, customer=customer):
                    read_all(item)

        sides = {
            "no field read": touch,
            "no field read, in a transaction": touch_in_transaction,
            "every field read": read,
        }
        for details, act in sides.items():
            result = time_pair(
                lambda: PER_SLICE, partial(act, (Purchase, Sale)), partial(act, Order), pairs=40
            )
            note = result.each(PER_SLICE)
            yield Figure("collection_query", (f"{COUNT} items", details), result.ratio, BAR, note=note)

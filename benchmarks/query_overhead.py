"""A query of 100 items as models, reading no field or every field, against only the port's Query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import Figure, time_pair
from benchmarks.model_items import COUNT, TABLE, documents, values
from benchmarks.model_ours import Order, read_all
from holdall import Database
from holdall.core import KeyCondition, PutItem, Query

BAR = 1.5
DECODED_BAR = 2.5
PER_SLICE = 10

Act = Callable[[int], object]


def figures(workshop: Path) -> Iterator[Figure]:
    """Iteration without reading a field, and with reading, and so decoding, every field."""
    with Database(f"embedded:{workshop / 'query_overhead.db'}", durability="normal") as db:
        _fill(db)
        request = _request()
        _check_same(db, request)

        def port(count: int) -> None:
            for _ in range(count):
                db.send(request)

        for details, bar, act in _sides(db):
            result = time_pair(lambda: PER_SLICE, act, port, pairs=40)
            note = result.each(PER_SLICE)
            yield Figure("query_overhead", (f"{COUNT} items", details), result.ratio, bar, note=note)


def _sides(db: Database) -> Iterator[tuple[str, float, Act]]:
    customer = values(0)["customer"]

    def iterate_untouched(count: int) -> None:
        for _ in range(count):
            for _order in db.query(Order, customer=customer):
                pass

    def in_transaction(count: int) -> None:
        for _ in range(count):
            with db.transaction() as tx:
                for _order in tx.query(Order, customer=customer):
                    pass

    def read(count: int) -> None:
        for _ in range(count):
            for order in db.query(Order, customer=customer):
                read_all(order)

    yield "no field read", BAR, iterate_untouched
    yield "no field read, in a transaction", BAR, in_transaction
    yield "every field read", DECODED_BAR, read


def _fill(db: Database) -> None:
    db.table.create()
    for document in documents():
        db.send(PutItem(TABLE, document))


def _request() -> Query:
    return Query(TABLE, KeyCondition("pk", {"S": f"Order#{values(0)['customer']}"}), consistent=True)


def _check_same(db: Database, request: Query) -> None:
    """Check that both sides return the same items, so that the figure compares equal work."""
    raw: tuple[Any, ...] = db.send(request).items
    rows = db.query(Order, customer=values(0)["customer"]).all()
    assert len(raw) == len(rows) == COUNT
    assert [row._stored for row in rows] == list(raw)

"""Getting a model from the embedded engine, outside and inside a transaction, against the request that it sends."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.harness import Figure, time_pair
from benchmarks.model_items import TABLE, key_document, values
from benchmarks.model_ours import Order, fill, read_all
from holdall import Database
from holdall.core import GetItem

BAR = 1.7
DECODED_BAR = 2.0  # for ten fields in a transaction, which records each read
ORDERS = 1_000
PER_SLICE = 1_000
PER_TRANSACTION = 10

Keys = list[tuple[str, str]]
Way = Callable[[Database, Keys], object]


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per way of getting an order, and for reading one of its fields and all of them."""
    with Database(f"embedded:{workshop / 'model_get.db'}", durability="normal") as db:
        fill(db, ORDERS)
        _check(db)
        for details, (ours, direct) in _WAYS.items():
            yield _figure(db, details, ours, direct)


def _figure(db: Database, details: tuple[str, str], ours: Way, direct: Way) -> Figure:
    drawn = random.Random(20)
    known = [(order["customer"], order["number"]) for order in map(values, range(ORDERS))]
    result = time_pair(
        lambda: drawn.sample(known, PER_SLICE), lambda keys: ours(db, keys), lambda keys: direct(db, keys)
    )
    bar = DECODED_BAR if details == ("tx.get", "all fields") else BAR
    return Figure("model_get", details, result.ratio, bar, note=result.each(PER_SLICE))


def _get_one(db: Database, keys: Keys) -> None:
    for customer, number in keys:
        order = db.get(Order, customer=customer, number=number)
        assert order is not None
        order.product  # noqa: B018 - reading it decodes it


def _get_all(db: Database, keys: Keys) -> None:
    for customer, number in keys:
        read_all(db.get(Order, customer=customer, number=number))


def _transact_one(db: Database, keys: Keys) -> None:
    for start in range(0, len(keys), PER_TRANSACTION):
        with suppress(_Enough), db.transaction() as tx:
            for customer, number in keys[start : start + PER_TRANSACTION]:
                order = tx.get(Order, customer=customer, number=number)
                assert order is not None
                order.product  # noqa: B018 - reading it decodes it
            raise _Enough


def _transact_all(db: Database, keys: Keys) -> None:
    for start in range(0, len(keys), PER_TRANSACTION):
        with suppress(_Enough), db.transaction() as tx:
            for customer, number in keys[start : start + PER_TRANSACTION]:
                read_all(tx.get(Order, customer=customer, number=number))
            raise _Enough


class _Enough(Exception):
    """Ends a transaction without a commit; commits have their own figures."""


def _send(db: Database, keys: Keys) -> None:
    for key in keys:
        db.send(_request(key))


def _send_and_keep(db: Database, keys: Keys) -> None:
    """Keep the replies, as a program without models must until it writes."""
    for start in range(0, len(keys), PER_TRANSACTION):
        kept = [db.send(_request(key)) for key in keys[start : start + PER_TRANSACTION]]
        kept.clear()


def _request(key: tuple[str, str]) -> GetItem:
    return GetItem(TABLE, {"pk": {"S": f"Order#{key[0]}"}, "sk": {"S": key[1]}}, True)


def _check(db: Database) -> None:
    """Check that the model and the request find the same item, with the same values."""
    for number in range(0, ORDERS, 37):
        order = values(number)
        found = db.get(Order, customer=order["customer"], number=order["number"])
        stored = db.send(GetItem(TABLE, key_document(number))).item
        assert found is not None
        assert read_all(found) == tuple(order.values()), f"{found} is not {order}"
        assert stored is not None
        assert stored["product"] == {"S": found.product}, f"{stored} is not {found}"


_WAYS: dict[tuple[str, str], tuple[Way, Way]] = {
    ("db.get", "one field"): (_get_one, _send),
    ("db.get", "all fields"): (_get_all, _send),
    ("tx.get", "one field"): (_transact_one, _send_and_keep),
    ("tx.get", "all fields"): (_transact_all, _send_and_keep),
}

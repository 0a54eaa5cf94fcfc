"""A second read of a model's field, against a plain attribute; first reads and assignments are in the note."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benchmarks.harness import Figure, time_pair
from benchmarks.model_items import COUNT, FIELDS, rows, values
from benchmarks.model_ours import Order, fill, read_all
from holdall import Database

BAR = 2.0
PASSES = 200
REPEATS = 20


class Plain:
    """An order as a plain object."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.customer: str = order["customer"]
        self.number: str = order["number"]
        self.product: str = order["product"]
        self.quantity: int = order["quantity"]
        self.price: float = order["price"]
        self.paid: bool = order["paid"]
        self.placed_at: Any = order["placed_at"]
        self.note: str | None = order["note"]
        self.tags: list[str] = order["tags"]
        self.address: dict[str, str] = order["address"]


def figures(workshop: Path) -> Iterator[Figure]:
    """Reading a field of many items into a list, and with `getattr`, for which the interpreter has no shortcut."""
    with Database("memory:") as db:
        fill(db, COUNT)
        orders, plain = _load(db), [Plain(values(number)) for number in range(COUNT)]
        assert [read_all(order) for order in orders] == [read_all(order) for order in plain] == rows()
        result = time_pair(lambda: None, lambda _: _read(orders), lambda _: _read_plain(plain))
        note = f"{_nanoseconds(result.ours)} against {_nanoseconds(result.theirs)}; {_time_others(db)}"
        yield Figure("model_field", ("later read", "into a list"), result.ratio, BAR, note=note)
        result = time_pair(lambda: None, lambda _: _read_by_name(orders), lambda _: _read_by_name(plain))
        note = f"{_nanoseconds(result.ours)} against {_nanoseconds(result.theirs)}"
        yield Figure("model_field", ("later read", "by getattr"), result.ratio, BAR, note=note)


def _load(db: Database) -> list[Order]:
    return list(db.query(Order, customer=values(0)["customer"]))


def _nanoseconds(seconds: float) -> str:
    return f"{seconds / PASSES / COUNT * 1e9:.1f} ns"


# One loop for each side, because the interpreter specializes a loop for the class of the objects in it.


def _read(orders: list[Order]) -> None:
    for _ in range(PASSES):
        [order.quantity for order in orders]


def _read_plain(orders: list[Plain]) -> None:
    for _ in range(PASSES):
        [order.quantity for order in orders]


def _read_by_name(orders: list[Any]) -> None:
    for _ in range(PASSES):
        for order in orders:
            getattr(order, "quantity")  # noqa: B009 - on purpose


# --- figures without a bar ---


def _time_others(db: Database) -> str:
    first = median(_seconds(read_all, _load(db)) for _ in range(REPEATS)) / len(FIELDS)
    detached = [Order(**values(number)) for number in range(COUNT)]
    assignment = median(_seconds(_assign, detached) for _ in range(REPEATS))
    with db.transaction() as tx:
        kept = list(tx.query(Order, customer=values(0)["customer"]))
        in_transaction = median(_seconds(_assign, kept) for _ in range(REPEATS))
    seconds_of = {"first read": first, "assignment": assignment, "in a transaction": in_transaction}
    return ", ".join(f"{what} {seconds * 1e9:,.0f} ns" for what, seconds in seconds_of.items())


def _assign(order: Order) -> None:
    order.quantity = 3


def _seconds(act: Callable[[Any], object], orders: list[Order]) -> float:
    """Return the mean time of one call, over many orders."""
    start = process_time()
    for order in orders:
        act(order)
    return (process_time() - start) / len(orders)

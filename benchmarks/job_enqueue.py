"""Enqueuing a job in a transaction that reads and changes two items: the actions and the CPU that it adds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import holdall
from benchmarks.harness import Figure, time_pair
from benchmarks.ministack import start_ministack
from benchmarks.model_items import values
from benchmarks.model_ours import Order, fill
from holdall import Database, Transaction
from holdall.core import TransactWrite
from holdall.core.port import Backend
from holdall.core.requests import Request

BAR = 1.15
ORDERS = 1_000
PER_SLICE = 100

R = TypeVar("R")
Key = tuple[str, str]
Body = Callable[[Transaction, Key, Key], None]


@holdall.job("benchmark-receipt")
def receipt(customer: str, number: str) -> None:
    """A job that the benchmark never runs."""


class Receipt(holdall.Model):
    """The item that an application would write itself instead of a job."""

    customer: str
    number: str


def figures(workshop: Path) -> Iterator[Figure]:
    """The actions; then the CPU embedded, against an item instead of the job, and over the wire, against nothing."""
    url = f"embedded:{workshop / 'job_enqueue.db'}"
    with Database(url, durability="normal") as db:
        fill(db, ORDERS)
        yield Figure("job_enqueue", ("actions added",), _actions_added(db), 1, unit="")
        yield _figure(db, "embedded, in place of one more item", _move_and_create)
    with Database(f"dynamodb://benchmark-jobs?{_wire()}", manage_table=True, credentials=_credentials) as db:
        fill(db, ORDERS)
        yield _figure(db, "over the wire, beside nothing", _move, slices=10)


def _figure(db: Database, name: str, other: Body, slices: int = 30) -> Figure:
    drawn = random.Random(20)
    known = [(order["customer"], order["number"]) for order in map(values, range(ORDERS))]

    def prepare() -> list[tuple[Key, Key]]:
        keys = drawn.sample(known, 2 * PER_SLICE)
        return list(zip(keys[::2], keys[1::2], strict=True))

    result = time_pair(
        prepare,
        lambda pairs: [db.run(_move_and_enqueue, *pair) for pair in pairs],
        lambda pairs: [db.run(other, *pair) for pair in pairs],
        pairs=slices,
    )
    return Figure("job_enqueue", (name,), result.ratio, BAR, note=result.each(PER_SLICE))


def _move(tx: Transaction, one: Key, other: Key) -> None:
    source = tx.get_one(Order, customer=one[0], number=one[1])
    target = tx.get_one(Order, customer=other[0], number=other[1])
    source.quantity -= 1
    target.quantity += 1


def _move_and_enqueue(tx: Transaction, one: Key, other: Key) -> None:
    _move(tx, one, other)
    tx.enqueue(receipt, *one)


def _move_and_create(tx: Transaction, one: Key, other: Key) -> None:
    _move(tx, one, other)
    tx.create(Receipt, customer=one[0], number=one[1])


# --- actions ---


class _Counting:
    """A layer over a backend that counts the actions of transactions."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.actions = 0

    def send_blocking(self, request: Request[R]) -> R:
        if isinstance(request, TransactWrite):
            self.actions += len(request.actions)
        return self._backend.send_blocking(request)

    async def send_awaiting(self, request: Request[Any]) -> Any:
        return await self._backend.send_awaiting(request)

    def close(self) -> None:
        """Do nothing: the owner of the inner backend closes it."""


def _actions_added(db: Database) -> int:
    backend = _Counting(db._backend)
    counting = Database("memory:", backend=backend)
    pair = [(order["customer"], order["number"]) for order in map(values, range(2))]
    counts = []
    for body in (_move, _move_and_enqueue):
        before = backend.actions
        counting.run(body, pair[0], pair[1])
        counts.append(backend.actions - before)
    return counts[1] - counts[0]


# --- over the wire ---


def _wire() -> str:
    """Return the region and the endpoint of ministack, for a URL."""
    return f"region=us-east-1&endpoint={start_ministack()}"


def _credentials() -> tuple[str, str, None, None]:
    return "test", "test", None, None

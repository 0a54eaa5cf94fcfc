"""A crowd of workers on one store, over a backend with faults, with jobs that often fail.

- ``jobs_crowd.py work URL SEED``: works until it is killed.
- ``jobs_crowd.py enqueue URL SEED FIRST LAST``: creates the orders with these numbers, each with its jobs in the same
  transaction, and ends once all of them exist.

Each order has one job of each kind: a plain one, two transactional ones, and a chain of transactional ones. `SHARED`
orders are a group; they enqueue further jobs with the same keys, of which each group needs only one.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random
from typing import Any

from jobs_torture_rig import SEEDED, until

import holdall
from holdall import AsyncTransaction, Database, Key, Model, SortKey, Transaction
from holdall.errors import HoldallError, OutcomeUnknown
from holdall.testing import Fault, FaultyBackend

__all__ = ["COUNTS", "MARKS", "Done", "Order", "Tally", "predict_marks"]

RATES = {Fault.THROTTLE: 0.02, Fault.UNAVAILABLE: 0.02, Fault.LOST_BEFORE: 0.02, Fault.LOST_AFTER: 0.02}
LEASE = 1.5
CHAIN = 3
SHARED = 10
FAILURES = 0.15
PATIENT: Any = {"retries": 100_000, "backoff": 0.01}


class Order(Model):
    """An order that was created together with its jobs."""

    number: Key[int]


class Done(Model):
    """The mark that a plain job leaves."""

    what: Key[str]
    number: SortKey[int]


class Tally(Model):
    """How often a transactional job has taken effect."""

    what: Key[str]
    number: SortKey[int]
    count: int = 0


class _AtWork:
    db: Database
    random: Random


at_work = _AtWork()


def fail_sometimes() -> None:
    if at_work.random.random() < FAILURES:
        raise ValueError("a random failure")


def mark(what: str, number: int) -> None:
    at_work.db.run(lambda tx: tx.create_or_put(Done, {"what": what, "number": number}, {}))


def count(tx: Transaction, what: str, number: int) -> None:
    tally: Any = tx.get(Tally.key(what=what, number=number), create_if_missing=True)
    tally.count += 1


# --- the jobs ---


@holdall.job("crowd-plain", **PATIENT)
def plain(number: int) -> None:
    fail_sometimes()
    mark("plain", number)
    fail_sometimes()


@holdall.job("crowd-counting", transactional=True, **PATIENT)
def count_order(tx: Transaction, order: Order) -> None:
    count(tx, "counting", order.number)
    fail_sometimes()


@holdall.job("crowd-awaited", transactional=True, queue="other", **PATIENT)
async def count_awaited(tx: AsyncTransaction, number: int) -> None:
    tally: Any = await tx.get(Tally.key(what="awaited", number=number), create_if_missing=True)
    tally.count += 1
    fail_sometimes()


@holdall.job("crowd-link", transactional=True, **PATIENT)
def link(tx: Transaction, number: int, left: int) -> None:
    count(tx, f"link {left}", number)
    if left:
        tx.enqueue(link, number, left - 1, key=f"{number} {left - 1}" if left % 2 else None)
    fail_sometimes()


@holdall.job("crowd-once", transactional=True, once_for=3600, **PATIENT)
def once(tx: Transaction, group: int) -> None:
    count(tx, "once", group)
    fail_sometimes()


@holdall.job("crowd-once-plain", once_for=3600, **PATIENT)
def once_plain(group: int) -> None:
    fail_sometimes()
    mark("once", group)


@holdall.job("crowd-while-waiting", **PATIENT)
def while_waiting(group: int) -> None:
    fail_sometimes()
    mark("while waiting", group)


def group_of(number: int) -> int:
    return number // SHARED


def enqueue_jobs(tx: Transaction, order: Order) -> None:
    """Enqueue the jobs of an order."""
    number = order.number
    tx.enqueue(plain, number)
    tx.enqueue(count_order, order)
    tx.enqueue(count_awaited, number)
    tx.enqueue(link, number, CHAIN)
    group = group_of(number)
    for shared in (once, once_plain, while_waiting):
        tx.enqueue(shared, group, key=f"group {group}")


MARKS = ("plain", "once", "while waiting")
COUNTS = ("counting", "awaited", "once", *(f"link {left}" for left in range(CHAIN + 1)))


def predict_marks(orders: int) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """The marks and the counts that must exist when all jobs of that many orders are done."""
    numbers, groups = range(orders), range(group_of(orders - 1) + 1)
    marked = {("plain", number) for number in numbers}
    marked |= {(what, group) for what in ("once", "while waiting") for group in groups}
    counted = {(what, number) for what in ("counting", "awaited") for number in numbers}
    counted |= {(f"link {left}", number) for left in range(CHAIN + 1) for number in numbers}
    counted |= {("once", group) for group in groups}
    return marked, counted


# --- the processes ---


def open_db(url: str, seed: str) -> Database:
    """Open this process's database, over a backend with faults."""
    random = at_work.random = Random(seed)
    plain = Database(url)
    faulty = FaultyBackend(plain._backend, RATES, seed=random.randrange(2**32))
    db = at_work.db = Database(url, backend=faulty)
    return db


def enqueue(url: str, seed: str, first: int, last: int) -> None:
    def is_made(number: int) -> bool:
        """Create an order unless it exists; return False if the outcome is unknown, and the next call looks again."""
        try:
            if db.get(Order, number) is None:
                db.run(lambda tx: enqueue_jobs(tx, tx.create(Order, number=number)), retries=20)
        except OutcomeUnknown:
            return False
        except HoldallError as error:
            if not error.retryable:
                raise
            return False
        return True

    with open_db(url, seed) as db:
        for number in range(first, last):
            until(lambda: is_made(number), f"order {number} was made {SEEDED}")  # noqa: B023


async def work(url: str, seed: str) -> None:
    async with open_db(url, seed).aio as db:
        print("ready", flush=True)
        await db.worker(
            queues=["other", "default"], concurrency=6, lease=LEASE, poll_interval=0.1, grace=0
        ).run()


def main(command: str, url: str, seed: str, *numbers: str) -> None:
    if command == "work":
        asyncio.run(work(url, seed))
    else:
        first, last = map(int, numbers)
        enqueue(url, seed, first, last)


if __name__ == "__main__":
    main(*sys.argv[1:])

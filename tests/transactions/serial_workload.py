"""Random list-append transactions on a real store, recorded for `histories` to check.

A worker is one process of the history: it runs one transaction after the other, each with a few steps on few keys. A
transaction appends at least once, or is ``read_only``; there are no plain ones without writes, because those guarantee
nothing. The reads and appends of an attempt are recorded as they happen. An attempt that was followed by another is
recorded as aborted, and so is the last attempt of a run that failed; values are never reused. Steps are flows, so that
they are written once for both colours.

As a script it is a process with several workers in threads on one embedded file: ``serial_workload.py FILE SEED FIRST
WORKERS TIMES``. It prints ``ready``, waits for a line, works, and prints the recorded transactions.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from inspect import isawaitable
from itertools import count
from random import Random
from typing import Any

from histories import Append, Operation, Outcome, Read, Transaction

import holdall
from holdall import AsyncDatabase, Database, Key, Model, ModelKey, Template
from holdall.core.port import run
from holdall.errors import OutcomeUnknown, TransactionFailedError

__all__ = [
    "KEYS",
    "READS",
    "STALE",
    "ImpatientWorker",
    "Lists",
    "Register",
    "SpreadLists",
    "Worker",
    "read_final_state",
    "work_in_tasks",
    "work_in_threads",
    "parse_transaction",
]

KEYS = ("a", "b", "c", "d")

PATIENT: dict[str, Any] = {"retries": 12, "initial_backoff": 0.001, "max_backoff": 0.02}
"""Options of the transactions: enough retries to succeed, without long pauses."""


class Register(Model):
    """A list that grows, and two fields with several stored forms; the workers read them too, which locks them."""

    name: Key[str]
    values: list[int] = holdall.field(default_factory=list)
    at: datetime | None = None
    marks: set[int] = holdall.field(default_factory=set)


class PlainRegister(Model, table="plain-registers", layout="plain"):
    """The same in a table with another program's layout."""

    name: Key[str]
    values: list[int] = holdall.field(default_factory=list)
    at: datetime | None = holdall.field(default=None, stored="pynamodb")
    marks: set[int] = holdall.field(default_factory=set)
    version: int = holdall.field(default=0, version=True)


class TemplateRegister(Model, table="registers", layout=Template(pk="R#{name}", sk="LIST", type="entity")):
    """The same in a single-table design."""

    name: Key[str]
    values: list[int] = holdall.field(default_factory=list)
    at: datetime | None = holdall.field(default=None, stored="epoch_ms")
    marks: set[int] = holdall.field(default_factory=set)


class Lists:
    """The items that contain the lists, and their names in the history."""

    def key(self, name: str) -> ModelKey[Any]:
        return Register.key(name)

    def get_initial_values(self) -> bool | dict[str, Any]:
        """Return the values with which a missing list is created."""
        return True

    def key_of(self, name: str, item: Any) -> str:
        return name

    def read_other_fields(self, item: Any) -> None:
        """Read the other fields of an item."""
        assert item.at is None or item.at.tzinfo is not None
        assert len(item.marks) < 10

    def read(self, name: str, item: Any) -> Read:
        if item is None or not item.values:
            return Read(name, None)
        self.read_other_fields(item)
        return Read(self.key_of(name, item), tuple(item.values))


class SpreadLists(Lists):
    """Lists in several tables, each with another layout."""

    models = (Register, PlainRegister, TemplateRegister)

    def key(self, name: str) -> ModelKey[Any]:
        return self.models[KEYS.index(name) % len(self.models)].key(name)


# --- transactions -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one transaction: the kind of each step, and its keys."""

    steps: tuple[tuple[str, tuple[str, ...]], ...]
    read_only: bool


READS = ("get", "get_all", "gather", "get part")
STALE = ("get stale", "get_all stale")
"""Reads that may be stale; the commit detects that, and so does the verification of several reads."""
WRITES = ("append", "append", "replace")


def draw_plan(random: Random, reads: Sequence[str]) -> Plan:
    """Draw a random plan; one in four only reads."""
    read_only = random.random() < 0.25
    kinds = reads if read_only else [*reads, *WRITES]
    steps = [_draw_step(random, kinds) for _ in range(random.randint(1, 4))]
    if not read_only and not any(kind in WRITES for kind, _ in steps):
        steps.insert(random.randint(0, len(steps)), _draw_step(random, WRITES))
    return Plan(tuple(steps), read_only)


def _draw_step(random: Random, kinds: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    kind = random.choice(kinds)
    # a single stale read would not be verified
    return kind, tuple(random.sample(KEYS, random.randint(2 if kind in STALE else 1, 3)))


async def perform(tx: Any, plan: Plan, lists: Lists, fresh: Iterator[int], seen: list[Operation]) -> None:
    """Run the steps in a transaction of either colour, and record the reads and appends."""
    for kind, names in plan.steps:
        keys = [lists.key(name) for name in names]
        if kind in WRITES:
            item = await _resolve(tx.get(keys[0], create_if_missing=lists.get_initial_values()))
            value = next(fresh)
            seen.append(lists.read(names[0], item))
            if kind == "append":
                item.values.append(value)
            else:
                item.values = [*item.values, value]
            seen.append(Append(lists.key_of(names[0], item), value))
            continue
        if kind.startswith("get_all"):
            items = await _resolve(tx.get_all(keys, consistent=kind not in STALE))
        elif kind == "get part":
            items = [await _resolve(tx.get(key, only=[*key.schema.fields])) for key in keys]
        elif kind == "gather":
            items = await _resolve_concurrently([tx.get(key) for key in keys])
        else:
            items = [await _resolve(tx.get(key, consistent=kind not in STALE)) for key in keys]
        seen += map(lists.read, names, items)


async def _resolve(result: Any) -> Any:
    return await result if isawaitable(result) else result


async def _resolve_concurrently(results: list[Any]) -> list[Any]:
    return await asyncio.gather(*results) if isawaitable(results[0]) else results


# --- recording --------------------------------------------------------------------------------------------


class Attempts:
    """The attempts of one transaction, each with the time of its start."""

    def __init__(self) -> None:
        self.outcome = Outcome.COMMITTED
        self._attempts: list[tuple[int, list[Operation]]] = []

    def begin(self) -> list[Operation]:
        """Begin another attempt, and return the list that records its reads and appends."""
        self._attempts.append((time.monotonic_ns(), []))
        return self._attempts[-1][1]

    def list_transactions(self, process: str) -> Iterator[Transaction]:
        ended = time.monotonic_ns()
        for began, operations in self._attempts[:-1]:
            yield Transaction(process, tuple(operations), Outcome.ABORTED, began, ended)
        for began, operations in self._attempts[-1:]:
            yield Transaction(process, tuple(operations), self.outcome, began, ended)


@dataclass
class Worker:
    """One process of the history: its random numbers, its values, and its recorded transactions."""

    number: int
    seed: object
    lists: Lists = field(default_factory=Lists)
    reads: Sequence[str] = READS
    recorded: list[Transaction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed} {self.number}")
        self.fresh = count(1_000_000 * self.number + 1)

    @contextmanager
    def record(self) -> Iterator[Attempts]:
        """Record the attempts in the block, and their outcome."""
        attempts = Attempts()
        try:
            yield attempts
        except TransactionFailedError:
            attempts.outcome = Outcome.ABORTED
        except (OutcomeUnknown, asyncio.CancelledError):
            attempts.outcome = Outcome.UNKNOWN
        self.recorded += attempts.list_transactions(f"worker {self.number}")

    def plan(self) -> Plan:
        return draw_plan(self.random, self.reads)

    def work(self, db: Database, times: int) -> None:
        """Run this many transactions."""

        def body(tx: Any, plan: Plan, attempts: Attempts) -> None:
            run(perform(tx, plan, self.lists, self.fresh, attempts.begin()))

        for _ in range(times):
            plan = self.plan()
            with self.record() as attempts:
                db.run(body, plan, attempts, read_only=plan.read_only, **PATIENT)

    async def work_async(self, db: AsyncDatabase, times: int) -> None:
        """Run this many transactions."""

        async def body(tx: Any, plan: Plan, attempts: Attempts) -> None:
            await perform(tx, plan, self.lists, self.fresh, attempts.begin())

        for _ in range(times):
            plan = self.plan()
            with self.record() as attempts:
                await self.finish(db.run(body, plan, attempts, read_only=plan.read_only, **PATIENT))

    async def finish(self, transaction: Coroutine[Any, Any, None]) -> None:
        """Wait for a transaction."""
        await transaction


class ImpatientWorker(Worker):
    """A worker that cancels some of its transactions at random steps; they may have been committed."""

    async def finish(self, transaction: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(transaction)
        if self.random.random() < 0.3:
            for _ in range(self.random.randint(0, 20)):
                await asyncio.sleep(0)
            task.cancel()
        await task


def read_final_state(db: Database, lists: Lists | None = None) -> Transaction:
    """Read every list in its final state."""
    known = lists or Lists()
    began = time.monotonic_ns()
    with db.transaction(read_only=True) as tx:
        items = tx.get_all([known.key(name) for name in KEYS])
        operations = tuple(map(known.read, KEYS, items))
    return Transaction("end", operations, Outcome.COMMITTED, began, time.monotonic_ns())


def work_in_threads(db: Database, workers: Sequence[Worker], times: int) -> list[Transaction]:
    """Let each worker work in a thread, and return the recorded transactions."""
    with ThreadPoolExecutor(len(workers)) as pool:
        for done in [pool.submit(worker.work, db, times) for worker in workers]:
            done.result()
    return [it for worker in workers for it in worker.recorded]


async def work_in_tasks(db: AsyncDatabase, workers: Sequence[Worker], times: int) -> list[Transaction]:
    """Let each worker work in a task of this event loop, and return the recorded transactions."""
    await asyncio.gather(*(worker.work_async(db, times) for worker in workers))
    return [it for worker in workers for it in worker.recorded]


# --- the process ------------------------------------------------------------------------------------------


def format_transaction(it: Transaction) -> str:
    """Format a transaction as a line of text."""
    operations = [
        ["append", operation.key, operation.value]
        if isinstance(operation, Append)
        else ["read", operation.key, operation.values]
        for operation in it.operations
    ]
    return json.dumps([it.process, operations, it.outcome.value, it.invoked, it.completed])


def parse_transaction(line: str) -> Transaction:
    """Parse a line that `format_transaction` made."""
    process, operations, outcome, invoked, completed = json.loads(line)
    return Transaction(process, tuple(_parse_operations(operations)), Outcome(outcome), invoked, completed)


def _parse_operations(parsed: Iterable[tuple[str, str, Any]]) -> Iterator[Operation]:
    for kind, key, value in parsed:
        if kind == "append":
            yield Append(key, value)
        else:
            yield Read(key, None if value is None else tuple(value))


def main(file: str, seed: str, first: str, workers: str, times: str) -> None:
    with Database(f"embedded:{file}", durability="normal") as db:
        os.write(1, b"ready\n")
        sys.stdin.readline()
        team = [Worker(int(first) + number, seed) for number in range(int(workers))]
        for it in work_in_threads(db, team, int(times)):
            print(format_transaction(it))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A hundred thousand rows are read in the memory of a page, whatever is done with each."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdall import Database, Key, Model, SortKey
from holdall.core import BatchWrite, PutItem, sort_text

ROWS = 100_000
ROOM = 12 * 2**20
"""A page is a megabyte of items as DynamoDB counts them, and some times that as Python has them."""


class Reading(Model):
    sensor: Key[str]
    number: SortKey[int]
    value: int = 0
    unit: str = "degrees"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    directory: Path = tmp_path_factory.mktemp("readings")
    with Database(f"embedded:{directory / 'readings.db'}", durability="normal") as db:
        db.get(Reading, sensor="s", number=0)
        for start in range(0, ROWS, 25):
            db.send(BatchWrite(tuple(PutItem("holdall", _item(n)) for n in range(start, start + 25))))
        yield db


def _item(number: int) -> Any:
    return {
        "pk": {"S": "Reading#s"},
        "sk": {"S": sort_text(number)},
        "_type": {"S": "Reading"},
        "sensor": {"S": "s"},
        "number": {"N": str(number)},
        "value": {"N": str(number % 7)},
        "unit": {"S": "degrees"},
    }


def peak(rows: Iterator[Reading]) -> tuple[int, int, int]:
    """The most that was held while the rows were read, with how many they were and their sum."""
    gc.collect()
    tracemalloc.start()
    try:
        count = total = 0
        for row in rows:
            count += 1
            total += row.value
        return tracemalloc.get_traced_memory()[1], count, total
    finally:
        tracemalloc.stop()


TOTAL = sum(number % 7 for number in range(ROWS))


def test_outside_of_a_transaction(db: Database) -> None:
    held, count, total = peak(iter(db.query(Reading, sensor="s")))
    assert (count, total) == (ROWS, TOTAL)
    assert held < ROOM


def test_in_a_transaction_without_a_lock(db: Database) -> None:
    with db.transaction() as tx:
        held, count, _ = peak(iter(tx.query(Reading, sensor="s", lock=False)))
    assert count == ROWS
    assert held < ROOM


def test_in_a_transaction_where_nothing_but_keys_is_looked_at(db: Database) -> None:
    with db.transaction() as tx:
        gc.collect()
        tracemalloc.start()
        try:
            for row in tx.query(Reading, sensor="s"):
                if row.number == ROWS - 1:
                    row.unit = "kelvin"
            held = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert held < ROOM
    assert db.get_one(Reading, sensor="s", number=ROWS - 1).unit == "kelvin"


def test_a_count_holds_nothing(db: Database) -> None:
    gc.collect()
    tracemalloc.start()
    try:
        assert db.query(Reading, sensor="s").count() == ROWS
        assert tracemalloc.get_traced_memory()[1] < ROOM
    finally:
        tracemalloc.stop()

"""Many rows are read in the memory of one page of them, whatever is done with each."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from queries_rig import TORTURE

from holdall import Database, Key, Model, SortKey
from holdall.core import BatchWrite, PutItem, sort_text

ROWS = 100_000 if TORTURE else 6_000  # some pages of them

LENGTH = 400


class Reading(Model):
    sensor: Key[str]
    number: SortKey[int]
    text: str = ""


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
        "text": {"S": "x" * LENGTH},
    }


@contextmanager
def watch(most: int) -> Iterator[None]:
    """No more than that is held at any moment."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most


@pytest.fixture(scope="module")
def page(db: Database) -> int:
    """What the rows of one full page take."""
    gc.collect()
    tracemalloc.start()
    try:
        rows = iter(db.query(Reading, sensor="s"))
        next(rows)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def lengths(rows: Iterable[Reading]) -> int:
    return sum(len(row.text) for row in rows)


def test_many_rows_take_the_memory_of_a_page(db: Database, page: int) -> None:
    with watch(2 * page):
        assert lengths(db.query(Reading, sensor="s")) == ROWS * LENGTH


def test_in_a_transaction_rows_that_nobody_keeps_are_let_go(db: Database, page: int) -> None:
    with db.transaction() as tx:
        with watch(2 * page):
            for row in tx.query(Reading, sensor="s", limit=ROWS):
                if row.number == ROWS - 1:
                    row.text = "changed"
        assert len(tx.changes()) == 1
    assert db.get_one(Reading, sensor="s", number=ROWS - 1).text == "changed"


def test_rows_that_were_not_locked_are_let_go_though_they_were_looked_at(db: Database, page: int) -> None:
    with db.transaction() as tx, watch(2 * page):
        assert lengths(tx.query(Reading, sensor="s", limit=ROWS, sort=Reading.number < ROWS - 1, lock=False))

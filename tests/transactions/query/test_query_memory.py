"""Reading many rows takes the memory of about one page, even if a loop reads or changes fields."""

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

ROWS = 100_000 if TORTURE else 6_000  # several pages

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
def limit_memory(most: int) -> Iterator[None]:
    """Check that the block never uses more memory than this."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most


@pytest.fixture(scope="module")
def page_size(db: Database) -> int:
    """Return the memory that the rows of one full page take."""
    gc.collect()
    tracemalloc.start()
    try:
        rows = iter(db.query(Reading, sensor="s"))
        next(rows)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def add_up_lengths(rows: Iterable[Reading]) -> int:
    return sum(len(row.text) for row in rows)


def test_many_rows_take_the_memory_of_two_pages_at_most(db: Database, page_size: int) -> None:
    with limit_memory(2 * page_size):
        assert add_up_lengths(db.query(Reading, sensor="s")) == ROWS * LENGTH


def test_a_transaction_releases_rows_whose_fields_were_not_read(db: Database, page_size: int) -> None:
    with db.transaction() as tx:
        with limit_memory(2 * page_size):
            for row in tx.query(Reading, sensor="s", limit=ROWS):
                if row.number == ROWS - 1:
                    row.text = "changed"
        assert len(tx.changes()) == 1
    assert db.get_one(Reading, sensor="s", number=ROWS - 1).text == "changed"


def test_a_transaction_releases_rows_without_a_lock_even_if_their_fields_were_read(
    db: Database, page_size: int
) -> None:
    with db.transaction() as tx, limit_memory(2 * page_size):
        assert add_up_lengths(
            tx.query(Reading, sensor="s", limit=ROWS, sort=Reading.number < ROWS - 1, lock=False)
        )

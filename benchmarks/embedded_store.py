"""The same items twice: in an embedded store, and in a plain SQLite table with the same pragmas.

They are made once per run and size, then shared: the benchmarks of the embedded engine leave both sides equal.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from holdall import Database
from holdall.core import BatchWrite, CreateTable, KeyAttribute, PutItem, TableSchema

__all__ = ["CLOCKS", "DURABILITIES", "SIZES", "TABLE", "Durability", "Twins", "dumps", "twins"]

Durability = Literal["normal", "full"]

DURABILITIES: tuple[Durability, ...] = ("normal", "full")
SIZES = (1_000, 1_000_000)
TABLE = "orders"

CLOCKS: dict[Durability, Callable[[], float]] = {
    "normal": time.process_time,
    "full": time.perf_counter,  # commits wait for the disk, which takes no CPU time
}

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""JSON as compact as the engine's own, so that both sides store and parse the same text."""

_PER_CUSTOMER = 10
_BATCH = 25
_COMMIT_EVERY = 10_000

Document = dict[str, dict[str, Any]]


@dataclass(slots=True)
class Twins:
    """Both files, and the version of each item in them (1 unless listed)."""

    store: Path
    plain: Path
    count: int
    versions: dict[int, int] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(20))

    def some(self, count: int) -> list[int]:
        """Numbers of existing items, drawn at random."""
        return self.random.choices(range(self.count), k=count)

    @contextmanager
    def open(self, durability: Durability) -> Iterator[tuple[Database, sqlite3.Connection]]:
        """Open both sides with the same durability."""
        with (
            Database(f"embedded:{self.store}", durability=durability) as db,
            closing(_plain(self.plain, durability)) as connection,
        ):
            yield db, connection


def key(number: int) -> tuple[str, str]:
    """The partition and sort key of an item."""
    return f"customer#{number // _PER_CUSTOMER:06}", f"order#{number % _PER_CUSTOMER}"


def document(number: int, version: int) -> Document:
    """An item of ten attributes of mixed types, about 300 bytes of JSON."""
    pk, sk = key(number)
    return {
        "pk": {"S": pk},
        "sk": {"S": sk},
        "version": {"N": str(version)},
        "product": {"S": f"Coffee, roast {number % 97}"},
        "price": {"N": f"{number % 89 + 10}.95"},
        "paid": {"BOOL": number % 3 == 0},
        "coupon": {"NULL": True},
        "tags": {"SS": ["beans", "gift"]},
        "address": {"M": {"street": {"S": f"{number % 211} Mill Lane"}, "city": {"S": "Zürich"}}},
        "amounts": {"L": [{"N": "2"}, {"N": str(number % 13 + 1)}]},
    }


_made: dict[tuple[Path, int], Twins] = {}


def twins(workshop: Path, count: int) -> Twins:
    """Return the twins with that many items, created on first use."""
    found = _made.get((workshop, count))
    if found is None:
        print(f"preparing {count:,} items, twice", file=sys.stderr)
        found = Twins(workshop / f"store-{count}.db", workshop / f"plain-{count}.db", count)
        _fill_store(found)
        _fill_plain(found)
        _made[workshop, count] = found
    return found


def _fill_store(made: Twins) -> None:
    schema = TableSchema(TABLE, KeyAttribute("pk"), KeyAttribute("sk"))
    puts = (PutItem(TABLE, document(number, 1)) for number in range(made.count))
    with Database(f"embedded:{made.store}", durability="normal") as db:
        db.send(CreateTable(schema))
        while batch := tuple(islice(puts, _BATCH)):
            db.send(BatchWrite(batch))


def _fill_plain(made: Twins) -> None:
    rows = ((*map(str.encode, key(n)), dumps(document(n, 1))) for n in range(made.count))
    with closing(_plain(made.plain, "normal")) as connection:
        connection.execute("CREATE TABLE items (pk BLOB, sk BLOB, body TEXT, PRIMARY KEY (pk, sk))")
        while batch := list(islice(rows, _COMMIT_EVERY)):
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO items VALUES (?, ?, ?)", batch)
            connection.execute("COMMIT")


def _plain(path: Path, durability: Durability) -> sqlite3.Connection:
    """A bare connection with the engine's pragmas."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {durability.upper()}")
    connection.execute("PRAGMA cache_size = -16384")
    return connection

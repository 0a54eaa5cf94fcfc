"""A put conditional on a version, on the embedded engine, against a bare write transaction with the same effect."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.embedded_get import check_same
from benchmarks.embedded_store import (
    CLOCKS,
    DURABILITIES,
    SIZES,
    TABLE,
    Document,
    Durability,
    Twins,
    document,
    dumps,
    key,
    twins,
)
from benchmarks.harness import Figure, time_pair
from holdall import Database
from holdall.core import Compare, PutItem, Value, path

BAR = 3.0
PER_SLICE = 300


class Change(NamedTuple):
    """A put of a new item, on the condition that the stored item still has the expected version."""

    pk: str
    sk: str
    expected: str
    new: Document


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per size and durability."""
    for count in SIZES:
        for durability in DURABILITIES:
            yield _figure(twins(workshop, count), durability)


def _figure(both: Twins, durability: Durability) -> Figure:
    touched: list[Change] = []

    def prepare() -> list[Change]:
        touched[:] = [_next_change(both, number) for number in both.some(PER_SLICE)]
        return touched

    with both.open(durability) as (db, connection):
        result = time_pair(
            prepare,
            lambda changes: _ours(db, changes),
            lambda changes: _theirs(connection, changes),
            clock=CLOCKS[durability],
        )
        check_same(db, connection, [(change.pk, change.sk) for change in touched])
    details = (durability, f"{both.count:,} items")
    return Figure("embedded_put", details, result.ratio, BAR, note=result.each(PER_SLICE))


def _next_change(both: Twins, number: int) -> Change:
    version = both.versions.get(number, 1)
    both.versions[number] = version + 1
    return Change(*key(number), str(version), document(number, version + 1))


def _ours(db: Database, changes: list[Change]) -> None:
    for _, _, expected, new in changes:
        db.send(PutItem(TABLE, new, Compare("=", path("version"), Value({"N": expected}))))


def _theirs(connection: sqlite3.Connection, changes: list[Change]) -> None:
    for pk, sk, expected, new in changes:
        where = (pk.encode(), sk.encode())
        connection.execute("BEGIN IMMEDIATE")
        (body,) = connection.execute("SELECT body FROM items WHERE pk = ? AND sk = ?", where).fetchone()
        if json.loads(body)["version"] != {"N": expected}:
            raise AssertionError(f"{pk} {sk} is not of version {expected}")
        connection.execute("UPDATE items SET body = ? WHERE pk = ? AND sk = ?", (dumps(new), *where))
        connection.execute("COMMIT")

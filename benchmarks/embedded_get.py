"""A point get on the embedded engine against a bare SELECT by key and json.loads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from benchmarks.embedded_store import CLOCKS, DURABILITIES, SIZES, TABLE, Durability, Twins, key, twins
from benchmarks.harness import Figure, time_pair
from holdall import Database
from holdall.core import GetItem

BAR = 3.0
PER_SLICE = 1_000

Keys = list[tuple[str, str]]

_SELECT = "SELECT body FROM items WHERE pk = ? AND sk = ?"


def figures(workshop: Path) -> Iterator[Figure]:
    """One figure per size and durability."""
    for count in SIZES:
        for durability in DURABILITIES:
            yield _figure(twins(workshop, count), durability)


def _figure(both: Twins, durability: Durability) -> Figure:
    with both.open(durability) as (db, connection):

        def prepare() -> Keys:
            return [key(number) for number in both.some(PER_SLICE)]

        check_same(db, connection, prepare())
        result = time_pair(
            prepare,
            lambda keys: _ours(db, keys),
            lambda keys: _theirs(connection, keys),
            clock=CLOCKS[durability],
        )
    details = (durability, f"{both.count:,} items")
    return Figure("embedded_get", details, result.ratio, BAR, note=result.each(PER_SLICE))


def _ours(db: Database, keys: Keys) -> None:
    for pk, sk in keys:
        db.send(GetItem(TABLE, {"pk": {"S": pk}, "sk": {"S": sk}}))


def _theirs(connection: sqlite3.Connection, keys: Keys) -> None:
    for pk, sk in keys:
        (body,) = connection.execute(_SELECT, (pk.encode(), sk.encode())).fetchone()
        json.loads(body)


def check_same(db: Database, connection: sqlite3.Connection, keys: Keys) -> None:
    """Check that both sides return the same items, so that the figure compares equal work."""
    for pk, sk in keys:
        (body,) = connection.execute(_SELECT, (pk.encode(), sk.encode())).fetchone()
        ours = db.send(GetItem(TABLE, {"pk": {"S": pk}, "sk": {"S": sk}})).item
        assert ours == json.loads(body), f"{pk} {sk}: {ours} is not {body}"

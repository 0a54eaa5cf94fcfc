"""The audit of a store's file: is it sound, and do its indexes say what its items say?"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from holdall import Database
from holdall.core import DescribeTable, IndexSchema, Item, KeyCondition, Query, Scan, TableSchema


def audit(path: Path, said: str) -> None:
    """Everything that must hold of a file at any time; ``said`` goes into the complaint."""
    _check_file(path, said)
    with Database(f"embedded:{path}") as db:
        for table in _tables(path):
            schema = db.send(DescribeTable(table)).schema
            items = scan_table(db, table)
            for index in schema.indexes:
                _check_index(db, schema, index, items, said)


def scan_table(db: Database, table: str, index: str | None = None) -> list[Item]:
    """All items of a table or index."""
    return [
        item for page in db.pages(Scan(table, index=index, consistent=index is None)) for item in page.items
    ]


def _tables(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    try:
        ((definitions,),) = connection.execute("SELECT definitions FROM catalog").fetchall()
    finally:
        connection.close()
    return sorted(json.loads(definitions)["tables"])


def _check_file(path: Path, said: str) -> None:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], said
        dangling = "SELECT count(*) FROM entries WHERE item NOT IN (SELECT id FROM items)"
        assert connection.execute(dangling).fetchone() == (0,), f"entries without an item {said}"
    finally:
        connection.close()


def _check_index(db: Database, schema: TableSchema, index: IndexSchema, items: list[Item], said: str) -> None:
    """Reading the index, whole or by partition, gives just what a filter over the table gives."""
    held = schema.projected(index)
    expected = [
        item if held is None else {name: item[name] for name in item if name in held}
        for item in items
        if all(part.name in item for part in index.keys)
    ]
    complaint = f"index {index.name} of {schema.name} disagrees with its items {said}"
    assert _texts(scan_table(db, schema.name, index.name)) == _texts(expected), complaint
    name = index.partition.name
    for value in {json.dumps(item[name]) for item in expected}:
        query = Query(schema.name, KeyCondition(name, json.loads(value)), index=index.name)
        found = [item for page in db.pages(query) for item in page.items]
        assert _texts(found) == _texts(i for i in expected if json.dumps(i[name]) == value), complaint


def _texts(items: Iterable[Item]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)

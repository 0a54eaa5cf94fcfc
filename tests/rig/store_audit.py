"""The audit of a store's file: whether the file is sound, and its indexes match its items."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from holdall import Database
from holdall.core import DescribeTable, IndexSchema, Item, KeyCondition, Query, Scan, TableSchema


def audit(path: Path, context: str) -> None:
    """Check what must hold of a file at any time; ``context`` becomes part of the assertion messages."""
    _check_file(path, context)
    with Database(f"embedded:{path}") as db:
        for table in _tables(path):
            schema = db.send(DescribeTable(table)).schema
            items = scan_table(db, table)
            for index in schema.indexes:
                _check_index(db, schema, index, items, context)


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


def _check_file(path: Path, context: str) -> None:
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], context
        dangling = "SELECT count(*) FROM entries WHERE item NOT IN (SELECT id FROM items)"
        assert connection.execute(dangling).fetchone() == (0,), f"entries without an item {context}"
    finally:
        connection.close()


def _check_index(
    db: Database, schema: TableSchema, index: IndexSchema, items: list[Item], context: str
) -> None:
    """Check that the index, read whole or by partition, has exactly the items that a filter on the table gives."""
    held = schema.projected(index)
    expected = [
        item if held is None else {name: item[name] for name in item if name in held}
        for item in items
        if all(part.name in item for part in index.keys)
    ]
    complaint = f"index {index.name} of {schema.name} disagrees with its items {context}"
    assert _texts(scan_table(db, schema.name, index.name)) == _texts(expected), complaint
    name = index.partition.name
    for value in {json.dumps(item[name]) for item in expected}:
        query = Query(schema.name, KeyCondition(name, json.loads(value)), index=index.name)
        found = [item for page in db.pages(query) for item in page.items]
        assert _texts(found) == _texts(i for i in expected if json.dumps(i[name]) == value), complaint


def _texts(items: Iterable[Item]) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items)

"""Plans for reads by key: get, batch get, transactional get."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

from holdall.backends.embedded.catalog import Catalog
from holdall.backends.embedded.order import table_key
from holdall.backends.embedded.row import Row, Work, check_version, read_row
from holdall.core.expressions.evaluation import project
from holdall.core.measure import read_units
from holdall.core.requests import BatchGet, BatchGetReply, GetItem, GetReply, TransactGet
from holdall.core.rules.validation import Checked, check_size_read
from holdall.core.values import Item

T = TypeVar("T")


def plan_get(catalog: Catalog, request: GetItem, found: Sequence[Checked]) -> Work[GetReply]:
    """One item, in one statement."""
    table = catalog.tables[request.table]
    pk, sk = table_key(table.schema, found[0].kept)

    def work(connection: sqlite3.Connection) -> GetReply:
        row = read_row(connection, catalog, table, pk, sk)
        if row is None:
            return GetReply(None, read_units(0, consistent=request.consistent))
        return GetReply(_show(request, row), read_units(row.size, consistent=request.consistent))

    return work


def plan_batch_get(catalog: Catalog, request: BatchGet, found: Sequence[Checked]) -> Work[BatchGetReply]:
    """Items one by one; they need not be from one snapshot."""
    gets = [plan_get(catalog, read, [each]) for read, each in zip(request.reads, found, strict=True)]

    def work(connection: sqlite3.Connection) -> BatchGetReply:
        replies = [get(connection) for get in gets]
        return BatchGetReply(tuple(r.item for r in replies), sum(r.capacity for r in replies))

    return work


def plan_transact_get(
    catalog: Catalog, request: TransactGet, found: Sequence[Checked]
) -> Work[BatchGetReply]:
    """Items from one snapshot, of at most 4 MB."""
    tables = [catalog.tables[read.table] for read in request.reads]
    keys = [table_key(table.schema, each.kept) for table, each in zip(tables, found, strict=True)]

    def rows(connection: sqlite3.Connection) -> list[Row | None]:
        return [read_row(connection, catalog, table, *key) for table, key in zip(tables, keys, strict=True)]

    def work(connection: sqlite3.Connection) -> BatchGetReply:
        stored = snapshot(connection, catalog, lambda: rows(connection))
        sizes = [0 if row is None else row.size for row in stored]
        check_size_read(sum(sizes))
        items = tuple(_show(read, row) for read, row in zip(request.reads, stored, strict=True))
        return BatchGetReply(items, sum(read_units(size, transactional=True) for size in sizes))

    return work


def _show(read: GetItem, row: Row | None) -> Item | None:
    if row is None:
        return None
    return project(read.projection, row.item) if read.projection else row.item


def snapshot(connection: sqlite3.Connection, catalog: Catalog, read: Callable[[], T]) -> T:
    """Read everything from one snapshot, with the catalog that the plan saw.

    This is not a generator: an interrupted one would end the transaction of the connection's next user.
    """
    connection.execute("BEGIN")
    try:
        check_version(connection, catalog)
        return read()
    finally:
        connection.execute("COMMIT")  # ends the snapshot; nothing was written

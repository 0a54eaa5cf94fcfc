"""Plans for tables: describe, create, delete, add or remove an index, set the TTL attribute.

A new index is filled in the transaction that adds it, so it is complete from the start, and there is no status CREATING
to wait for; other writers wait in the meantime.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace

from holdall.backends.embedded.catalog import Catalog, Table
from holdall.backends.embedded.order import index_key
from holdall.backends.embedded.row import Work, check_version, expiry, insert_entry, load
from holdall.core.requests import (
    AddIndex,
    CreateTable,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    Done,
    RemoveIndex,
    SetTtl,
    TableDescription,
    TtlDescription,
)
from holdall.core.rules.validation import Checked
from holdall.core.values import Item
from holdall.errors import ConfigurationError, TableExistsError


def plan_describe(
    catalog: Catalog, request: DescribeTable, found: Sequence[Checked]
) -> Work[TableDescription]:
    """Describe a table."""
    table = catalog.table(request.table)

    def work(connection: sqlite3.Connection) -> TableDescription:
        check_version(connection, catalog)
        return _description(connection, table, counts=request.counts)

    return work


def plan_create(catalog: Catalog, request: CreateTable, found: Sequence[Checked]) -> Work[TableDescription]:
    """Create a table."""
    schema = request.schema
    if schema.name in catalog.tables:
        raise TableExistsError(f"the table {schema.name} already exists", hint="use it, or delete it first")
    first = catalog.next_number
    numbers = {index.name: first + position for position, index in enumerate(schema.indexes, start=1)}
    table = Table(first, schema, numbers)

    def work(connection: sqlite3.Connection) -> TableDescription:
        check_version(connection, catalog)
        _save(connection, catalog, table, used=1 + len(numbers))
        return _description(connection, table)

    return work


def plan_delete(catalog: Catalog, request: DeleteTable, found: Sequence[Checked]) -> Work[Done]:
    """Delete a table and everything in it."""
    table = catalog.table(request.table)

    def work(connection: sqlite3.Connection) -> Done:
        check_version(connection, catalog)
        rest = {name: other for name, other in catalog.tables.items() if name != request.table}
        replace(catalog, tables=rest).save(connection)
        for number, _ in table.indexes:
            connection.execute("DELETE FROM entries WHERE idx = ?", (number,))
        connection.execute("DELETE FROM items WHERE t = ?", (table.number,))
        return Done()

    return work


def plan_add_index(catalog: Catalog, request: AddIndex, found: Sequence[Checked]) -> Work[TableDescription]:
    """Add an index, filled with the table's items; items that do not fit it are left out, as in DynamoDB."""
    old = catalog.table(request.table)
    index = request.index
    schema = replace(old.schema, indexes=(*old.schema.indexes, index))
    number = catalog.next_number
    table = replace(old, schema=schema, index_numbers={**old.index_numbers, index.name: number})

    def work(connection: sqlite3.Connection) -> TableDescription:
        check_version(connection, catalog)
        _save(connection, catalog, table, used=1)
        for row, pk, sk, item in _all_items(connection, table):
            entry = index_key(index, item)
            if entry is not None:
                insert_entry(connection, number, entry, (pk, sk), row)
        return _description(connection, table)

    return work


def plan_remove_index(
    catalog: Catalog, request: RemoveIndex, found: Sequence[Checked]
) -> Work[TableDescription]:
    """Remove an index with its entries."""
    old = catalog.table(request.table)
    removed = old.schema.index(request.index)
    kept = tuple(index for index in old.schema.indexes if index is not removed)
    numbers = {index.name: old.index_numbers[index.name] for index in kept}
    table = replace(old, schema=replace(old.schema, indexes=kept), index_numbers=numbers)

    def work(connection: sqlite3.Connection) -> TableDescription:
        check_version(connection, catalog)
        _save(connection, catalog, table, used=0)
        connection.execute("DELETE FROM entries WHERE idx = ?", (old.index_numbers[request.index],))
        return _description(connection, table)

    return work


def plan_describe_ttl(
    catalog: Catalog, request: DescribeTtl, found: Sequence[Checked]
) -> Work[TtlDescription]:
    """Describe the attribute by which items expire."""
    table = catalog.table(request.table)

    def work(connection: sqlite3.Connection) -> TtlDescription:
        check_version(connection, catalog)
        return TtlDescription(table.ttl)

    return work


def plan_set_ttl(catalog: Catalog, request: SetTtl, found: Sequence[Checked]) -> Work[TtlDescription]:
    """Set the attribute by which items expire, including the existing items."""
    old = catalog.table(request.table)
    if request.attribute is not None and old.ttl not in (None, request.attribute):
        raise ConfigurationError(
            f"table {request.table} already expires items by {old.ttl}",
            hint="turn that off first: SetTtl(table, None)",
        )
    table = replace(old, ttl=request.attribute)

    def work(connection: sqlite3.Connection) -> TtlDescription:
        check_version(connection, catalog)
        _save(connection, catalog, table, used=0)
        connection.execute("UPDATE items SET ttl = NULL WHERE t = ? AND ttl IS NOT NULL", (table.number,))
        if request.attribute is not None:
            for row, _, _, item in _all_items(connection, table):
                moment = expiry(table, item)
                if moment is not None:
                    connection.execute("UPDATE items SET ttl = ? WHERE id = ?", (moment, row))
        return TtlDescription(request.attribute)

    return work


def _save(connection: sqlite3.Connection, catalog: Catalog, table: Table, *, used: int) -> None:
    tables = {**catalog.tables, table.schema.name: table}
    replace(catalog, tables=tables, next_number=catalog.next_number + used).save(connection)


def _all_items(connection: sqlite3.Connection, table: Table) -> Iterator[tuple[int, bytes, bytes, Item]]:
    """Every row of a table, in bounded memory; other columns and tables may change meanwhile."""
    last = b"", b""
    while True:
        rows = connection.execute(
            "SELECT id, pk, sk, body FROM items WHERE t = ? AND (pk, sk) > (?, ?) ORDER BY pk, sk LIMIT 500",
            (table.number, *last),
        ).fetchall()
        if not rows:
            return
        for row, pk, sk, body in rows:
            yield row, pk, sk, load(body)
        last = rows[-1][1], rows[-1][2]


def _description(connection: sqlite3.Connection, table: Table, *, counts: bool = True) -> TableDescription:
    count, size = -1, -1
    if counts:
        count, size = connection.execute(
            "SELECT count(*), total(size) FROM items WHERE t = ?", (table.number,)
        ).fetchone()
    states = {index.name: "ACTIVE" for _, index in table.indexes}
    return TableDescription(table.schema, "ACTIVE", states, count, int(size))

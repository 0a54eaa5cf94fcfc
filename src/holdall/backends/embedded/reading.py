"""Plans of reads by key: get, batch get, transactional get."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdall.backends.embedded.catalog import Catalog
from holdall.backends.embedded.ordering import table_key
from holdall.backends.embedded.rows import SELECT_ROW, Stale, check_version, load
from holdall.core.billing import read_units
from holdall.core.evaluation import project
from holdall.core.group_rules import check_batch_get, check_transact_get
from holdall.core.key_rules import checked_key
from holdall.core.page_rules import check_read
from holdall.core.requests import BatchGet, BatchGetReply, GetItem, GetReply, TransactGet

__all__ = ["plan_batch_get", "plan_get", "plan_transact_get", "snapshot"]


def plan_get(catalog: Catalog, request: GetItem) -> Callable[[sqlite3.Connection], GetReply]:
    """One item, in one statement."""
    table = catalog.table(request.table)
    if request.projection:
        check_read(request)
    pk, sk = table_key(table.schema, checked_key(table.schema, request.key))

    def work(connection: sqlite3.Connection) -> GetReply:
        version, number, body, size = connection.execute(SELECT_ROW, (table.number, pk, sk)).fetchone()
        if version != catalog.version:
            raise Stale
        units = read_units(size or 0, consistent=request.consistent)
        if number is None:
            return GetReply(None, units)
        item = load(body)
        return GetReply(project(request.projection, item) if request.projection else item, units)

    return work


def plan_batch_get(catalog: Catalog, request: BatchGet) -> Callable[[sqlite3.Connection], BatchGetReply]:
    """Items one by one; no need for them to be of one instant."""
    check_batch_get(request, catalog.schema)
    gets = [plan_get(catalog, read) for read in request.reads]

    def work(connection: sqlite3.Connection) -> BatchGetReply:
        replies = [get(connection) for get in gets]
        return BatchGetReply(tuple(r.item for r in replies), sum(r.capacity for r in replies))

    return work


def plan_transact_get(
    catalog: Catalog, request: TransactGet
) -> Callable[[sqlite3.Connection], BatchGetReply]:
    """Items as of one instant: one snapshot."""
    check_transact_get(request, catalog.schema)
    gets = [plan_get(catalog, read) for read in request.reads]

    def work(connection: sqlite3.Connection) -> BatchGetReply:
        with snapshot(connection, catalog):
            replies = [get(connection) for get in gets]
        units = sum(
            r.capacity * (2 if read.consistent else 4) for read, r in zip(request.reads, replies, strict=True)
        )
        return BatchGetReply(tuple(r.item for r in replies), units)

    return work


@contextmanager
def snapshot(connection: sqlite3.Connection, catalog: Catalog) -> Iterator[None]:
    """Everything read inside is of one instant, and of the catalog that the plan saw."""
    connection.execute("BEGIN")
    try:
        check_version(connection, catalog)
        yield
    finally:
        connection.execute("COMMIT")  # ends the snapshot; nothing was written

"""Plans for paged reads: query and scan, in DynamoDB's order, in pages of at most 1 MB before filters."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from holdall.backends.embedded.catalog import Catalog, Table
from holdall.backends.embedded.lookup import snapshot
from holdall.backends.embedded.order import (
    Range,
    index_key,
    join_parts,
    join_range,
    key_bytes,
    sort_range,
    table_key,
)
from holdall.backends.embedded.row import Work, load, restrict
from holdall.backends.embedded.sieve import list_texts
from holdall.core.expressions import KeyCondition
from holdall.core.expressions.evaluation import holds, project
from holdall.core.measure import canonical_item, item_size, read_units
from holdall.core.requests import Page, Query, Scan
from holdall.core.rules.key import canonical_attribute
from holdall.core.rules.validation import Checked
from holdall.core.schema import IndexSchema, TableSchema
from holdall.core.values import Item

PAGE_BYTES = 1024 * 1024

Sql = tuple[str, list[object]]


def plan_query(catalog: Catalog, request: Query, found: Sequence[Checked]) -> Work[Page]:
    """A page of one partition."""
    table = catalog.tables[request.table]
    index = None if request.index is None else table.schema.index(request.index)
    pk, within = _look_up(table.schema if index is None else index, request.key)
    start = None if request.start_after is None else canonical_item(request.start_after)[0]
    sql = _query_sql(table, index, pk, within, start, request.reverse)
    return _page_plan(catalog, table, index, request, sql)


def plan_scan(catalog: Catalog, request: Scan, found: Sequence[Checked]) -> Work[Page]:
    """A page of a whole table or index, or of one segment of it."""
    table = catalog.tables[request.table]
    index = None if request.index is None else table.schema.index(request.index)
    start = None if request.start_after is None else canonical_item(request.start_after)[0]
    sql = _scan_sql(table, index, start, request.segment, request.segments)
    return _page_plan(catalog, table, index, request, sql)


def _look_up(keyed: TableSchema | IndexSchema, key: KeyCondition) -> tuple[bytes, Range]:
    """The partition, and the range of its sort keys."""
    if len(keyed.keys) <= 2 and not key.also:
        return key_bytes(canonical_attribute(key.equals)), sort_range(key.sort)
    fixed = [key_bytes(canonical_attribute(equals)) for _, equals in key.equalities]
    count = len(keyed.partitions)
    if len(keyed.sorts) > 1:
        within = join_range(fixed[count:], key.sort)
    elif fixed[count:]:
        within = Range(fixed[count], fixed[count])
    else:
        within = sort_range(key.sort)
    return join_parts(fixed[:count]), within


def _query_sql(
    table: Table,
    index: IndexSchema | None,
    pk: bytes,
    within: Range,
    start: Item | None,
    reverse: bool,
) -> Sql:
    text, parameters, (_, *order) = _source(table, index)
    text += " AND r.pk = ?"
    parameters.append(pk)
    # a start is inside the range and is the tighter bound; with both, SQLite would walk from the looser one
    if within.low is not None and (start is None or reverse):
        text += f" AND r.sk {'>' if within.low_open else '>='} ?"
        parameters.append(within.low)
    if within.high is not None and (start is None or not reverse):
        text += f" AND r.sk {'<' if within.high_open else '<='} ?"
        parameters.append(within.high)
    if start is not None:
        place = _place(table, index, start)[1:]
        text += f" AND ({', '.join(order)}) {'<' if reverse else '>'} ({', '.join('?' * len(place))})"
        parameters += place
    direction = " DESC" if reverse else ""
    return f"{text} ORDER BY {', '.join(part + direction for part in order)}", parameters


def _scan_sql(
    table: Table, index: IndexSchema | None, start: Item | None, segment: int, segments: int
) -> Sql:
    text, parameters, order = _source(table, index)
    if segments > 1:  # an item keeps its row number, and so its segment, for life
        text += f" AND {'r.id' if index is None else 'r.item'} % ? = ?"
        parameters += [segments, segment]
    if start is not None:
        place = _place(table, index, start)
        text += f" AND ({', '.join(order)}) > ({', '.join('?' * len(place))})"
        parameters += place
    return f"{text} ORDER BY {', '.join(order)}", parameters


def _source(table: Table, index: IndexSchema | None) -> tuple[str, list[object], list[str]]:
    """The beginning of a statement for rows of a table or index, its parameters, and the columns of its order."""
    if index is None:
        return "SELECT r.body, r.size FROM items AS r WHERE r.t = ?", [table.number], ["r.pk", "r.sk"]
    text = "SELECT i.body, i.size FROM entries AS r JOIN items AS i ON i.id = r.item WHERE r.idx = ?"
    return text, [table.index_numbers[index.name]], ["r.pk", "r.sk", "r.bpk", "r.bsk"]


def _place(table: Table, index: IndexSchema | None, key: Item) -> list[bytes]:
    """A key's position in the order of the table or index, as values of the columns of that order."""
    own = table_key(table.schema, key)
    if index is None:
        return [*own]
    entry = index_key(index, key)
    assert entry is not None  # it was checked
    return [*entry, *own]


def _page_plan(
    catalog: Catalog, table: Table, index: IndexSchema | None, request: Query | Scan, sql: Sql
) -> Work[Page]:
    held = None if index is None else table.schema.projected(index)
    names = [part.name for part in (*table.schema.keys, *(() if index is None else index.keys))]
    texts = list_texts(request.filter) if held is None else []
    enough = request.enough if isinstance(request, Scan) else None

    def page(connection: sqlite3.Connection) -> Page:
        items: list[Item] = []
        count = scanned = total = 0
        last = ""  # the body of the last row, if there may be more
        with closing(connection.execute(*sql)) as rows:
            body = ""
            for following, size in rows:
                # checked here, because a page that ends with the data is the last one
                if total >= PAGE_BYTES:
                    last = body
                    break
                body = following
                scanned += 1
                item: Item | None = None
                if held is not None:
                    item = restrict(load(body), held)
                    total += item_size(item)
                else:
                    item = load(body) if all(any(text in body for text in group) for group in texts) else None
                    total += size
                if item is not None and (request.filter is None or holds(request.filter, item)):
                    count += 1
                    if not request.count_only:
                        items.append(project(request.projection, item) if request.projection else item)
                if scanned == request.limit or count == enough:
                    last = body
                    break
        units = read_units(total, consistent=request.consistent)
        return Page(tuple(items), count, scanned, _find_place(last, names) if last else None, units)

    return lambda connection: snapshot(connection, catalog, lambda: page(connection))


def _find_place(body: str, names: Sequence[str]) -> Item:
    """The attributes of an item by which the next page continues after it."""
    item = load(body)
    return {name: item[name] for name in names}

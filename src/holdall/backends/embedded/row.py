"""Items as rows: reading one, and replacing one together with its index entries."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from holdall.backends.embedded.catalog import Catalog, Table
from holdall.backends.embedded.order import index_key
from holdall.core.json_text import encode_json
from holdall.core.measure import item_size, write_units
from holdall.core.schema import IndexSchema
from holdall.core.values import Attribute, Item
from holdall.errors import StoreCorruptError

T = TypeVar("T")

Work: TypeAlias = Callable[[sqlite3.Connection], T]
"""The result of planning: a function to call with a connection."""

# the catalog's version is read in the same statement, and so in the same snapshot, as the row
SELECT_ROW = (
    "SELECT c.version, i.id, i.body, i.size FROM catalog AS c "
    "LEFT JOIN items AS i ON i.t = ? AND i.pk = ? AND i.sk = ?"
)


class Stale(Exception):
    """The catalog has changed since the request was planned: plan it again."""


class Row:
    """A stored item; its body is decoded only when it is needed."""

    __slots__ = ("_body", "_item", "number", "size")

    def __init__(self, number: int, body: str, size: int) -> None:
        self.number = number
        self.size = size
        self._body = body
        self._item: dict[str, Attribute] | None = None

    @property
    def item(self) -> dict[str, Attribute]:
        """The item."""
        if self._item is None:
            self._item = load(self._body)
        return self._item


def load(body: str) -> dict[str, Attribute]:
    """The item behind a stored body."""
    try:
        return json.loads(body)  # type: ignore[no-any-return]
    except ValueError as error:
        raise StoreCorruptError(
            f"a stored item is damaged ({error})", hint="restore the database from a backup"
        ) from error


def check_version(connection: sqlite3.Connection, catalog: Catalog) -> None:
    """Raise `Stale` if the transaction sees another catalog than the plan did."""
    (version,) = connection.execute("SELECT version FROM catalog").fetchone()
    if version != catalog.version:
        raise Stale


def read_row(
    connection: sqlite3.Connection, catalog: Catalog, table: Table, pk: bytes, sk: bytes
) -> Row | None:
    """The row under a key, or None; `Stale` if the catalog is not the plan's."""
    found = connection.execute(SELECT_ROW, (table.number, pk, sk)).fetchone()
    if found[0] != catalog.version:
        raise Stale
    return None if found[1] is None else Row(found[1], found[2], found[3])


def replace_row(
    connection: sqlite3.Connection,
    table: Table,
    key: tuple[bytes, bytes],
    old: Row | None,
    new: tuple[Item, int] | None,
) -> float:
    """Replace the old item by the new one (None: no item), with its index entries; returns the write's cost.

    It runs inside a write transaction, so a reader sees the item and its entries change together.
    """
    before = 0 if old is None else old.size
    if new is None:
        if old is not None:
            connection.execute("DELETE FROM items WHERE id = ?", (old.number,))
            return write_units(before, 0) + _replace_entries(connection, table, key, old.number, old, None)
        return write_units(0, 0)
    item, size = new
    values = (encode_json(item), size, expiry(table, item))
    if old is None:
        row = connection.execute(
            "INSERT INTO items (body, size, ttl, t, pk, sk) VALUES (?, ?, ?, ?, ?, ?)",
            (*values, table.number, *key),
        )
        number: int = row.lastrowid  # type: ignore[assignment]
    else:
        number = old.number
        connection.execute("UPDATE items SET body = ?, size = ?, ttl = ? WHERE id = ?", (*values, number))
    units = write_units(before, size)
    if table.indexes:
        units += _replace_entries(connection, table, key, number, old, item)
    return units


def _replace_entries(
    connection: sqlite3.Connection,
    table: Table,
    key: tuple[bytes, bytes],
    number: int,
    old: Row | None,
    new: Item | None,
) -> float:
    units = 0.0
    for index_number, index in table.indexes:
        left = None if old is None else index_key(index, old.item)
        entered = None if new is None else index_key(index, new)
        if left is not None and left != entered:
            connection.execute(
                "DELETE FROM entries WHERE idx = ? AND pk = ? AND sk = ? AND bpk = ? AND bsk = ?",
                (index_number, *left, *key),
            )
        if entered is not None and entered != left:
            insert_entry(connection, index_number, entered, key, number)
        units += _entry_units(table, index, left, entered, {} if old is None else old.item, new or {})
    return units


def insert_entry(
    connection: sqlite3.Connection,
    index_number: int,
    entry: tuple[bytes, bytes],
    key: tuple[bytes, bytes],
    number: int,
) -> None:
    """Put one item into one index."""
    connection.execute(
        "INSERT INTO entries (idx, pk, sk, bpk, bsk, item) VALUES (?, ?, ?, ?, ?, ?)",
        (index_number, *entry, *key, number),
    )


def _entry_units(
    table: Table,
    index: IndexSchema,
    left: tuple[bytes, bytes] | None,
    entered: tuple[bytes, bytes] | None,
    old: Item,
    new: Item,
) -> float:
    """What the change costs in the index: nothing unless the projected attributes changed."""
    held = table.schema.projected(index)
    before = {} if left is None else restrict(old, held)
    after = {} if entered is None else restrict(new, held)
    if before == after:
        return 0.0
    if left == entered or not before or not after:
        return write_units(item_size(before), item_size(after))
    return write_units(item_size(before), 0) + write_units(0, item_size(after))


def restrict(item: Item, held: frozenset[str] | None) -> Item:
    """The attributes of an item that an index contains."""
    return item if held is None else {name: item[name] for name in item if name in held}


def expiry(table: Table, item: Mapping[str, Mapping[str, Any]]) -> int | None:
    """When an item expires, in seconds, if its table has a TTL attribute and the item has a number there."""
    attribute = None if table.ttl is None else item.get(table.ttl)
    if attribute is None or "N" not in attribute:
        return None
    moment = Decimal(attribute["N"])
    return int(moment) if 0 <= moment < 2**62 else None

"""The catalog: which tables and indexes a store has, as of one version.

A `Catalog` is an immutable snapshot. Every write compares its version inside its own transaction, so a table or index
created by another process takes effect with the first write after it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdall.core.rules.schema import check_table_name
from holdall.core.schema import IndexSchema, KeyAttribute, Projection, TableSchema, make_index
from holdall.errors import StoreCorruptError, TableNotFoundError


@dataclass(frozen=True, slots=True)
class Table:
    """A table, with the numbers under which its rows are stored."""

    number: int
    schema: TableSchema
    index_numbers: Mapping[str, int]
    ttl: str | None = None
    indexes: tuple[tuple[int, IndexSchema], ...] = field(init=False)

    def __post_init__(self) -> None:
        pairs = tuple((self.index_numbers[index.name], index) for index in self.schema.indexes)
        object.__setattr__(self, "indexes", pairs)


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables as of one version; ``next_number`` is the next free number for a table or index."""

    version: int
    next_number: int
    tables: Mapping[str, Table]

    def table(self, name: str) -> Table:
        """The table of that name; `TableNotFoundError` if there is none."""
        found = self.tables.get(name)
        if found is None:
            check_table_name(name)
            known = ", ".join(sorted(self.tables)) or "none"
            raise TableNotFoundError(
                f"there is no table {name}", hint=f"create it first; this database has: {known}"
            )
        return found

    def schema(self, name: str) -> TableSchema:
        """The schema of the table of that name."""
        return self.table(name).schema

    @staticmethod
    def load(connection: sqlite3.Connection) -> Catalog:
        """The catalog as the connection sees it."""
        try:
            version, text = connection.execute("SELECT version, definitions FROM catalog").fetchone()
            stored = json.loads(text)
            tables = {name: _table(name, parts) for name, parts in stored["tables"].items()}
            return Catalog(version, stored["next"], tables)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise StoreCorruptError(
                f"the database's list of tables is damaged ({error})",
                hint="restore the database from a backup",
            ) from error

    def save(self, connection: sqlite3.Connection) -> None:
        """Store this catalog as the successor of its version."""
        tables = {name: _definition(table) for name, table in self.tables.items()}
        text = json.dumps({"next": self.next_number, "tables": tables})
        connection.execute("UPDATE catalog SET version = ?, definitions = ?", (self.version + 1, text))


def _table(name: str, parts: Mapping[str, Any]) -> Table:
    indexes = tuple(
        make_index(
            index["name"],
            _keys(index["keys"])[: index.get("partitions", 1)],
            _keys(index["keys"])[index.get("partitions", 1) :],
            Projection(index["projection"], tuple(index["names"])),
            index.get("local", False),
        )
        for index in parts["indexes"]
    )
    partition, *sort = _keys(parts["keys"])
    schema = TableSchema(name, partition, sort[0] if sort else None, indexes)
    numbers = {index["name"]: index["number"] for index in parts["indexes"]}
    return Table(parts["number"], schema, numbers, parts["ttl"])


def _keys(pairs: list[list[Any]]) -> list[KeyAttribute]:
    return [KeyAttribute(name, kind) for name, kind in pairs]


def _definition(table: Table) -> dict[str, Any]:
    return {
        "number": table.number,
        "keys": [[part.name, part.type] for part in table.schema.keys],
        "ttl": table.ttl,
        "indexes": [
            {
                "number": number,
                "name": index.name,
                "keys": [[part.name, part.type] for part in index.keys],
                "partitions": len(index.partitions),
                "projection": index.projection.kind,
                "names": list(index.projection.names),
                "local": index.local,
            }
            for number, index in table.indexes
        ],
    }

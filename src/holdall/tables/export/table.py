"""A table to export, and the names of the resources that define the tables. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from holdall.core.frozen import dataclass
from holdall.core.schema import TableSchema


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table for an export. ``own`` is the ``table=`` of its models, None for the database's table."""

    schema: TableSchema
    ttl: str | None
    own: str | None = None

    @property
    def words(self) -> str:
        """How descriptions of outputs refer to the table."""
        return "The table" if self.own is None else f"The table {self.own}"


def name_resources(tables: Sequence[ExportedTable]) -> dict[str, ExportedTable]:
    """Return the tables by their resources' names: letters and digits, without the prefix, so that the names are the
    same in every environment."""
    return {_name_resource(table, tables): table for table in tables}


def describe_tables(tables: Sequence[ExportedTable]) -> str:
    """Describe the tables in a few words, however many they are."""
    first, *more = tables
    if not more:
        return f"table {first.schema.name}"
    return f"table {first.schema.name} and {len(more)} {'table' if len(more) == 1 else 'tables'} of models"


def _name_resource(table: ExportedTable, tables: Sequence[ExportedTable]) -> str:
    if table.own is None:
        return "Table"
    name = _camel(table.own)
    if not name or sum(name == _camel(other.own) for other in tables if other.own is not None) > 1:
        name += sha256(table.own.encode()).hexdigest()[:8]
    return f"{name}Table"


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name))

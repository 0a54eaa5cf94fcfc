"""A plan of tables: what models need, compared with what their tables have, as text and as JSON.

Pure values; `holdall.tables.provision` makes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdall.core.frozen import dataclass
from holdall.core.schema import IndexSchema, TableSchema
from holdall.tables.definition import create_table_text, update_table_text, update_ttl_text


@dataclass(frozen=True, slots=True)
class PlannedIndex:
    """An index that models need. ``problem`` is what is wrong with the existing index, ``found``, or why the index
    cannot be added."""

    index: IndexSchema
    models: tuple[str, ...]
    problem: str | None = None
    found: IndexSchema | None = None


@dataclass(frozen=True, slots=True)
class PlannedTable:
    """One table of a plan: what its models need, and what the table lacks or has wrong.

    ``schema`` is the table as it should be. ``problem`` is why the existing table cannot hold its models at all, and
    ``remedy`` what to do about it. ``missing`` and ``wrong`` are indexes; ``unfinished`` are the names of indexes that
    are still being created. ``ttl`` is the attribute by which items should expire, ``expiring`` are the models that
    need it, and ``found_ttl`` is the attribute by which items do expire. ``unused`` are indexes that none of these
    models needs; other models may.
    """

    schema: TableSchema
    models: tuple[str, ...]
    exists: bool
    problem: str | None = None
    remedy: str | None = None
    missing: tuple[PlannedIndex, ...] = ()
    wrong: tuple[PlannedIndex, ...] = ()
    unfinished: tuple[str, ...] = ()
    ttl: str | None = None
    found_ttl: str | None = None
    expiring: tuple[str, ...] = ()
    unused: tuple[IndexSchema, ...] = ()

    @property
    def name(self) -> str:
        """The table's name."""
        return self.schema.name

    @property
    def ok(self) -> bool:
        """Whether the table has everything that its models need."""
        return self.exists and not self.faulty and not (self.missing or self.unfinished or self.lacks_ttl)

    @property
    def faulty(self) -> bool:
        """Whether an existing part is wrong, which creating the missing parts would not repair."""
        return bool(self.problem or self.wrong or self.other_ttl)

    @property
    def lacks_ttl(self) -> bool:
        """Whether items should expire but do not."""
        return self.ttl is not None and self.found_ttl is None

    @property
    def other_ttl(self) -> bool:
        """Whether items expire by an attribute other than the one that a model needs."""
        return bool(self.expiring) and self.found_ttl not in (None, self.ttl)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """What models need of their tables, compared with what the tables have."""

    tables: tuple[PlannedTable, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is missing and nothing is wrong."""
        return all(table.ok for table in self.tables)

    def text(self) -> str:
        """Return the plan as text: a line for each table, followed by a line for each problem."""
        return "".join(f"{line}\n" for table in self.tables for line in _lines(table))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan for programs; each missing part comes with the definition that adds it."""
        return {"ok": self.ok, "tables": [_facts(table) for table in self.tables]}


# --- for people -----------------------------------------------------------------------------------------


def _lines(table: PlannedTable) -> Iterator[str]:
    whose = f", for {', '.join(table.models)}" if table.models else ""
    yield f"table {table.name}{whose}: {_verdict(table)}"
    if not table.exists:
        yield f"  missing     the table: {keys_text(table.schema)}"
    if table.problem is not None:
        yield f"  wrong       {table.problem}"
    for planned in table.wrong:
        yield f"  wrong       index {planned.index.name}: {planned.problem}; for {', '.join(planned.models)}"
    if table.other_ttl:
        yield f"  wrong       expiry by {table.found_ttl}, not by {table.ttl}; for {', '.join(table.expiring)}"
    for planned in table.missing:
        yield f"  missing     index {index_text(planned.index)}; for {', '.join(planned.models)}"
    for name in table.unfinished:
        yield f"  unfinished  index {name} is still being created"
    if table.lacks_ttl:
        whose = f"; for {', '.join(table.expiring)}" if table.expiring else ""
        yield f"  missing     expiry by {table.ttl}{whose}"
    for index in table.unused:
        yield f"  unused      index {index_text(index)}"


def _verdict(table: PlannedTable) -> str:
    if table.ok:
        return "ready"
    if table.faulty:
        return "does not fit"
    if not table.exists:
        return "does not exist"
    return "incomplete" if table.missing or table.lacks_ttl else "not ready yet"


def index_text(index: IndexSchema) -> str:
    """Describe an index in a few words."""
    held = ", ".join(index.projection.names) or index.projection.kind
    return f"{index.name}: {keys_text(index)}; holds {held}{'; local' if index.local else ''}"


def keys_text(keyed: TableSchema | IndexSchema, between: str = ", ") -> str:
    """Name the key attributes: the partition key, then the sort key; several attributes of one key with +."""
    keys = filter(None, (keyed.partitions, keyed.sorts))
    return between.join(" + ".join(f"{each.name} ({each.type})" for each in key) for key in keys)


def define_missing_text(table: PlannedTable, index: IndexSchema) -> str:
    """Return the definition that adds an index: of the whole table for a local one, which cannot be added."""
    return create_table_text(table.schema) if index.local else update_table_text(table.name, index)


# --- for programs ---------------------------------------------------------------------------------------


def _facts(table: PlannedTable) -> dict[str, Any]:
    return {
        "table": table.name,
        "models": list(table.models),
        "ok": table.ok,
        "exists": table.exists,
        "definition": None if table.exists else json.loads(create_table_text(table.schema)),
        "problem": table.problem,
        "missing_indexes": [_plan_as_json(table, planned) for planned in table.missing],
        "wrong_indexes": [_plan_as_json(table, planned) for planned in table.wrong],
        "unfinished_indexes": list(table.unfinished),
        "unused_indexes": [index.describe() for index in table.unused],
        "ttl": _ttl(table),
    }


def _ttl(table: PlannedTable) -> dict[str, Any]:
    definition = None
    if table.ttl is not None and (table.lacks_ttl or table.other_ttl):
        definition = json.loads(update_ttl_text(table.name, table.ttl))
    return {
        "wanted": table.ttl,
        "found": table.found_ttl,
        "ok": definition is None,
        "models": list(table.expiring),
        "definition": definition,
    }


def _plan_as_json(table: PlannedTable, planned: PlannedIndex) -> dict[str, Any]:
    return {
        **planned.index.describe(),
        "models": list(planned.models),
        "problem": planned.problem,
        "found": None if planned.found is None else planned.found.describe(),
        "definition": json.loads(define_missing_text(table, planned.index)),
    }

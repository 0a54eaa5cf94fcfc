"""The tables that models need: the needs of each model, combined by table.

Pure. Raises `ConfigurationError` if the models of one table contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdall.core.frozen import dataclass, replace
from holdall.core.rules.schema import check_schema
from holdall.core.schema import TTL, IndexSchema, NeedsTable, TableNeeds, TableSchema
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError
from holdall.tables.definition import Mode, plan_schema


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index, and the models that need it. ``whole``: one of them needs all that it should hold."""

    index: IndexSchema
    models: tuple[str, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A table as its models need it.

    ``own`` is its name without the prefix, None for the database's table. The ``schema`` of the database's table is the
    one for a new table; an existing table may have other key attributes. ``ttl`` is the attribute by which items should
    expire, and ``expiring`` are the models that need it. ``declared``: the models say how another program laid out the
    table.
    """

    schema: TableSchema
    own: str | None
    models: tuple[str, ...]
    indexes: tuple[WantedIndex, ...]
    ttl: str | None
    expiring: tuple[str, ...]
    declared: bool = False

    @property
    def name(self) -> str:
        """The table's name."""
        return self.schema.name


def needs_of(models: Iterable[NeedsTable]) -> tuple[TableNeeds, ...]:
    """Return what each of the models needs."""
    found = []
    for model in models:
        needs = getattr(model, "__table_needs__", None)
        if needs is None:
            raise TypeError(f"{model!r:.60} is not a model")
        found.append(needs())
    return tuple(dict.fromkeys(found))


def plan_tables(
    settings: Settings, needs: Sequence[TableNeeds], mode: Mode | None = None
) -> tuple[WantedTable, ...]:
    """Return all tables that are needed: the database's as a new table, then the models' own in order of mention."""
    shared = [each for each in needs if each.table is None]
    if shared and mode == "B":
        raise ConfigurationError(
            f"a table of mode B has a numeric sort key, so it cannot hold {', '.join(_names(shared))}",
            hint="create a table of mode A, or give the models tables of their own: class …(Model, table=…)",
        )
    own: dict[str, list[TableNeeds]] = {}
    for each in needs:
        if each.table is not None:
            own.setdefault(each.table, []).append(each)
    tables = [_database_table(settings, shared, mode), *(_own(settings, *pair) for pair in own.items())]
    _check_apart(tables)
    return tuple(tables)


def _database_table(settings: Settings, needs: Sequence[TableNeeds], mode: Mode | None) -> WantedTable:
    indexes = _indexes(settings.table_name, needs)
    schema = plan_schema(settings, mode or "A")
    schema = replace(schema, indexes=(*schema.indexes, *(wanted.index for wanted in indexes)))
    check_schema(schema)
    expiring = _names(each for each in needs if each.ttl is not None)
    return WantedTable(schema, None, _names(needs), indexes, TTL, expiring)


def _own(settings: Settings, table: str, needs: Sequence[TableNeeds]) -> WantedTable:
    name = f"{settings.table_prefix}{table}"
    first = needs[0]
    for other in needs[1:]:
        if (other.partition, other.sort) != (first.partition, first.sort):
            raise _refuse_odds(name, first.model, other.model, "need different keys")
    expiring = [each for each in needs if each.ttl is not None]
    for other in expiring[1:]:
        if other.ttl != expiring[0].ttl:
            problem = "expire by different attributes, and a table can have only one"
            raise _refuse_odds(name, expiring[0].model, other.model, problem)
    indexes = _indexes(name, needs)
    assert first.partition is not None
    schema = TableSchema(name, first.partition, first.sort, tuple(wanted.index for wanted in indexes))
    check_schema(schema)
    ttl = expiring[0].ttl if expiring else None
    declared = any(each.declared for each in needs)
    return WantedTable(schema, table, _names(needs), indexes, ttl, _names(expiring), declared)


def _indexes(table: str, needs: Sequence[TableNeeds]) -> tuple[WantedIndex, ...]:
    """Combine the indexes of all the models. An index that several need holds everything that one of them needs."""
    found: dict[str, WantedIndex] = {}
    for each in needs:
        for index in each.indexes:
            known, whole = found.get(index.name), index.name not in each.fetched
            if known is None:
                found[index.name] = WantedIndex(index, (each.model,), whole)
                continue
            if known.index.local is not index.local:
                problem = f"declare the index {index.name} as local and as global"
                raise _refuse_odds(table, known.models[0], each.model, problem)
            if not known.index.has_keys_of(index):
                problem = f"need different keys of the index {index.name}"
                raise _refuse_odds(table, known.models[0], each.model, problem)
            projection = known.index.projection.joined(index.projection)
            models = tuple(dict.fromkeys((*known.models, each.model)))
            found[index.name] = WantedIndex(
                replace(index, projection=projection), models, whole or known.whole
            )
    return tuple(found.values())


def _check_apart(tables: Sequence[WantedTable]) -> None:
    database, *own = tables
    for table in own:
        if table.name == database.name:
            raise ConfigurationError(
                f"{', '.join(table.models)} cannot have {table.name} as its own table: it is the database's table",
                hint="set another table= for the model, or another table_name for the database",
            )


def _refuse_odds(table: str, one: str, other: str, problem: str) -> ConfigurationError:
    return ConfigurationError(
        f"table {table}: {one} and {other} {problem}",
        hint="move one of them to another table, or make them agree",
    )


def _names(needs: Iterable[TableNeeds]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.model for each in needs))

"""Which tables are copied to which, and what has to be created in the target first."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from holdall.artifacts.settings import artifact_settings
from holdall.core.context import Context
from holdall.core.frozen import dataclass, replace
from holdall.core.requests import DescribeTtl
from holdall.core.schema import KeyAttribute, NeedsTable, TableSchema
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError, InvalidOptionsError, TableNotFoundError
from holdall.local.copy_manifest import resolve_path
from holdall.maintenance.copy.item import Route, plan_route
from holdall.maintenance.copy.job import make_conversion
from holdall.tables.definition import create_table_text
from holdall.tables.demand import needs_of, plan_tables
from holdall.tables.flow import ensure_index, ensure_table, find_table
from holdall.tables.layout import layout_of


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How a table is copied. ``exists``: the target's table does. ``is_main``: it is the database's own table.

    ``ttl`` is the attribute by which items of the target will expire, None to leave that as it is. ``remarks`` are for
    the user.
    """

    route: Route
    exists: bool
    ttl: str | None
    is_main: bool
    remarks: Sequence[str] = ()

    async def ensure(self, target: Context) -> None:
        """Create the target's table, or what it lacks."""
        schema = self.route.target
        await ensure_table(target, schema, self.ttl)
        for index in schema.indexes:
            if not index.local:
                await ensure_index(target, schema.name, index)
        if not self.exists:
            target.forget_tables()


async def identify_store(context: Context) -> str:
    """Name the place of a database's tables, without settings that do not matter here."""
    settings = context.settings
    if not settings.is_remote:
        path = settings.path and await context.port.offload(resolve_path, settings.path)
        return f"{settings.scheme}:{path or ''}"
    place = {name: getattr(settings, name) for name in ("endpoint", "region", "profile")}
    query = urlencode({name: value for name, value in place.items() if value})
    return f"{settings.scheme}:{query}"


async def plan_copies(
    source: Context,
    target: Context,
    models: Sequence[NeedsTable],
    tables: Sequence[str],
    *,
    is_one: bool,
    create: bool | None,
    dry_run: bool,
) -> list[TablePlan]:
    """The tables to copy, the database's first; refuses what cannot be copied, and writes nothing.

    ``is_one``: both databases have their tables in the same place. If ``create`` is None, the target's settings decide
    whether Holdall creates tables there.
    """
    allowed = dry_run or (target.settings.manage_table if create is None else create)
    pairs = _pair_tables(source.settings, target.settings, models, tables)
    artifacts, theirs = (artifact_settings(each.settings).table for each in (source, target))
    is_shared = is_one and source.settings.is_lasting
    for one, other in pairs if is_shared else ():
        if one == other:
            raise _refuse_shared(one, one == source.settings.table_name)
    if artifacts is not None and not (is_shared and artifacts == (theirs or artifacts)):
        pairs.append((artifacts, theirs or artifacts))
    return [await _plan_table(source, target, *pair, create=allowed) for pair in dict.fromkeys(pairs)]


def _refuse_shared(name: str, is_main: bool) -> InvalidOptionsError:
    other = "open the target with another table_prefix, or leave out the models of this table"
    return InvalidOptionsError(
        f"the source and the target are the same table, {name}",
        hint="pass another database as the target" if is_main else other,
    )


def _pair_tables(
    source: Settings, target: Settings, models: Sequence[NeedsTable], tables: Sequence[str]
) -> list[tuple[str, str]]:
    """The tables to copy, each with its name in the target; the database's first."""
    if isinstance(tables, str):
        raise InvalidOptionsError("tables must be a list of names, not text", hint=f"pass [{tables!r:.60}]")
    own = [each.own for each in plan_tables(source, needs_of(models)) if each.own is not None]
    pairs = [(source.table_name, target.table_name)]
    pairs += [(f"{source.table_prefix}{name}", f"{target.table_prefix}{name}") for name in [*own, *tables]]
    return pairs


async def _plan_table(source: Context, target: Context, name: str, own: str, *, create: bool) -> TablePlan:
    """Compare a table with its counterpart, and refuse what cannot be copied."""
    found = await find_table(source, name)
    if found is None:
        raise TableNotFoundError(
            f"there is no table {name} in the source",
            hint="check the URL, the table's name and the table_prefix",
        )
    is_main = name == source.settings.table_name
    if is_main and layout_of(found, source.settings).mode != "A":
        raise _refuse_mode(name)
    convert = make_conversion(found.schema.partition.name) if is_main else None
    ttl = (await source.port.send(DescribeTtl(name))).attribute
    there = await find_table(target, own)
    if there is None:
        wanted = _rename(found.schema, own, target.settings if is_main else None)
        if not create:
            raise ConfigurationError(
                f"there is no table {own} in the target",
                hint="pass create=True to let Holdall create it, or create it yourself:\n"
                f"{create_table_text(wanted)}",
            )
        route = plan_route(found.schema, wanted, convert, ttl)
        return TablePlan(route, exists=False, ttl=ttl, is_main=is_main)
    if found.id is not None and found.id == there.id:
        raise _refuse_shared(name, is_main)
    if is_main and layout_of(there, target.settings).mode != "A":
        raise _refuse_mode(own)
    route = plan_route(found.schema, there.schema, convert, ttl)
    lacking = [
        index
        for index in found.schema.indexes
        if index.name not in {each.name for each in there.schema.indexes}
    ]
    remarks = [
        f"the target's table lacks the index {index.name}; "
        + (
            "DynamoDB can create it only together with the table"
            if index.local
            else "pass create=True to add it"
        )
        for index in lacking
        if index.local or not create
    ]
    if not create:
        return TablePlan(route, exists=True, ttl=None, is_main=is_main, remarks=remarks)
    route = replace(route, target=replace(there.schema, indexes=(*there.schema.indexes, *lacking)))
    return TablePlan(route, exists=True, ttl=ttl, is_main=is_main, remarks=remarks)


def _rename(schema: TableSchema, name: str, settings: Settings | None) -> TableSchema:
    """The schema for the target's table; the database's table can have other key attributes by its settings."""
    if settings is None or schema.sort is None:
        return replace(schema, name=name)
    partition = KeyAttribute(settings.partition_key or schema.partition.name)
    sort = KeyAttribute(settings.sort_key or schema.sort.name)
    return replace(schema, name=name, partition=partition, sort=sort)


def _refuse_mode(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"table {name} has a numeric sort key (mode B), and such a table cannot be copied",
        hint="copy between tables whose sort key is a string",
    )

"""The flow of a copy: find the tables, create those that are missing, then copy, delete and verify part by part.

A *pass* reads everything once. It ends when all parts were copied; until then, the next call continues it. Tables come
before files, so that every file that a copied item refers to is copied, too. Deletions come last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, TypedDict

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.requests import DescribeTtl
from holdall.core.schema import KeyAttribute, NeedsTable, TableSchema
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError, InvalidOptionsError, TableNotFoundError
from holdall.local.manifest import (
    Manifest,
    close_manifest,
    finish_pass,
    locate_manifest,
    open_manifest,
    resolve_path,
)
from holdall.maintenance.copy.file import FileCopy, list_services
from holdall.maintenance.copy.item import Route, plan_route
from holdall.maintenance.copy.job import make_conversion
from holdall.maintenance.copy.report import CopiedPart, CopyReport
from holdall.maintenance.copy.table import TableCopy
from holdall.maintenance.copy.work import Options, Side, Work
from holdall.tables.definition import create_table_text
from holdall.tables.demand import needs_of, plan_tables
from holdall.tables.flow import ensure_index, ensure_table, find_table
from holdall.tables.layout import layout_of
from holdall.transactions.table_run import check_run_options


class CopyArguments(TypedDict, total=False):
    """The options of a copy."""

    models: Sequence[NeedsTable]
    tables: Sequence[str]
    files: bool
    create: bool | None
    delete: bool
    overwrite: bool
    verify: bool
    segments: int
    rate: float | None
    dry_run: bool
    restart: bool
    manifest: Any
    progress: Callable[[CopyReport], Any] | None


async def copy_database(
    source: Side,
    target: Side,
    *,
    models: Sequence[NeedsTable] = (),
    tables: Sequence[str] = (),
    files: bool = True,
    create: bool | None = None,
    delete: bool = False,
    overwrite: bool = False,
    verify: bool = True,
    segments: int = 4,
    rate: float | None = None,
    dry_run: bool = False,
    restart: bool = False,
    manifest: Any = None,
    progress: Callable[[CopyReport], Any] | None = None,
) -> CopyReport:
    """Copy a database to another one; see `holdall.Database.copy_to`."""
    check_run_options(segments, rate, progress)
    ours, theirs = source.context, target.context
    one, other = await _identify(ours), await _identify(theirs)
    if one == other and ours.settings.scheme != "memory":
        raise InvalidOptionsError(
            f"the source and the target are the same table, {ours.settings.table_name}",
            hint="pass another database as the target",
        )
    create = theirs.settings.manage_table if create is None else create
    pairs = _pair_tables(ours.settings, theirs.settings, models, tables)
    plans = [await _plan_table(ours, theirs, *pair, create=create) for pair in pairs]
    services = await list_services(source, target) if files else []
    port = ours.port
    brief = manifest is None and "memory" in (ours.settings.scheme, theirs.settings.scheme)
    identity = f"{one} to {other}"
    name = f"holdall-copy-{sha256(identity.encode()).hexdigest()[:12]}.manifest"
    path = await port.offload(locate_manifest, manifest, name, brief)
    kept: Manifest = await port.offload(open_manifest, path, identity, restart, dry_run)
    options = Options(delete, overwrite, verify, segments, rate, dry_run)
    try:
        for plan in plans if not dry_run else ():
            await plan.ensure(theirs)
        parts: dict[str, CopiedPart] = {}

        def collect(part: CopiedPart | None = None) -> CopyReport:
            if part is not None:
                parts[f"{part.kind} {part.name}"] = part
            return CopyReport(tuple(parts.values()), dry_run, None if brief or dry_run else str(path))

        work = Work(ours, theirs, kept, options, collect, progress)
        copies: list[TableCopy | FileCopy] = [
            TableCopy(work, plan.route, exists=plan.exists or not dry_run, holds_jobs=plan.is_main)
            for plan in plans
        ]
        copies += [FileCopy(work, name) for name in services]
        for each in copies:
            await each.copy()
            await work.show(each.part)
        for each in copies:
            await each.delete()
            await work.show(each.part)
        if not dry_run:
            if verify:
                for each in copies:
                    await each.verify()
                    await work.show(each.part)
            await port.offload(finish_pass, kept)
        return collect()
    finally:
        await port.offload(close_manifest, kept, brief)


async def _identify(context: Context) -> str:
    """Name a database's table, without settings that do not matter here."""
    from urllib.parse import urlencode

    settings = context.settings
    if settings.scheme != "dynamodb":
        path = settings.path and await context.port.offload(resolve_path, settings.path)
        return f"{settings.scheme}:{path or ''}#{settings.table_name}"
    place = {name: getattr(settings, name) for name in ("endpoint", "region", "profile")}
    query = urlencode({name: value for name, value in place.items() if value})
    return f"dynamodb://{settings.table_name}{query and '?'}{query}"


# --- tables -----------------------------------------------------------------------------------------------


def _pair_tables(
    source: Settings, target: Settings, models: Sequence[NeedsTable], tables: Sequence[str]
) -> list[tuple[str, str]]:
    """The tables to copy, each with its name in the target; the database's first."""
    from holdall.artifacts.settings import artifact_settings

    if isinstance(tables, str):
        raise InvalidOptionsError("tables must be a list of names, not text", hint=f"pass [{tables!r:.60}]")
    own = [each.own for each in plan_tables(source, needs_of(models)) if each.own is not None]
    pairs = [(source.table_name, target.table_name)]
    pairs += [(f"{source.table_prefix}{name}", f"{target.table_prefix}{name}") for name in [*own, *tables]]
    artifacts, theirs = artifact_settings(source).table, artifact_settings(target).table
    if artifacts is not None:
        pairs.append((artifacts, theirs or artifacts))
    return list(dict.fromkeys(pairs))


class _Plan:
    """How a table is copied, and what has to be created in the target first."""

    def __init__(self, route: Route, *, exists: bool, ttl: str | None, is_main: bool) -> None:
        self.route = route
        self.exists = exists
        self.is_main = is_main
        self._ttl = ttl

    async def ensure(self, target: Context) -> None:
        """Create the target's table, or what it lacks."""
        schema = self.route.target
        await ensure_table(target, schema, self._ttl)
        for index in schema.indexes:
            if not index.local:
                await ensure_index(target, schema.name, index)
        if not self.exists:
            target.forget_tables()


async def _plan_table(source: Context, target: Context, name: str, own: str, *, create: bool) -> _Plan:
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
                hint="allow Holdall to create it (create=True, or --create), or create it yourself:\n"
                f"{create_table_text(wanted)}",
            )
        return _Plan(plan_route(found.schema, wanted, convert, ttl), exists=False, ttl=ttl, is_main=is_main)
    if is_main and layout_of(there, target.settings).mode != "A":
        raise _refuse_mode(own)
    route = plan_route(found.schema, there.schema, convert, ttl)
    lacking = [
        index
        for index in found.schema.indexes
        if index.name not in {each.name for each in there.schema.indexes}
    ]
    if not create:
        return _Plan(route, exists=True, ttl=None, is_main=is_main)
    both = replace(there.schema, indexes=(*there.schema.indexes, *lacking))
    return _Plan(replace(route, target=both), exists=True, ttl=ttl, is_main=is_main)


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

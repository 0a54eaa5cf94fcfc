"""Flows that discover, create, describe, plan, export and delete the database's table and the tables of models."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from holdall.core.context import Context
from holdall.core.requests import (
    AddIndex,
    CreateTable,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    RemoveIndex,
    SetTtl,
    TableDescription,
)
from holdall.core.schema import IndexSchema, NeedsTable, TableSchema
from holdall.errors import (
    ConfigurationError,
    IndexExistsError,
    IndexNotFoundError,
    InvalidOptionsError,
    InvalidRequestError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TableExistsError,
    TableNotFoundError,
    ThrottledError,
)
from holdall.tables.definition import Mode
from holdall.tables.demand import WantedTable, needs_of, plan_tables
from holdall.tables.export import (
    Access,
    ExportedTable,
    Format,
    PolicyFeature,
    plan_access,
    table_arn,
    write_export,
)
from holdall.tables.layout import Layout, explain_missing_table, layout_of
from holdall.tables.plan import TablePlan
from holdall.tables.provision import (
    explain_plan,
    find_missing_index,
    find_removable,
    in_flux,
    next_step,
    plan_table,
)

PATIENCE = 600.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_ROUNDS = 12

_Planner: TypeAlias = Callable[[TableDescription | None], CreateTable | AddIndex | None]


async def discover(context: Context) -> Layout:
    """Return the table's layout. It is looked up once; `ConfigurationError` if Holdall cannot use the table.

    With the setting ``manage_table``, a missing table or index is created first.
    """
    return await context.discovery.get(lambda: _discover(context))


async def create(
    context: Context, *, mode: Mode | None = None, models: Sequence[NeedsTable] = ()
) -> TableDescription:
    """Create the table, or add what it lacks, and wait until it can be used.

    This creates the table itself, the index that a numeric sort key needs, and the expiry of items. Existing parts are
    never changed. A new table has string keys (mode A), or with ``mode="B"`` a numeric sort key and an index.

    With ``models``, this also creates their indexes, and the tables of models with ``table=`` with their indexes and
    expiry. If an existing table or index does not fit a model, nothing is created, and `ConfigurationError` says what
    it should be.
    """
    context.forget_tables()
    database, *own = plan_tables(context.settings, needs_of(models), mode)
    if models:
        problem = explain_plan(await _plan(context, (database, *own)))
        if problem is not None:
            raise problem
    layout_of(await _ensure(context, database, mode), context.settings)
    for table in own:
        await _ensure(context, table)
    return await describe(context)


async def plan(context: Context, *, models: Sequence[NeedsTable]) -> TablePlan:
    """Compare what these models need with what their tables have. Nothing is changed.

    The tables are the database's, if a model uses it, and the models' own tables. If a table is being created, this
    waits for it, but not for an index.
    """
    database, *own = plan_tables(context.settings, needs_of(models))
    return await _plan(context, own if own and not database.models else (database, *own))


async def exists(context: Context) -> bool:
    """Whether the table exists. If it is being created or deleted, this waits for the end."""
    return await await_table(context, context.settings.table_name) is not None


async def delete(context: Context) -> bool:
    """Delete the table with all its items, and wait until it is gone. Returns False if it did not exist."""
    context.forget_tables()
    name = context.settings.table_name
    for pause in _pauses():
        if await await_table(context, name) is None:
            return False
        try:
            await context.port.send(DeleteTable(name))
        except TableNotFoundError:
            return False
        except TableExistsError:  # the service reports this while another client is changing the table
            await context.port.sleep(pause)
        except OutcomeUnknown:
            if await await_table(context, name) is not None:
                raise  # a second attempt might delete a table that another process has just created
            break
        else:
            break
    else:
        raise _explain_wait(f"table {name} could not be deleted, because other processes keep changing it")
    context.forget_tables()
    return True


async def remove_index(
    context: Context,
    name: str,
    *,
    table: str | None = None,
    models: Sequence[NeedsTable] = (),
    dry_run: bool = False,
) -> IndexSchema | None:
    """Remove a global index, and wait until it is gone. Returns the index, or None if the table does not have it.

    The items keep their attributes. ``table`` is the ``table=`` of models with their own table; without it, the index
    is one of the database's table. If one of ``models`` needs the index, `ConfigurationError` is raised. With
    ``dry_run``, nothing is removed.
    """
    settings = context.settings
    target = settings.table_name if table is None else f"{settings.table_prefix}{table}"
    wanted = plan_tables(settings, needs_of(models))
    for pause in _pauses():
        description = await _require_table(context, target, indexes=True)
        found = find_removable(description, name, wanted, settings)
        if found is None or dry_run:
            return found
        try:
            await context.port.send(RemoveIndex(target, name))
        except (TableExistsError, ThrottledError):  # another client is changing the table
            await context.port.sleep(pause)
        except (IndexNotFoundError, OutcomeUnknown):
            left = await await_table(context, target, indexes=True)
            if left is not None and any(index.name == name for index in left.schema.indexes):
                raise  # a second attempt might remove an index that another process has just added
            break
        else:
            break
    else:
        raise _explain_wait(
            f"index {name} of table {target} could not be removed, because other processes keep changing it"
        )
    context.forget_tables()
    return found


async def describe(context: Context) -> TableDescription:
    """Describe the table; raises `TableNotFoundError` if it does not exist. Waits while it is created or changed."""
    return await _require_table(context, context.settings.table_name, counts=True)


async def export(
    context: Context,
    *,
    format: Format = "json",
    mode: Mode | None = None,
    existing: bool = False,
    models: Sequence[NeedsTable] = (),
    policy: Sequence[PolicyFeature] = (),
) -> str:
    """Return the definition of the table, with an IAM policy that permits what Holdall does with it.

    ``format`` is ``json`` or ``yaml`` for a CloudFormation template, ``terraform``, or ``cdk`` for a stack in
    TypeScript. It defines the table that `create` would make, without looking at the database; with ``existing``, it
    defines the table that exists, with all its indexes. With ``models``, it includes their indexes and their own
    tables. Deleting a stack keeps the tables, and Terraform refuses to destroy them.

    The policy allows everything that Holdall does with existing tables. With ``policy``, it allows what these features
    need, also in the buckets of the settings; see `export_policy`.
    """
    if existing and mode is not None:
        raise InvalidRequestError(
            "an existing table already has a mode", hint="pass mode= or existing=, not both"
        )
    wanted = plan_tables(context.settings, needs_of(models), mode)
    if existing:
        tables = [await _describe_export(context, table) for table in wanted]
    else:
        tables = [ExportedTable(table.schema, table.ttl, table.own) for table in wanted]
    return write_export(tables, plan_access(policy, context.settings) if policy else Access(), format)


async def export_policy(
    context: Context,
    features: Sequence[PolicyFeature],
    *,
    models: Sequence[NeedsTable] = (),
    account: str | None = None,
) -> str:
    """Return an IAM policy, as JSON, with only the actions that these features need.

    It names the database's table, the tables of ``models``, their indexes, and the bucket of each file service on S3.
    The ARNs of tables have the region of the settings and the ``account``; without them, any. Nothing is sent.
    """
    if not features:
        raise InvalidOptionsError("a policy is for at least one feature", hint='as in ["models", "jobs"]')
    settings, account = context.settings, account or "*"
    named = [table_arn(settings, each.name, account) for each in plan_tables(settings, needs_of(models))]
    policy = plan_access(features, settings, account).write(named, [f"{arn}/index/*" for arn in named])
    return json.dumps(policy, indent=2) + "\n"


async def ensure_table(context: Context, schema: TableSchema, ttl: str | None) -> TableDescription:
    """Create a table if it is missing, and wait until it can be used; an existing table keeps its keys and indexes.

    If a process dies in between, the table has no expiry; the next process that calls this sets it.
    """

    def plan_missing(description: TableDescription | None) -> CreateTable | None:
        return CreateTable(schema) if description is None else None

    return await _complete_with_ttl(context, schema.name, plan_missing, ttl)


async def find_table(context: Context, table: str) -> TableDescription | None:
    """Describe the table as soon as it can be used; None if it does not exist."""
    description = await fetch_table(context, table)
    if description is not None and description.status == "CREATING":
        return await await_table(context, table)
    return description


async def ensure_index(context: Context, table: str, index: IndexSchema) -> TableDescription:
    """Add an index if the table lacks it, and wait until it can be used; an index with this name is not changed."""

    def plan_missing(description: TableDescription | None) -> AddIndex | None:
        return None if description is None else find_missing_index(description, [index])

    description = await _complete(context, table, plan_missing)
    if description is None:
        raise _explain_no_table(context, table)
    return description


async def ensure_ttl(context: Context, table: str, attribute: str) -> None:
    """Make items expire by an attribute; a table that already uses another keeps it."""
    if await _fetch_ttl(context, table) is not None:
        return
    try:
        await context.port.send(SetTtl(table, attribute))
    except (ConfigurationError, InvalidRequestError, OutcomeUnknown):
        if await _fetch_ttl(context, table) is None:
            raise  # otherwise another process has just set it


# --- waiting ---------------------------------------------------------------------------------------------


async def fetch_table(context: Context, table: str, *, counts: bool = False) -> TableDescription | None:
    """Describe the table as it is now; None if it does not exist."""
    try:
        return await context.port.send(DescribeTable(table, counts))
    except TableNotFoundError:
        return None


async def await_table(
    context: Context, table: str, *, indexes: bool = False, counts: bool = False
) -> TableDescription | None:
    """Describe the table once it has stopped changing (with ``indexes``, its indexes too); None if it is missing."""
    waited = 0.0
    pause = _FIRST_PAUSE
    while True:
        description = await fetch_table(context, table, counts=counts)
        state = None if description is None else in_flux(description, indexes=indexes)
        if state is None:
            return description
        if waited >= PATIENCE:
            raise _explain_wait(f"table {table} is still {state} after {PATIENCE:g} seconds")
        await context.port.sleep(pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def _pauses() -> list[float]:
    """Return the pauses after each collision with another process; after the last, the caller gives up."""
    return [min(_FIRST_PAUSE * 2**turn, _LONGEST_PAUSE) for turn in range(_ROUNDS)]


def _explain_wait(problem: str) -> ServiceUnavailableError:
    """Return the error for a wait that took too long."""
    return ServiceUnavailableError(problem, hint="try again later")


# --- the steps ------------------------------------------------------------------------------------------


async def _discover(context: Context) -> Layout:
    settings = context.settings
    if settings.manage_table:
        (database,) = plan_tables(settings, ())
        return layout_of(await _ensure(context, database), settings)
    description = await fetch_table(context, settings.table_name)
    if description is None:
        raise explain_missing_table(settings)
    return layout_of(description, settings)


async def _plan(context: Context, tables: Sequence[WantedTable]) -> TablePlan:
    found = []
    for table in tables:
        description = await await_table(context, table.name)
        ttl = None if description is None else await _fetch_ttl(context, table.name)
        found.append(plan_table(table, description, ttl, context.settings))
    return TablePlan(tuple(found))


async def _describe_export(context: Context, wanted: WantedTable) -> ExportedTable:
    schema = (await _require_table(context, wanted.name)).schema
    return ExportedTable(schema, await _fetch_ttl(context, schema.name), wanted.own)


async def _require_table(
    context: Context, table: str, *, indexes: bool = False, counts: bool = False
) -> TableDescription:
    description = await await_table(context, table, indexes=indexes, counts=counts)
    if description is None:
        raise _explain_no_table(context, table)
    return description


async def _ensure(context: Context, wanted: WantedTable, mode: Mode | None = None) -> TableDescription:
    settings = context.settings
    return await _complete_with_ttl(
        context, wanted.name, lambda found: next_step(wanted, found, settings, mode), wanted.ttl
    )


async def _complete_with_ttl(
    context: Context, table: str, plan: _Planner, ttl: str | None
) -> TableDescription:
    description = await _complete(context, table, plan)
    assert description is not None
    if ttl is not None:
        await ensure_ttl(context, table, ttl)
    return description


async def _complete(context: Context, table: str, plan: _Planner) -> TableDescription | None:
    """Create what is missing, one step at a time; look again before each, as other processes may do the same work."""
    left = _pauses()
    while left:
        description = await await_table(context, table, indexes=True)
        request = plan(description)
        if request is None:
            return description
        try:
            await context.port.send(request)
        except (TableExistsError, IndexExistsError, OutcomeUnknown, ThrottledError):
            await context.port.sleep(left.pop(0))
        except (ConfigurationError, InvalidRequestError):
            if plan(await await_table(context, table, indexes=True)) == request:
                raise  # otherwise another process has just done it
    raise _explain_wait(f"table {table} is still incomplete, because other processes keep changing it")


async def _fetch_ttl(context: Context, table: str) -> str | None:
    return (await context.port.send(DescribeTtl(table))).attribute


def _explain_no_table(context: Context, table: str) -> TableNotFoundError:
    command = context.settings.command("table create")
    return TableNotFoundError(
        f"there is no table {table}", hint=f"create it with {command}, or check the name"
    )

"""Flows on the one table: found out about, created, deleted, described, exported."""

from __future__ import annotations

from holdall.core.context import Context
from holdall.core.requests import AddIndex, DeleteTable, DescribeTable, DescribeTtl, SetTtl, TableDescription
from holdall.core.schema import IndexSchema
from holdall.errors import (
    ConfigurationError,
    IndexExistsError,
    InvalidRequestError,
    OutcomeUnknown,
    ServiceUnavailableError,
    TableExistsError,
    TableNotFoundError,
)
from holdall.tables.definition import TTL, Mode, wanted_schema
from holdall.tables.export import Format, rendered, template
from holdall.tables.layout import Layout, layout_of, missing_table
from holdall.tables.provisioning import in_flux, next_step

__all__ = ["create", "delete", "describe", "discover", "ensure_index", "exists", "export"]

PATIENCE = 600.0
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 5.0
_ROUNDS = 12


async def discover(context: Context) -> Layout:
    """How items lie in the table, found out once; `ConfigurationError` when it cannot be used as it is.

    With ``manage_table``, what is missing is created first.
    """
    return await context.discovery.get(lambda: _discovered(context))


async def create(context: Context, *, mode: Mode | None = None) -> TableDescription:
    """Create what is missing of the table, and wait until it can be used.

    That is the table itself, the index that a numeric sort key needs, and the attribute that lets items expire. What
    is there stays as it is. A new table has string keys (mode A), or with ``mode="B"`` a numeric sort key and the
    index.
    """
    context.discovery.forget()
    description = await _ensure(context, mode)
    layout_of(description, context.settings)
    return description


async def exists(context: Context) -> bool:
    """Whether the table is there; one that is being created or deleted is waited for."""
    return await _settled(context) is not None


async def delete(context: Context) -> bool:
    """Delete the table with everything in it, and wait until it is gone. False when there was none."""
    context.discovery.forget()
    name = context.settings.table_name
    for pause in _pauses():
        if await _settled(context) is None:
            return False
        try:
            await context.port.send(DeleteTable(name))
        except TableNotFoundError:
            return False
        except TableExistsError:  # the service's word for: somebody is just changing it
            await context.port.sleep(pause)
        except OutcomeUnknown:
            if await _settled(context) is not None:
                raise  # sending it again might delete what somebody has just made
            break
        else:
            break
    else:
        raise _still(f"table {name} is being changed by others, and could not be deleted")
    context.discovery.forget()
    return True


async def describe(context: Context) -> TableDescription:
    """The table as it is; one that is being created or changed is waited for. `TableNotFoundError` without one."""
    description = await _settled(context)
    if description is None:
        raise TableNotFoundError(
            f"there is no table {context.settings.table_name}",
            hint="create it with `holdall table create`, or check the name",
        )
    return description


async def export(
    context: Context, *, format: Format = "json", mode: Mode | None = None, existing: bool = False
) -> str:
    """A CloudFormation template of the table, with a policy that permits what Holdall does with it.

    It is the table that `create` would make, and nothing is looked up for it; with ``existing``, the one that is
    there, with all its indexes. Deleting the stack leaves the table.
    """
    if not existing:
        return rendered(template(wanted_schema(context.settings, mode or "A"), TTL), format)
    if mode is not None:
        raise InvalidRequestError("a table that exists has its mode", hint="give mode, or existing")
    schema = (await describe(context)).schema
    ttl = (await context.port.send(DescribeTtl(schema.name))).attribute
    return rendered(template(schema, ttl), format)


async def ensure_index(context: Context, table: str, index: IndexSchema) -> None:
    """Add an index to a table that lacks it, and wait until it can be used; one of that name is left as it is."""
    waited, pause = 0.0, _FIRST_PAUSE
    while True:
        description = await context.port.send(DescribeTable(table))
        state = in_flux(description, indexes=True)
        if state is None:
            if any(each.name == index.name for each in description.schema.indexes):
                return
            try:
                await context.port.send(AddIndex(table, index))
                continue
            except (IndexExistsError, TableExistsError, OutcomeUnknown):
                pass  # somebody else is at it: look again
        if waited >= PATIENCE:
            raise _still(f"table {table} is still {state or 'being changed'} after {PATIENCE:g} seconds")
        await context.port.sleep(pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE)


# --- the steps ------------------------------------------------------------------------------------------


async def _discovered(context: Context) -> Layout:
    if context.settings.manage_table:
        return layout_of(await _ensure(context, None), context.settings)
    description = await _described(context)
    if description is None:
        raise missing_table(context.settings)
    return layout_of(description, context.settings)


async def _ensure(context: Context, mode: Mode | None) -> TableDescription:
    """Look, do the next thing that is missing, look again: others may be at the same work."""
    for pause in _pauses():
        description = await _settled(context, indexes=True)
        step = next_step(description, context.settings, mode)
        if step is None:
            assert description is not None
            await _ensure_ttl(context)
            return description
        try:
            await context.port.send(step)
        except (TableExistsError, IndexExistsError, OutcomeUnknown):
            await context.port.sleep(pause)
    raise _still(f"table {context.settings.table_name} is being changed by others, and is still not complete")


async def _ensure_ttl(context: Context) -> None:
    """Let items expire by our attribute; a table that already has another keeps it."""
    name = context.settings.table_name
    if (await context.port.send(DescribeTtl(name))).attribute is not None:
        return
    try:
        await context.port.send(SetTtl(name, TTL))
    except (ConfigurationError, InvalidRequestError, OutcomeUnknown):
        if (await context.port.send(DescribeTtl(name))).attribute is None:
            raise  # otherwise somebody else has just set it


async def _settled(context: Context, *, indexes: bool = False) -> TableDescription | None:
    """The table once nothing about it is under way (with ``indexes``, about them too); None when there is none."""
    waited = 0.0
    pause = _FIRST_PAUSE
    while True:
        description = await _described(context)
        state = None if description is None else in_flux(description, indexes=indexes)
        if state is None:
            return description
        if waited >= PATIENCE:
            raise _still(f"table {context.settings.table_name} is still {state} after {PATIENCE:g} seconds")
        await context.port.sleep(pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE)


async def _described(context: Context) -> TableDescription | None:
    try:
        return await context.port.send(DescribeTable(context.settings.table_name))
    except TableNotFoundError:
        return None


def _pauses() -> list[float]:
    return [min(_FIRST_PAUSE * 2**turn, _LONGEST_PAUSE) for turn in range(_ROUNDS)]


def _still(problem: str) -> ServiceUnavailableError:
    return ServiceUnavailableError(problem, hint="try again later")

"""Checks of the configuration: file services, credentials, and tables against what models need."""

from __future__ import annotations

from functools import partial

from holdall.attachments.owner.declaration import Declaration
from holdall.core.objects import HeadObject
from holdall.errors import AccessDeniedError, HoldallError, ObjectNotFoundError
from holdall.maintenance.doctor.permission import is_denial, report_undescribed
from holdall.maintenance.doctor.report import Severity
from holdall.maintenance.doctor.work import Work
from holdall.tables.flow import ensure_index, ensure_ttl, find_table, plan
from holdall.tables.layout import Layout, layout_of
from holdall.tables.plan import PlannedTable, index_text


async def check_services(work: Work) -> None:
    """Find file services that do not answer, and names of services that do not exist."""
    for name in work.services:
        try:
            await work.context.port.send(HeadObject(name, f"holdall-doctor/{work.context.port.new_id()}"))
        except ObjectNotFoundError:
            continue
        except HoldallError as error:
            if isinstance(error, AccessDeniedError) and is_denial(error):
                continue  # permissions are another check
            work.silent.add(name)
            await work.find("configuration", "error", f"file service {name}", error.message)
    for model in work.models:
        for joiner in model._schema.joiners.values():
            if not isinstance(joiner, Declaration):
                continue
            service = joiner.service
            if isinstance(service, str) and service not in work.services:
                message = f"its files belong in the file service {service}, which is not configured"
                await work.find("configuration", "error", f"{model._schema.name}.{joiner.name}", message)


async def reach_table(work: Work) -> bool:
    """Whether the store answers; if it does not, or refuses the credentials, that is a finding."""
    name = work.context.settings.table_name
    try:
        await find_table(work.context, name)
    except HoldallError as error:
        if isinstance(error, AccessDeniedError) and is_denial(error):
            await report_undescribed(work, name)
        else:
            await work.find("configuration", "error", f"table {name}", error.message)
        return False
    return True


async def find_layout(work: Work) -> Layout | None:
    """The layout of the database's table, if it exists and Holdall can use it; the table is not created."""
    settings = work.context.settings
    found = await find_table(work.context, settings.table_name)
    try:
        return None if found is None else layout_of(found, settings)
    except HoldallError as error:
        await work.find("configuration", "error", f"table {settings.table_name}", error.message)
        return None


async def check_tables(work: Work) -> None:
    """Compare what models need of their tables with what the tables have."""
    try:
        planned = await plan(work.context, models=list(work.models))
    except HoldallError as error:
        await work.find("tables", "error", "models", error.message)
        return
    for table in planned.tables:
        await _check_table(work, table)


async def _check_table(work: Work, table: PlannedTable) -> None:
    name, context = table.name, work.context
    whose = f"; {', '.join(table.models)} cannot be used" if table.models else ""
    if not table.exists:
        await work.find("tables", "error", f"table {name}", f"it does not exist{whose}")
        return
    if table.problem is not None:
        await work.find("tables", "error", f"table {name}", table.problem)
        return
    for each in table.wrong:
        await work.find("tables", "error", f"index {each.index.name} of table {name}", str(each.problem))
    for each in table.missing:
        message = f"it does not exist, but {', '.join(each.models)} needs it ({index_text(each.index)})"
        subject = f"index {each.index.name} of table {name}"
        create = partial(ensure_index, context, name, each.index)
        await work.find("tables", "error", subject, message, "create it", create)
    for index in table.unfinished:
        await work.find("tables", "notice", f"index {index} of table {name}", "it is still being created")
    if table.other_ttl:
        message = f"items expire by {table.found_ttl}, but {', '.join(table.expiring)} needs {table.ttl}"
        await work.find("tables", "error", f"table {name}", message)
    elif table.lacks_ttl:
        assert table.ttl is not None
        severity: Severity = "error" if table.expiring else "notice"
        message = f"items should expire by {table.ttl}, but expiry is off"
        repair, turn_on = f"turn on expiry by {table.ttl}", partial(ensure_ttl, context, name, table.ttl)
        await work.find("tables", severity, f"table {name}", message, repair, turn_on)

"""Decides what tables lack, and what can be removed. Pure: it sends nothing."""

from __future__ import annotations

from collections.abc import Sequence, Set

from holdall.core.frozen import replace
from holdall.core.requests import AddIndex, CreateTable, TableDescription
from holdall.core.rules.schema import check_added_index, check_removed_index
from holdall.core.schema import IndexSchema, TableSchema
from holdall.core.settings import Settings
from holdall.errors import ConfigurationError
from holdall.tables.definition import Mode, create_table_text, plan_index, update_ttl_text
from holdall.tables.demand import WantedTable
from holdall.tables.layout import base_mode
from holdall.tables.plan import PlannedIndex, PlannedTable, TablePlan, define_missing_text, keys_text

_AND = " and "
_FLUX: Set[str] = {"CREATING", "UPDATING", "DELETING"}


# --- the next step --------------------------------------------------------------------------------------


def next_step(
    wanted: WantedTable, description: TableDescription | None, settings: Settings, mode: Mode | None = None
) -> CreateTable | AddIndex | None:
    """Return the next request that creates something; None if nothing is missing. Indexes can be added only one by one.

    ``mode`` applies to a new table. If the database's table exists with another mode, or with a key that fits neither
    mode, `ConfigurationError` is raised.
    """
    if description is None:
        return CreateTable(wanted.schema)
    needed = [each.index for each in wanted.indexes]
    if wanted.own is None:
        needed = [*_indexes_of_mode(description, settings, mode), *needed]
    return find_missing_index(description, needed)


def find_missing_index(description: TableDescription, needed: Sequence[IndexSchema]) -> AddIndex | None:
    """Return the request that adds the first of these indexes that a table lacks; local ones cannot be added."""
    schema = description.schema
    there = {index.name for index in schema.indexes}
    missing = (index for index in needed if index.name not in there and not index.local)
    return next((AddIndex(schema.name, index) for index in missing), None)


def find_removable(
    description: TableDescription, name: str, tables: Sequence[WantedTable], settings: Settings
) -> IndexSchema | None:
    """Return the index with this name if it can be removed, None if there is none; `ConfigurationError` says why not.

    ``tables`` are those that models need.
    """
    schema = description.schema
    if all(index.name != name for index in schema.indexes):
        return None
    check_removed_index(schema, name)
    for table in tables:
        users = [each.models for each in table.indexes if each.index.name == name]
        if table.name == schema.name and users:
            raise ConfigurationError(
                f"index {name} of table {schema.name} was not removed: {', '.join(users[0])} needs it",
                hint="remove the index from the model first",
            )
    is_of_mode_b = schema.name == settings.table_name and schema.sort is not None and schema.sort.type == "N"
    if is_of_mode_b and name == settings.index_name:
        raise ConfigurationError(
            f"index {name} of table {schema.name} was not removed: Holdall lists attachments and jobs by it"
        )
    return schema.index(name)


def _indexes_of_mode(
    description: TableDescription, settings: Settings, mode: Mode | None
) -> list[IndexSchema]:
    found = base_mode(description, settings)
    if mode not in (None, found):
        raise ConfigurationError(
            f"table {settings.table_name} already exists, with mode {found} instead of {mode}",
            hint="the key of a table cannot be changed: use the table as it is, or set another table_name",
        )
    return [plan_index(settings)] if found == "B" else []


def in_flux(description: TableDescription, *, indexes: bool) -> str | None:
    """Return the temporary status of the table or of one of its indexes; None if there is nothing to wait for."""
    if description.status in _FLUX:
        return description.status
    states = description.index_status.values() if indexes else ()
    return next((state for state in states if state in _FLUX), None)


# --- the plan -------------------------------------------------------------------------------------------


def plan_table(
    wanted: WantedTable, description: TableDescription | None, ttl: str | None, settings: Settings
) -> PlannedTable:
    """Compare a table as its models need it with the existing one, whose items expire by ``ttl``."""
    if description is None:
        missing = tuple(PlannedIndex(each.index, each.models) for each in wanted.indexes)
        return PlannedTable(
            wanted.schema, wanted.models, False, missing=missing, ttl=wanted.ttl, expiring=wanted.expiring
        )
    problem = _unfit_own(wanted, description) if wanted.own else _unfit_shared(wanted, description, settings)
    found = {index.name: index for index in description.schema.indexes}
    missing, wrong = _split(wanted, description.schema, found)
    needed = {each.index.name for each in wanted.indexes}
    return PlannedTable(
        wanted.schema,
        wanted.models,
        True,
        problem=None if problem is None else problem.message,
        remedy=None if problem is None else problem.hint,
        missing=missing,
        wrong=wrong,
        unfinished=tuple(
            name for name in found if name in needed and description.index_status.get(name) in _FLUX
        ),
        ttl=wanted.ttl,
        found_ttl=ttl,
        expiring=wanted.expiring,
        unused=tuple(index for index in found.values() if index.name not in needed),
    )


def _split(
    wanted: WantedTable, schema: TableSchema, found: dict[str, IndexSchema]
) -> tuple[tuple[PlannedIndex, ...], tuple[PlannedIndex, ...]]:
    """Return the missing indexes, and those that are wrong or could not be added."""
    missing, wrong = [], []
    for each in wanted.indexes:
        there = found.get(each.index.name)
        if there is not None:
            problem = explain_other_index(each.index, there, whole=each.whole)
            if problem is not None:
                wrong.append(PlannedIndex(each.index, each.models, problem, there))
            continue
        try:
            check_added_index(schema, each.index)
        except ConfigurationError as error:
            wrong.append(
                PlannedIndex(each.index, each.models, error.message.removeprefix(f"{each.index.name}: "))
            )
        else:
            schema = replace(schema, indexes=(*schema.indexes, each.index))
            missing.append(PlannedIndex(each.index, each.models))
    return tuple(missing), tuple(wrong)


def explain_other_index(wanted: IndexSchema, found: IndexSchema, *, whole: bool) -> str | None:
    """What an index has instead of what it should have; None if it fits. ``whole``: it must hold all that it should."""
    if found.local is not wanted.local:
        return f"it is {'local' if found.local else 'global'}, not {'local' if wanted.local else 'global'}"
    if not found.has_keys_of(wanted):
        return f"its keys are {keys_text(found, _AND)}, not {keys_text(wanted, _AND)}"
    if whole and not found.projection.covers(wanted.projection):
        return f"it holds {_describe_projection(found)} of each item, not {_describe_projection(wanted)}"
    return None


def _describe_projection(index: IndexSchema) -> str:
    kinds = {"ALL": "all", "KEYS_ONLY": "only the keys"}
    return kinds.get(index.projection.kind) or f"only {', '.join(index.projection.names)}"


def _unfit_shared(
    wanted: WantedTable, description: TableDescription, settings: Settings
) -> ConfigurationError | None:
    try:
        mode = base_mode(description, settings)
    except ConfigurationError as error:
        return error
    if mode == "A" or not wanted.models:
        return None
    return ConfigurationError(
        f"table {wanted.name} has a numeric sort key, so it cannot hold {', '.join(wanted.models)}",
        hint="use a table with string keys, or give the models tables of their own: class …(Model, table=…)",
    )


def _unfit_own(wanted: WantedTable, description: TableDescription) -> ConfigurationError | None:
    keys, found = wanted.schema.keys, description.schema.keys
    fits = len(keys) == len(found) and all(
        # a number can be stored as text
        want.name == have.name and (have.type == want.type or (have.type == "S" and not wanted.declared))
        for want, have in zip(keys, found, strict=True)
    )
    if fits:
        return None
    have, want = keys_text(description.schema, _AND), keys_text(wanted.schema, _AND)
    return ConfigurationError(
        f"table {wanted.name} cannot hold {', '.join(wanted.models)}: its keys are {have}, not {want}",
        hint="the key of a table cannot be changed: "
        + ("declare the model's key as the table has it, or " if wanted.declared else "")
        + f"give the model another table, or delete this one and create it again:\n{create_table_text(wanted.schema)}",
    )


# --- refusals -------------------------------------------------------------------------------------------


def explain_plan(plan: TablePlan) -> ConfigurationError | None:
    """Return the error that lists every existing part that is wrong, with what it should be; None if none is."""
    problems: list[str] = []
    remedies: list[str] = []
    for table in plan.tables:
        for problem, remedy in _faults(table):
            problems.append(problem)
            remedies.append(remedy)
    if not problems:
        return None
    return ConfigurationError("; ".join(problems), hint="\n".join(dict.fromkeys(remedies)))


def _faults(table: PlannedTable) -> list[tuple[str, str]]:
    faults = [] if table.problem is None else [(table.problem, table.remedy or "use another table")]
    for each in table.wrong:
        where = f"index {each.index.name} of table {table.name}"
        what = "cannot be added" if each.found is None else f"does not fit {', '.join(each.models)}"
        if each.index.local:
            remedy = "create another table with the index and move the items"
        elif each.found is None:
            remedy = "remove the obstacle first, then add the index"
        else:
            remedy = "an index cannot be changed: delete it and add this one"
        definition = define_missing_text(table, each.index)
        faults.append((f"{where} {what}: {each.problem}", f"{remedy}:\n{definition}"))
    if table.other_ttl:
        assert table.ttl is not None
        whose = f"{', '.join(table.expiring)} needs {table.ttl}"
        remedy = "a table can expire items by only one attribute: turn that off, then set this one"
        definition = update_ttl_text(table.name, table.ttl)
        problem = f"table {table.name} expires items by {table.found_ttl}, but {whose}"
        faults.append((problem, f"{remedy}:\n{definition}"))
    return faults

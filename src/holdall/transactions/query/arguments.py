"""The arguments of queries and scans, checked one by one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdall.core.nearest_name import suggest_name
from holdall.core.schema import KeyAttribute
from holdall.errors import InvalidFieldError, InvalidOptionsError
from holdall.models.fields.conditions import Clause
from holdall.models.fields.field import Field
from holdall.models.indexes import BoundIndex
from holdall.models.item_values import unknown_field
from holdall.models.schema import ModelSchema
from holdall.transactions.query.row import RowLock

OPTIONS = ("sort", "where", "index", "reverse", "limit", "consistent", "lock", "only")
"""The options of a query, which a misspelt keyword may mean."""


def find_index(schema: ModelSchema, name: str | None) -> BoundIndex | None:
    """The index with this name; None for the table itself."""
    if name is None:
        return None
    index = schema.indexes.get(name)
    if index is None:
        raise InvalidOptionsError(
            f"{schema.name} has no index {name!r}", hint=suggest_name(name, schema.indexes, "indexes")
        )
    return index


def check_partition(
    schema: ModelSchema, fields: Sequence[Field[Any]], components: Mapping[str, Any]
) -> dict[str, Any]:
    """The validated components of a partition key; all of them have to be given, and nothing else."""
    names = {field.name for field in fields}
    for name in components:
        if name not in names:
            if name not in schema.fields:
                raise unknown_field(schema, name, OPTIONS)
            raise InvalidFieldError(
                schema.name,
                name,
                "it is not part of the partition key that the query uses",
                hint=f"pass only the partition key ({', '.join(sorted(names))}); use sort= or where= for other fields",
            )
    for field in fields:
        if field.name not in components:
            raise field.refusal("a query needs every field of the partition key, and this one is missing")
    return {field.name: field.validate(components[field.name]) for field in fields}


def find_field(schemas: Sequence[ModelSchema], given: Any) -> Field[Any]:
    """A field of one of the models or of one derived from them, by its name."""
    name = given if isinstance(given, str) else getattr(given, "name", None)
    for schema in schemas:
        for each in schema.family():
            if isinstance(name, str) and name in each.fields:
                return each.fields[name]
    names = " or ".join(schema.name for schema in schemas)
    raise InvalidOptionsError(
        f"only= names {given!r:.60}, which is not a field of {names}",
        hint=suggest_name(name, [each for schema in schemas for each in schema.fields], "fields"),
    )


def check_together(
    schemas: Sequence[ModelSchema], index: str | None, components: Mapping[str, Any], sort: Clause | None
) -> list[Mapping[str, Any]]:
    """Check that items of all these models are stored in one partition; return the components of each."""
    first, *others = schemas
    if sort is not None:
        raise InvalidOptionsError(
            "sort= cannot be used in a query of several models, because their sort keys differ",
            hint="query the one model, or use where=",
        )
    for schema in schemas:
        if schema.form.type_attribute is None:
            raise InvalidOptionsError(
                f"{schema.name} cannot be queried with other models: nothing in its items names their model",
                hint="name the attribute that does, with Template(type=...)",
            )
    if len(names := {schema.ttl.stored for schema in schemas if schema.table and schema.ttl}) > 1:
        raise InvalidOptionsError(
            f"the models expire by different attributes, {' and '.join(sorted(names))}, but a table has one",
            hint="declare ttl= with the table's attribute",
        )
    place = _locate(first, index, components)
    found = [components]
    for schema in others:
        own = _own_components(schema, index, components, place)
        if own is None or _locate(schema, index, own) != place:
            where = "" if index is None else f" of the index {index!r}"
            hint = 'declare both with the same collection=, as in class Order(Model, collection="customer")'
            if first.table is not None or schema.table is not None:
                hint = (
                    "query models together only if their templates make the same partition key, in one table"
                )
            elif index is not None:
                hint = 'declare the index of both with the same slot and collection=: Index(..., collection="day")'
            raise InvalidOptionsError(
                f"{first.name} and {schema.name} do not share a partition{where}", hint=hint
            )
        found.append(own)
    return found


def _own_components(
    schema: ModelSchema, index: str | None, components: Mapping[str, Any], place: Sequence[Any]
) -> Mapping[str, Any] | None:
    """The components as a model names them: in a single-table design, its names may differ."""
    used = find_index(schema, index)
    fields = schema.keys if used is None else used.key
    if {field.name for field in fields} == components.keys():
        return check_partition(schema, fields, components)
    return (schema.form if used is None else used).parse_partition(place[-1])


def _locate(schema: ModelSchema, index: str | None, components: Mapping[str, Any]) -> list[Any]:
    """Where items with these components are stored; equal for models that share a partition."""
    used, form = find_index(schema, index), schema.form
    if used is not None:
        keys = (attribute for _, attribute in used.equalities(components))
        return [schema.table, form.type_attribute, used.schema, *keys]
    return [schema.table, form.type_attribute, form.partition(components, KeyAttribute("the partition key"))]


def check_clause(option: str, given: Any) -> Clause | None:
    """Check a condition."""
    if given is not None and not isinstance(given, Clause):
        compared = " (a plain field was compared without col())" if isinstance(given, bool) else ""
        raise InvalidOptionsError(
            f"{option} must be a condition, not {given!r:.60}{compared}",
            hint="wrap plain fields in col(): col(Order.quantity) == 3; key fields need no col(): Order.number > 3",
        )
    return given


def check_lock(lock: Any) -> RowLock:
    """Check which rows are locked."""
    if lock != "rows" and not isinstance(lock, bool):
        raise InvalidOptionsError(f'lock must be "rows", True or False, not {lock!r:.60}')
    return lock  # type: ignore[no-any-return]

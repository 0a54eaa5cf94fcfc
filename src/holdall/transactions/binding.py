"""Bindings: where a model's items are stored in this database, and their keys there.

`bind` is a flow: it looks up a table the first time that one of its models is used. A model in the database's table
needs mode A, in which H and R are the table's own key. A model's own table has the key ``_id`` and, for a model with a
sort key, ``_sk``; the table's definition decides whether a key of one number is stored as a number or as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.core.context import Context, Kept
from holdall.core.frozen import dataclass
from holdall.core.requests import DescribeTable, TableDescription
from holdall.core.rules.schema import check_table_name
from holdall.core.schema import TTL, IndexSchema, KeyAttribute, TableSchema
from holdall.core.values import Attribute, Item
from holdall.errors import ConfigurationError
from holdall.models.codec.everyday import ItemEncoder
from holdall.models.codec.stored_form import plain
from holdall.models.indexes import BoundIndex
from holdall.models.keys.form import AncestorForm, CollectionForm, explain_unfit
from holdall.models.keys.key import ModelKey
from holdall.models.schema import TYPE, ModelSchema
from holdall.tables.definition import create_table_text, update_table_text
from holdall.tables.flow import discover, ensure_index, ensure_table, find_table
from holdall.tables.layout import Layout
from holdall.tables.provision import explain_other_index


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a model's items are stored: the table, its key attributes, and the attribute by which items expire.

    ``own``: it is the model's own table, without any attributes that Holdall adds.
    """

    schema: ModelSchema
    table: str
    partition: KeyAttribute
    sort: KeyAttribute | None
    ttl: str | None
    own: bool

    def key(self, key: ModelKey[Any]) -> dict[str, Attribute]:
        """An item's key in the table."""
        form = self.schema.form
        if not isinstance(form, AncestorForm):
            partition, sort = key.encoded
            if self.sort is None:
                return {self.partition.name: {self.partition.type: partition}}
            return {
                self.partition.name: {self.partition.type: partition},
                self.sort.name: {self.sort.type: sort},
            }
        found = {self.partition.name: form.partition(key.components, self.partition)}
        if self.sort is not None:
            found[self.sort.name] = form.sort(key.components, self.sort)
        return found

    def partition_key(self, components: Mapping[str, Any]) -> Attribute:
        """The partition key of items with these components."""
        return self.schema.form.partition(components, self.partition)

    def key_of(self, item: Item) -> dict[str, Attribute]:
        """The key of an item that was read, exactly as it is stored."""
        partition, sort = self.partition.name, self.sort
        if sort is None:
            return {partition: item[partition]}
        return {partition: item[partition], sort.name: item[sort.name]}

    def identity(self, item: Item) -> tuple[object, ...]:
        """The identity of a stored item, equal to the `ModelKey.identity` of its key."""
        (partition,) = item[self.partition.name].values()
        if self.sort is None:
            return self.schema.table, partition, None
        (sort,) = item[self.sort.name].values()
        return self.schema.table, partition, sort

    def components(self, item: Item) -> dict[str, Any]:
        """The components of a stored item's key."""
        sort = None if self.sort is None else item[self.sort.name]
        return self.schema.form.components(item[self.partition.name], sort)

    def model_of(self, item: Item) -> ModelSchema | None:
        """The model of a stored item: the bound one or one derived from it; None if it is neither."""
        schema, form = self.schema, self.schema.form
        if form.type_attribute is not None and not form.constants:
            kind = item.get(form.type_attribute)
            if kind is not None and kind.get("S") == schema.name:
                return schema  # nearly always, and asked for each row of a query
        sort = self.sort if form.in_key_alone else None
        return form.model_of(schema, item, None if sort is None else plain(item[sort.name]))

    def name_of(self, item: Item) -> str | None:
        """The name that a stored item has for its model, if any."""
        return item.get(self.schema.form.type_attribute or TYPE, {}).get("S")


class Bindings(Kept):
    """Where each model's items are stored, how they are encoded quickly, and the indexes, by table, that were checked.

    Several models may use one index of a table, each with other attributes, so each is checked. An index that fits is
    true if it holds whole items, false if they must be fetched by their keys.
    """

    def __init__(self) -> None:
        self.of_models: dict[ModelSchema, Binding] = {}
        self.encoders: dict[ModelSchema, ItemEncoder] = {}
        self.fit_indexes: dict[tuple[str, BoundIndex], bool] = {}


# --- flows ------------------------------------------------------------------------------------------------


async def bind(context: Context, schema: ModelSchema) -> Binding:
    """Where the model's items are stored; `ConfigurationError` if the table cannot hold them."""
    bindings = context.state.of(Bindings)
    known = bindings.of_models.get(schema)
    if known is not None:
        return known
    _check_alone(context, bindings, schema)
    if schema.table is None:
        binding = _in_one_table(schema, await discover(context))
    else:
        binding = await _in_own_table(schema, context)
    bindings.of_models[schema] = binding
    return binding


async def bind_index(context: Context, binding: Binding, index: BoundIndex) -> bool:
    """Check that the table has an index; if it is missing or differs, `ConfigurationError` shows its definition.

    Returns whether its rows have all attributes that they should. If not, the caller fetches the items by their keys.
    """
    wanted = index.schema
    fit = context.state.of(Bindings).fit_indexes
    known = fit.get((binding.table, index))
    if known is not None:
        return known
    if context.settings.manage_table and not wanted.local:
        description = await ensure_index(context, binding.table, wanted)
    else:
        description = await context.port.send(DescribeTable(binding.table, counts=False))
    found = next((each for each in description.schema.indexes if each.name == wanted.name), None)
    _check_index(context, binding.schema, description.schema, index, found)
    assert found is not None
    if description.index_status.get(wanted.name, "ACTIVE") != "ACTIVE":
        raise ConfigurationError(
            f"{binding.schema.name} cannot use its index {index.name!r}: it is still being created",
            hint="wait until it is active, then try again",
        )
    whole = found.projection.covers(wanted.projection)
    fit[binding.table, index] = whole
    return whole


def _check_index(
    context: Context, schema: ModelSchema, table: TableSchema, index: BoundIndex, found: IndexSchema | None
) -> None:
    """Refuse an index that is missing or that the model declares otherwise; the error has the difference."""
    wanted = index.schema
    if found is None:
        known = ", ".join(each.name for each in table.indexes)
        problem: str | None = f"table {table.name} has no index {wanted.name}" + (
            f", only {known}" if known and schema.layout is not None else ""
        )
    else:
        problem = explain_other_index(wanted, found, whole=not index.fetches)
        if problem is None:
            return
        problem = f"the index {wanted.name} of table {table.name} does not fit: {problem}"
    advice = None if found is None else index.advise(found, schema.fields.values())
    raise ConfigurationError(
        f"{schema.name} cannot use its index {index.name!r}: {problem}",
        hint=f"declare it as the table has it: {advice}"
        if advice
        else _advise_index(context, schema, table.name, wanted, missing=found is None),
    )


def _advise_index(
    context: Context, schema: ModelSchema, table: str, wanted: IndexSchema, *, missing: bool
) -> str:
    if wanted.local:
        return (
            "a local index can only be created together with its table: create another table and move the items:\n"
            + create_table_text(_plan_table(schema, table))
        )
    definition = update_table_text(table, wanted)
    if not missing:
        return f"an index cannot be changed: delete it and create this one:\n{definition}"
    return (
        f"create it with {_creation(context, schema)}, or pass manage_table=True to have Holdall "
        f"create it, or create it yourself:\n{definition}"
    )


def _check_alone(context: Context, bindings: Bindings, schema: ModelSchema) -> None:
    """Refuse two models of one name, which would read each other's items; a class that is redefined is replaced."""
    if schema.name == context.settings.namespace:
        raise ConfigurationError(
            f"the model {schema.name} has the same name as the namespace that attachments use",
            hint=f"give the model another name with name=: class {schema.model.__name__}(Model, name=…)",
        )
    if isinstance(schema.form, CollectionForm) and schema.form.head == context.settings.namespace:
        raise ConfigurationError(
            f"the collection of {schema.name} has the same name as the namespace that attachments use",
            hint=f"give the collection another name: class {schema.model.__name__}(Model, collection=…)",
        )
    for other in tuple(bindings.of_models):
        if other.table == schema.table is None and other.name == schema.name:
            if other.place != schema.place:
                raise ConfigurationError(
                    f"two models are called {schema.name}: {other.place} and {schema.place}",
                    hint=f"give one of them another name with name=: class {schema.model.__name__}(Model, name=…)",
                )
            del bindings.of_models[other]
            bindings.encoders.pop(other, None)


def _creation(context: Context, schema: ModelSchema) -> str:
    """The command that creates the table or index; ``MODULE`` stands for a script, which no command can import."""
    module = "MODULE" if schema.model.__module__ == "__main__" else schema.model.__module__
    return context.settings.command(f"table create --models {module}:{schema.model.__qualname__}")


def _in_one_table(schema: ModelSchema, layout: Layout) -> Binding:
    if layout.mode != "A":
        raise ConfigurationError(
            f"table {layout.table} has a numeric sort key, so it cannot hold {schema.name}",
            hint=f"use a table with string keys, or give the model its own table: class {schema.name}(Model, table=…)",
        )
    for name in (layout.partition.name, layout.sort.name):
        for field in schema.fields.values():
            if field.stored == name:
                raise ConfigurationError(
                    f"{schema.name}.{field.name} is stored as {name!r}, which is a key attribute of table "
                    f"{layout.table}",
                    hint=f'store it under another name: field(name="{name}_")',
                )
    return Binding(schema, layout.table, layout.partition, layout.sort, TTL, False)


async def _in_own_table(schema: ModelSchema, context: Context) -> Binding:
    name = f"{context.settings.table_prefix}{schema.table}"
    check_table_name(name)
    wanted = _plan_table(schema, name)
    ttl = None if schema.ttl is None else schema.ttl.stored
    if context.settings.manage_table:
        description: TableDescription | None = await ensure_table(context, wanted, ttl)
    else:
        description = await find_table(context, name)
    if description is None:
        raise ConfigurationError(
            f"there is no table {name}",
            hint=f"run {_creation(context, schema)}, or pass manage_table=True to have Holdall create it, "
            f"or create it yourself:\n{create_table_text(wanted)}",
        )
    found = description.schema
    problem = explain_unfit(schema.form, wanted, found)
    if problem is not None:
        reason, hint = problem
        raise ConfigurationError(
            f"table {name} cannot hold {schema.name}: {reason}",
            hint=f"{hint + '; or ' if hint else ''}create the table like this:\n{create_table_text(wanted)}",
        )
    there = {index.name: index for index in found.indexes}
    for index in schema.indexes.values():  # a write would store the keys of these under other names
        if index.is_of_layout and index.schema.name in there:
            _check_index(context, schema, found, index, there[index.schema.name])
    return Binding(schema, name, found.partition, found.sort, ttl, True)


def _plan_table(schema: ModelSchema, name: str) -> TableSchema:
    keys = schema.form.table_keys()
    assert keys is not None
    return TableSchema(name, *keys, tuple(index.schema for index in schema.indexes.values()))

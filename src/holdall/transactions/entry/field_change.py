"""Building blocks for the steps of a transaction, used by all kinds of entries. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.core.comparison import equal
from holdall.core.expressions import Add, Condition, Path, Remove, Set, UpdateAction, Value
from holdall.core.expressions.evaluation import holds
from holdall.core.values import Attribute, Item
from holdall.models.codec.everyday import ItemEncoder
from holdall.models.definition.derived import Derived
from holdall.models.fields.field import Field
from holdall.models.fields.options import ABSENT
from holdall.models.migrations import VERSION
from holdall.models.schema import ModelSchema
from holdall.tables.commit.lock import Lock, all_of
from holdall.transactions.binding import Binding

if TYPE_CHECKING:
    from holdall.models.fields.update import FieldUpdate

FieldChange: TypeAlias = "tuple[Field[Any], Attribute | None, Attribute | None]"
"""A field, its stored attribute as it was read, and the one to be written; None if absent."""


def build_item(
    binding: Binding, key: Item, values: Mapping[str, Any], quick: ItemEncoder | None = None
) -> dict[str, Attribute]:
    """A whole item as it is stored; refused if a required field has no value.

    ``quick`` is the compiled encoder of the stored fields, for callers that build many items.
    """
    schema = binding.schema
    item: dict[str, Attribute] = dict(key)
    if schema.form.type_attribute is not None:
        item[schema.form.type_attribute] = {"S": schema.name}
        item.update(schema.form.constants)
    if quick is None:
        _encode_fields(schema, values, item)
    else:
        try:
            quick(values, item)
        except Exception:  # noqa: BLE001 - the thorough way finds out which field is at fault
            _encode_fields(schema, values, item)
    if schema.form.key_names:
        item.update(key)  # as it was spelt, also where a field is the key itself
    if schema.version is not None:
        item[schema.version.stored] = _first_version(schema.version, values)
    mark = None if schema.migrations is None else schema.migrations.mark
    if mark is not None:
        item[VERSION] = mark
    for derived in schema.derived:
        found = derived.attributes(_of(derived, values))
        item.update({stored: attribute for stored, attribute in found.items() if attribute is not None})
    return item


def _first_version(version: Field[Any], values: Mapping[str, Any]) -> Attribute:
    if values.get(version.name, 0) != 0:
        raise version.refusal("it counts the item's writes, so a new item cannot set it", hint="leave it out")
    return {"N": "1"}


def next_version(version: Field[Any], stored: Attribute | None) -> Attribute:
    """The version after a write of an item that had this one; None or NULL if it had none yet."""
    return {"N": "1" if stored is None or "NULL" in stored else str(version.decode(stored) + 1)}


def count_write(schema: ModelSchema) -> list[UpdateAction]:
    """The action that counts a write that does not depend on the version."""
    return [] if schema.version is None else [Add(Path((schema.version.stored,)), Value({"N": "1"}))]


def list_stored_fields(schema: ModelSchema) -> list[Field[Any]]:
    """The fields whose values an item has and stores; in some layouts, those of the key are stored only in the key."""
    in_key_alone = schema.form.in_key_alone
    return [
        field
        for field in schema.fields.values()
        if not field.is_computed and not (in_key_alone and field.is_key)
    ]


def _encode_fields(schema: ModelSchema, values: Mapping[str, Any], item: dict[str, Attribute]) -> None:
    for field in list_stored_fields(schema):
        value = values.get(field.name, ABSENT)
        if value is ABSENT:
            if field.codec.nullable:
                continue
            raise field.refusal("it is required, but has no value")
        attribute = field.encode(value)
        if attribute is not None:
            item[field.stored] = attribute


def find_affected(derived: Iterable[Derived], changes: Sequence[FieldChange]) -> list[Derived]:
    """The derived attributes that depend on at least one changed field."""
    changed = {field.name for field, _, _ in changes}
    return [each for each in derived if any(field.name in changed for field in each.components)]


def build_update(
    changes: Sequence[FieldChange], derived: Iterable[Derived], values: Mapping[str, Any]
) -> list[UpdateAction]:
    """The update that makes the changes, and sets the derived attributes for these values."""
    attributes: dict[str, Attribute | None] = {field.stored: new for field, _, new in changes}
    return update_actions({**attributes, **derive(derived, values)})


def derive(derived: Iterable[Derived], values: Mapping[str, Any]) -> dict[str, Attribute | None]:
    """The derived attributes for these values."""
    return {name: found for each in derived for name, found in each.attributes(_of(each, values)).items()}


def update_actions(attributes: Mapping[str, Attribute | None]) -> list[UpdateAction]:
    """The update that sets attributes to these values, and removes those that are None."""
    return [
        Remove(Path((stored,))) if attribute is None else Set(Path((stored,)), Value(attribute))
        for stored, attribute in attributes.items()
    ]


def _of(derived: Derived, values: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: values.get(field.name) for field in derived.components}


def former_locks(schema: ModelSchema, field: Field[Any]) -> list[Lock]:
    """Locks that require that no program has stored the field under a former name meanwhile."""
    migrations = schema.migrations
    names = [] if migrations is None else migrations.aliases(field.stored)
    return [Lock(field.name, name, None) for name in names]


def guard_condition(binding: Binding, stored: Item | None) -> Condition | None:
    """The condition that the model's hydrator adds to every write."""
    hydrator = binding.schema.hydrator
    return None if hydrator is None else hydrator.guard(stored)


def guard_unread(binding: Binding, pointer: Item | None) -> Condition | None:
    """The condition for an item that was not read, of the model or of a derived one: those of all their hydrators."""
    hydrators = binding.schema.list_hydrators()
    return all_of([hydrator.guard(pointer) for hydrator in hydrators]) if hydrators else None


def unique_fields(binding: Binding) -> list[Field[Any]]:
    """The unique fields, whose values no two items may share."""
    return [field for field in binding.schema.plain if field.unique]


def is_same(left: Attribute | None, right: Attribute | None) -> bool:
    """Whether the store considers two attributes equal; None is an absent one."""
    if left is None or right is None:
        return left is right
    return left == right or equal(left, right)


# --- updates whose outcome depends on what is stored ---------------------------------------------------------


def is_usual(updates: Iterable[FieldUpdate], stored: Item) -> bool:
    """Whether the store's own actions do what the updates of a field mean."""
    return all(holds(demand, stored) for update in updates for demand in update.demands())

"""Instances of stored items: each of the model that the item names; another model is refused. Pure."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from holdall.core.values import Item
from holdall.errors import InvalidKeyError, ModelMismatchError
from holdall.models.keys.key import ModelKey
from holdall.models.marks import FROZEN, Frozen, Marks
from holdall.models.model import build_instance
from holdall.models.schema import ModelSchema
from holdall.transactions.binding import Binding


def make_instance(
    binding: Binding, schema: ModelSchema, stored: Item, marks: Marks | Frozen, key: ModelKey[Any] | None
) -> Any:
    """An instance of a stored item, with components that are stored only in the key."""
    if key is not None and key.schema is not schema:
        key = None  # it is of a related model
    item = build_instance(schema.model, stored, marks, key)
    if schema.is_direct:
        return item
    form = binding.schema.form
    if form.in_key_alone:
        item.__dict__.update(binding.components(stored))
    elif form.is_parsed:
        missing = [name for name, field in schema.key_fields.items() if field.stored not in stored]
        if missing:
            with suppress(
                InvalidKeyError
            ):  # of an item whose key the template does not explain, they have no value
                components = binding.components(stored)
                item.__dict__.update({name: components[name] for name in missing})
    return item


def make_frozen(
    binding: Binding, stored: Item, key: ModelKey[Any] | None, found: ModelSchema | None = None
) -> Any:
    """An instance outside any transaction, which cannot be changed; ``found`` is its model, if that is known."""
    schema = binding.schema
    if found is None:
        found = model_of(binding, stored, key)
    if found is None:
        raise mismatch(key or binding.key_of(stored), binding.name_of(stored), schema)
    item = make_instance(binding, found, stored, FROZEN, key)
    if found.prepares:
        item.after_load()
    return item


def model_of(binding: Binding, stored: Item, key: ModelKey[Any] | None) -> ModelSchema | None:
    """The model of an item. In a model's own table, an item that names no model has the model of the requested key."""
    found = binding.model_of(stored)
    return binding.schema if found is None and binding.schema.form.in_key_alone and key is not None else found


def mismatch(where: object, found: object, wanted: ModelSchema) -> ModelMismatchError:
    """The error for an item of another model than the requested one."""
    if found is None:
        return ModelMismatchError(f"the item {where!r} does not name its model, so it is not a {wanted.name}")
    return ModelMismatchError(
        f"the item {where!r} is a {found}, not a {wanted.name}",
        hint=f"request {found}, or a model that both derive from",
    )

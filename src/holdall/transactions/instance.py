"""Instances of stored items: of the model that an item is, or a refusal to give it as something else. Pure."""

from __future__ import annotations

from typing import Any

from holdall.core.values import Item
from holdall.errors import ModelMismatchError
from holdall.models.keys import ModelKey
from holdall.models.marks import FROZEN, Frozen, Marks
from holdall.models.model import build_instance
from holdall.models.schema import ModelSchema
from holdall.transactions.binding import Binding


def make_instance(
    binding: Binding, schema: ModelSchema, stored: Item, marks: Marks | Frozen, key: ModelKey[Any] | None
) -> Any:
    """An instance of a stored item. In a table of its own, the key's components are in the key alone."""
    item = build_instance(
        schema.model, stored, marks, key if key is not None and key.schema is schema else None
    )
    if binding.own:
        item.__dict__.update(binding.components(stored))
    return item


def make_frozen(binding: Binding, stored: Item, key: ModelKey[Any] | None) -> Any:
    """An instance that no transaction keeps."""
    schema = binding.schema
    found = model_of(binding, stored, key)
    if found is None:
        raise mismatch(key or binding.key_of(stored), stored.get("_type", {}).get("S"), schema)
    return make_instance(binding, found, stored, FROZEN, key)


def model_of(binding: Binding, stored: Item, key: ModelKey[Any] | None) -> ModelSchema | None:
    """What an item is; where nothing says so, in a table of its own, one that was asked for by its key is as asked."""
    found = binding.schema.of(stored, binding.sort_of(stored) if binding.own else None)
    return binding.schema if found is None and binding.own and key is not None else found


def mismatch(where: object, found: object, wanted: ModelSchema) -> ModelMismatchError:
    """The refusal to give an item as something that it is not."""
    if found is None:
        return ModelMismatchError(f"the item {where!r} does not name its model, so it is not a {wanted.name}")
    return ModelMismatchError(
        f"the item {where!r} is a {found}, not a {wanted.name}",
        hint=f"request {found}, or a model that both derive from",
    )

"""The values that the caller of a blind write names for an item that was not read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdall.errors import InvalidRequestError
from holdall.models.fields.field import Field
from holdall.models.item_values import unknown_field
from holdall.models.keys.key import ModelKey, make_key
from holdall.models.schema import ModelSchema


def split_key(
    schema: ModelSchema, expected: Mapping[str, Any]
) -> tuple[ModelKey[Any], dict[Field[Any], Any]]:
    """Split expected values into the key and the stored form of the others."""
    names = schema.key_fields
    old: dict[Field[Any], Any] = {}
    for name, value in expected.items():
        field = find_field(schema, name)
        if name not in names:
            old[field] = None if value is None else field.encode(field.validate(value))
    key = make_key(schema, (), {name: value for name, value in expected.items() if name in names})
    return key, old


def check_unhooked(schema: ModelSchema, *, derived: bool = True) -> None:
    """Refuse a blind write that would skip a hook of the model or, if it can meet their items, of ``derived`` ones."""
    hooked = schema.find_hooked()
    if hooked is not None and (derived or hooked is schema):
        name = hooked.name if hooked is schema else f"{hooked.name}, which is derived from {schema.name},"
        raise InvalidRequestError(
            f"{name} has a {hooked.hooked[0]} hook, which cannot be called for an item that was not read",
            hint="read the item with get, then change or delete it; use create for a new item",
        )


def find_field(schema: ModelSchema, name: str) -> Field[Any]:
    """The field of this name; otherwise an error that suggests the nearest name."""
    field = schema.fields.get(name)
    if field is None:
        raise unknown_field(schema, name)
    return field

"""What a model needs of its table, and which models a module defines.

Pure. In the database's table, a model needs the shared index of each slot that it uses, and expiry by ``_ttl``. A
model's own table has the key ``_id`` and ``_sk``, one index for each of the model's, and expires by the field itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdall.core.schema import TTL, TableNeeds

if TYPE_CHECKING:
    from holdall.models.model import Model
    from holdall.models.schema import ModelSchema


def table_needs(model: type[Model]) -> TableNeeds:
    """Return what the model needs, without looking at any table."""
    schema: ModelSchema | None = getattr(model, "_schema", None)
    if schema is None or schema.abstract:
        raise TypeError(f"{model.__name__} is abstract and has no items: pass models that derive from it")
    indexes = tuple(index.schema for index in schema.indexes.values())
    keys = schema.form.table_keys()
    if keys is None:
        ttl = None if schema.ttl is None else TTL
        return TableNeeds(None, None, None, indexes, ttl, schema.name)
    ttl = None if schema.ttl is None else schema.ttl.stored
    fetched = frozenset(index.schema.name for index in schema.indexes.values() if index.fetches)
    return TableNeeds(
        schema.table, *keys, indexes, ttl, schema.name, fetched, declared=schema.layout is not None
    )


def find_models(names: Mapping[str, Any], module: str) -> list[type[Model]]:
    """Return the models that a module or its submodules define, without abstract ones, in the order of ``names``."""
    from holdall.models.model import Model

    found = (
        each
        for each in names.values()
        if isinstance(each, type) and issubclass(each, Model) and each is not Model
    )
    own = (each for each in found if f"{each.__module__}.".startswith(f"{module}."))
    return [each for each in dict.fromkeys(own) if not each._schema.abstract]

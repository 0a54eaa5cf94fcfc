"""Transactions of one write, for the methods of a database that are named after it.

Each records its write in a transaction that the caller runs and commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from holdall.errors import InvalidModelUpdateError, InvalidOptionsError
from holdall.models.keys.key import ModelKey
from holdall.models.marks import Marks, Partial
from holdall.models.model import Model
from holdall.transactions.read.flow import fetch, get_one
from holdall.transactions.read.target import model_schema

if TYPE_CHECKING:
    from holdall.models.fields.conditions import Clause
    from holdall.models.fields.update import FieldUpdate
    from holdall.transactions.api import Writes


def prepare_item(model: Any, args: tuple[Any, ...], values: Mapping[str, Any]) -> Model:
    """Return the item that ``create`` was called with: an instance, or a model and its values."""
    if isinstance(model, Model) and not args and not values:
        return model
    item: Model = model_schema(model).model(*args, **values)
    return item


def create_item(tx: Writes, item: Model) -> Model:
    """Create the item."""
    return tx.create(item)


def check_put(item: object, values: Mapping[str, object]) -> None:
    """Refuse what ``put`` cannot write: it takes one instance, and no values of fields."""
    for name in values:
        model = item.__name__ if isinstance(item, type) else "Order"
        raise InvalidOptionsError(
            f"put takes an item, and has no option {name!r}", hint=f"write put({model}({name}=...))"
        )
    if not isinstance(item, Model):
        raise InvalidOptionsError(f"{item!r:.80} is not an item", hint="pass an instance: put(Order(...))")
    if isinstance(item._marks, Partial):
        item._marks.change(item)  # refuses: the put would replace the fields that were not fetched


def update_item(tx: Writes, key: ModelKey[Any], *updates: FieldUpdate, **options: Any) -> None:
    """Change an item without reading it."""
    if not isinstance(key, ModelKey):
        raise InvalidOptionsError(f"{key!r:.80} is not a key", hint="pass Order.key(...)")
    tx.update(key, *updates, **options)


def list_keys(targets: Iterable[object]) -> list[ModelKey[Any]]:
    """Return the keys of items, or the keys themselves."""
    keys = [target.key if isinstance(target, Model) else target for target in targets]
    for key in keys:
        if not isinstance(key, ModelKey):
            raise InvalidOptionsError(
                f"{key!r:.80} is neither an item nor a key", hint="pass an item, or Order.key(...)"
            )
    return keys  # type: ignore[return-value]


# --- flows ------------------------------------------------------------------------------------------------


async def put_item(tx: Writes, item: Model, where: Clause | None = None) -> Model:
    """Write the whole item, replacing any item with its key; one that a blind put cannot replace is read first."""
    schema = item._schema
    if where is not None or not (schema.find_hooked() or schema.version is not None or schema.is_guarded):
        tx._unit.put(item, where)
        return item
    found: Model | None = await fetch(tx._context, tx._unit, item.key)
    if found is None:
        return tx.create(item)
    _replace_values(found, item)
    return found


def _replace_values(found: Model, item: Model) -> None:
    """Assign the values of a new item to the stored one, except those that Holdall sets itself."""
    if type(found) is not type(item):
        raise InvalidModelUpdateError(
            f"{found.key!r} is stored as a {type(found).__name__}, so it cannot become a {type(item).__name__}",
            hint="delete it first",
        )
    assert found._stored is not None
    values = item.to_dict(hidden=True)
    for field in item._schema.plain:
        value = values.get(field.name)
        if not field.fixed:
            setattr(found, field.name, value)
        elif field.options.read_only and field.stored in found._stored:
            if getattr(found, field.name) != value:
                raise InvalidModelUpdateError(
                    f"{found.key!r}.{field.name} is read-only: the put has another value than the stored one",
                    hint="put the stored value, or read the item and change its other fields",
                )
        elif value is not None and (field.options.read_only or field.now == "create"):
            assert isinstance(found._marks, Marks)
            found._marks.change(found)
            found.__dict__[field.name] = value
            found._marks.wrote(field.name)


async def assign_values(tx: Writes, key: ModelKey[Any], values: Mapping[str, Any]) -> Any:
    """Read an item and assign these values."""
    item = await get_one(tx._context, tx._unit, key, (), {})
    item.assign(values)
    return item


async def delete_all(tx: Writes, keys: Iterable[ModelKey[Any]], where: Clause | None) -> None:
    """Delete the items under these keys; those on whose values something depends are read first."""
    for key in keys:
        if where is not None or not (key.schema.find_hooked() or key.schema.is_guarded):
            tx.delete(key, where=where)
        elif (item := await fetch(tx._context, tx._unit, key)) is not None:
            tx.delete(item)

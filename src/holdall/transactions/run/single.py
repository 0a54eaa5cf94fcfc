"""Transactions of one write, for the methods of a database that are named after it.

Each checks what the caller passed and then runs its write in a transaction: ``transact(flow, *args)`` calls
``flow(tx, *args)`` in a transaction of the caller's kind, sync or async, and commits it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from holdall.errors import InvalidModelUpdateError, InvalidOptionsError
from holdall.models.keys.key import ModelKey
from holdall.models.marks import Marks, Partial
from holdall.models.model import Model
from holdall.transactions.read.flow import fetch, get_one
from holdall.transactions.read.target import model_schema, refuse_components

if TYPE_CHECKING:
    from holdall.models.fields.conditions import Clause
    from holdall.models.fields.update import FieldUpdate
    from holdall.transactions.api import Writes

Transact: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]


async def create(transact: Transact, model: Any, args: Sequence[Any], values: Mapping[str, Any]) -> Model:
    """Create an item: an instance, or one of a model with these values."""
    item: Model
    if isinstance(model, Model) and not args and not values:
        item = model
    else:
        item = model_schema(model).model(*args, **values)
    await transact(_create, item)
    return item


async def _create(tx: Writes, item: Model) -> None:
    tx.create(item)


async def put(transact: Transact, item: object, where: Clause | None, values: Mapping[str, object]) -> Model:
    """Write the whole item, replacing any item with its key; ``put`` takes no values of fields."""
    for name in values:
        model = item.__name__ if isinstance(item, type) else "Order"
        raise InvalidOptionsError(
            f"put takes an item, and has no option {name!r}", hint=f"write put({model}({name}=...))"
        )
    if not isinstance(item, Model):
        raise InvalidOptionsError(f"{item!r:.80} is not an item", hint="pass an instance: put(Order(...))")
    if isinstance(item._marks, Partial):
        item._marks.change(item)  # refuses: the put would replace the fields that were not fetched
    stored: Model = await transact(_put, item, where)
    return stored


async def _put(tx: Writes, item: Model, where: Clause | None) -> Model:
    """Put an item; if a blind put cannot replace the stored one, that is read first."""
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


async def update(
    transact: Transact, key: object, updates: tuple[FieldUpdate, ...], options: Mapping[str, Any]
) -> None:
    """Change an item without reading it."""
    if not isinstance(key, ModelKey):
        raise InvalidOptionsError(f"{key!r:.80} is not a key", hint="pass Order.key(...)")
    await transact(_update, key, updates, options)


async def _update(
    tx: Writes, key: ModelKey[Any], updates: tuple[FieldUpdate, ...], options: Mapping[str, Any]
) -> None:
    tx.update(key, *updates, **options)


async def assign(transact: Transact, key: ModelKey[Any], values: Mapping[str, Any]) -> Any:
    """Read an item, assign these values, and return it."""
    return await transact(_assign, key, values)


async def _assign(tx: Writes, key: ModelKey[Any], values: Mapping[str, Any]) -> Any:
    item = await get_one(tx._context, tx._unit, key, (), {})
    item.assign(values)
    return item


async def delete(
    transact: Transact, targets: Sequence[object], where: Clause | None, components: Mapping[str, object]
) -> None:
    """Delete items by their keys; ``delete`` takes no components of keys."""
    refuse_components("delete", targets, components)
    keys = [target.key if isinstance(target, Model) else target for target in targets]
    for key in keys:
        if not isinstance(key, ModelKey):
            raise InvalidOptionsError(
                f"{key!r:.80} is neither an item nor a key", hint="pass an item, or Order.key(...)"
            )
    await transact(_delete, keys, where)


async def _delete(tx: Writes, keys: Iterable[ModelKey[Any]], where: Clause | None) -> None:
    """Delete the items under these keys; those on whose values something depends are read first."""
    for key in keys:
        if where is not None or not (key.schema.find_hooked() or key.schema.is_guarded):
            tx.delete(key, where=where)
        elif (item := await fetch(tx._context, tx._unit, key)) is not None:
            tx.delete(item)

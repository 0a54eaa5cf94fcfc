"""The flows of ``db.archive`` that only read: the key of an item's object, which items are archived, and how much."""

from __future__ import annotations

from typing import Any

from holdall.archive.item import encode_components, find_place
from holdall.archive.pointer import POINTER, read_pointer
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.frozen import dataclass
from holdall.core.measure import item_size
from holdall.core.requests import GetItem, Scan
from holdall.errors import InvalidOptionsError
from holdall.models.keys.key import ModelKey
from holdall.models.model import Model
from holdall.transactions.binding import bind
from holdall.transactions.query.scan import of_model
from holdall.transactions.read.flow import get_many
from holdall.transactions.read.hydration import is_pointer


@dataclass(frozen=True, slots=True)
class Holdings:
    """How many items, and how many bytes, a model has in its table (hot) and in its archive (cold)."""

    hot_items: int
    hot_bytes: int
    cold_items: int
    cold_bytes: int
    pointer_bytes: int


def find_key(given: ModelKey[Any] | Model) -> ModelKey[Any]:
    """Return the key of an item, or a key as it is; refuse anything else."""
    found = given.key if isinstance(given, Model) else given
    if not isinstance(found, ModelKey):
        raise InvalidOptionsError(
            f"{given!r:.60} is neither an item nor the key of one",
            hint="pass items or keys: Order.key(...)",
        )
    return found


async def key(context: Context, given: ModelKey[Any] | Model) -> str:
    """Return the key at which an item is archived. If another item already occupies it, a different key is used."""
    found = find_key(given)
    schema = found.schema
    place = await find_place(context, schema.model)
    if place.archive.pack:
        raise InvalidOptionsError(
            f"archived items of {schema.name} share objects (pack=True), so a single item has no key",
            hint="the pointer of an archived item names its pack",
        )
    fields = encode_components(schema, found.components)
    stored = {schema.key_fields[name].stored: attribute for name, attribute in fields.items()}
    return place.plan_keys({**stored, **place.binding.key(found)}).candidates[0]


async def find_archived(context: Context, *given: ModelKey[Any] | Model) -> list[ModelKey[Any]]:
    """Return the keys of the given items that are archived, in the order given.

    Pass items or their keys, as in ``Order.key(...)``. This reads what the table stores, not the archive.
    """
    keys = list(dict.fromkeys(map(find_key, given)))
    bindings = [await bind(context, key.schema) for key in keys]
    reads = [GetItem(binding.table, binding.key(key)) for binding, key in zip(bindings, keys, strict=True)]
    stored = await get_many(context, None, reads, strong=False)
    return [
        key
        for key, binding, item in zip(keys, bindings, stored, strict=True)
        if item is not None and is_pointer(binding, item)
    ]


async def report(context: Context, model: type[Model]) -> Holdings:
    """Count the items of a model in its table and in its archive. This reads the whole table."""
    binding = await bind(context, model._schema)
    cursor = PageCursor(context.port, Scan(binding.table, filter=of_model(binding)))
    hot = hot_bytes = cold = cold_bytes = pointer_bytes = 0
    while (page := await cursor.next_page()) is not None:
        for item in page.items:
            if is_pointer(binding, item):
                size = read_pointer(item).size if POINTER in item else 0  # the ancestor does not record it
                cold, cold_bytes = cold + 1, cold_bytes + size
                pointer_bytes += item_size(item)
            else:
                hot, hot_bytes = hot + 1, hot_bytes + item_size(item)
    return Holdings(hot, hot_bytes, cold, cold_bytes, pointer_bytes)

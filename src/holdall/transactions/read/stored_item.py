"""Items exactly as their tables store them, for people and programs that look at storage itself."""

from __future__ import annotations

from typing import Any

from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.measure import item_size
from holdall.core.requests import GetItem
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError
from holdall.models.keys.key import ModelKey
from holdall.transactions.binding import bind


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as its table stores it, with hidden and expired values.

    ``attributes`` are DynamoDB's, as in ``{"name": {"S": "ada"}}``, and ``key`` those of the table's key.
    ``archived``: the item is in the archive, and the attributes are those of its pointer.
    """

    table: str
    key: Item
    attributes: Item
    archived: bool

    @property
    def size(self) -> int:
        """The size in bytes, as DynamoDB counts it."""
        return item_size(self.attributes)


async def fetch_stored(context: Context, key: ModelKey[Any]) -> StoredItem | None:
    """Read what is stored under a key; None if nothing is."""
    if not isinstance(key, ModelKey):
        raise InvalidOptionsError(f"get_stored takes a key, not {key!r:.60}", hint="write Order.key(...)")
    binding = await bind(context, key.schema)
    read = GetItem(binding.table, binding.key(key), consistent=True)
    found = (await context.port.send(read)).item
    if found is None:
        return None
    hydrator = (binding.model_of(found) or key.schema).hydrator
    archived = hydrator is not None and hydrator.is_pointer(found)
    return StoredItem(binding.table, read.key, found, archived)

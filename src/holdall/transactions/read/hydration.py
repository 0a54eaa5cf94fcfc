"""Hydration: from stored items to items as their model defines them now."""

from __future__ import annotations

from collections.abc import Sequence

from holdall.core.context import Context
from holdall.core.port import Outcome
from holdall.core.requests import GetItem
from holdall.core.values import Item
from holdall.models.schema import ModelSchema
from holdall.transactions.binding import Binding

_AT_ONCE = 64


def is_current(binding: Binding, raw: Item) -> bool:
    """Whether the item is stored as its model defines it, so that `hydrate` would return it unchanged."""
    return _schema(binding, raw).used_as_stored


def is_pointer(binding: Binding, raw: Item) -> bool:
    """Whether the item's content is stored elsewhere."""
    hydrator = _schema(binding, raw).hydrator
    return hydrator is not None and hydrator.is_pointer(raw)


async def hydrate(context: Context, binding: Binding, raw: Item) -> Item | None:
    """Fetch the item's content from where a feature stored it, and run its migrations.

    Returns the same object if neither applies, and None if the item was deleted meanwhile.
    """
    schema = _schema(binding, raw)
    item: Item | None = raw
    if schema.hydrator is not None and schema.hydrator.is_pointer(raw):
        read = GetItem(binding.table, binding.key_of(raw), True)
        item = await schema.hydrator.hydrate(context, read, raw)
    if item is None or schema.migrations is None:
        return item
    return schema.migrations.current(
        item, [key.name for key in (binding.partition, binding.sort) if key is not None]
    )


async def hydrate_all(context: Context, rows: Sequence[tuple[Binding, Item]]) -> list[Outcome[Item | None]]:
    """Hydrate rows, in their order; contents that are stored elsewhere are fetched concurrently."""
    far = [position for position, (binding, raw) in enumerate(rows) if is_pointer(binding, raw)]
    fetched: dict[int, Outcome[Item | None]] = {}
    if len(far) > 1:
        flows = (hydrate(context, *rows[position]) for position in far)
        fetched = dict(zip(far, await context.port.gather(flows, limit=_AT_ONCE), strict=True))
    return [
        fetched[position] if position in fetched else await _attempt(context, *row)
        for position, row in enumerate(rows)
    ]


async def _attempt(context: Context, binding: Binding, raw: Item) -> Outcome[Item | None]:
    try:
        return Outcome(await hydrate(context, binding, raw))
    except Exception as error:  # noqa: BLE001 - raised when the caller reaches the row
        return Outcome(error=error)


def _schema(binding: Binding, raw: Item) -> ModelSchema:
    """The schema of the item itself, not of the requested model: a derived model has its own conversions."""
    return binding.model_of(raw) or binding.schema

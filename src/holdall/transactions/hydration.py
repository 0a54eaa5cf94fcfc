"""From items as they are stored to items as their model knows them now."""

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
    """Whether the item is as its model knows it, so that `hydrate` would return it as it is."""
    return _schema(binding, raw).used_as_stored


def is_pointer(binding: Binding, raw: Item) -> bool:
    """Whether the item's content is kept elsewhere."""
    hydrator = _schema(binding, raw).hydrator
    return hydrator is not None and hydrator.is_pointer(raw)


async def hydrate(context: Context, binding: Binding, raw: Item) -> Item | None:
    """The item, fetched from where a feature put it, and brought up to date; the very same one if it needs neither.

    None if its content is gone because the item is.
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
    """Each row hydrated, in their order; those whose content is elsewhere are fetched side by side."""
    far = [place for place, (binding, raw) in enumerate(rows) if is_pointer(binding, raw)]
    fetched: dict[int, Outcome[Item | None]] = {}
    if len(far) > 1:
        flows = (hydrate(context, *rows[place]) for place in far)
        fetched = dict(zip(far, await context.port.gather(flows, limit=_AT_ONCE), strict=True))
    return [
        fetched[place] if place in fetched else await _attempt(context, *row)
        for place, row in enumerate(rows)
    ]


async def _attempt(context: Context, binding: Binding, raw: Item) -> Outcome[Item | None]:
    try:
        return Outcome(await hydrate(context, binding, raw))
    except Exception as error:  # noqa: BLE001 - it is raised for the caller that reaches the row
        return Outcome(error=error)


def _schema(binding: Binding, raw: Item) -> ModelSchema:
    """What it is decides, not what it was requested as: a derived model has conversions of its own."""
    return binding.schema.of(raw, binding.sort_of(raw) if binding.own else None) or binding.schema

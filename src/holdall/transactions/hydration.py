"""From items as they are stored to items as their model knows them now."""

from __future__ import annotations

from holdall.core.port import Port
from holdall.core.values import Item
from holdall.transactions.binding import Binding

__all__ = ["hydrated"]


async def hydrated(port: Port, binding: Binding, raw: Item) -> Item:
    """The item, fetched from where a feature put it, and brought up to date; the very same one if it needs neither."""
    # what it is decides, not what it was asked for as: a derived model has conversions of its own
    schema = binding.schema.of(raw, binding.sort_of(raw) if binding.own else None) or binding.schema
    item = raw if schema.hydrator is None else await schema.hydrator.hydrate(port, raw)
    if schema.migrations is None:
        return item
    return schema.migrations.current(
        item, [key.name for key in (binding.partition, binding.sort) if key is not None]
    )

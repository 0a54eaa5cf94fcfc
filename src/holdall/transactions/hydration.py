"""From items as they are stored to items as their model knows them now."""

from __future__ import annotations

from holdall.core.port import Port
from holdall.core.values import Item
from holdall.models.schema import ModelSchema
from holdall.transactions.binding import Binding

__all__ = ["hydrated", "is_current"]


def is_current(binding: Binding, raw: Item) -> bool:
    """Whether the item is as its model knows it, so that `hydrated` would only give it back."""
    return _schema(binding, raw).used_as_stored


async def hydrated(port: Port, binding: Binding, raw: Item) -> Item:
    """The item, fetched from where a feature put it, and brought up to date; the very same one if it needs neither."""
    schema = _schema(binding, raw)
    item = raw if schema.hydrator is None else await schema.hydrator.hydrate(port, raw)
    if schema.migrations is None:
        return item
    return schema.migrations.current(
        item, [key.name for key in (binding.partition, binding.sort) if key is not None]
    )


def _schema(binding: Binding, raw: Item) -> ModelSchema:
    """What it is decides, not what it was asked for as: a derived model has conversions of its own."""
    return binding.schema.of(raw, binding.sort_of(raw) if binding.own else None) or binding.schema

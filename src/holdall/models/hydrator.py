"""Hydrators: how a feature stands between a stored item and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdall.core.expressions import Condition
    from holdall.core.port import Port
    from holdall.core.values import Item

__all__ = ["Hydrator"]


class Hydrator(Protocol):
    """Turns items as they are stored into items as the model knows them.

    An item that is already as the model knows it is given back as it is (the very same object). Any other is read-only
    in its stored form: when the transaction writes it, it writes the whole hydrated item in its place.
    """

    async def hydrate(self, port: Port, item: Item) -> Item:
        """The item as the model knows it."""

    def guard(self, stored: Item | None) -> Condition | None:
        """What every write demands besides: of the item as it was read, or (None) of one that was not read."""

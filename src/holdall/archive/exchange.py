"""Replacing the pointer of an item with another, if the item is still as it was read."""

from __future__ import annotations

from types import MappingProxyType

from holdall.archive.ancestor import NAMES
from holdall.archive.pointer import POINTER, Pointer, demand_same
from holdall.core.context import Context
from holdall.core.expressions import Path, Remove, Set, Update, Value
from holdall.core.requests import GetItem, UpdateItem
from holdall.core.values import Item
from holdall.errors import ConditionFailedError, OutcomeUnknown
from holdall.tables.commit.lock import all_of
from holdall.transactions.binding import Binding


async def exchange_pointer(
    context: Context,
    binding: Binding,
    item: Item,
    pointer: Pointer,
    former: tuple[str, ...] = (POINTER,),
    added: Item = MappingProxyType({}),
) -> bool:
    """Give an item another pointer; False if it was changed or deleted meanwhile. A deleted item is never recreated.

    ``former`` names the attributes that make, or would make, the item a pointer: they must be as they were read.
    ``added`` are attributes that the item lacks and receives.
    """
    key = binding.key_of(item)
    demands = demand_same(item, dict.fromkeys((*key, *former, POINTER, *added)))
    removals = [Remove(Path((name,))) for name in former if name != POINTER and name in item]
    settings = [
        Set(Path((name,)), Value(value)) for name, value in {POINTER: pointer.stored, **added}.items()
    ]
    update = Update((*settings, *removals))
    exchange = UpdateItem(binding.table, key, update, all_of(demands), item_on_failure=True)
    return await send_exchange(context, exchange, pointer) is not None


async def send_exchange(context: Context, exchange: UpdateItem, pointer: Pointer) -> float | None:
    """Give an item a pointer; return the units of capacity that this used, None if its condition failed.

    Repeating it changes nothing: an item that has exactly this pointer has received it, if only the reply was lost.
    """
    try:
        return (await context.port.send(exchange)).capacity
    except ConditionFailedError as error:
        return 0.0 if _is_there(error.item, pointer) else None
    except OutcomeUnknown:
        if not _is_there(
            (await context.port.send(GetItem(exchange.table, exchange.key, True))).item, pointer
        ):
            raise
    return 0.0


def _is_there(item: Item | None, pointer: Pointer) -> bool:
    return item is not None and item.get(POINTER) == pointer.stored


async def has_moved(context: Context, binding: Binding, item: Item) -> bool:
    """Whether an item has another pointer now, or none: then it does not matter that its old object is missing."""
    again = (await context.port.send(GetItem(binding.table, binding.key_of(item), True))).item
    return again is None or any(again.get(name) != item.get(name) for name in (POINTER, *NAMES))

"""Bringing archived items back: the whole item in one write, on the condition that its pointer still stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdall.archive.follower import delete_object
from holdall.archive.item import find_place
from holdall.archive.pointer import POINTER, read_pointer
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.requests import GetItem, Scan
from holdall.core.values import Item
from holdall.errors import ContentionError, InvalidOptionsError
from holdall.models.keys import ModelKey
from holdall.models.marks import Marks
from holdall.models.model import Model
from holdall.tables.commit.flow import send_plan
from holdall.tables.commit.lock import all_of
from holdall.tables.commit.plan import CommitPlan
from holdall.transactions.binding import Binding, bind
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.hydration import hydrate, is_pointer
from holdall.transactions.instance import make_instance
from holdall.transactions.query.scan import of_model
from holdall.transactions.unit import Unit

_TRIES = 8


async def restore(context: Context, *given: ModelKey[Any] | Model) -> int:
    """Bring these items back into the table; return how many were archived."""
    restored = 0
    for each in given:
        key = each.key if isinstance(each, Model) else each
        if not isinstance(key, ModelKey):
            raise InvalidOptionsError(
                f"{each!r:.60} is no item, and no key of one", hint="as in Order.key(...)"
            )
        binding = await bind(context, key.schema)
        read = GetItem(binding.table, binding.key(key), True)
        restored += await _restore(context, binding, read, (await context.port.send(read)).item)
    return restored


async def restore_all(
    context: Context, model: type[Model], *, progress: Callable[[int], Any] | None = None
) -> int:
    """Bring all archived items of a model back; return how many. It reads the whole table."""
    place = await find_place(context, model)
    binding = place.binding
    scan = Scan(binding.table, filter=all_of([of_model(binding), place.archive.pointer]), consistent=True)
    cursor, restored = PageCursor(context.port, scan), 0
    while (page := await cursor.next_page()) is not None:
        for item in page.items:
            read = GetItem(binding.table, binding.key_of(item), True)
            restored += await _restore(context, binding, read, item)
        if progress is not None:
            await context.port.call(progress, restored)
    return restored


async def _restore(context: Context, binding: Binding, read: GetItem, raw: Item | None) -> bool:
    """Why nothing is lost: the row is whole before the object goes; of two writers one meets another pointer."""
    for _ in range(_TRIES):
        if raw is None or not is_pointer(binding, raw):
            return False
        whole = await hydrate(context, binding, raw)
        if whole is None:
            return False
        item = make_instance(binding, binding.schema, whole, Marks(Unit(), held=True), None)
        step = Loaded(item, raw, asked=True).refresh(binding)
        assert step is not None
        try:
            await send_plan(context.port, CommitPlan((step,)))
        except ContentionError:
            raw = (await context.port.send(read)).item
            continue
        if POINTER in raw:
            await delete_object(context.port, read_pointer(raw))
        return True
    raise ContentionError("the archived item was changed each time that it was to be restored")

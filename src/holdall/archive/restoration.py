"""Restoring archived items: one write puts the whole item back, on the condition that its pointer is unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdall.archive.flow import find_key
from holdall.archive.follower import delete_former
from holdall.archive.item import find_place
from holdall.archive.pointer import POINTER, read_pointer, show_key
from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.requests import GetItem, Scan
from holdall.core.values import Item
from holdall.errors import ContentionError
from holdall.models.keys.key import ModelKey
from holdall.models.marks import Marks
from holdall.models.model import Model
from holdall.tables.commit.flow import Attempts, send_plan
from holdall.tables.commit.lock import all_of
from holdall.tables.commit.plan import CommitPlan
from holdall.transactions.binding import Binding, bind
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.query.scan import of_model
from holdall.transactions.read.hydration import hydrate, is_pointer
from holdall.transactions.read.instance import make_instance
from holdall.transactions.unit import Unit

_AT_ONCE = 16


async def restore(context: Context, *given: ModelKey[Any] | Model) -> int:
    """Bring these items back into the table, and return how many of them were archived.

    Pass items or their keys, as in ``Order.key(...)``.
    """
    flows = []
    for each in given:
        key = find_key(each)
        binding = await bind(context, key.schema)
        flows.append((binding, GetItem(binding.table, binding.key(key), True)))
    outcomes = await context.port.gather((_restore(context, *each) for each in flows), limit=_AT_ONCE)
    return sum(outcome.result() for outcome in outcomes)


async def restore_all(
    context: Context, model: type[Model], *, progress: Callable[[int], Any] | None = None
) -> int:
    """Bring all archived items of a model back into the table, and return how many. This reads the whole table.

    If an item cannot be restored, the others still are; the first error is raised at the end. ``progress`` is called
    after each page with the number of items restored so far.
    """
    place = await find_place(context, model)
    binding = place.binding
    scan = Scan(binding.table, filter=all_of([of_model(binding), place.archive.pointer]), consistent=True)
    cursor, restored, failed = PageCursor(context.port, scan), 0, 0
    problem: BaseException | None = None
    while (page := await cursor.next_page()) is not None:
        flows = (
            _restore(context, binding, GetItem(binding.table, binding.key_of(item), True), item)
            for item in page.items
        )
        for outcome in await context.port.gather(flows, limit=_AT_ONCE):
            restored += outcome.value or 0
            failed += outcome.error is not None
            problem = problem or outcome.error
        if progress is not None:
            await context.port.call(progress, restored)
    if problem is not None:
        problem.add_note(f"{restored:,} items were restored, {failed:,} could not be")
        raise problem
    return restored


async def _restore(context: Context, binding: Binding, read: GetItem, found: Item | None = None) -> bool:
    """Restore one item; False if it is not archived.

    Why nothing is lost: the item is whole in the table before the object is deleted, and of two concurrent writers one
    finds that the pointer has changed.
    """
    raw, attempts = found, Attempts(context, f"the archived item {show_key(read.key)}")
    while True:
        await attempts.another()
        if raw is None:
            raw = (await context.port.send(read)).item
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
            raw = None
            continue
        if POINTER in raw:
            await delete_former(context.port, read_pointer(raw), read)
        return True

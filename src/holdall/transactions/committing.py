"""The flow that commits a unit: hooks, plan, participants, one write, settling, handlers.

Why it is safe wherever the process dies: there is exactly one write, which the store does as a whole or not at all.
What participants prepared before it is garbage to be swept if it does not happen; what they settle after it follows
from the store alone, and can be done later by anybody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from datetime import datetime
from typing import Any

from holdall.core.context import Context
from holdall.core.requests import GetItem, Request
from holdall.core.values import Item
from holdall.errors import (
    AfterCommitError,
    ContentionError,
    Difference,
    HoldallError,
    OutcomeUnknown,
)
from holdall.transactions.binding import Binding, bind
from holdall.transactions.entry import Entry, New
from holdall.transactions.expiry import expired
from holdall.transactions.fragment import Fragment
from holdall.transactions.loaded import Loaded
from holdall.transactions.lock import differences
from holdall.transactions.plan import CommitPlan, check_size, check_verifiable, explained, plan_commit, told
from holdall.transactions.reading import get_many
from holdall.transactions.unit import Unit

__all__ = ["collected", "commit"]


async def commit(context: Context, unit: Unit, tx: Any) -> None:
    """Write all that the unit recorded, at once or not at all; then settle, then run the handlers.

    Once the write is on its way it is seen through, also when the caller is cancelled meanwhile.
    """
    unit.check_open()
    await _call_hooks(context, unit, tx)
    entries = [(entry, await bind(context, entry.key.schema)) for entry in unit.entries.values()]
    plan = plan_commit(entries, context.port.now())
    if unit.read_only:
        if plan.writes or unit.participants:
            unit.check_writable("something was changed in place")
        unit.close()
        await _verify(context, unit, entries)
        unit.may_be_committed = True
        await context.port.finish(_after_commit(context, unit))
        return
    if plan.writes or unit.participants:
        check_size(plan, unit.participants)
    unit.close()  # what is changed from now on is not in the plan
    plan = await _joined(context, unit, plan)
    if plan.writes:
        _check_alive(entries, context.port.now())
    await context.port.finish(_send_and_settle(context, unit, plan))


async def _call_hooks(context: Context, unit: Unit, tx: Any) -> None:
    """``before_commit`` of each item that is to be written, once; also of those that a hook makes or changes."""
    called: set[int] = set()
    waiting = True
    while waiting:
        waiting = False
        for entry in list(unit.entries.values()):
            if not isinstance(entry, New | Loaded) or not entry.item._schema.hooked or id(entry) in called:
                continue
            if not entry.is_dirty if isinstance(entry, Loaded) else entry.deleted:
                continue
            called.add(id(entry))
            waiting = True
            unit.hooking = True  # what it changes of an item to be deleted goes with it
            try:
                await context.port.call(entry.item.before_commit, tx)
            finally:
                unit.hooking = False


async def _joined(context: Context, unit: Unit, plan: CommitPlan) -> CommitPlan:
    """The plan with what the participants add, each prepared in turn."""
    joined = []
    for participant in unit.participants:
        unit.prepared.append(participant)
        joined.append((participant, tuple(await participant.prepare(context.port))))
    return CommitPlan(plan.steps, tuple(joined))


def _check_alive(entries: Sequence[tuple[Entry, Binding]], now: datetime) -> None:
    """What was read must not have expired meanwhile: others may have acted on its being gone.

    The moment at which it ends is locked as it was read, so nothing has to be asked of the store.
    """
    over = [
        Difference(repr(entry.key), None, None, None)
        for entry, binding in entries
        if isinstance(entry, Loaded | Fragment) and entry.takes_part and expired(binding, entry.raw, now)
    ]
    if over:
        raise ContentionError(told(over), differences=over)


async def _send_and_settle(context: Context, unit: Unit, plan: CommitPlan) -> None:
    if plan.writes:
        request: Request[Any] = plan.request(context.port.new_id())
        unit.may_be_committed = True
        try:
            await context.port.send(request)
        except OutcomeUnknown:
            raise
        except HoldallError as error:
            unit.may_be_committed = (
                False  # a plain no; anything else, as an interrupt, says nothing of the write
            )
            meaning = explained(plan, error)
            if meaning is error:
                raise
            raise meaning from error
    unit.may_be_committed = True
    await _after_commit(context, unit)


async def _after_commit(context: Context, unit: Unit) -> None:
    """Settle and call the handlers, all of them; their failures change nothing about the commit, and are told after."""
    errors: list[Exception] = []
    for participant in unit.participants:
        await collected(errors, participant.settle(context.port))
    for handler in unit.on_commit:
        await collected(errors, context.port.call(handler))
    if errors:
        raise AfterCommitError(
            f"the transaction is committed, but what was to follow failed: {errors[0]!r}", errors=errors
        ) from errors[0]


async def collected(errors: list[Exception], work: Awaitable[Any]) -> None:
    """Do some work; its failure is kept for later, so that what comes after has its turn."""
    try:
        await work
    except Exception as error:  # noqa: BLE001 - it is kept
        errors.append(error)


async def _verify(context: Context, unit: Unit, entries: Sequence[tuple[Entry, Binding]]) -> None:
    """Read again, in one instant, what was read in several; `ContentionError` when it was never so at one moment."""
    if unit.requests < 2:
        return
    check_verifiable(entry for entry, _ in entries)
    touched = [(entry, binding) for entry, binding in entries if entry.takes_part]
    reads = [GetItem(binding.table, _key_of(entry, binding), True) for entry, binding in touched]
    now = context.port.now()
    stale = []
    for (entry, binding), raw in zip(touched, await get_many(context, None, reads, True), strict=True):
        stored = None if raw is None or expired(binding, raw, now) else raw
        stale += _stale(entry, binding, stored)
    if stale:
        raise ContentionError(told(stale), differences=stale)


def _key_of(entry: Entry, binding: Binding) -> Item:
    return binding.key_of(entry.raw) if isinstance(entry, Loaded | Fragment) else binding.key(entry.key)


def _stale(entry: Entry, binding: Binding, stored: Item | None) -> list[Difference]:
    if isinstance(entry, Loaded):
        if entry.thawed and stored is not None:
            return [] if stored == entry.raw else differences(repr(entry.key), (), None)
        return differences(repr(entry.key), entry.locks(binding, ()), stored)
    if isinstance(entry, Fragment):
        return differences(repr(entry.key), entry.locks, stored)
    return [] if stored is None else [Difference(repr(entry.key), None, None, stored)]

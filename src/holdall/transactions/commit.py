"""The flow that commits a unit: hooks, steps, participants, one write, handlers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from holdall.core.context import Context
from holdall.core.requests import GetItem
from holdall.core.values import Item
from holdall.errors import ContentionError, Difference, HoldallError
from holdall.models.hydrator import Joining, Role
from holdall.models.keys.key import ModelKey
from holdall.models.schema import ModelSchema
from holdall.tables.commit.change import Change, Participant, require_participant
from holdall.tables.commit.explanation import describe_contention, find_refused
from holdall.tables.commit.flow import is_plain_no, prepare, send_plan, settle
from holdall.tables.commit.lock import differences
from holdall.tables.commit.plan import CommitPlan, check_size
from holdall.transactions.binding import Binding, Bindings, bind
from holdall.transactions.entry.base import Entry, Fragment, Missing, New
from holdall.transactions.entry.blind import Blind, BlindDelete, BlindUpdate
from holdall.transactions.entry.loaded import Loaded
from holdall.transactions.plan import check_verifiable, plan_steps
from holdall.transactions.read.expiry import has_expired
from holdall.transactions.read.flow import get_many
from holdall.transactions.read.hydration import hydrate, is_pointer
from holdall.transactions.unit import Unit

_MAX_ROUNDS = 10  # each means that another writer was faster; then it is contention


async def commit(context: Context, unit: Unit, tx: Any) -> None:
    """Write everything that the unit recorded, or nothing; then settle participants and run the handlers.

    Once the write has been sent, this runs to its end, even if the caller is cancelled meanwhile.
    """
    unit.check_open()
    await _call_hooks(context, unit, tx)
    known = context.state.of(Bindings).of_models
    entries = [
        (entry, known.get(entry.key.schema) or await bind(context, entry.key.schema))
        for entry in unit.entries.values()
    ]
    change = Change(context, plan_steps(entries, context.port.now()))
    if unit.read_only:
        if change.plan.writes or unit.participants:
            unit.check_writable("an item was changed in place")
        unit.close()
        await _verify(context, unit, entries)
        unit.may_be_committed = True
        await context.port.finish(settle(context.port, (), *unit.on_commit))
        return
    unit.close()  # changes from now on would not be in the plan
    _add_followers(context, unit, entries)
    plan = change.plan
    own = len(plan.steps)
    if unit.participants:
        check_size(own)  # before they read anything
        change.participants = unit.participants
        plan = await prepare(change, unit.prepared)
    if plan.writes:
        _check_alive(entries, context.port.now())
    await context.port.finish(_send_and_settle(context, unit, entries, plan, own))


def _add_followers(context: Context, unit: Unit, entries: Sequence[tuple[Entry, Binding]]) -> None:
    """Add the participants that the items' descriptors and hydrators provide."""
    run = Joining(unit.participants, unit.carry)
    for entry, binding in entries:
        schema = entry.key.schema
        item = entry.item if isinstance(entry, New | Loaded) else None
        if isinstance(entry, Blind):
            joiners = schema.list_joiners()
        else:
            joiners = [(schema, joiner) for joiner in schema.joiners.values()]
        role = _role(entry) if joiners else None
        if role is not None:
            for owner, joiner in joiners:
                key = entry.key
                if owner is not schema:  # the stored item may be of a derived model
                    key = ModelKey(owner, key.components, key.encoded)
                _join(unit.participants, joiner.participate(key, item, role, run))
        if isinstance(entry, Loaded) and entry.thawed and entry.is_dirty:
            follower = _follow(context, schema, binding, entry.raw, deleted=entry.deleted)
            _join(unit.participants, follower)


def _role(entry: Entry) -> Role | None:
    if isinstance(entry, Missing | Fragment) or (isinstance(entry, New) and entry.deleted):
        return None
    if entry.deleted:
        return "deleted"
    if isinstance(entry, Loaded):
        return "updated" if entry.is_dirty else "read"
    return cast("Role", entry.role)


def _follow(
    context: Context, schema: ModelSchema, binding: Binding, raw: Item, *, deleted: bool
) -> object | None:
    hydrator = schema.hydrator
    if hydrator is None or not hydrator.is_pointer(raw):
        return None
    read = GetItem(binding.table, binding.key_of(raw), True)
    return hydrator.follow(context, read, raw, deleted=deleted)


def _join(participants: list[Participant], found: object | None) -> None:
    if found is not None:
        participants.append(require_participant(found))


async def _call_hooks(context: Context, unit: Unit, tx: Any) -> None:
    """Call each hook once for each item to be written, including those that a hook creates or changes.

    An item's ``before_commit`` follows its other hooks. A hook can change what happens to an item, even to its own.
    """
    called: set[tuple[int, str]] = set()
    waiting = True
    while waiting:
        waiting = False
        for entry in list(unit.entries.values()):
            if not isinstance(entry, New | Loaded) or not entry.item._schema.hooked:
                continue
            name = next((name for name in _list_hooks(entry) if (id(entry), name) not in called), None)
            if name is None:
                continue
            called.add((id(entry), name))
            waiting = True
            unit.hooking = True  # it may change an item that is to be deleted
            try:
                await context.port.call(getattr(entry.item, name), tx)
            finally:
                unit.hooking = False


def _list_hooks(entry: New | Loaded) -> list[str]:
    """The hooks that an item's model defines for what will happen to it, in their order."""
    if not entry.is_dirty if isinstance(entry, Loaded) else entry.deleted:
        return []
    event = "delete" if entry.deleted else "create" if isinstance(entry, New) else "update"
    return [name for name in entry.item._schema.hooked if name in (f"before_{event}", "before_commit")]


def _check_alive(entries: Sequence[tuple[Entry, Binding]], now: datetime) -> None:
    """Raise contention if an item has expired since it was read: other transactions may already treat it as gone.

    Its expiry time is locked as it was read, so the store need not be asked.
    """
    over = [
        Difference(repr(entry.key), None, None, None)
        for entry, binding in entries
        if isinstance(entry, Loaded | Fragment) and entry.takes_part and has_expired(binding, entry.raw, now)
    ]
    if over:
        raise ContentionError(describe_contention(over), differences=over)


async def _send_and_settle(
    context: Context, unit: Unit, entries: Sequence[tuple[Entry, Binding]], plan: CommitPlan, own: int
) -> None:
    """Send the plan, whose first ``own`` steps belong to the unit, then settle and run the handlers."""
    while plan.writes:
        unit.may_be_committed = True
        try:
            await send_plan(context.port, plan)
            break
        except Exception as error:
            if not is_plain_no(error):
                raise
            unit.may_be_committed = False  # until it is sent again
            again = await _replan(context, unit, entries, plan, own, error)
            if again is None:
                raise
            plan, own = again
    unit.may_be_committed = True
    for entry, _ in entries:
        if entry.times:
            entry.settle()
    await settle(context.port, unit.participants, *unit.on_commit)


async def _replan(
    context: Context,
    unit: Unit,
    entries: Sequence[tuple[Entry, Binding]],
    plan: CommitPlan,
    own: int,
    error: Exception,
) -> tuple[CommitPlan, int] | None:
    """A new plan, and how many of its steps are the unit's own, if writes were refused because of the items they met.

    A blind write met a pointer, which is now hydrated; or an update met something stored that it must treat in another
    way. Otherwise None. Each item is hydrated once per attempt; if it changes again, that is contention.
    """
    cause = error.__cause__
    if not isinstance(cause, HoldallError):
        return None
    refused = {
        step.item: found for step, found in find_refused(plan, cause) if isinstance(step.item, ModelKey)
    }
    followers: list[Participant] = []
    again = False
    now = context.port.now()
    for entry, binding in entries:
        if entry.key not in refused:
            continue
        found = refused[entry.key]
        is_over = found is None or has_expired(binding, found, now)
        if isinstance(entry, BlindUpdate) and entry.new is not None and is_over:
            # also a pointer is replaced once it has expired
            again = entry.adapt(binding, found, now) or again
        elif isinstance(entry, Blind) and found is not None and is_pointer(binding, found):
            if entry.pointer is not None:
                continue
            deletes = isinstance(entry, BlindDelete)
            whole = found if deletes and entry.where is None else await hydrate(context, binding, found)
            if whole is None:
                continue
            entry.thaw(found, whole)
            schema = binding.model_of(found) or binding.schema
            _join(followers, _follow(context, schema, binding, found, deleted=deletes))
            again = True
        elif isinstance(entry, BlindUpdate | Loaded) and entry.rounds < _MAX_ROUNDS:
            adapted = entry.adapt(binding, found, now)
            entry.rounds += adapted
            again = again or adapted
    if not again:
        return None
    change = Change(context, plan_steps(entries, context.port.now()))
    steps = len(change.plan.steps)
    change.include(Change(context, plan.steps[own:]))
    change.participants = followers
    complete = await prepare(change, unit.prepared)
    unit.participants += change.participants
    return complete, steps


async def _verify(context: Context, unit: Unit, entries: Sequence[tuple[Entry, Binding]]) -> None:
    """Read all items again, as of one instant; `ContentionError` if what was read was never true at one moment."""
    if unit.requests < 2:
        return
    check_verifiable(entry for entry, _ in entries)
    touched = [(entry, binding) for entry, binding in entries if entry.takes_part]
    reads = [GetItem(binding.table, _key_of(entry, binding), True) for entry, binding in touched]
    now = context.port.now()
    stale = []
    for (entry, binding), raw in zip(touched, await get_many(context, None, reads, True), strict=True):
        stored = None if raw is None or has_expired(binding, raw, now) else raw
        stale += _stale(entry, binding, stored)
    if stale:
        raise ContentionError(describe_contention(stale), differences=stale)


def _key_of(entry: Entry, binding: Binding) -> Item:
    return binding.key_of(entry.raw) if isinstance(entry, Loaded | Fragment) else binding.key(entry.key)


def _stale(entry: Entry, binding: Binding, stored: Item | None) -> list[Difference]:
    if isinstance(entry, Loaded):
        return differences(entry.key, entry.locks(binding, ()), stored)
    if isinstance(entry, Fragment):
        return differences(entry.key, entry.locks, stored)
    return [] if stored is None else [Difference(repr(entry.key), None, None, stored)]

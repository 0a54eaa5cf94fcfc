"""Flows of a worker's hold on a job: find what is due, take it, keep it, and let go of it in one of four ways.

Each is one atomic write, so a worker can die between any two of them: a job that was taken and not ended is taken
again once its lease is over. Every write demands the lease that its worker last wrote. Whoever has lost it, because it
was thought dead, is refused, and can neither end nor prolong what is another's by now.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Literal

from holdall.core.context import Context
from holdall.core.expressions import (
    And,
    Compare,
    Condition,
    Exists,
    NotExists,
    Or,
    Path,
    Remove,
    Set,
    Update,
    UpdateAction,
    Value,
)
from holdall.core.frozen import replace
from holdall.core.requests import (
    DeleteItem,
    Page,
    PutItem,
    TransactAction,
    TransactWrite,
    UpdateItem,
    stamped,
)
from holdall.core.values import Item
from holdall.errors import ConditionFailedError, LeaseLostError, OutcomeUnknown, TransactionCanceledError
from holdall.jobs.enqueuing import guard_item
from holdall.jobs.record import (
    JobRecord,
    Lease,
    buried,
    due_text,
    guard_place,
    job_partition,
    lease_attributes,
    leased,
    retried,
)
from holdall.tables.flow import discover
from holdall.tables.layout import Layout

__all__ = ["Failure", "beat", "bury", "claim", "due_page", "end_actions", "fail", "finish", "release", "take"]

_JOB = Path(("job_id",))
_LEASE = Path(("job_lease",))
_ATTEMPTS = Path(("job_attempts",))
_LEASED = ("job_lease", "job_lease_until", "job_lease_seconds")

Failure = Literal["retried", "dead", "superseded"]
"""What became of a job whose attempt failed; superseded: another with its key waits, and will do its work."""


async def due_page(
    context: Context,
    queue: str,
    shard: str,
    limit: int,
    start_after: Item | None = None,
    *,
    consistent: bool = False,
) -> Page:
    """A page of the jobs in a shard whose time has come, the oldest first, those that run included."""
    layout = await discover(context)
    listing = layout.listing(job_partition(queue, shard), before=f"{due_text(context.port.now())}$")
    strong = consistent and layout.index is None
    return await context.port.send(replace(listing, limit=limit, start_after=start_after, consistent=strong))


async def claim(context: Context, record: JobRecord, seconds: float) -> JobRecord | None:
    """Take a job, free or with the lease that it was seen with; None when somebody else was faster."""
    taken = leased(record, context.port.new_id(), context.port.now(), seconds)
    return taken if await take(context, record, taken) else None


async def take(context: Context, record: JobRecord, taken: JobRecord) -> bool:
    """Write the lease of a job that is being taken; False if another worker was faster."""
    layout = await discover(context)
    port = context.port
    assert taken.lease is not None
    free: Condition = NotExists(_LEASE) if record.lease is None else _held(record.lease)
    sets = [
        *_lease_sets(taken.lease),
        Set(_ATTEMPTS, Value({"N": str(taken.attempts)})),
    ]
    update = UpdateItem(
        layout.table,
        record.stored_key(layout),
        Update(tuple(sets)),
        And((Exists(_JOB), free, *_unmoved(layout, record))),
        item_on_failure=True,
    )
    try:
        if record.key is not None and record.once_for is None and record.lease is None:
            # its key is free from here on: what is enqueued now may be about what it can no longer see
            await port.send(TransactWrite((update, _freed(layout, record)), port.new_id()))
        else:
            await port.send(stamped(update, taken.lease.token))  # as unique as any stamp
    except (ConditionFailedError, TransactionCanceledError) as error:
        if isinstance(error, TransactionCanceledError) and error.retryable:
            raise
        return False
    return True


def _unmoved(layout: Layout, record: JobRecord) -> list[Condition]:
    """That a job is where it was found. An index lags behind: it may be due later by now, or dead."""
    if layout.index is None:
        return []
    key = record.listed_key(layout)
    return [Compare("=", Path((name,)), Value(attribute)) for name, attribute in key.items()]


def _freed(layout: Layout, record: JobRecord) -> TransactAction:
    assert record.key is not None
    mine = Or((NotExists(_JOB), Compare("=", _JOB, Value({"S": record.id}))))
    return DeleteItem(layout.table, layout.key(*guard_place(record.name, record.key)), mine)


async def beat(context: Context, record: JobRecord, token: str, known: Collection[str]) -> JobRecord:
    """Prolong a lease, under another token; `LeaseLostError` when it is no longer ours.

    ``known`` are the tokens that it may have: a second one when the fate of the last beat is unknown.
    """
    layout = await discover(context)
    lease = record.lease
    assert lease is not None
    port = context.port
    longer = Lease(token, port.now() + timedelta(seconds=lease.seconds), lease.seconds)
    update = UpdateItem(
        layout.table, record.stored_key(layout), Update(tuple(_lease_sets(longer))), _any_of(known)
    )
    try:
        await port.send(stamped(update, token))
    except ConditionFailedError:
        raise _lost(record) from None
    return replace(record, lease=longer)


async def finish(context: Context, record: JobRecord) -> None:
    """The job is done, and gone; `LeaseLostError` when it was no longer ours to end."""
    layout = await discover(context)
    actions = end_actions(layout, record, context.port.now())
    if len(actions) > 1:
        return await _ended(context, record, actions)
    (delete,) = actions
    try:
        await context.port.send(delete)
    except OutcomeUnknown:
        try:
            await context.port.send(delete)
        except ConditionFailedError as error:
            if error.item is not None:
                raise _lost(record) from None  # gone means that the first was carried out
    except ConditionFailedError:
        raise _lost(record) from None


def end_actions(
    layout: Layout, record: JobRecord, now: datetime, known: Collection[str] = ()
) -> tuple[Any, ...]:
    """What ends a job that succeeded: its deletion, and a key that is remembered for a while.

    ``known`` are the tokens that its lease may have, where there may be more than the record's.
    """
    ours = _any_of(known) if known else _ours(record)
    delete = DeleteItem(layout.table, record.stored_key(layout), ours, item_on_failure=True)
    if record.key is None or record.once_for is None:
        return (delete,)
    until = now + timedelta(seconds=record.once_for)
    return (delete, PutItem(layout.table, guard_item(layout, record.name, record.key, record.id, until)))


async def fail(context: Context, record: JobRecord, error: str, delay: float) -> Failure:
    """Let a job wait for another attempt."""
    layout = await discover(context)
    later = retried(record, context.port.now() + timedelta(seconds=delay), error)
    move = _moved(layout, record, later)
    if record.key is None or record.once_for is not None:
        await _ended(context, record, move)
        return "retried"
    return await _ended_with_key(context, layout, record, move)


async def bury(context: Context, record: JobRecord, error: str) -> None:
    """Give a job up: it is kept among the dead, its key is free."""
    layout = await discover(context)
    move = _moved(layout, record, buried(record, context.port.now(), error))
    if record.key is not None and record.once_for is not None:
        move = (*move, _freed(layout, record))
    await _ended(context, record, move)


async def release(context: Context, record: JobRecord) -> Failure:
    """Give a job back that was begun and not ended, as if it had never been taken, its key included."""
    layout = await discover(context)
    removes: list[UpdateAction] = [Remove(Path((name,))) for name in _LEASED]
    count = Set(_ATTEMPTS, Value({"N": str(record.attempts - 1)}))
    update = UpdateItem(layout.table, record.stored_key(layout), Update((count, *removes)), _ours(record))
    if record.key is not None and record.once_for is None:
        return await _ended_with_key(context, layout, record, (update,))
    try:
        await context.port.send(stamped(update, context.port.new_id()))
    except ConditionFailedError:
        raise _lost(record) from None
    return "retried"


# --- pieces -----------------------------------------------------------------------------------------------


class _KeyTakenError(Exception):
    """Another job holds the key."""


async def _ended_with_key(
    context: Context, layout: Layout, record: JobRecord, actions: tuple[TransactAction, ...]
) -> Failure:
    """Let go of a job that is to wait again, and so needs its key back; if another has that, it is not needed."""
    assert record.key is not None
    guard = guard_item(layout, record.name, record.key, record.id)
    taken = PutItem(layout.table, guard, NotExists(_JOB))
    try:
        await _ended(context, record, (*actions, taken), key_at=len(actions))
    except _KeyTakenError:
        await finish(context, record)
        return "superseded"
    return "retried"


async def _ended(
    context: Context, record: JobRecord, actions: tuple[TransactAction, ...], key_at: int | None = None
) -> None:
    """Send what lets go of a job, as one write."""
    try:
        await context.port.send(TransactWrite(actions, context.port.new_id()))
    except TransactionCanceledError as error:
        codes = [reason.code for reason in error.reasons]
        if codes and codes[0] == "ConditionalCheckFailed":
            raise _lost(record) from None
        if key_at is not None and len(codes) > key_at and codes[key_at] == "ConditionalCheckFailed":
            raise _KeyTakenError from None
        raise


def _moved(layout: Layout, record: JobRecord, later: JobRecord) -> tuple[TransactAction, ...]:
    """The job under another key; where its key stays the same, in place."""
    ours = _ours(record)
    if record.stored_key(layout) == later.stored_key(layout):
        return (PutItem(layout.table, later.item(layout), ours, item_on_failure=True),)
    delete = DeleteItem(layout.table, record.stored_key(layout), ours, item_on_failure=True)
    return (delete, PutItem(layout.table, later.item(layout), NotExists(_JOB)))


def _lease_sets(lease: Lease) -> list[UpdateAction]:
    return [Set(Path((name,)), Value(attribute)) for name, attribute in lease_attributes(lease).items()]


def _held(lease: Lease) -> Condition:
    return Compare("=", _LEASE, Value({"S": lease.token}))


def _any_of(tokens: Collection[str]) -> Condition:
    held = [Compare("=", _LEASE, Value({"S": token})) for token in tokens]
    return held[0] if len(held) == 1 else Or(tuple(held))


def _ours(record: JobRecord) -> Condition:
    assert record.lease is not None
    return _held(record.lease)


def _lost(record: JobRecord) -> LeaseLostError:
    return LeaseLostError(
        f"the lease on the job {record.name} {record.id} was lost, and another worker may have it",
        hint="its process was held up for longer than the lease; make leases longer",
    )

"""Quarantine: an item that is stored under a job's key but cannot be read as a job is moved to the dead jobs.

Otherwise every worker would find it at every poll. The dead job has the reason as its error and the whole item as
``job_raw``. One write moves it, so a process that dies before or after that write leaves either the item or the dead
job; the write demands that the item is unchanged, so an item that was repaired meanwhile stays.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from holdall.core.context import Context
from holdall.core.expressions import And, Compare, Condition, NotExists, Path, Value
from holdall.core.requests import DeleteItem, GetItem, PutItem, TransactAction, TransactWrite
from holdall.core.values import Item
from holdall.errors import HoldallError, MalformedJobError, OutcomeUnknown, TransactionCanceledError
from holdall.jobs.declaration import is_name
from holdall.jobs.enqueuing import add_queue
from holdall.jobs.record import JobRecord, guard_place, record_of
from holdall.tables.flow import discover
from holdall.tables.layout import Layout

__all__ = ["read_jobs"]

logger = logging.getLogger("holdall.jobs")

_NAMELESS = "malformed"
_REQUIRED = ("job_id", "job_name", "job_args", "job_at", "job_due")
_MOST_COMPARED = 50
_LONGEST_ID = 100
_JOB = Path(("job_id",))


async def read_jobs(context: Context, items: Sequence[Item]) -> tuple[list[JobRecord], list[JobRecord]]:
    """The jobs read from items, and the dead jobs that malformed items were moved to."""
    layout = await discover(context)
    found: list[JobRecord] = []
    moved: list[JobRecord] = []
    for item in items:
        try:
            found.append(record_of(layout, item))
        except MalformedJobError as error:
            record = await _quarantine(context, layout, item, error)
            if record is not None:
                moved.append(record)
    return found, moved


async def _quarantine(
    context: Context, layout: Layout, item: Item, error: MalformedJobError
) -> JobRecord | None:
    """Move an item to the dead jobs; None if it stays where it is, so that the next poll tries again."""
    record = _bury(context, layout, item, error.message)
    try:
        await add_queue(context, layout, record.queue)
        await context.port.send(
            TransactWrite(await _plan(context, layout, item, record), context.port.new_id())
        )
    except (OutcomeUnknown, TransactionCanceledError):
        return None  # another process was faster, or the next poll shows what happened
    except HoldallError as problem:
        if problem.retryable:
            return None
        logger.warning("%s; it stays in its queue (%s)", error.message, problem.code)
        return None
    return record


def _bury(context: Context, layout: Layout, item: Item, reason: str) -> JobRecord:
    """The dead job for an item, with as many of its attributes as can be read."""
    _, _, queue, shard = layout.logical(item)[0].split("#")
    id, name, arguments = (item.get(each, {}).get("S") for each in ("job_id", "job_name", "job_args"))
    if not id or id[0] != shard or len(id) > _LONGEST_ID:
        id = shard + context.port.new_id()[1:]
    now = context.port.now()
    return JobRecord(
        id,
        name if name and is_name(name) else _NAMELESS,
        queue,
        arguments if arguments and arguments[0] == "[" else "[]",
        now,
        now,
        error=reason,
        died=now,
        raw=item,
    )


async def _plan(
    context: Context, layout: Layout, item: Item, record: JobRecord
) -> tuple[TransactAction, ...]:
    """The move, and the release of the key that the item holds."""
    key = layout.key_of(item)
    put = PutItem(layout.table, record.item(layout), NotExists(_JOB))
    move: tuple[TransactAction, ...] = (DeleteItem(layout.table, key, _require_unchanged(item)), put)
    if record.stored_key(layout) == key:
        move = (PutItem(layout.table, put.item, _require_unchanged(item)),)
    held = item.get("job_key", {}).get("S")
    if not held or record.name == _NAMELESS:
        return move
    place = layout.key(*guard_place(record.name, held))
    guard = (await context.port.send(GetItem(layout.table, place, True))).item
    if guard is None or guard.get("job_id") != item.get("job_id"):
        return move
    return (*move, DeleteItem(layout.table, place, Compare("=", _JOB, Value(guard["job_id"]))))


def _require_unchanged(item: Item) -> Condition:
    """That an item is unchanged; if it has very many attributes, that the first of them are."""
    seen = list(item.items())[:_MOST_COMPARED]
    same: list[Condition] = [Compare("=", Path((name,)), Value(attribute)) for name, attribute in seen]
    absent = [NotExists(Path((name,))) for name in _REQUIRED if name not in item]
    return And((*same, *absent))

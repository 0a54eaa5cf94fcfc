"""Quarantine: an item that is stored in the place of a job, but cannot be read as one, is moved to the dead jobs.

Otherwise every worker would find it at every poll. The dead job has the reason as its error and the whole item as
``job_raw``. One write moves the item, so a process that dies leaves either the item or the dead job. The write demands
that the item is unchanged, so an item that was repaired meanwhile stays in its queue.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from holdall.core.context import Context
from holdall.core.values import Item
from holdall.errors import HoldallError, MalformedJobError, OutcomeUnknown
from holdall.jobs.declaration import is_name
from holdall.jobs.lease import move_job
from holdall.jobs.outbox import register_queues
from holdall.jobs.record import JobItem, JobKey, JobRecord, decode_job, fits_key, locate_key
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.flow import discover
from holdall.tables.layout import Layout
from holdall.tables.record import fetch
from holdall.tables.record_column import RecordColumn, raw

logger = logging.getLogger("holdall.jobs")

_NAMELESS = "malformed"
_REQUIRED = (JobItem.id, JobItem.name, JobItem.arguments, JobItem.enqueued, JobItem.due)
_MOST_COMPARED = 50
_LONGEST_ID = 100


async def read_jobs(context: Context, items: Sequence[Item]) -> tuple[list[JobRecord], list[JobRecord]]:
    """The jobs read from items, and the dead jobs that malformed items were moved to."""
    layout = await discover(context)
    found: list[JobRecord] = []
    moved: list[JobRecord] = []
    for item in items:
        try:
            found.append(decode_job(layout, item))
        except MalformedJobError as error:
            record = await _quarantine(context, layout, item, error)
            if record is not None:
                moved.append(record)
    return found, moved


def decode_jobs(
    context: Context, layout: Layout, items: Sequence[Item]
) -> tuple[list[JobRecord], list[JobRecord]]:
    """The jobs read from items, and the dead jobs that malformed items would be moved to; nothing is moved."""
    found: list[JobRecord] = []
    malformed: list[JobRecord] = []
    for item in items:
        try:
            found.append(decode_job(layout, item))
        except MalformedJobError as error:
            malformed.append(_bury(context, layout, item, error.message))
    return found, malformed


async def _quarantine(
    context: Context, layout: Layout, item: Item, error: MalformedJobError
) -> JobRecord | None:
    """Move an item to the dead jobs; None if it stays where it is, so that the next poll tries again."""
    record = _bury(context, layout, item, error.message)
    change = Change(context)
    source = JobItem(layout.address_of(item), item)
    # compared with what was read; if there are very many attributes, only the first of them
    seen = [*list(item)[:_MOST_COMPARED], *(column.name for column in _REQUIRED if column.name not in item)]
    move_job(change, layout, source.address, record, expect=[source.same(*map(raw, seen))])
    try:
        held = _try_read(JobItem.key, item)
        if held and fits_key(held) and record.name != _NAMELESS:
            key = await fetch(context.port, JobKey(locate_key(layout, record.name, held)))
            if key.is_stored and key.job == _try_read(JobItem.id, item):
                change.delete(key, expect=[key.same(JobKey.job)])
        await register_queues(context, [record.queue])
        refused = await commit_once(change)
    except HoldallError as problem:
        if not (problem.retryable or isinstance(problem, OutcomeUnknown)):
            logger.warning("%s; the item stays in its queue (%s)", error.message, problem.code)
        return None  # the next poll shows what happened
    return record if refused is None else None


def _bury(context: Context, layout: Layout, item: Item, reason: str) -> JobRecord:
    """The dead job for an item, with as many of its attributes as can be read."""
    h, r = layout.logical(item)
    _, _, queue, shard = h.split("#")
    name, arguments = _try_read(JobItem.name, item), _try_read(JobItem.arguments, item)
    ids = (_try_read(JobItem.id, item) or "", r.partition("#")[2])
    id = next((each for each in ids if each[:1] == shard and len(each) <= _LONGEST_ID), None)
    if id is None:
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


def _try_read(column: RecordColumn[str] | RecordColumn[str | None], item: Item) -> str | None:
    """An attribute, None if it is absent or malformed."""
    try:
        return column.read(item)
    except (KeyError, ValueError):
        return None

"""Recurring jobs: the flow that sees to it that the next occurrence is in the queue, once, whoever asks.

All workers compute the same occurrences from the same declaration, and none coordinates them: each occurrence has a
mark of its own, and the write that enqueues it demands that there is none yet. So a worker whose clock is wrong may
enqueue one too early, which then waits for its time, but cannot have one left out or run twice. The job waits in its
queue like any other that is delayed, so an occurrence is not lost when no worker runs at its time; of several that
passed meanwhile there is one. Marks expire by the table's TTL.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdall.core.context import Context
from holdall.core.expressions import NotExists, Path
from holdall.core.requests import PutItem, TransactWrite
from holdall.errors import TransactionCanceledError
from holdall.jobs.declaration import Job
from holdall.jobs.enqueuing import add_queue
from holdall.jobs.record import JobRecord, occurrence_place
from holdall.tables.flow import discover

__all__ = ["enqueue_next"]

_KEPT = 7 * 24 * 3600
"""Seconds that a mark outlives its occurrence: more than any clock is wrong for."""


async def enqueue_next(context: Context, job: Job[*tuple[Any, ...]]) -> datetime:
    """Enqueue a recurring job's next occurrence, unless somebody has; gives when that is."""
    assert job.schedule is not None
    layout = await discover(context)
    port = context.port
    now = port.now()
    due = job.schedule.next_after(now)
    queue = job.options.queue
    await add_queue(context, layout, queue)
    record = JobRecord(port.new_id(), job.name, queue, "[]", due, now)
    mark = {
        **layout.attributes(*occurrence_place(job.name, job.schedule.text, due)),
        "_type": {"S": "holdall.Occurrence"},
        "job_id": {"S": record.id},
        "_ttl": {"N": str(int(due.timestamp()) + _KEPT)},
    }
    new = NotExists(Path(("job_id",)))
    actions = (PutItem(layout.table, mark, new), PutItem(layout.table, record.item(layout), new))
    try:
        await port.send(TransactWrite(actions, port.new_id()))
    except TransactionCanceledError as error:
        if error.retryable:
            raise
    return due

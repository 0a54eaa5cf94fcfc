"""Occurrences of recurring jobs: the flow that enqueues the next one, once, however many workers ask.

All workers compute the same occurrences from the same declaration, and none coordinates them: each occurrence has an
item of its own, and the write that enqueues it demands that there is none yet. So a worker whose clock is wrong may
enqueue one too early, which then waits for its time, but cannot have one left out or run twice. The job waits in its
queue like any other that is delayed, so an occurrence is not lost when no worker runs at its time; of several that
passed meanwhile there is one. Their items expire by the table's TTL.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdall.core.context import Context
from holdall.jobs.declaration import Job
from holdall.jobs.outbox import register_queues
from holdall.jobs.record import JobRecord, Occurrence, encode_job, locate_occurrence
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.flow import discover

_KEPT = 7 * 24 * 3600
"""Seconds that an occurrence's item outlives it: more than any clock is wrong for."""


async def enqueue_next(context: Context, job: Job[*tuple[Any, ...]]) -> datetime:
    """Enqueue a recurring job's next occurrence, unless another worker has; return when that is."""
    assert job.schedule is not None
    layout, port = await discover(context), context.port
    now = port.now()
    due = job.schedule.next_after(now)
    await register_queues(context, [job.options.queue])
    record = JobRecord(port.new_id(), job.name, job.options.queue, "[]", due, now)
    change = Change(context)
    change.create(
        Occurrence.new(
            locate_occurrence(layout, job.name, job.schedule.text, due),
            Occurrence.job.set(record.id),
            Occurrence.expires.set(int(due.timestamp()) + _KEPT),
        )
    )
    change.create(encode_job(layout, record))
    await commit_once(change)  # a refusal means that another worker was faster
    return due

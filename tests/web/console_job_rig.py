"""Jobs for the tests of the console, stored as workers would leave them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from holdall import Database
from holdall.core import PutItem
from holdall.jobs import JobRecord, Lease
from holdall.jobs.record import encode_job

__all__ = ["ERROR", "store_job", "store_jobs", "store_malformed"]

ERROR = "Traceback (most recent call last):\n  File <shop>\nValueError: the card was refused"


def store_job(db: Database, **given: Any) -> JobRecord:
    """Store a waiting job; pass ``lease``, ``died`` or other fields of `JobRecord` for another state."""
    now = datetime.now(UTC)
    values = {
        "name": "send-receipt",
        "queue": "default",
        "arguments": '["ada",17]',
        "due": now,
        "enqueued": now,
    }
    record = JobRecord(uuid4().hex, **{**values, **given})
    layout = db.table.layout()
    db.send(PutItem(layout.table, encode_job(layout, record).stored))
    return record


def store_jobs(db: Database) -> dict[str, JobRecord]:
    """Store a job in each state, in two queues."""
    now = datetime.now(UTC)
    db.jobs.enqueue("make-report", "2026-10", key="report-2026-10", queue="slow", delay=3600)
    db.jobs.enqueue("send-receipt", "grace", 18)
    return {
        "waiting": db.jobs.list(name="make-report")[0],
        "running": store_job(db, attempts=1, lease=Lease("x", now + timedelta(seconds=30), 30.0)),
        "dead": store_job(db, attempts=11, error=ERROR, died=now),
        "paused": store_job(db, name="charge-later", due=now + timedelta(hours=1), attempts=2, paused=True),
    }


def store_malformed(
    db: Database, queue: str = "default", died: datetime | None = None, **attributes: Any
) -> JobRecord:
    """Store an item under a job's key (a dead job's, given ``died``) that cannot be decoded as a job."""
    db.jobs.enqueue("another", queue=queue)
    job = store_job(db, queue=queue, died=died)
    layout = db.table.layout()
    stored = encode_job(layout, job).stored
    db.send(PutItem(layout.table, {**stored, "job_args": {"S": '{"no": "list"}'}, **attributes}))
    return job

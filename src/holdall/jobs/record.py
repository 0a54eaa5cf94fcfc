"""Jobs as they are stored: their items, and the keys of these items.

Pure. A waiting or running job is one item in one of the sixteen shards of its queue, chosen by its random id, and
sorted by the time it is due: ``holdall#Job#<queue>#<0..f>`` / ``<due>#<id>``. Running a job does not move its item,
which then carries the worker's lease. A job that failed for good is stored under ``holdall#DeadJob#…`` /
``<died>#<id>``, and a paused job under ``holdall#PausedJob#…`` / ``<due>#<id>``; workers read neither. The item of a
job's key is ``holdall#JobKey#<job>#<key>``, that of an occurrence of a recurring job ``holdall#Schedule#<job>`` /
``<schedule>#<due>``, and the name of a queue is in ``holdall#Queues`` / ``<queue>``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from holdall.core.frozen import dataclass, replace
from holdall.core.keys import format_moment
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError, MalformedJobError
from holdall.tables.layout import Address, Layout
from holdall.tables.record import Record
from holdall.tables.record_column import RecordColumn, inner_item, number, real, text

SHARDS = "0123456789abcdef"
QUEUES = "holdall#Queues"
_LONGEST_NAME = 100
_LONGEST_KEY = 500
_PAUSED = "PausedJob"

JobState: TypeAlias = Literal["waiting", "running", "dead", "paused"]
"""``waiting`` (including for its time), ``running`` (a worker holds it, or held it and died), ``dead`` (given up) or
``paused`` (no worker takes it until it is resumed)."""

_KINDS: dict[JobState, str] = {"waiting": "Job", "running": "Job", "dead": "DeadJob", "paused": _PAUSED}
"""What the partitions of jobs in each state are called."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's hold on a job. ``token`` changes with each heartbeat; ``until`` is in that worker's clock."""

    token: str
    until: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A stored job. ``arguments`` is their JSON text; ``attempts`` is how many attempts have begun.

    ``raw`` is set on a dead job that stands for an item that cannot be read as a job: it is that item.
    """

    id: str
    name: str
    queue: str
    arguments: str
    due: datetime
    enqueued: datetime
    attempts: int = 0
    key: str | None = None
    once_for: float | None = None
    lease: Lease | None = None
    error: str | None = None
    died: datetime | None = None
    raw: Item | None = None
    paused: bool = False

    @property
    def state(self) -> JobState:
        """Whether the job is waiting, running, dead or paused."""
        if self.died is not None:
            return "dead"
        if self.paused:
            return "paused"
        return "waiting" if self.lease is None else "running"


def lend_job(job: JobRecord, token: str, now: datetime, seconds: float) -> JobRecord:
    """The job with a worker's lease, one attempt later."""
    lease = Lease(token, now + timedelta(seconds=seconds), seconds)
    return replace(job, lease=lease, attempts=job.attempts + 1)


def postpone_job(job: JobRecord, due: datetime, error: str | None) -> JobRecord:
    """The job, waiting for another attempt."""
    return replace(job, due=due, lease=None, error=error, died=None, paused=False)


def bury_job(job: JobRecord, now: datetime, error: str) -> JobRecord:
    """The job as a dead one, after its last attempt."""
    return replace(job, lease=None, error=error, died=now)


# --- stored items -----------------------------------------------------------------------------------------


def _parse_moment(text: str) -> datetime:
    return datetime.fromisoformat(text[:-1]).replace(tzinfo=UTC)


def _moment(name: str, *default: None) -> RecordColumn[Any]:
    return text(name, *default).through(format_moment, _parse_moment)


class JobItem(Record, type="holdall.Job"):
    """A job, waiting, running or dead. The key of a dead job has the time it died; ``due`` is when it was due."""

    id = text("job_id")
    name = text("job_name")
    arguments = text("job_args")
    enqueued: RecordColumn[datetime] = _moment("job_at")
    attempts = number("job_attempts", 0)
    key = text("job_key", None)
    once_for = real("job_once_for", None)
    lease = text("job_lease", None)
    lease_until: RecordColumn[datetime] = _moment("job_lease_until")
    lease_seconds = real("job_lease_seconds")
    error = text("job_error", None)
    due: RecordColumn[datetime | None] = _moment("job_due", None)
    raw = inner_item("job_raw")


class JobKey(Record, type="holdall.JobKey"):
    """Keeps out other jobs with the same key: while ``job`` has the key, or ``until`` some time after its success."""

    job = text("job_id")
    until: RecordColumn[datetime | None] = _moment("job_until", None)
    expires = number("_ttl", None)

    @classmethod
    def of(cls, layout: Layout, job: JobRecord, until: datetime | None = None) -> JobKey:
        """The key of a job that has one."""
        assert job.key is not None
        address = locate_key(layout, job.name, job.key)
        if until is None:
            return cls.new(address, cls.job.set(job.id))
        expires = cls.expires.set(int(until.timestamp()) + 1)
        return cls.new(address, cls.job.set(job.id), cls.until.set(until), expires)


class Occurrence(Record, type="holdall.Occurrence"):
    """Marks an occurrence of a recurring job as enqueued, so that no other worker enqueues it."""

    job = text("job_id")
    expires = number("_ttl")


class Queue(Record, type="holdall.Queue"):
    """Marks that a queue exists."""


LEASE: tuple[RecordColumn[Any], ...] = (JobItem.lease, JobItem.lease_until, JobItem.lease_seconds)
"""The attributes of a lease."""

_REQUIRED: tuple[RecordColumn[Any], ...] = (JobItem.id, JobItem.name, JobItem.arguments, JobItem.enqueued)
_OPTIONAL: tuple[RecordColumn[Any], ...] = (
    *(JobItem.attempts, JobItem.key, JobItem.once_for, JobItem.error, JobItem.due, JobItem.raw),
)
_COLUMNS = (*_REQUIRED, *_OPTIONAL)


def encode_job(layout: Layout, job: JobRecord) -> JobItem:
    """The item that stores a job."""
    due = None if job.died is None else job.due
    required = job.id, job.name, job.arguments, job.enqueued
    optional = job.attempts or None, job.key, job.once_for, job.error, due, job.raw
    values = zip(_COLUMNS, (*required, *optional), strict=True)
    stored = {column.name: column.encode(value) for column, value in values if value is not None}
    if job.lease is not None:
        stored |= {column.name: column.encode(value) for column, value in lease_values(job.lease)}
    return JobItem.new(locate_job(layout, job), **stored)


def lease_values(lease: Lease) -> Iterable[tuple[RecordColumn[Any], Any]]:
    """A lease as columns and values of its job's item."""
    return zip(LEASE, (lease.token, lease.until, lease.seconds), strict=True)


def decode_job(layout: Layout, item: Item) -> JobRecord:
    """The job that an item stores; `MalformedJobError` if it is not a job."""
    h, r = layout.logical(item)
    try:
        job = _parse(h, r, item)
        if not locate_job(layout, job).attributes.items() <= item.items():
            raise ValueError("its key does not match the job in it")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise MalformedJobError(
            f"the item {h!r:.120} / {r!r:.160} is not a job: {why}",
            hint="workers move such items to the dead jobs: `holdall jobs list --state dead`",
        ) from None
    return job


def _parse(h: str, r: str, item: Item) -> JobRecord:
    kind, queue = h.split("#")[1:3]
    when = _parse_moment(r.partition("#")[0])
    id, name, arguments, enqueued = [column.read(item) for column in _REQUIRED]
    if not id or not name:
        raise ValueError("its id or its name is empty")
    if arguments[:1] != "[":
        raise ValueError(f"{JobItem.arguments.name} is not a JSON list")
    attempts, key, once_for, error, due, raw = [
        column.read(item) if column.name in item else None for column in _OPTIONAL
    ]
    if len(name) > _LONGEST_NAME or not fits_key(key or ""):
        raise ValueError("its name or its key is too long")
    lease = None
    if LEASE[0].name in item:
        lease = Lease(*[column.read(item) for column in LEASE])
    died = when if kind == "DeadJob" else None
    if died is None:
        due = when
    elif due is None:
        raise KeyError(JobItem.due.name)
    return JobRecord(
        *(id, name, queue, arguments, due, enqueued, attempts or 0, key, once_for, lease, error, died, raw),
        paused=kind == _PAUSED,
    )


def pause_item(item: Item, partition: str) -> Item | None:
    """The item of a waiting or running job as that of a paused one, without a lease; None for any other item.

    ``partition`` is the attribute that holds the partition key. The item is not checked: it may be malformed.
    """
    text = item[partition].get("S", "")
    if not text.startswith("holdall#Job#"):
        return None
    lease = {column.name for column in LEASE}
    kept = {name: attribute for name, attribute in item.items() if name not in lease}
    return {**kept, partition: {"S": f"holdall#{_PAUSED}#{text.removeprefix('holdall#Job#')}"}}


# --- where they are ---------------------------------------------------------------------------------------


def shard_of(id: str) -> str:
    """The shard of a job: the first digit of its id, which is random."""
    return id[0]


def job_partition(queue: str, shard: str) -> str:
    """The partition of the waiting and running jobs of a queue's shard."""
    return f"holdall#Job#{queue}#{shard}"


def partitions(queue: str, states: Iterable[JobState], shards: str = SHARDS) -> list[str]:
    """All partitions that hold a queue's jobs in these states."""
    kinds = dict.fromkeys(_KINDS[state] for state in states)
    return [f"holdall#{kind}#{queue}#{shard}" for shard in shards for kind in kinds]


def list_homes(queue: str, id: str) -> list[str]:
    """The partitions that can hold a job of a queue."""
    return partitions(queue, _KINDS, shard_of(id))


def locate_job(layout: Layout, job: JobRecord) -> Address:
    """Where a job is stored."""
    kind, when = (_PAUSED if job.paused else "Job", job.due) if job.died is None else ("DeadJob", job.died)
    return locate_job_in(layout, f"holdall#{kind}#{job.queue}#{job.id[0]}", when, job.id)


def locate_job_in(layout: Layout, partition: str, when: datetime, id: str) -> Address:
    """Where a job that is due, or died, at a time is stored in a partition."""
    return layout.address(partition, f"{format_moment(when)}#{id}", f"holdall.Job#{id}")


def locate_key(layout: Layout, name: str, key: str) -> Address:
    """Where the key of a job of this name is stored."""
    h = f"holdall#JobKey#{name}#{quote(key, safe='')}"
    return layout.address(h, "#", h)


def locate_occurrence(layout: Layout, name: str, schedule: str, due: datetime) -> Address:
    """Where an occurrence of a recurring job is stored."""
    h, r = f"holdall#Schedule#{name}", f"{schedule}#{format_moment(due)}"
    return layout.address(h, r, f"{h}#{r}")


def locate_queue(layout: Layout, queue: str) -> Address:
    """Where the name of a queue is stored."""
    return layout.address(QUEUES, queue, f"{QUEUES}#{queue}")


def fits_key(key: str) -> bool:
    """Whether a key is short enough for a job."""
    return len(key.encode()) <= _LONGEST_KEY


def check_key(key: object) -> None:
    """Refuse a key that a job cannot have."""
    try:
        if isinstance(key, str) and key and fits_key(key):
            return
    except UnicodeEncodeError:
        pass
    raise InvalidOptionsError(
        f"{key!r:.60} is not a valid key for a job", hint=f"use text of 1 to {_LONGEST_KEY} bytes"
    )

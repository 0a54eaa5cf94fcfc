"""Jobs as they are stored: their items, and the keys these are found under.

Pure. A waiting or running job is one item in one of sixteen shards of its queue, chosen by its random id, in the
order of when it is due: ``holdall#Job#<queue>#<0..f>`` / ``<due>#<id>``. Running it does not move it: a lease on the
item says that somebody has it. A job that failed for good is under ``holdall#DeadJob#…`` / ``<died>#<id>``, out of the
workers' sight. A key's guard is ``holdall#JobKey#<job>#<key>``, the mark of an occurrence of a recurring job
``holdall#Schedule#<job>`` / ``<schedule>#<due>``, the names of all queues ``holdall#Queues`` / ``<queue>``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias
from urllib.parse import quote

from holdall.core.frozen import dataclass, replace
from holdall.core.values import Attribute, Item
from holdall.errors import InvalidOptionsError, MalformedJobError
from holdall.tables.layout import Layout

__all__ = [
    "SHARDS",
    "JobRecord",
    "JobState",
    "Lease",
    "dead_partition",
    "due_text",
    "guard_place",
    "job_partition",
    "occurrence_place",
    "queue_place",
    "record_of",
    "shard_of",
]

SHARDS = "0123456789abcdef"
TYPE = "holdall.Job"
QUEUES = "holdall#Queues"
_LONGEST_KEY = 500

Place: TypeAlias = tuple[str, str, str]
"""An item's H, R and item_id."""

JobState: TypeAlias = Literal["waiting", "running", "dead"]
"""``waiting`` (also for its time to come), ``running`` (a worker has it, or had and died) or ``dead`` (given up)."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's hold on a job: ``token`` changes with each heartbeat, ``until`` is by that worker's clock."""

    token: str
    until: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A stored job. ``arguments`` is their text; ``attempts`` counts those that have begun.

    ``raw`` is an item that was stored under a job's key and could not be read as a job; such a record is dead.
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

    @property
    def state(self) -> JobState:
        """What it is doing."""
        if self.died is not None:
            return "dead"
        return "waiting" if self.lease is None else "running"

    def stored_key(self, layout: Layout) -> dict[str, Attribute]:
        """Its key in the table."""
        return layout.key(*self._place)

    def position(self, layout: Layout) -> dict[str, Attribute]:
        """Its place in the listing of its shard, for a query to start after it."""
        return layout.attributes(*self._place)

    def listed_key(self, layout: Layout) -> dict[str, Attribute]:
        """Its key in the index by which it is found; nothing where it is found by its key in the table."""
        key = self.stored_key(layout)
        found = layout.attributes(*self._place)
        return {name: attribute for name, attribute in found.items() if name not in key}

    def item(self, layout: Layout) -> dict[str, Attribute]:
        """The whole item."""
        item: dict[str, Attribute] = {
            **layout.attributes(*self._place),
            "_type": {"S": TYPE},
            "job_id": {"S": self.id},
            "job_name": {"S": self.name},
            "job_args": {"S": self.arguments},
            "job_at": {"S": due_text(self.enqueued)},
        }
        if self.attempts:
            item["job_attempts"] = {"N": str(self.attempts)}
        if self.key is not None:
            item["job_key"] = {"S": self.key}
        if self.once_for is not None:
            item["job_once_for"] = {"N": _number(self.once_for)}
        if self.lease is not None:
            item |= lease_attributes(self.lease)
        if self.error is not None:
            item["job_error"] = {"S": self.error}
        if self.died is not None:
            item["job_due"] = {"S": due_text(self.due)}  # its place tells when it died
        if self.raw is not None:
            item["job_raw"] = {"M": self.raw}
        return item

    @property
    def _place(self) -> Place:
        item_id = f"{TYPE}#{self.id}"
        if self.died is not None:
            return dead_partition(self.queue, shard_of(self.id)), f"{due_text(self.died)}#{self.id}", item_id
        return job_partition(self.queue, shard_of(self.id)), f"{due_text(self.due)}#{self.id}", item_id


def lease_attributes(lease: Lease) -> dict[str, Attribute]:
    """A lease as it stands in its job's item."""
    return {
        "job_lease": {"S": lease.token},
        "job_lease_until": {"S": due_text(lease.until)},
        "job_lease_seconds": {"N": _number(lease.seconds)},
    }


def record_of(layout: Layout, item: Item) -> JobRecord:
    """The job that an item stores; `MalformedJobError` if it is not a job."""
    h, r = layout.logical(item)
    try:
        record = _parse(h, r, item)
        if record._place[:2] != (h, r) or not record.stored_key(layout).items() <= item.items():
            raise ValueError("its key does not match the job in it")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise MalformedJobError(
            f"the item {h!r:.120} / {r!r:.160} is not a job: {why}",
            hint="workers move such items to the dead jobs: `holdall jobs list --state dead`",
        ) from None
    return record


def _parse(h: str, r: str, item: Item) -> JobRecord:
    kind, queue = h.split("#")[1:3]
    when = _moment(r.partition("#")[0])
    died = when if kind == "DeadJob" else None
    lease = None
    if "job_lease" in item:
        seconds = _seconds(item, "job_lease_seconds")
        lease = Lease(_text(item, "job_lease"), _moment(_text(item, "job_lease_until")), seconds)
    arguments = _text(item, "job_args")
    if arguments[:1] != "[":
        raise ValueError("job_args is not a JSON list")
    return JobRecord(
        _text(item, "job_id"),
        _text(item, "job_name"),
        queue,
        arguments,
        when if died is None else _moment(_text(item, "job_due")),
        _moment(_text(item, "job_at")),
        int(item["job_attempts"]["N"]) if "job_attempts" in item else 0,
        _text(item, "job_key") if "job_key" in item else None,
        _seconds(item, "job_once_for") if "job_once_for" in item else None,
        lease,
        item["job_error"]["S"] if "job_error" in item else None,
        died,
        item["job_raw"]["M"] if "job_raw" in item else None,
    )


def _text(item: Item, name: str) -> str:
    text: str | None = item[name].get("S")
    if not text:
        raise ValueError(f"{name} is not text")
    return text


def _seconds(item: Item, name: str) -> float:
    seconds = item[name].get("N")
    if seconds is None:
        raise ValueError(f"{name} is not a number")
    return float(seconds)


def due_text(moment: datetime) -> str:
    """A time in UTC with a fixed width, so that texts sort as times do."""
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def _number(seconds: float) -> str:
    """Seconds as DynamoDB writes them, so that no store has to normalise them."""
    return repr(seconds).removesuffix(".0")


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text[:-1]).replace(tzinfo=UTC)


def shard_of(id: str) -> str:
    """The shard of a job: the first digit of its id, which is random."""
    return id[0]


def job_partition(queue: str, shard: str) -> str:
    """Where the waiting and running jobs of a queue's shard are."""
    return f"holdall#Job#{queue}#{shard}"


def dead_partition(queue: str, shard: str) -> str:
    """Where the dead jobs of a queue's shard are."""
    return f"holdall#DeadJob#{queue}#{shard}"


def guard_place(name: str, key: str) -> Place:
    """Of the item that holds a key while a job has it."""
    h = f"holdall#JobKey#{name}#{quote(key, safe='')}"
    return h, "#", h


def check_key(key: object) -> None:
    """Refuse what cannot be a job's key."""
    if not isinstance(key, str) or not 0 < _bytes(key) <= _LONGEST_KEY:
        raise InvalidOptionsError(
            f"{key!r:.60} cannot be a job's key", hint=f"use text of up to {_LONGEST_KEY} bytes"
        )


def _bytes(text: str) -> int:
    """How long a text is in UTF-8; 0 for one that has no such form."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return 0


def occurrence_place(name: str, schedule: str, due: datetime) -> Place:
    """Of the mark of an occurrence of a recurring job that was enqueued."""
    h, r = f"holdall#Schedule#{name}", f"{schedule}#{due_text(due)}"
    return h, r, f"{h}#{r}"


def queue_place(queue: str) -> Place:
    """Of the item that says that there is such a queue."""
    return QUEUES, queue, f"{QUEUES}#{queue}"


def partitions(queue: str, states: tuple[JobState, ...]) -> Iterator[str]:
    """All partitions in which a queue's jobs of these states are."""
    for shard in SHARDS:
        if "waiting" in states or "running" in states:
            yield job_partition(queue, shard)
        if "dead" in states:
            yield dead_partition(queue, shard)


def retried(record: JobRecord, due: datetime, error: str | None) -> JobRecord:
    """The job as it waits for another attempt."""
    return replace(record, due=due, lease=None, error=error, died=None)


def buried(record: JobRecord, now: datetime, error: str) -> JobRecord:
    """The job as it is kept when there is no attempt left."""
    return replace(record, lease=None, error=error, died=now)


def leased(record: JobRecord, token: str, now: datetime, seconds: float) -> JobRecord:
    """The job in a worker's hands, one attempt later."""
    lease = Lease(token, now + timedelta(seconds=seconds), seconds)
    return replace(record, lease=lease, attempts=record.attempts + 1)

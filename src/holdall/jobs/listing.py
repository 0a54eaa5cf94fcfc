"""Flows that look at jobs: list, count and find them. They only read.

The jobs of a queue are in sixteen shards, each sorted by the time that a job is due or died. A list reads a few items
of each shard and merges them, so it reads hardly more items than it returns. An item that cannot be read as a job is
returned as the dead job that a worker would move it to, but it is not moved.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from holdall.core.context import Context
from holdall.core.cursor import PageCursor
from holdall.core.expressions import Condition
from holdall.core.frozen import dataclass, replace
from holdall.core.keys import format_moment
from holdall.core.option import check_count
from holdall.core.requests import Query
from holdall.core.values import Item
from holdall.errors import InvalidOptionsError
from holdall.jobs.declaration import check_queue
from holdall.jobs.quarantine import decode_jobs
from holdall.jobs.record import (
    QUEUES,
    JobItem,
    JobRecord,
    JobState,
    list_homes,
    locate_job_in,
    partitions,
)
from holdall.tables.commit.lock import all_of
from holdall.tables.flow import discover
from holdall.tables.layout import Layout
from holdall.tables.record import fetch_all

_STATES: tuple[JobState, ...] = ("waiting", "running", "dead", "paused")
_LONGEST_ID = 100
_FEWEST, _FEWEST_OF_SOME = 3, 60
"""How many items of a shard are read at first at least: if most of them are wanted, and if perhaps only some are."""
_SIDE_BY_SIDE = 16


class JobCounts(NamedTuple):
    """How many jobs of a queue are waiting (including for their time), running, dead (given up), and paused."""

    waiting: int
    running: int
    dead: int
    paused: int = 0


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs in one state. Pass ``next`` as ``after`` to read on; it is None if there are no more.

    ``read`` is how many items were read. ``malformed`` are items among them that cannot be read as jobs: a worker that
    finds them moves them to the dead jobs, which they are shown as here.
    """

    jobs: tuple[JobRecord, ...]
    next: str | None
    read: int
    malformed: tuple[JobRecord, ...]


# --- lists ------------------------------------------------------------------------------------------------


async def queues(context: Context) -> list[str]:
    """The names of all queues that a job was ever enqueued in."""
    layout = await discover(context)
    found: list[str] = []
    cursor = PageCursor(context.port, layout.listing(QUEUES))
    while (page := await cursor.next_page()) is not None:
        found += [layout.logical(item)[1] for item in page.items]
    return found


async def list_jobs(
    context: Context,
    *,
    queue: str | None = None,
    state: JobState | None = None,
    name: str | None = None,
    limit: int = 100,
) -> list[JobRecord]:
    """The first jobs of one queue or of all, by the time they are due; then dead jobs, by the time they died.

    Without a state, and among dead jobs, there can be items that cannot be read as jobs (``raw``).
    """
    check_count(limit, "limit")
    layout = await discover(context)
    wanted = await choose_queues(context, queue)
    states = choose_states(state)
    filter = make_filter(state, name)
    found: dict[str, JobRecord] = {}  # by id, because a job may be moved while jobs are read
    malformed: list[JobRecord] = []
    for kinds in (tuple(each for each in states if each != "dead"), ("dead",) if "dead" in states else ()):
        if not kinds or len(found) >= limit:
            continue
        homes = [h for each in wanted for h in partitions(each, kinds)]
        merge = _Merge(context, layout, homes, filter, limit)
        await merge.run()
        found |= {record.id: record for record in merge.list_ready()}
        malformed += merge.malformed
    records = list(found.values())
    if "dead" in states:
        records += [record for record in malformed if record.id not in found]
    records.sort(key=lambda record: (record.died is not None, record.died or record.due, record.id))
    return records[:limit]


async def fetch_page(
    context: Context,
    *,
    state: JobState,
    queue: str | None = None,
    name: str | None = None,
    limit: int = 100,
    after: str | None = None,
    reverse: bool = False,
    most_read: int | None = None,
) -> JobPage:
    """A page of the jobs in one state, of one queue or of all, by the time they are due, or by the time they died.

    ``after`` is the ``next`` of the page before; ``reverse`` begins with the last. Waiting and running jobs are stored
    together, and each other's items are read too: with ``most_read``, the page ends when about that many items were
    read, perhaps before it has found any job.
    """
    check_count(limit, "limit")
    if most_read is not None:
        check_count(most_read, "most_read")
    layout = await discover(context)
    kinds = choose_states(state)
    homes = [h for each in await choose_queues(context, queue) for h in partitions(each, kinds)]
    merge = _Merge(context, layout, homes, make_filter(state, name), limit + 1, after or None, reverse)
    await merge.run(most_read)
    found = merge.list_ready()
    next = merge.reached
    if len(found) > limit:
        found = found[:limit]
        next = _place_of(found[-1])
    return JobPage(tuple(found), next, merge.read, tuple(merge.malformed))


def _place_of(record: JobRecord) -> str:
    return f"{format_moment(record.died or record.due)}#{record.id}"


class _Shard:
    """How far a shard was read: up to and including ``reached``; to its end if ``query`` is None."""

    def __init__(self, query: Query) -> None:
        self.query: Query | None = query
        self.found: list[tuple[str, JobRecord]] = []
        self.reached = ""


class _Merge:
    """Reads several sorted partitions side by side, only as far as the first ``wanted`` jobs of all of them need."""

    def __init__(
        self,
        context: Context,
        layout: Layout,
        homes: Iterable[str],
        filter: Condition | None,
        wanted: int,
        after: str | None = None,
        reverse: bool = False,
    ) -> None:
        self._context = context
        self._layout = layout
        self._wanted = wanted
        self._fewest = _FEWEST if filter is None or filter == JobItem.lease.absent else _FEWEST_OF_SOME
        self._reverse = reverse
        before, after = (after, None) if reverse else (None, after)
        listed = (layout.listing(h, before=before, after=after) for h in homes)
        self._shards = [_Shard(replace(query, filter=filter, reverse=reverse)) for query in listed]
        self.read = 0
        self.malformed: list[JobRecord] = []

    @property
    def reached(self) -> str | None:
        """The place up to which all shards were read; None if that is the end."""
        places = [shard.reached for shard in self._shards if shard.query is not None]
        return (max if self._reverse else min)(places, default=None)

    async def run(self, most_read: int | None = None) -> None:
        """Read until enough jobs are ready, all is read, or about ``most_read`` items were."""
        behind, size = self._shards, max(self._fewest, 2 * self._wanted // (len(self._shards) or 1))
        while behind:
            if most_read is not None:
                share = (most_read - self.read) // len(behind)
                if share < 1 and self.read:
                    return
                size = min(size, max(share, 1))
            flows = [self._read_on(shard, size) for shard in behind]
            for outcome in await self._context.port.gather(flows, _SIDE_BY_SIDE):
                outcome.result()
            behind, size = self._find_behind(), size * 2

    def _find_behind(self) -> list[_Shard]:
        """The shards that may still have one of the first jobs."""
        shards = [shard for shard in self._shards if shard.query is not None]
        places = sorted((place for shard in self._shards for place, _ in shard.found), reverse=self._reverse)
        if len(places) < self._wanted:
            return shards
        last = places[self._wanted - 1]
        return [shard for shard in shards if self._is_before(shard.reached, last)]

    async def _read_on(self, shard: _Shard, size: int) -> None:
        assert shard.query is not None
        page = await self._context.port.send(replace(shard.query, limit=size))
        self.read += page.scanned
        found, malformed = decode_jobs(self._context, self._layout, page.items)
        self.malformed += malformed
        shard.found += [(_place_of(record), record) for record in found]
        if page.last_key is None:
            shard.query = None
        else:
            shard.reached = self._layout.logical(page.last_key)[1]
            shard.query = replace(shard.query, start_after=page.last_key)

    def list_ready(self) -> list[JobRecord]:
        """The first jobs, in order: those up to the place that all shards were read to."""
        end = self.reached
        found = [each for shard in self._shards for each in shard.found]
        found = [each for each in found if end is None or each[0] == end or self._is_before(each[0], end)]
        return [record for _, record in sorted(found, key=lambda each: each[0], reverse=self._reverse)]

    def _is_before(self, place: str, other: str) -> bool:
        return place > other if self._reverse else place < other


# --- counts -----------------------------------------------------------------------------------------------


async def counts(context: Context, *, queue: str | None = None) -> dict[str, JobCounts]:
    """How many jobs each queue has; all of them are read to count them."""
    layout = await discover(context)
    found: dict[str, JobCounts] = {}
    for each in await choose_queues(context, queue):
        kinds: tuple[JobState, ...] = ("waiting", "dead", "paused")
        homes = [[*partitions(each, (kind,))] for kind in kinds]
        flows = [_count(context, layout.listing(h)) for part in homes for h in part]
        parts = iter([outcome.result() for outcome in await context.port.gather(flows, _SIDE_BY_SIDE)])
        (alive, leased), (dead, _), (paused, _) = (_add_up(next(parts) for _ in part) for part in homes)
        found[each] = JobCounts(alive - leased, leased, dead, paused)
    return found


def _add_up(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    totals, leased = zip(*parts, strict=True)
    return sum(totals), sum(leased)


async def _count(context: Context, query: Query) -> tuple[int, int]:
    """How many jobs there are, and how many of them a worker holds."""
    total = leased = 0
    cursor = PageCursor(context.port, replace(query, filter=JobItem.lease.exists, count_only=True))
    while (page := await cursor.next_page()) is not None:
        total += page.scanned
        leased += page.count
    return total, leased


# --- one job ----------------------------------------------------------------------------------------------


async def find(
    context: Context, id: str, *, queue: str | None = None, at: datetime | None = None
) -> JobRecord | None:
    """The job with this id; None if it does not exist or has succeeded.

    This searches all queues. If you know the job's ``queue``, and ``at``, which is its ``died`` or else its ``due``, it
    is found by its key; if it was moved meanwhile, the queue is searched.
    """
    item = await find_item(context, id, queue=queue, at=at)
    if item is None:
        return None
    found, malformed = decode_jobs(context, await discover(context), [item])
    return (found or malformed)[0]


async def find_item(
    context: Context, id: str, *, queue: str | None = None, at: datetime | None = None
) -> Item | None:
    """The item of a job; see `find`."""
    if not isinstance(id, str) or not id or len(id) > _LONGEST_ID:
        raise InvalidOptionsError(f"{id!r:.60} is not the id of a job")
    moment = None if at is None else check_moment(at, "at")
    layout = await discover(context)
    wanted = await choose_queues(context, queue)
    homes = [h for each in wanted for h in list_homes(each, id)]
    if moment is not None:
        places = [locate_job_in(layout, h, moment, id) for h in homes]
        distinct = {place.identity: JobItem(place) for place in places}  # in mode B, all are one
        for found in await fetch_all(context.port, [*distinct.values()]):
            if found.is_stored and any(each.attributes.items() <= found.stored.items() for each in places):
                return found.stored
    for h in homes:
        query = replace(layout.listing(h), filter=JobItem.id.equals(id) | JobItem.id.absent)
        cursor = PageCursor(context.port, query)
        while (page := await cursor.next_page()) is not None:
            for item in page.items:
                if JobItem.id.name in item or layout.logical(item)[1].endswith(f"#{id}"):
                    return item
    return None


# --- pieces -----------------------------------------------------------------------------------------------


async def choose_queues(context: Context, queue: str | None) -> list[str]:
    """The queue that the caller names, or all queues."""
    if queue is None:
        return await queues(context)
    check_queue(queue)
    return [queue]


def choose_states(state: JobState | None) -> tuple[JobState, ...]:
    """The state that the caller names, or all states."""
    if state is not None and state not in _STATES:
        raise InvalidOptionsError(
            f"{state!r:.60} is not a state of a job", hint=f"the states are: {', '.join(_STATES)}"
        )
    return _STATES if state is None else (state,)


def make_filter(state: JobState | None, name: str | None) -> Condition | None:
    """The filter for jobs in a state, or with a name, in the partitions of that state."""
    return all_of(
        [
            {"waiting": JobItem.lease.absent, "running": JobItem.lease.exists}.get(state or ""),
            None if name is None else JobItem.name.equals(name),
        ]
    )


def check_moment(moment: object, name: str) -> datetime:
    """Return a time in UTC; refuse what is not a time with a time zone."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidOptionsError(
            f"{name} must be a datetime with a time zone, not {moment!r:.60}",
            hint="pass, for example, datetime.now(timezone.utc)",
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidOptionsError(f"{name} must be in the years 1 to 9999 in UTC, not {moment}") from None

"""The check of jobs: items that cannot be read, leases that ended long ago, keys without a job, unknown queues, and
recurring jobs that will not run.

What workers put right themselves is left to them: an occurrence that is due within the hour is followed by the next
one, and occurrences of an earlier schedule run once more or expire.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from holdall.core.cursor import PageCursor, has_items
from holdall.core.expressions import Contains, value
from holdall.core.frozen import replace
from holdall.core.keys import format_moment
from holdall.core.requests import GetItem, TransactGet
from holdall.core.values import Item
from holdall.errors import MalformedJobError
from holdall.jobs.declaration import Job, declared_jobs
from holdall.jobs.listing import queues
from holdall.jobs.outbox import register_queues
from holdall.jobs.quarantine import read_jobs
from holdall.jobs.record import (
    JobItem,
    JobKey,
    JobRecord,
    Occurrence,
    decode_job,
    list_homes,
    locate_job,
    locate_key,
    locate_occurrence,
    partitions,
)
from holdall.maintenance.doctor.key_filter import KeyFilter
from holdall.maintenance.doctor.work import Work
from holdall.tables.commit.change import Change
from holdall.tables.commit.flow import commit_once
from holdall.tables.flow import discover
from holdall.tables.layout import Layout
from holdall.tables.record import Record, fetch
from holdall.tables.record_column import text

_LONG_AGO = timedelta(hours=1)
"""More than the clocks of two machines should differ."""

_MOST = 10_000
_JOBS = ("holdall#Job#", "holdall#DeadJob#", "holdall#PausedJob#")
_KEY = "holdall#JobKey#"
_SCHEDULE = "holdall#Schedule#"


class JobCheck:
    """Looks at jobs, and at the keys that keep out others.

    ``known`` gets the ids of all jobs that were seen, so that few jobs are looked up: there is no index by id.
    """

    def __init__(self, work: Work, layout: Layout, known: KeyFilter) -> None:
        self._work = work
        self._layout = layout
        self._known = known
        # in mode B, other programs' items may lack the key of the index
        self._h = text((layout.index or layout).partition.name)
        self._queues: set[str] | None = None
        self._unlisted: set[str] = set()
        self._suspects: list[JobKey] = []
        self._has_more = False
        self._lost: list[Occurrence] = []

    async def visit(self, rows: Sequence[Item]) -> None:
        """Look at the jobs and keys of a page."""
        for item in rows:
            h = self._h.peek(item) or ""
            if h.startswith(_JOBS):
                r = self._layout.logical(item)[1]
                self._known.add(JobItem.id.peek(item) or r.rpartition("#")[2])
                await self._check_item(item)
            elif h.startswith(_KEY):
                key = JobKey(self._layout.address_of(item), item)
                await self._work.examine("jobs", f"key of {self._name_key(key)}", self._suspect_key(key))
            elif h.startswith(_SCHEDULE):
                occurrence = Occurrence(self._layout.address_of(item), item)
                subject = f"recurring job {h.removeprefix(_SCHEDULE)}"
                await self._work.examine("jobs", subject, self._suspect_occurrence(occurrence))

    async def _check_item(self, item: Item) -> None:
        work = self._work
        try:
            job = decode_job(self._layout, item)
        except MalformedJobError as error:
            h, r = self._layout.logical(item)

            async def mend() -> bool:
                return bool((await read_jobs(work.context, [item]))[1])

            can = h.startswith("holdall#Job#")  # workers do not read the others
            repair = "move it to the dead jobs" if can else None
            await work.find("jobs", "error", f"{h} / {r}", error.message, repair, mend if can else None)
            return
        if job.queue not in await self._list_queues():
            self._unlisted.add(job.queue)
        again = Record(locate_job(self._layout, job))
        if job.died is not None or not (await fetch(work.context.port, again)).is_stored:
            return
        now = work.context.port.now()
        if job.lease is not None and job.lease.until < now - _LONG_AGO:
            message = (
                f"the lease of its worker ended at {job.lease.until.isoformat(timespec='seconds')}, "
                "and no worker has taken it over; is a worker running for this queue?"
            )
            await work.find("jobs", "warning", self._name(job), message)
        if job.key is not None and job.once_for is None and job.lease is None and not job.paused:
            await self._check_held(job)

    async def _check_queue(self, queue: str) -> None:
        """Report a queue with jobs that is not listed."""
        work = self._work
        if queue in await queues(work.context):
            return  # a program has registered it since
        mend = partial(register_queues, work.context, [queue])
        message = "it has jobs, but is not in the list of queues, so its jobs are not listed"
        await work.find("jobs", "error", f"queue {queue}", message, "add it to the list", mend)

    async def _check_held(self, job: JobRecord) -> None:
        """Check that the key of a waiting job keeps out other jobs; that of a running job is free."""
        assert job.key is not None
        port, key = self._work.context.port, JobKey(locate_key(self._layout, job.name, job.key))
        if (await fetch(port, key)).is_stored:
            return
        places = locate_job(self._layout, job), key.address
        reads = tuple(GetItem(place.table, place.key, True) for place in places)
        now, held = (await port.send(TransactGet(reads))).items  # as of one moment: a worker may take the job
        if held is not None or now is None or JobItem(places[0], now).lease is not None:
            return

        async def mend() -> bool:
            change = Change(self._work.context)
            change.create(JobKey.of(self._layout, job))
            place = locate_job(self._layout, job)
            change.require(JobItem(place), place.exists & JobItem.lease.absent)
            return await commit_once(change) is None

        message = f"its key {job.key!r:.60} is not reserved, so a second job with it could be enqueued"
        await self._work.find("jobs", "error", self._name(job), message, "reserve the key", mend)

    async def finish(self, parts: Sequence[JobCheck]) -> None:
        """Report unlisted queues, and keys whose job does not exist, now that all queues that have jobs are known."""
        unlisted = set().union(*(part._unlisted for part in parts))
        for queue in sorted(unlisted):
            await self._check_queue(queue)
        self._queues = {*unlisted, *await queues(self._work.context)}
        suspects = [key for part in parts for key in part._suspects if key.job not in self._known]
        if any(part._has_more for part in parts):
            suspects = await self._find_suspects()
        for key in suspects:
            await self._check_key(key)
        for part in parts:
            for occurrence in part._lost:
                await self._check_occurrence(occurrence)
        for job in sorted(declared_jobs().values(), key=lambda job: job.name):
            await self._check_schedule(job)

    async def _suspect_key(self, key: JobKey) -> None:
        """Keep a key whose job was not seen; it may be seen later."""
        if key.until is not None or key.job in self._known:
            return
        if len(self._suspects) < _MOST:
            self._suspects.append(key)
        else:
            self._has_more = True

    async def _find_suspects(self) -> list[JobKey]:
        """Read all keys again, and return the first of those whose job was not seen."""
        found: list[JobKey] = []

        def look(rows: Sequence[Item]) -> None:
            for item in rows:
                if (self._h.peek(item) or "").startswith(_KEY):
                    id = JobKey.job.peek(item)  # a key without one was reported before
                    if id and JobKey.until.name not in item and id not in self._known and len(found) < _MOST:
                        found.append(JobKey(self._layout.address_of(item), item))

        await self._work.read_again(self._layout.table, look)
        return found

    async def _check_key(self, seen: JobKey) -> None:
        """Find a key that keeps out jobs for the sake of one that no longer exists."""
        context = self._work.context
        key = await fetch(context.port, seen)
        if not key.is_stored or key.item != seen.item or await self._exists(key.job):
            return

        async def mend() -> bool:
            change = Change(context)
            change.delete(key, expect=[key.same(JobKey.job, JobKey.until)])
            return await commit_once(change) is None

        message = (
            f"the key is reserved for job {key.job}, which does not exist, so no job with it can be enqueued"
        )
        await self._work.find(
            "jobs", "error", f"key of {self._name_key(key)}", message, "release the key", mend
        )

    # --- recurring jobs -------------------------------------------------------------------------------------

    async def _suspect_occurrence(self, occurrence: Occurrence) -> None:
        _, due = self._parse(occurrence)
        if due <= format_moment(self._work.context.port.now() + _LONG_AGO) or len(self._lost) >= _MOST:
            return
        if not await self._exists(occurrence.job):
            self._lost.append(occurrence)

    async def _check_occurrence(self, seen: Occurrence) -> None:
        """Find an occurrence that will not run, because it was enqueued and its job was deleted before its time."""
        occurrence = await fetch(self._work.context.port, seen)
        if not occurrence.is_stored or occurrence.item != seen.item or await self._exists(seen.job):
            return
        name, due = self._parse(occurrence)
        message = (
            f"it will not run at {due[:19]}Z: job {seen.job}, which was enqueued for that, does not exist"
        )
        await self._work.find("jobs", "warning", f"recurring job {name}", message)

    def _parse(self, occurrence: Occurrence) -> tuple[str, str]:
        """The name of the job, and when it is due."""
        h, r = self._layout.logical(occurrence.stored)
        return h.removeprefix(_SCHEDULE), r.rpartition("#")[2]

    async def _check_schedule(self, job: Job[*tuple[Any, ...]]) -> None:
        """Find a recurring job that no worker enqueues, if this process declares it."""
        if job.schedule is None:
            return
        port, layout = self._work.context.port, self._layout
        last = job.schedule.next_after(port.now() - _LONG_AGO)
        h, r = layout.logical(locate_occurrence(layout, job.name, job.schedule.text, last).attributes)
        cursor = PageCursor(port, replace(layout.listing(h, job.schedule.text + "#"), reverse=True, limit=1))
        while (page := await cursor.next_page()) is not None:
            if any(layout.logical(item)[1] >= r for item in page.items):
                return
            if page.items:
                break
        message = (
            f"it should run ({job.schedule.text}), but no run is enqueued; is a worker running for queue "
            f"{job.options.queue}?"
        )
        await self._work.find("jobs", "warning", f"recurring job {job.name}", message)

    # --- looking up jobs ------------------------------------------------------------------------------------

    async def _exists(self, id: str) -> bool:
        """Whether a queue has a job with this id, in whatever state; twice, because a job may be moved meanwhile."""
        for queue in [*await self._list_queues(), *self._unlisted] * 2:
            for partition in list_homes(queue, id):
                query = replace(self._layout.listing(partition), filter=JobItem.id.equals(id))
                if await has_items(self._work.context.port, query):
                    return True
        return False

    async def _list_queues(self) -> set[str]:
        if self._queues is None:
            self._queues = set(await queues(self._work.context))
        return self._queues

    def _name_key(self, key: JobKey) -> str:
        return self._layout.logical(key.stored)[0].removeprefix(_KEY).replace("#", " ", 1)

    def _name(self, job: JobRecord) -> str:
        return f"job {job.id} ({job.name} in queue {job.queue})"


async def is_enqueued(work: Work, job: Job[*tuple[Any, ...]], *, containing: str) -> bool:
    """Whether a job waits in its queue, runs or is paused whose arguments contain a text.

    It looks twice, because a job may be moved meanwhile.
    """
    layout = await discover(work.context)
    wanted = JobItem.name.equals(job.name) & Contains(JobItem.arguments.path, value(containing))
    for partition in [*partitions(job.options.queue, ("waiting", "paused"))] * 2:
        if await has_items(work.context.port, replace(layout.listing(partition), filter=wanted)):
            return True
    return False

"""Jobs: lists by state, one job with its arguments and its error, and how it is retried, resumed or deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from starlette.responses import Response

from holdall import AsyncDatabase
from holdall.errors import JobNotFoundError
from holdall.jobs import JobCounts, JobRecord, JobState
from holdall.web.console.figure_cache import FigureCache
from holdall.web.console.item import show_attributes
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import RefusedVisitError, Visit

_STATES: dict[JobState, str] = {
    "waiting": "Waiting jobs run when they are due and a worker is free.",
    "running": "Running jobs are held by a worker.",
    "dead": "Dead jobs failed in their last permitted attempt. Retry them, or delete them.",
    "paused": "Paused jobs were copied from another database. No worker takes them until you resume them.",
}
_SIZE = 50
_MOST_READ = 1_000
_MOST_QUEUES = 10


async def _list(visit: Visit) -> Response:
    state, queue, name = _read_filter(visit)
    queues = await visit.db.jobs.queues()
    after = visit.query("after") or None
    page = None
    if queue is not None or len(queues) <= _MOST_QUEUES:
        page = await visit.db.jobs.page(
            state=state,
            queue=queue,
            name=name,
            limit=_SIZE,
            after=after,
            reverse=state == "dead",
            most_read=_MOST_READ,
        )
    chosen = {"queue": queue, "name": name}
    counts = visit.query("count") == "1"
    return visit.render(
        "jobs.html",
        states=_STATES,
        state=state,
        queue=queue,
        name=name,
        chosen=chosen,
        queues=queues,
        page=page,
        after=after,
        size=_SIZE,
        link=partial(_link, visit),
        first_url=visit.url("jobs", state=state, **chosen),
        next_url=None
        if page is None or page.next is None
        else visit.url("jobs", state=state, **chosen, after=page.next),
        counts=counts,
        counted=await _find_counter(visit, queue).get() if counts else None,
        count_url=visit.url("jobs", state=state, **chosen, count=1),
        title="Jobs",
    )


def _link(visit: Visit, job: JobRecord, *parts: str) -> str:
    """Return the URL of a job's page, with the place where it is stored, so that it need not be searched for."""
    at = (job.died or job.due).isoformat()
    return visit.url("jobs", "job", *parts, id=job.id, queue=job.queue, at=at)


@dataclass(frozen=True, slots=True)
class _Counted:
    """How many jobs there are by queue, and when they were counted."""

    queues: Mapping[str, JobCounts]
    counted_at: datetime


def _find_counter(visit: Visit, queue: str | None) -> FigureCache[_Counted]:
    """Return what counts the jobs of one queue or of all, which reads them all."""
    kept: dict[str | None, FigureCache[_Counted]] = visit.desk.memory.setdefault("jobs", {})
    if queue not in kept:
        if len(kept) > _MOST_QUEUES:
            kept.clear()
        kept[queue] = FigureCache(partial(_count, visit.db, queue))
    return kept[queue]


async def _count(db: AsyncDatabase, queue: str | None) -> _Counted:
    return _Counted(await db.jobs.counts(queue=queue), datetime.now(UTC))


def _read_filter(visit: Visit) -> tuple[JobState, str | None, str | None]:
    """Return the state, the queue and the name that the URL asks for."""
    text = visit.query("state", "waiting")
    state = next((each for each in _STATES if each == text), None)
    if state is None:
        raise RefusedVisitError(404, f"There are no {text:.100} jobs.")
    return state, visit.query("queue") or None, visit.query("name") or None


async def _find(visit: Visit) -> JobRecord:
    id = visit.query("id")
    found = await visit.db.jobs.get(id, queue=visit.query("queue") or None, at=_read_moment(visit))
    if found is None:
        raise JobNotFoundError(f"there is no job {id!r:.110}", hint="jobs that succeeded are deleted")
    return found


def _read_moment(visit: Visit) -> datetime | None:
    try:
        found = datetime.fromisoformat(visit.query("at"))
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


async def _show(visit: Visit) -> Response:
    job = await _find(visit)
    return visit.render(
        "job.html",
        job=job,
        link=partial(_link, visit),
        arguments=_show_arguments(job.arguments),
        raw=None if job.raw is None else show_attributes(job.raw),
        title=f"Job {job.name:.200}",
    )


def _show_arguments(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except ValueError:
        return text  # of an item that could not be read as a job


# --- changes --------------------------------------------------------------------------------------------------


async def _confirm_retry(visit: Visit) -> Response:
    visit.require_writing()
    job = await _find(visit)
    what = "waits again, with all its attempts ahead of it" if job.state == "dead" else "becomes due now"
    return _confirm(
        visit, job, "retry", "Retry", f"The job {what}. It runs as soon as a worker is free.", tone="primary"
    )


async def _confirm_deletion(visit: Visit) -> Response:
    visit.require_writing()
    job = await _find(visit)
    return _confirm(
        visit, job, "delete", "Delete", "The job is deleted and never runs. This cannot be undone."
    )


def _confirm(
    visit: Visit, job: JobRecord, action: str, verb: str, consequence: str, tone: str = "danger"
) -> Response:
    return visit.render(
        "confirm.html",
        heading=f"{verb} this job?",
        subject=f"{job.name:.200}\n{job.id}",
        consequence=consequence,
        verb=verb,
        tone=tone,
        action=visit.url("jobs", "job", action, id=job.id),
        back=_link(visit, job),
        title=f"{verb} a job",
    )


async def _retry(visit: Visit) -> Response:
    job = await visit.db.jobs.retry(visit.query("id"))
    return visit.redirect(
        _link(visit, job), notice=f"The job {job.name:.200} is due now and will be retried."
    )


async def _delete(visit: Visit) -> Response:
    job = await visit.db.jobs.delete(visit.query("id"))
    return visit.redirect(
        visit.url("jobs", state=job.state), notice=f"Deleted the job {job.name:.200} {job.id}."
    )


async def _confirm_retry_all(visit: Visit) -> Response:
    return _confirm_all(
        visit,
        "dead",
        "Retry all",
        "The jobs wait again, with all their attempts ahead of them. Jobs whose items could not be read stay dead, and "
        "so do jobs whose key another job has taken.",
    )


async def _confirm_resume(visit: Visit) -> Response:
    return _confirm_all(
        visit,
        "paused",
        "Resume all",
        "The jobs wait for a worker, each until its time. A job whose key another waiting job has taken is deleted, "
        "because the other one does its work.",
    )


def _confirm_all(visit: Visit, state: JobState, verb: str, consequence: str) -> Response:
    visit.require_writing()
    _, queue, name = _read_filter(visit)
    which = [f"the name {name}"] if name else []
    which += [f"the queue {queue}"] if queue else []
    heading = f"{verb} {state} jobs"
    return visit.render(
        "confirm.html",
        heading=f"{heading}?",
        subject=" and ".join(which) or "all queues",
        consequence=consequence,
        verb=verb,
        tone="primary",
        action=visit.url(
            "jobs", "retry-dead" if state == "dead" else "resume-paused", queue=queue, name=name
        ),
        back=visit.url("jobs", state=state, queue=queue, name=name),
        title=heading,
    )


async def _retry_all(visit: Visit) -> Response:
    _, queue, name = _read_filter(visit)
    count = await visit.db.jobs.retry_all(queue=queue, name=name)
    return _report_all(visit, f"{_name_jobs(count)} will be retried.")


async def _resume(visit: Visit) -> Response:
    _, queue, name = _read_filter(visit)
    count = await visit.db.jobs.resume(queue=queue, name=name)
    return _report_all(visit, f"{_name_jobs(count)} resumed.")


def _name_jobs(count: int) -> str:
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


def _report_all(visit: Visit, notice: str) -> Response:
    _, queue, name = _read_filter(visit)
    return visit.redirect(visit.url("jobs", queue=queue, name=name), notice=notice)


SECTION = Section(
    "jobs",
    "Jobs",
    "clock",
    (
        Page("/jobs", _list),
        Page("/jobs/job", _show),
        Page("/jobs/job/retry", _confirm_retry),
        Page("/jobs/job/retry", _retry, changes=True),
        Page("/jobs/job/delete", _confirm_deletion),
        Page("/jobs/job/delete", _delete, changes=True),
        Page("/jobs/retry-dead", _confirm_retry_all),
        Page("/jobs/retry-dead", _retry_all, changes=True),
        Page("/jobs/resume-paused", _confirm_resume),
        Page("/jobs/resume-paused", _resume, changes=True),
    ),
)

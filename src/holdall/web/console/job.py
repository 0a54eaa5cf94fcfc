"""Jobs: lists by state, one job with its arguments and its error, and how it is retried or deleted."""

from __future__ import annotations

import json

from starlette.responses import Response

from holdall.errors import JobNotFoundError
from holdall.jobs import JobRecord
from holdall.web.console.item import show_attributes
from holdall.web.console.section import Page, Section
from holdall.web.console.visit import RefusedVisitError, Visit

_STATES = {
    "waiting": "Waiting jobs run when they are due and a worker is free.",
    "running": "Running jobs are held by a worker.",
    "dead": "Dead jobs failed in their last permitted attempt. Retry them, or delete them.",
}
_SIZES = (50, 200, 1000)


async def _list(visit: Visit) -> Response:
    state, queue, name = _read_filter(visit)
    size = visit.query("size", str(_SIZES[0]))
    limit = int(size) if size in map(str, _SIZES) else _SIZES[0]
    jobs = visit.db.jobs
    found = await jobs.list(state=state, queue=queue, name=name, limit=limit + 1)  # type: ignore[arg-type]
    larger = next((each for each in _SIZES if each > limit), None)
    chosen = {"queue": queue, "name": name}
    return visit.render(
        "jobs.html",
        states=_STATES,
        state=state,
        queue=queue,
        name=name,
        chosen=chosen,
        queues=await jobs.queues(),
        jobs=found[:limit],
        is_cut=len(found) > limit,
        counts=await jobs.counts(queue=queue) if visit.query("count") == "1" else None,
        count_url=visit.url("jobs", state=state, **chosen, count=1),
        more_url=None if larger is None else visit.url("jobs", state=state, **chosen, size=larger),
        title="Jobs",
    )


def _read_filter(visit: Visit) -> tuple[str, str | None, str | None]:
    """Return the state, the queue and the name that the URL asks for."""
    state = visit.query("state", "waiting")
    if state not in _STATES:
        raise RefusedVisitError(404, "Not found", f"There are no {state:.100} jobs.")
    return state, visit.query("queue") or None, visit.query("name") or None


async def _find(visit: Visit) -> JobRecord:
    id = visit.query("id")
    found = await visit.db.jobs.get(id)
    if found is None:
        raise JobNotFoundError(f"there is no job {id!r:.110}", hint="jobs that succeeded are deleted")
    return found


async def _show(visit: Visit) -> Response:
    job = await _find(visit)
    return visit.render(
        "job.html",
        job=job,
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
        back=visit.url("jobs", "job", id=job.id),
        title=f"{verb} a job",
    )


async def _retry(visit: Visit) -> Response:
    job = await visit.db.jobs.retry(visit.query("id"))
    return visit.redirect(
        visit.url("jobs", "job", id=job.id), notice=f"The job {job.name:.200} is due now and will be retried."
    )


async def _delete(visit: Visit) -> Response:
    job = await visit.db.jobs.delete(visit.query("id"))
    return visit.redirect(
        visit.url("jobs", state=job.state), notice=f"Deleted the job {job.name:.200} {job.id}."
    )


async def _confirm_retry_all(visit: Visit) -> Response:
    visit.require_writing()
    _, queue, name = _read_filter(visit)
    which = [f"the name {name}"] if name else []
    which += [f"the queue {queue}"] if queue else []
    return visit.render(
        "confirm.html",
        heading="Retry all dead jobs?",
        subject=" and ".join(which) or "all queues",
        consequence="The jobs wait again, with all their attempts ahead of them. Jobs whose items could not be "
        "read stay dead, and so do jobs whose key another job has taken.",
        verb="Retry all",
        tone="primary",
        action=visit.url("jobs", "retry-dead", queue=queue, name=name),
        back=visit.url("jobs", state="dead", queue=queue, name=name),
        title="Retry all dead jobs",
    )


async def _retry_all(visit: Visit) -> Response:
    _, queue, name = _read_filter(visit)
    count = await visit.db.jobs.retry_all(queue=queue, name=name)
    return visit.redirect(
        visit.url("jobs", queue=queue, name=name),
        notice=f"{count:,} {'job' if count == 1 else 'jobs'} will be retried.",
    )


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
    ),
)

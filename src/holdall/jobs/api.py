"""``db.jobs``: enqueue, list, retry, resume and delete jobs, sync and async."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdall.core.port import run, wait
from holdall.core.shell import Namespace, awaiting, blocking
from holdall.jobs import flow, listing

if TYPE_CHECKING:
    from datetime import timedelta

    from holdall.jobs.declaration import Job
    from holdall.transactions.enqueued import Enqueued


class Jobs(Namespace):
    """The jobs of a database: enqueue one outside a transaction, and list, retry or delete those that exist."""

    def enqueue(
        self,
        job: Job[*tuple[Any, ...]] | str,
        *args: Any,
        key: str | None = None,
        delay: float | timedelta | None = None,
        queue: str | None = None,
    ) -> Enqueued:
        """Enqueue a job at once, in its own transaction. The arguments are those of ``tx.enqueue``."""
        from holdall.jobs.outbox import enqueue_alone

        flow = enqueue_alone(self._context, job, args, key=key, delay=delay, queue=queue)
        return run(flow, self._context)

    list = blocking(listing.list_jobs)
    page = blocking(listing.fetch_page)
    counts = blocking(listing.counts)
    queues = blocking(listing.queues)
    get = blocking(listing.find)
    retry = blocking(flow.retry)
    retry_all = blocking(flow.retry_all)
    resume = blocking(flow.resume)
    delete = blocking(flow.delete)
    purge = blocking(flow.purge)


class AsyncJobs(Namespace):
    """The jobs of a database: enqueue one outside a transaction, and list, retry or delete those that exist."""

    async def enqueue(
        self,
        job: Job[*tuple[Any, ...]] | str,
        *args: Any,
        key: str | None = None,
        delay: float | timedelta | None = None,
        queue: str | None = None,
    ) -> Enqueued:
        """Enqueue a job at once, in its own transaction. The arguments are those of ``tx.enqueue``."""
        from holdall.jobs.outbox import enqueue_alone

        flow = enqueue_alone(self._context, job, args, key=key, delay=delay, queue=queue)
        return await wait(flow, self._context)

    list = awaiting(listing.list_jobs)
    page = awaiting(listing.fetch_page)
    counts = awaiting(listing.counts)
    queues = awaiting(listing.queues)
    get = awaiting(listing.find)
    retry = awaiting(flow.retry)
    retry_all = awaiting(flow.retry_all)
    resume = awaiting(flow.resume)
    delete = awaiting(flow.delete)
    purge = awaiting(flow.purge)

"""``db.jobs``: enqueue, list, retry, resume and delete jobs, sync and async."""

from __future__ import annotations

from holdall.core.shell import Namespace, awaiting, blocking
from holdall.jobs import flow, listing, outbox


class Jobs(Namespace):
    """The jobs of a database: enqueue one outside a transaction, and list, retry or delete those that exist."""

    enqueue = blocking(outbox.enqueue_alone)
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

    enqueue = awaiting(outbox.enqueue_alone)
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

"""The job that copies an object to the mirrors of its service."""

from __future__ import annotations

from hashlib import sha256

from holdall.core.context import Context
from holdall.files.mirror import copy_to_mirrors
from holdall.jobs.attempt import current_job
from holdall.jobs.declaration import job
from holdall.jobs.outbox import enqueue_alone


@job("holdall.mirror")
async def copy_object(service: str, key: str) -> None:
    """Copy an object to each mirror that does not have it in its current version."""
    await copy_to_mirrors(current_job().context, service, key)


async def enqueue_copies(context: Context, service: str, key: str) -> None:
    """Leave the copying to a worker; while one job for an object waits, no second is enqueued."""
    same = sha256(f"{service}\n{key}".encode()).hexdigest()
    await enqueue_alone(context, copy_object, service, key, key=same)

"""The outbox: what stands behind ``tx.enqueue`` and the mirrors of ``db.files``, loaded when it is first needed."""

from __future__ import annotations

from typing import Any

__all__ = ["plan_copies", "plan_job"]


def plan_job(*args: Any, **options: Any) -> tuple[Any, Any]:
    """What a call of ``tx.enqueue`` means: `holdall.jobs.enqueuing.planned`."""
    from holdall.jobs.enqueuing import planned

    return planned(*args, **options)


async def plan_copies(context: Any, service: str, key: str) -> None:
    """Have an object copied to its service's mirrors: `holdall.jobs.mirroring.plan_copies`."""
    from holdall.jobs.mirroring import enqueue_copies

    await enqueue_copies(context, service, key)

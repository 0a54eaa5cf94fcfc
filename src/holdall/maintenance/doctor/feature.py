"""Checks that features bring themselves: of archived items, and of what nothing refers to."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from holdall.archive.declaration import find_archive
from holdall.archive.upkeep.recovery import rebuild_at_rate
from holdall.archive.upkeep.sweep import sweep as sweep_archive
from holdall.attachments.upkeep.sweep import sweep as sweep_blobs
from holdall.errors import HoldallError
from holdall.maintenance.doctor.report import CheckName
from holdall.maintenance.doctor.work import Work
from holdall.models.model import Model


async def attempt(work: Work, check: CheckName, subject: str, flow: Coroutine[Any, Any, None]) -> None:
    """Make a check; if it cannot be made, that is a finding."""
    try:
        await flow
    except HoldallError as error:
        await work.find(check, "error", subject, f"it could not be checked: {error.message}")


# --- blobs ------------------------------------------------------------------------------------------------


async def find_orphaned_blobs(work: Work) -> None:
    """Find blobs that were never attached, and bytes that interrupted uploads left, once a sweep may delete them."""
    report = await sweep_blobs(work.context, dry_run=True)
    if not report.blobs + report.bytes:
        return
    mend = partial(sweep_blobs, work.context)
    message = f"not attached to anything: {report.blobs:,}; left by unfinished uploads: {report.bytes:,}"
    await work.find("orphans", "notice", "blobs", message, "sweep them", mend)


# --- the archive ------------------------------------------------------------------------------------------


def list_archived(work: Work) -> list[type[Model]]:
    """The models with an archive; derived models are examined with their base."""
    found = [model for model in work.models if find_archive(model) is not None]
    return [model for model in found if not any(base in found for base in model.__mro__[1:])]


async def check_archive(work: Work, model: type[Model]) -> None:
    """Find archived items whose pointer or object is damaged or lost."""
    name = model._schema.name
    report = await rebuild_at_rate(work.context, model, work.rate, dry_run=True)
    if report.rebuilt:
        message = f"{report.rebuilt:,} of {report.examined:,} archived items cannot be read, but have an intact object"
        repair: str | None = "point them to it"
        if report.older:  # their owner has to decide whether older content is better than none
            place = f"{model.__module__}:{model.__qualname__}"
            message += f", {report.older:,} of them only one with other content: see `holdall archive rebuild {place}`"
            repair = None

        async def mend() -> bool:
            done = await rebuild_at_rate(work.context, model, work.rate, dry_run=False)
            return done.rebuilt > 0 and not done.changed

        await work.find("archive", "error", name, message, repair, mend if repair else None)
    for problem in report.problems:
        await work.find("archive", "error", name, problem)
    more = report.lost - len(report.problems)
    if more > 0:
        await work.find("archive", "error", name, f"{more:,} more items have no readable object")


async def find_orphaned_objects(work: Work, model: type[Model]) -> None:
    """Find objects of the archive that no pointer names, once a sweep may delete them."""
    report = await sweep_archive(work.context, model, dry_run=True)
    if not report.unreferenced:
        return

    async def mend() -> bool:
        done = await sweep_archive(work.context, model, dry_run=False)
        return done.deleted == done.unreferenced

    message = f"objects of its archive that no item points to: {report.unreferenced:,}"
    await work.find("orphans", "notice", model._schema.name, message, "sweep them", mend)

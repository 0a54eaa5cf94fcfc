"""The flow of a copy: find the tables, create those that are missing, then copy, delete and verify part by part.

A *pass* reads everything once. It ends when all parts were copied; until then, the next call continues it. Tables come
before files, so that every file that a copied item refers to is copied, too. Deletions come last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, TypedDict

from holdall.core.context import Context
from holdall.core.schema import NeedsTable
from holdall.errors import InvalidOptionsError
from holdall.local.copy_manifest import (
    CopyManifest,
    close_manifest,
    finish_pass,
    locate_manifest,
    open_manifest,
)
from holdall.maintenance.copy.file import FileCopy, list_services
from holdall.maintenance.copy.plan import TablePlan, identify_store, plan_copies
from holdall.maintenance.copy.report import CopyReport
from holdall.maintenance.copy.table import TableCopy
from holdall.maintenance.copy.work import Account, Options, Side, Work
from holdall.transactions.table_run.flow import check_run_options
from holdall.transactions.table_run.pace import Pace

_SEGMENTS = 4


class CopyArguments(TypedDict, total=False):
    """The options of a copy."""

    models: Sequence[NeedsTable]
    tables: Sequence[str]
    files: bool
    create: bool | None
    delete: bool
    overwrite: bool
    verify: bool
    segments: int | None
    rate: float | None
    bandwidth: float | None
    dry_run: bool
    restart: bool
    manifest: Any
    progress: Callable[[CopyReport], Any] | None


async def copy_database(
    source: Side,
    target: Side,
    *,
    models: Sequence[NeedsTable] = (),
    tables: Sequence[str] = (),
    files: bool = True,
    create: bool | None = None,
    delete: bool = False,
    overwrite: bool = False,
    verify: bool = True,
    segments: int | None = None,
    rate: float | None = None,
    bandwidth: float | None = None,
    dry_run: bool = False,
    restart: bool = False,
    manifest: Any = None,
    progress: Callable[[CopyReport], Any] | None = None,
) -> CopyReport:
    """Copy a database to another one; see `holdall.Database.copy_to`."""
    ours, theirs = source.context, target.context
    if segments is None:  # on one machine, threads of one process would only wait for each other
        segments = _SEGMENTS if ours.settings.is_remote or theirs.settings.is_remote else 1
    check_run_options(segments, rate, progress)
    _check_bandwidth(bandwidth)
    stores = await identify_store(ours), await identify_store(theirs)
    plans = await plan_copies(
        ours, theirs, models, tables, is_one=stores[0] == stores[1], create=create, dry_run=dry_run
    )
    services = await list_services(source, target) if files else {}
    kept = await _open_manifest(ours, theirs, stores, manifest, restart, dry_run)
    options = Options(delete, overwrite, verify and not dry_run, segments, rate, dry_run)
    account = Account(progress, dry_run, None if kept.is_brief or dry_run else str(kept.path))
    try:
        return await _copy_parts(Work(ours, theirs, kept, options, account, Pace(bandwidth)), plans, services)
    finally:
        await ours.port.offload(close_manifest, kept)


def _check_bandwidth(bandwidth: Any) -> None:
    fits = isinstance(bandwidth, int | float) and not isinstance(bandwidth, bool) and bandwidth > 0
    if bandwidth is not None and not fits:
        raise InvalidOptionsError(
            f"bandwidth must be a number of bytes per second above 0, not {bandwidth!r:.60}"
        )


async def _copy_parts(work: Work, plans: Sequence[TablePlan], services: Mapping[str, str]) -> CopyReport:
    """One pass, or the rest of one that was interrupted."""
    dry_run, account = work.options.dry_run, work.account
    tables = [TableCopy(work, plan) for plan in plans]
    for table in tables if not dry_run else ():
        await table.prepare()
    copies: list[TableCopy | FileCopy] = [*tables]
    copies += [FileCopy(work, name, place) for name, place in services.items()]
    if account.progress is not None:
        total = sum([await each.count() for each in copies])
        account.expected = total * 3 if work.options.verify else total  # verification reads both sides
    for each in copies:
        await each.copy()
        await work.show(each.part)
    for each in copies:
        await each.delete()
        await work.show(each.part)
    for each in copies if work.options.verify else ():
        await each.verify()
        await work.show(each.part)
    if not dry_run:
        await work.offload(finish_pass)
    return account.report


# --- the manifest -----------------------------------------------------------------------------------------


async def _open_manifest(
    source: Context, target: Context, stores: tuple[str, str], given: Any, restart: bool, dry_run: bool
) -> CopyManifest:
    """The manifest of this copy; one without a given path that concerns memory is removed at the end."""
    lasts = source.settings.is_lasting and target.settings.is_lasting
    brief = given is None and not lasts
    names = source.settings.table_name, target.settings.table_name
    identity = " to ".join(f"{name} in {store}" for name, store in zip(names, stores, strict=True))
    name = f"holdall-copy-{sha256(identity.encode()).hexdigest()[:12]}.manifest"
    path = await source.port.offload(locate_manifest, given, name, brief)
    return await source.port.offload(open_manifest, path, identity, restart, dry_run, brief)

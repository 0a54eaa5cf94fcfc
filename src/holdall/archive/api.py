"""``db.archive``: move cold items to a file service, and bring them back; sync and async."""

from __future__ import annotations

from holdall.archive import flow, restoration
from holdall.archive import run as run_flow
from holdall.archive.export import export as export_flow
from holdall.archive.pack import compaction
from holdall.archive.upkeep import recovery, relocation, sweep
from holdall.core.shell import Namespace, awaiting, blocking


class ArchiveActions(Namespace):
    """``db.archive``: archive old items, restore them, and maintain their objects."""

    key = blocking(flow.key)
    run = blocking(run_flow.run)
    find_archived = blocking(flow.find_archived)
    report = blocking(flow.report)
    restore = blocking(restoration.restore)
    restore_all = blocking(restoration.restore_all)
    rekey = blocking(relocation.rekey)
    rebuild_pointers = blocking(recovery.rebuild_pointers)
    sweep = blocking(sweep.sweep)
    compact = blocking(compaction.compact)
    export = blocking(export_flow.export)


class AsyncArchiveActions(Namespace):
    """``db.archive`` of an `AsyncDatabase`: the same methods as `ArchiveActions`, for async code."""

    key = awaiting(flow.key)
    run = awaiting(run_flow.run)
    find_archived = awaiting(flow.find_archived)
    report = awaiting(flow.report)
    restore = awaiting(restoration.restore)
    restore_all = awaiting(restoration.restore_all)
    rekey = awaiting(relocation.rekey)
    rebuild_pointers = awaiting(recovery.rebuild_pointers)
    sweep = awaiting(sweep.sweep)
    compact = awaiting(compaction.compact)
    export = awaiting(export_flow.export)

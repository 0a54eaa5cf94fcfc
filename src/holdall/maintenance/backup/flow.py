"""Flows that make a backup of an embedded database and its files, while it is in use, and restore one.

**Why a backup is of one moment, and safe to interrupt.**

1. A snapshot of each file service begins: deletions and replacements of objects wait.
2. The store is copied as of one moment. Everything that its rows name exists, because no object can be deleted.
3. The objects' files are linked, and deletions go on: a link keeps the bytes. Objects that were put since step 2 are
   linked, too; the copied rows do not name them.
4. The links are copied, with digests, into a directory with a temporary name; everything is read back and compared;
   the manifest is written; the directory gets its name.

If the process dies in 1 to 3, the kernel releases the locks. The links are removed by the next snapshot, and a
directory without a manifest is not accepted as a backup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdall.core.context import Context
from holdall.core.frozen import dataclass
from holdall.core.objects import DescribeService
from holdall.core.snapshots import (
    AdoptObjects,
    BeginSnapshot,
    EndSnapshot,
    LinkSnapshot,
    RestoreStore,
    Snapshot,
    SnapshotStore,
)
from holdall.errors import ConfigurationError, InvalidOptionsError
from holdall.local.backup import (
    DATABASE,
    FILES,
    BackupDraft,
    copy_files,
    drop_backup,
    finish_backup,
    open_backup,
    read_backup,
)
from holdall.tables.flow import find_table


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup has, or had restored: how many files, and how many bytes they have, without the database's own."""

    path: str
    files: int
    bytes: int


Progress = Callable[[BackupReport], Any]


async def back_up(context: Context, target: Any, progress: Progress | None) -> BackupReport:
    """Make a backup at a path where nothing is."""
    services = await _list_services(context)
    port = context.port
    roots = [(await port.send(DescribeService(name))).place for name in services]
    draft: BackupDraft = await port.offload(open_backup, target, port.new_id(), roots)
    open_snapshots: dict[str, Snapshot] = {}
    try:
        for name in services:
            open_snapshots[name] = await port.send(BeginSnapshot(name))
        await port.send(SnapshotStore(str(draft.beside / DATABASE)))
        for name, snapshot in open_snapshots.items():
            await port.send(LinkSnapshot(name, snapshot.id))
        for name, snapshot in open_snapshots.items():
            while await port.offload(copy_files, draft, name, snapshot.directory):
                if progress is not None:
                    await port.call(progress, _report(draft))
        facts = {"made_at": port.now().isoformat(), "services": services}
        await port.offload(finish_backup, draft, facts)
    except BaseException:
        await port.offload(drop_backup, draft)
        raise
    finally:
        for name, snapshot in open_snapshots.items():
            await port.send(EndSnapshot(name, snapshot.id))
    report = _report(draft)
    if progress is not None:
        await port.call(progress, report)
    return report


def _report(draft: BackupDraft) -> BackupReport:
    return BackupReport(draft.target, draft.files, draft.bytes)


async def restore(context: Context, source: Any) -> BackupReport:
    """Restore a backup into a database without tables, whose file services have no objects.

    The store is filled last and in one step: a database that has tables is restored completely. An interrupted call can
    be repeated.
    """
    services = await _list_services(context)
    port = context.port
    manifest = await port.offload(read_backup, source)
    missing = [name for name in manifest["services"] if name not in services]
    if missing:
        raise InvalidOptionsError(
            f"the backup has files of the service {missing[0]!r}, which this database does not have",
            hint=f"open the database with files={{{missing[0]!r}: 'file:PATH'}}",
        )
    if await find_table(context, context.settings.table_name) is not None:
        raise InvalidOptionsError(
            f"the database has the table {context.settings.table_name} already",
            hint="restore the backup into a new database",
        )
    for name in manifest["services"]:
        await port.send(AdoptObjects(name, f"{source}/{FILES}/{name}"))
    await port.send(RestoreStore(f"{source}/{DATABASE}"))
    context.forget_tables()
    found = manifest["files"]
    return BackupReport(str(source), found["count"], found["bytes"])


async def _list_services(context: Context) -> list[str]:
    """The services whose objects are on this machine; `ConfigurationError` if there are others."""
    settings = context.settings
    if settings.path is None:
        raise ConfigurationError(
            f"{settings.url} is not an embedded database, and only those have backups here",
            hint="use point-in-time recovery of DynamoDB and versioning of S3, or copy the database with holdall copy",
        )
    names = []
    for name, url in settings.files:
        traits = await context.port.send(DescribeService(name))
        if traits.mirrors:  # they and the primary are services themselves
            continue
        if not traits.snapshots:
            raise ConfigurationError(
                f"the file service {name!r} is {url}, and a backup can include only files on this machine",
                hint="back up that service by its own means, and open the database with only its file: services",
            )
        names.append(name)
    return names

"""The async database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from holdall.composition import Composed, make_awaiting_context
from holdall.core.cursor import AwaitingPages, PageCursor
from holdall.core.port import Port, wait
from holdall.core.requests import Page, Query, Request, Scan
from holdall.core.traceback import ShortTracebacks
from holdall.transactions.run.runner import AsyncRunner

if TYPE_CHECKING:
    from os import PathLike

    from holdall.archive.api import AsyncArchiveActions
    from holdall.artifacts import AsyncArtifacts
    from holdall.attachments.api import AsyncBlobs
    from holdall.core.schema import NeedsTable
    from holdall.database import Database
    from holdall.files import AsyncFiles
    from holdall.jobs import AsyncJobs
    from holdall.maintenance.backup.flow import BackupReport
    from holdall.maintenance.copy.flow import CopyArguments
    from holdall.maintenance.copy.report import CopyReport
    from holdall.maintenance.doctor.flow import DoctorArguments
    from holdall.maintenance.doctor.report import DoctorReport, ModelFigure
    from holdall.tables import AsyncTable
    from holdall.worker import Worker
    from holdall.worker.worker import WorkerArguments

R = TypeVar("R")


class AsyncDatabase(Composed, AsyncRunner):
    """`holdall.Database` for asyncio: it has the same methods, and those that do I/O are awaited.

    Creating one is quick, and works outside an event loop as well.
    """

    _make_context = staticmethod(make_awaiting_context)

    async def send(self, request: Request[R]) -> R:
        """Send one request and return its reply, whose type depends on the request."""
        return await wait(self._context.port.send(request), self._context)

    def pages(self, request: Query | Scan) -> AsyncIterator[Page]:
        """Iterate over the pages of a query or scan, fetched one by one; ``limit`` is the most items read per page."""
        return AwaitingPages(PageCursor(self._context.port, request), self._context)

    @property
    def port(self) -> Port:
        """The port, through which your own flows send requests: ``await my_flow(db.port)``."""
        return self._context.port

    @property
    def table(self) -> AsyncTable:
        """The database's table: create, describe, delete and export it."""
        from holdall.tables import AsyncTable

        return AsyncTable(self._context)

    @property
    def jobs(self) -> AsyncJobs:
        """Enqueue jobs; list, retry and delete those that are waiting or have failed."""
        from holdall.jobs import AsyncJobs

        return AsyncJobs(self._context)

    @property
    def artifacts(self) -> AsyncArtifacts:
        """Versioned artifacts, and the aliases that serve them."""
        from holdall.artifacts import AsyncArtifacts

        return AsyncArtifacts(self._context)

    @property
    def blobs(self) -> AsyncBlobs:
        """Attached files, and files that are not attached to anything yet."""
        from holdall.attachments.api import AsyncBlobs

        return AsyncBlobs(self._context)

    @property
    def archive(self) -> AsyncArchiveActions:
        """Move cold items of models to a file service, and bring them back."""
        from holdall.archive.api import AsyncArchiveActions

        return AsyncArchiveActions(self._context)

    async def backup(
        self, target: str | PathLike[str], *, progress: Callable[[BackupReport], Any] | None = None
    ) -> BackupReport:
        """Make a backup of an embedded database and its files in the new directory ``target``.

        The database can be in use. The backup shows it as of one moment, and was read back and verified when this
        returns. ``progress`` is called with a `BackupReport` as files are copied.
        """
        from holdall.maintenance.backup.flow import back_up

        return await wait(back_up(self._context, target, progress), self._context)

    async def restore(self, source: str | PathLike[str]) -> BackupReport:
        """Restore a backup into this database, which must be new: without a table, and without files."""
        from holdall.maintenance.backup.flow import restore

        return await wait(restore(self._context, source), self._context)

    @property
    def files(self) -> AsyncFiles:
        """Files, stored under keys in the default service; ``files["name"]`` is another service."""
        from holdall.files import AsyncFiles

        return AsyncFiles(self._context, self._services.default)

    async def create_buckets(self, service: str | None = None) -> dict[str, bool]:
        """Create the missing buckets of a file service, by default the default service, and of its mirrors.

        Returns each bucket with whether it was created. Services without buckets are left out.
        """
        return await wait(self._context.port.offload(self._services.create_buckets, service), self._context)

    def worker(self, **options: Unpack[WorkerArguments]) -> Worker:
        """Return a worker that runs this database's jobs: in an ``async with`` block, or with ``drain()`` or ``run()``.

        See `holdall.worker.Worker` for its options.
        """
        from holdall.worker import Worker

        with ShortTracebacks(self._context):
            return Worker(self, **options)

    async def copy_to(self, target: AsyncDatabase, **options: Unpack[CopyArguments]) -> CopyReport:
        """Copy everything in this database to another one: tables, jobs and files. This database is not changed.

        Run it again to copy only what has changed since. ``manifest`` is a file that records what was copied; by
        default, its name is derived from both databases, and it is in the current directory. After an interruption, the
        same call continues where it stopped; ``restart=True`` forgets what earlier calls recorded.

        The database's table is copied, the tables of ``models`` with ``table=``, and those that ``tables`` names.
        Tables that the target lacks are created if its ``manage_table`` or ``create=True`` allows it. Jobs arrive
        paused: see ``db.jobs.resume``. An item or object that another program has changed in the target is reported
        and left alone; ``overwrite=True`` replaces it. ``delete=True`` deletes from the target what an earlier call
        copied and is no longer here. Unless ``verify=False``, both sides are then read again and compared.
        Objects of each file service go to the target's service of the same name; ``files=False`` leaves them out.

        Each table is read in ``segments`` parts in parallel, by default 4 if one of the databases is in DynamoDB.
        ``rate`` limits how many items are written or deleted per second, ``bandwidth`` how many bytes of files pass
        through this machine. ``dry_run=True`` writes nothing, and returns what would be copied. ``progress`` is called
        with the report so far, also from other threads.
        """
        from holdall.maintenance.copy.flow import copy_database
        from holdall.maintenance.copy.work import make_side

        with ShortTracebacks(self._context):
            ours, theirs = make_side(self, AsyncDatabase), make_side(target, AsyncDatabase)
        return await wait(copy_database(ours, theirs, **options), self._context)

    async def doctor(self, **options: Unpack[DoctorArguments]) -> DoctorReport:
        """Check this database, and return what is wrong. Nothing is changed, except that figures are stored.

        ``models`` are your models; without them, their tables and items are not checked. ``only`` is a list of the
        checks to make: ``configuration``, ``permissions``, ``tables``, ``items``, ``unique``, ``blobs``, ``archive``,
        ``artifacts``, ``jobs`` and ``orphans``; by default all of them. ``features`` are the features whose permissions
        are checked, named as for ``db.table.export_policy``; by default all but ``create``. ``repair=True`` repairs
        what can be repaired, each fault on condition that it is still as it was found.

        This reads all items, also with other programs writing at the same time: ``segments`` parts of a table in
        parallel, and at most ``rate`` items per second. The number and size of each model's items are stored for
        `figures`, unless ``store_figures=False``. ``progress`` is called with the report so far.
        """
        from holdall.maintenance.doctor.flow import examine

        return await wait(examine(self._context, self._services.urls, **options), self._context)

    async def figures(self) -> list[ModelFigure]:
        """Return how many items each model had, and their size, when `doctor` last counted them."""
        from holdall.maintenance.doctor.figure import read_figures

        return await wait(read_figures(self._context), self._context)

    async def dump_lines(
        self, *, models: Sequence[NeedsTable] = (), tables: Sequence[str] = ()
    ) -> AsyncIterator[str]:
        """Iterate over the items of the database's table as lines of JSON, for fixtures; files are not included.

        ``models`` with ``table=`` and ``tables`` add other tables. Numbers, text, booleans, lists and maps are plain
        JSON; other values have their type, so that `load_lines` restores every item exactly.
        """
        from holdall.maintenance.dump.flow import Dump

        async for lines in AwaitingPages(Dump(self._context, models, tables), self._context):
            for line in lines:
                yield line

    async def load_lines(self, lines: Iterable[str]) -> int:
        """Put the items of these lines, which `dump_lines` returned, into their tables; return how many there were.

        ``lines`` is an iterable of text, such as an open file. Items with the same keys are replaced, so it can be
        repeated. The key attributes of the database's table may have other names here. A line that cannot be loaded
        raises an error that names it. Lines that can be read twice (a list, or a file on disk) are checked first, so
        that nothing is loaded then; of other lines, those before it may have been loaded.
        """
        from holdall.maintenance.dump.flow import load_lines

        return await wait(load_lines(self._context, lines), self._context)

    @property
    def sync(self) -> Database:
        """A `Database` on the same store, closed together with this one."""
        from holdall.database import Database

        return self._make_twin(Database)

    async def close(self) -> None:
        """Finish running requests and close the store, also for ``db.sync``. Closing twice is harmless."""
        await asyncio.to_thread(self._services.close)
        await asyncio.to_thread(self._backend.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

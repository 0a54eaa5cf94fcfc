"""The sync database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from holdall.composition import Composed, make_blocking_context
from holdall.core.cursor import BlockingPages, PageCursor
from holdall.core.port import Port, run
from holdall.core.requests import Page, Query, Request, Scan
from holdall.core.traceback import ShortTracebacks
from holdall.transactions.run.runner import Runner

if TYPE_CHECKING:
    from os import PathLike

    from holdall.archive.api import ArchiveActions
    from holdall.artifacts import Artifacts
    from holdall.async_database import AsyncDatabase
    from holdall.attachments.api import Blobs
    from holdall.core.schema import NeedsTable
    from holdall.files import Files
    from holdall.jobs import Jobs
    from holdall.maintenance.backup.flow import BackupReport
    from holdall.maintenance.copy.flow import CopyArguments
    from holdall.maintenance.copy.report import CopyReport
    from holdall.maintenance.doctor.flow import DoctorArguments
    from holdall.maintenance.doctor.report import DoctorReport, ModelFigure
    from holdall.tables import Table
    from holdall.worker import WorkerThread
    from holdall.worker.worker import WorkerArguments

R = TypeVar("R")


class Database(Composed, Runner):
    """A database: embedded in one file, in memory, or one table in DynamoDB.

    ``Database()`` opens ``./holdall.db``, ``Database("embedded:data/app.db")`` another file, ``Database("memory:")``
    a database that exists until it is closed, and ``Database("dynamodb://my-app?region=eu-central-1")`` the table
    ``my-app`` in DynamoDB. Opening a database does not create a table.

    The settings are ``durability``, ``table_name``, ``partition_key``, ``sort_key``, ``namespace``, ``separator``,
    ``index_name``, ``index_partition_key``, ``index_sort_key``, ``manage_table``, ``region``, ``endpoint``,
    ``profile``, ``single_writes``, ``connect_timeout``, ``read_timeout``, ``total_timeout``, ``max_attempts``,
    ``max_connections``, ``table_prefix``, ``secret``, ``reads``, ``files``, ``default_service``, ``artifacts``,
    ``attachments`` and ``tracebacks``. A setting that is not passed here comes from the URL's query, the environment
    (``HOLDALL_URL``, ``HOLDALL_DURABILITY``, ...) or ``holdall.toml``, in this order.

    ``client`` is a boto3 client for DynamoDB that sends the requests instead of Holdall's own client. ``credentials``
    is a function that returns credentials (access key, secret, session token, expiry), instead of the usual sources.
    ``backend`` is your own store, instead of a URL. ``reads`` is a second store, for reads that may be slightly out of
    date (``consistent=False``, indexes, scans): the endpoint of a DAX cluster, ``daxs://...``, or a backend, which is
    closed with the database. ``files`` is where files are stored: a URL (``file:data/files``,
    ``s3://bucket/prefix?region=...``, ``memory:``), your own service, or several services by name; ``default_service``
    names the one that is used by default.

    A database can be shared between threads, and keeps working in a forked child process.
    """

    _make_context = staticmethod(make_blocking_context)

    def send(self, request: Request[R]) -> R:
        """Send one request and return its reply, whose type depends on the request."""
        return run(self._context.port.send(request), self._context)

    def pages(self, request: Query | Scan) -> Iterator[Page]:
        """Iterate over the pages of a query or scan, fetched one by one; ``limit`` is the most items read per page."""
        return BlockingPages(PageCursor(self._context.port, request), self._context)

    @property
    def port(self) -> Port:
        """The port, through which your own flows send requests: ``run(my_flow(db.port))``."""
        return self._context.port

    @property
    def table(self) -> Table:
        """The database's table: create, describe, delete and export it."""
        from holdall.tables import Table

        return Table(self._context)

    @property
    def jobs(self) -> Jobs:
        """Enqueue jobs; list, retry and delete those that are waiting or have failed."""
        from holdall.jobs import Jobs

        return Jobs(self._context)

    @property
    def artifacts(self) -> Artifacts:
        """Versioned artifacts, and the aliases that serve them."""
        from holdall.artifacts import Artifacts

        return Artifacts(self._context)

    @property
    def blobs(self) -> Blobs:
        """Attached files, and files that are not attached to anything yet."""
        from holdall.attachments.api import Blobs

        return Blobs(self._context)

    @property
    def archive(self) -> ArchiveActions:
        """Move cold items of models to a file service, and bring them back."""
        from holdall.archive.api import ArchiveActions

        return ArchiveActions(self._context)

    def backup(
        self, target: str | PathLike[str], *, progress: Callable[[BackupReport], Any] | None = None
    ) -> BackupReport:
        """Make a backup of an embedded database and its files in the new directory ``target``.

        The database can be in use. The backup shows it as of one moment, and was read back and verified when this
        returns. ``progress`` is called with a `BackupReport` as files are copied.
        """
        from holdall.maintenance.backup.flow import back_up

        return run(back_up(self._context, target, progress), self._context)

    def restore(self, source: str | PathLike[str]) -> BackupReport:
        """Restore a backup into this database, which must be new: without a table, and without files."""
        from holdall.maintenance.backup.flow import restore

        return run(restore(self._context, source), self._context)

    @property
    def files(self) -> Files:
        """Files, stored under keys in the default service; ``files["name"]`` is another service."""
        from holdall.files import Files

        return Files(self._context, self._services.default)

    def create_buckets(self, service: str | None = None) -> dict[str, bool]:
        """Create the missing buckets of a file service, by default the default service, and of its mirrors.

        Returns each bucket with whether it was created. Services without buckets are left out.
        """
        return run(self._context.port.offload(self._services.create_buckets, service), self._context)

    def worker(self, **options: Unpack[WorkerArguments]) -> WorkerThread:
        """Return a worker that runs this database's jobs: in a ``with`` block, or with ``drain()`` or ``run()``.

        See `holdall.worker.Worker` for its options.
        """
        from holdall.worker import WorkerThread

        with ShortTracebacks(self._context):
            return WorkerThread(self, **options)

    def copy_to(self, target: Database, **options: Unpack[CopyArguments]) -> CopyReport:
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
            ours, theirs = make_side(self, Database), make_side(target, Database)
        return run(copy_database(ours, theirs, **options), self._context)

    def doctor(self, **options: Unpack[DoctorArguments]) -> DoctorReport:
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

        return run(examine(self._context, self._services.urls, **options), self._context)

    def figures(self) -> list[ModelFigure]:
        """Return how many items each model had, and their size, when `doctor` last counted them."""
        from holdall.maintenance.doctor.figure import read_figures

        return run(read_figures(self._context), self._context)

    def dump_lines(self, *, models: Sequence[NeedsTable] = (), tables: Sequence[str] = ()) -> Iterator[str]:
        """Iterate over the items of the database's table as lines of JSON, for fixtures; files are not included.

        ``models`` with ``table=`` and ``tables`` add other tables. Numbers, text, booleans, lists and maps are plain
        JSON; other values have their type, so that `load_lines` restores every item exactly.
        """
        from holdall.maintenance.dump.flow import Dump

        for lines in BlockingPages(Dump(self._context, models, tables), self._context):
            yield from lines

    def load_lines(self, lines: Iterable[str]) -> int:
        """Put the items of these lines, which `dump_lines` returned, into their tables; return how many there were.

        ``lines`` is an iterable of text, such as an open file. Items with the same keys are replaced, so it can be
        repeated. The key attributes of the database's table may have other names here. A line that cannot be loaded
        raises an error that names it. Lines that can be read twice (a list, or a file on disk) are checked first, so
        that nothing is loaded then; of other lines, those before it may have been loaded.
        """
        from holdall.maintenance.dump.flow import load_lines

        return run(load_lines(self._context, lines), self._context)

    @property
    def aio(self) -> AsyncDatabase:
        """An `AsyncDatabase` on the same store, closed together with this one."""
        from holdall.async_database import AsyncDatabase

        return self._make_twin(AsyncDatabase)

    def close(self) -> None:
        """Finish running requests and close the store, also for ``db.aio``. Closing twice is harmless."""
        self._services.close()
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

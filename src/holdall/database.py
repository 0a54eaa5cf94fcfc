"""The sync database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from holdall.backends.configuration import open_backend
from holdall.composition import Shared, equip_services, make_blocking_context
from holdall.core.cursor import BlockingPages, PageCursor
from holdall.core.port import Backend, Port, run
from holdall.core.requests import Page, Query, Request, Scan
from holdall.core.settings import Settings
from holdall.features import DatabaseArguments, setting_parsers
from holdall.transactions.runner import Runner

if TYPE_CHECKING:
    from holdall.archive.api import ArchiveActions
    from holdall.artifacts import Artifacts
    from holdall.async_database import AsyncDatabase
    from holdall.attachments.api import Blobs
    from holdall.attachments.attachable import Attachable, Destroying, Saving
    from holdall.backends.services import FilesArgument, Services
    from holdall.files import Files
    from holdall.jobs import Jobs
    from holdall.tables import Table
    from holdall.worker import WorkerThread
    from holdall.worker.worker import WorkerArguments

R = TypeVar("R")


class Database(Runner):
    """A database: embedded in one file, in memory, or one table of DynamoDB.

    ``Database()`` opens ``./holdall.db``; ``Database("embedded:data/app.db")`` another file;
    ``Database("memory:")`` one that is gone when it is closed; ``Database("dynamodb://my-app?region=eu-central-1")``
    a table of that name in DynamoDB. Opening creates no table.

    The settings are ``durability``, ``table_name``, ``partition_key``, ``sort_key``, ``namespace``, ``separator``,
    ``index_name``, ``index_partition_key``, ``index_sort_key``, ``manage_table``, ``region``, ``endpoint``,
    ``profile``, ``single_writes``, ``table_prefix``, ``secret``, ``reads``, ``files``, ``default_service``,
    ``artifacts`` and ``tracebacks``. Those not given here come from the URL's query, the environment (``HOLDALL_URL``,
    ``HOLDALL_DURABILITY``, ...) or ``holdall.toml``, in this order.

    ``client`` is a boto3 client for DynamoDB that sends the requests in place of Holdall's own. ``credentials`` is a
    function that returns credentials (access key, secret, session token, expiry), in place of the usual sources.
    ``backend`` is a store of your own, in place of a URL. ``reads`` is a second one, for reads that may be a little old
    (``consistent=False``, indexes, scans): the endpoint of a DAX cluster, ``daxs://...``, or a backend, which is closed
    with the database. ``files`` says where bytes are kept: a URL (``file:data/files``,
    ``s3://bucket/prefix?region=...``, ``memory:``), a service of your own, or several by name; ``default_service`` is
    the one used when none is named.

    Safe to share between threads, and to keep over a fork.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: Any = None,
        credentials: Callable[[], Any] | None = None,
        backend: Backend | None = None,
        reads: Backend | str | None = None,
        files: FilesArgument = None,
        **settings: Unpack[DatabaseArguments],
    ) -> None:
        given = (url, backend, client, credentials, settings, reads, files)
        self._compose(*open_backend(*given, setting_parsers()), Shared())

    def _compose(self, backend: Backend, settings: Settings, services: Services, shared: Shared) -> None:
        self._backend = backend
        self._services = equip_services(backend, settings, services, shared)
        self._shared = shared
        self._context = make_blocking_context(backend, settings, services, shared)

    def send(self, request: Request[R]) -> R:
        """Send one request and return its reply; its type follows the request's."""
        return run(self._context.port.send(request), self._context)

    def pages(self, request: Query | Scan) -> Iterator[Page]:
        """The pages of a query or scan, fetched one by one; ``limit`` is the most items examined for each."""
        return BlockingPages(PageCursor(self._context.port, request), self._context)

    @property
    def port(self) -> Port:
        """The port, for flows of your own: ``run(my_flow(db.port))``."""
        return self._context.port

    @property
    def table(self) -> Table:
        """The one table: create, describe, delete and export it."""
        from holdall.tables import Table

        return Table(self._context)

    @property
    def jobs(self) -> Jobs:
        """Enqueue jobs; list, retry and delete those that wait or failed."""
        from holdall.jobs import Jobs

        return Jobs(self._context)

    @property
    def artifacts(self) -> Artifacts:
        """Versioned artifacts, and the aliases that serve them."""
        from holdall.artifacts import Artifacts

        return Artifacts(self._context)

    @property
    def blobs(self) -> Blobs:
        """Files that items have attached, and those that nothing has yet."""
        from holdall.attachments.api import Blobs

        return Blobs(self._context)

    @property
    def archive(self) -> ArchiveActions:
        """Move cold items of models to a file service, and bring them back."""
        from holdall.archive.api import ArchiveActions

        return ArchiveActions(self._context)

    def saving(self, owner: Attachable) -> Saving:
        """``with db.saving(owner):`` stores what is attached to an owner that the body saves by its own means."""
        from holdall.attachments.attachable import Saving

        return Saving(self._context, owner)

    def destroying(self, owner: Attachable) -> Destroying:
        """``with db.destroying(owner):`` lets go of what is attached to an owner that the body destroys."""
        from holdall.attachments.attachable import Destroying

        return Destroying(self._context, owner)

    @property
    def files(self) -> Files:
        """Bytes under keys, in the default service; ``files["name"]`` is another service."""
        from holdall.files import Files

        return Files(self._context, self._services.default)

    def create_buckets(self, service: str | None = None) -> dict[str, bool]:
        """Make the buckets of a service of files, and of its mirrors, where they are missing; the default service's.

        Each bucket with whether it was made. Services that have no bucket need none.
        """
        return self._services.create_buckets(service)

    def worker(self, **options: Unpack[WorkerArguments]) -> WorkerThread:
        """A worker on this database, which works while a ``with`` block runs.

        See `holdall.worker.Worker` for its options.
        """
        from holdall.worker import WorkerThread

        return WorkerThread(self, **options)

    @property
    def aio(self) -> AsyncDatabase:
        """The async twin, on the same store."""
        from holdall.async_database import AsyncDatabase

        twin = AsyncDatabase.__new__(AsyncDatabase)
        twin._compose(self._backend, self._context.settings, self._services, self._shared)
        return twin

    def close(self) -> None:
        """Finish running requests and close the store, for the twin too. Closing twice is harmless."""
        self._services.close()
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._context.settings.url!r})"

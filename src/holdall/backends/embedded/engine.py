"""The embedded backend: plans each request against the known catalog, then does the work on a connection."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from holdall.backends.clock import read_seconds
from holdall.backends.embedded import layout, lookup, page, table, write
from holdall.backends.embedded.catalog import Catalog
from holdall.backends.embedded.connection import Connections
from holdall.backends.embedded.row import Row, Stale, Work, replace_row
from holdall.backends.embedded.snapshot import read_copy, write_copy
from holdall.backends.embedded.token import TOKEN_SECONDS
from holdall.backends.embedded.writer import Writer
from holdall.backends.fork import call_after_fork
from holdall.backends.port.reader import Reader
from holdall.core.internal import internal
from holdall.core.port import Outcome
from holdall.core.requests import (
    AddIndex,
    BatchGet,
    BatchWrite,
    CreateTable,
    DeleteItem,
    DeleteTable,
    DescribeTable,
    DescribeTtl,
    Done,
    GetItem,
    PutItem,
    Query,
    RemoveIndex,
    Request,
    Scan,
    SetTtl,
    TransactGet,
    TransactWrite,
    UpdateItem,
)
from holdall.core.rules.validation import Checked, check
from holdall.core.settings import Durability
from holdall.core.snapshots import RestoreStore, StoreRequest
from holdall.errors import (
    ConfigurationError,
    HoldallError,
    InvalidRequestError,
    OutcomeUnknown,
    StoreBusyError,
    StoreError,
    TableNotFoundError,
)

R = TypeVar("R")
T = TypeVar("T")
Plan = Callable[[Catalog, Any, Sequence[Checked]], Work[Any]]

_READERS = 4


class EmbeddedBackend:
    """A store in one SQLite file, or in memory if ``path`` is None.

    ``patience`` is how many seconds a request waits for other processes; ``clock`` returns the time by which client
    tokens and items expire.
    """

    sees_through = True  # writes run to their end, even if the caller is cancelled
    _writer: Writer | None
    _writer_lock: threading.Lock

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        durability: Durability = "full",
        patience: float = 30.0,
        clock: Callable[[], float] = read_seconds,
    ) -> None:
        if durability not in ("full", "normal"):
            raise ConfigurationError(f'durability must be "full" or "normal", not {durability!r}')
        file = None if path is None else Path(path).absolute()
        self._connections = Connections(file, durability, patience)
        try:
            self._catalog = self._connections.read(Catalog.load)
        except BaseException:
            self._connections.close()
            raise
        self._upkeep = Upkeep(clock)
        self._reader = Reader("holdall-read", _READERS)
        self._forget_writer()
        call_after_fork(self._forget_writer)
        self._plans: dict[type, Plan] = {
            GetItem: lookup.plan_get,
            BatchGet: lookup.plan_batch_get,
            TransactGet: lookup.plan_transact_get,
            Query: page.plan_query,
            Scan: page.plan_scan,
            PutItem: write.plan_write,
            UpdateItem: write.plan_write,
            DeleteItem: write.plan_write,
            BatchWrite: write.plan_batch_write,
            TransactWrite: lambda catalog, r, found: write.plan_transact_write(catalog, r, found, clock),
            DescribeTable: table.plan_describe,
            CreateTable: table.plan_create,
            DeleteTable: table.plan_delete,
            AddIndex: table.plan_add_index,
            RemoveIndex: table.plan_remove_index,
            DescribeTtl: table.plan_describe_ttl,
            SetTtl: table.plan_set_ttl,
        }

    def send_blocking(self, request: Request[R]) -> R:
        """Answer the request in this thread."""
        if isinstance(request, StoreRequest):
            return self._answer_whole(request)  # type: ignore[no-any-return]
        do = self._connections.write if request.writes else self._connections.read
        while True:
            catalog, work = self._plan_request(request)
            try:
                return do(self._upkeep.combine(catalog, work) if request.writes else work)  # type: ignore[no-any-return]
            except Stale:
                self._refresh(catalog)

    @internal
    def send_together(self, requests: Sequence[Request[Any]]) -> Sequence[Outcome[Any]]:
        """Answer several writes in one SQLite transaction, so that they share its commit.

        Each has a savepoint, so a refused write leaves nothing behind and does not affect the others; none is
        acknowledged before the commit. If the transaction fails as a whole, nothing of it is stored, and each request
        is answered by itself, so that the one at fault gets the error.
        """
        if any(request.of_tables for request in requests):  # each changes the catalog
            return [self._answer_alone(request) for request in requests]
        try:
            return self._write_together(requests)
        except (OutcomeUnknown, StoreBusyError):
            raise  # applies to all of them
        except Exception:  # noqa: BLE001 - each is answered by itself, and raises its own
            return [self._answer_alone(request) for request in requests]

    def _write_together(self, requests: Sequence[Request[Any]]) -> Sequence[Outcome[Any]]:
        planned = [self._plan_request(request) for request in requests]
        catalog = planned[0][0]

        def work(connection: sqlite3.Connection) -> list[Outcome[Any]]:
            return [_write_on_savepoint(connection, each) for _, each in planned]

        return self._connections.write(self._upkeep.combine(catalog, work))

    def _answer_alone(self, request: Request[Any]) -> Outcome[Any]:
        try:
            return Outcome(self.send_blocking(request))
        except Exception as error:  # noqa: BLE001 - raised where the caller waits
            return Outcome(error=error)

    async def send_awaiting(self, request: Request[R]) -> R:
        """Answer a get at once if it need not wait; everything else in the engine's threads."""
        if type(request) is GetItem:
            reply = self._get_at_once(request)
            if reply is not None:
                return reply  # type: ignore[no-any-return]
        self._connections.check_open()
        if request.writes:
            writer = self._writer or self._start_writer()
            return await writer.write(request)  # type: ignore[no-any-return]
        return await self._reader.read(self.send_blocking, request)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Finish running requests and close the file."""
        self._connections.close()
        self._reader.close()
        if self._writer is not None:
            self._writer.close()

    def _start_writer(self) -> Writer:
        """The thread that writes for async code, started when it is first needed."""
        with self._writer_lock:
            self._writer = self._writer or Writer(self.send_blocking, self.send_together)
            return self._writer

    def _forget_writer(self) -> None:
        """In a forked child, the parent's thread does not exist, nor does the holder of the lock."""
        self._writer = None
        self._writer_lock = threading.Lock()

    def _answer_whole(self, request: StoreRequest[Any]) -> Any:
        """Copy the whole store to a file, or from one."""
        act = read_copy if isinstance(request, RestoreStore) else write_copy
        try:
            self._connections.read(lambda connection: act(connection, Path(request.path)))
        except OSError as error:
            raise StoreError(f"{request.path} cannot be used: {error.strerror}") from error
        self._catalog = self._connections.read(_current_catalog)
        return Done()

    def _get_at_once(self, request: GetItem) -> Any | None:
        try:
            catalog = self._catalog
            found = check(request, catalog.schema)
            return self._connections.read_at_once(lookup.plan_get(catalog, request, found))
        except (Stale, TableNotFoundError, InvalidRequestError):
            return None  # the path through a thread checks whether the catalog has changed

    def _plan_request(self, request: Request[Any]) -> tuple[Catalog, Work[Any]]:
        while True:
            catalog = self._catalog
            try:  # before any lock is taken
                found = check(request, catalog.schema)
                return catalog, self._plans[type(request)](catalog, request, found)
            except HoldallError:
                # the known catalog may be outdated: another process may have created a table
                if not self._refresh(catalog):
                    raise

    def _refresh(self, known: Catalog) -> bool:
        """Read the catalog again; returns whether it differs from the known one."""
        self._catalog = self._connections.read(_current_catalog)
        return self._catalog.version != known.version


def _write_on_savepoint(connection: sqlite3.Connection, work: Work[Any]) -> Outcome[Any]:
    """Do the work inside a transaction; if it is refused, undo it and keep the refusal."""
    connection.execute("SAVEPOINT request")
    try:
        outcome = Outcome(work(connection))
    except HoldallError as error:
        connection.execute("ROLLBACK TO request")
        outcome = Outcome(error=error)
    connection.execute("RELEASE request")
    return outcome


def _current_catalog(connection: sqlite3.Connection) -> Catalog:
    """The catalog, unless a newer version of Holdall has upgraded the file in the meantime."""
    layout.file_version(connection)
    return Catalog.load(connection)


EVERY_SECONDS = 60.0
AT_A_TIME = 100
FIVE_YEARS = 5 * 365 * 24 * 3600


class Upkeep:
    """Deletes expired tokens and items from time to time.

    This happens inside a write transaction that runs anyway, at most once a minute per process. Like DynamoDB's expiry,
    it comes some time after an item has expired, and ignores times more than five years in the past, which are probably
    mistakes.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due = 0.0

    def combine(self, catalog: Catalog, work: Work[T]) -> Work[T]:
        """The work, preceded by housekeeping if that is due.

        Housekeeping comes first because the work checks that the catalog is still the plan's (and may change it).
        """
        now = self._clock()
        if self._due - EVERY_SECONDS <= now < self._due:  # a clock set back makes it due, too
            return work

        def both(connection: sqlite3.Connection) -> T:
            connection.execute("DELETE FROM tokens WHERE created < ?", (now - TOKEN_SECONDS,))
            rest = self._expire(connection, catalog, now)
            # set even if the work fails: housekeeping is then undone once, not again with every failing write
            self._due = now if rest else now + EVERY_SECONDS
            try:
                return work(connection)
            except Stale:
                self._due = 0.0  # the work is planned again, with housekeeping
                raise

        return both

    def _expire(self, connection: sqlite3.Connection, catalog: Catalog, now: float) -> bool:
        """Delete some expired items; returns whether there may be more."""
        tables = {table.number: table for table in catalog.tables.values() if table.ttl is not None}
        if not tables:
            return False
        expired = connection.execute(
            "SELECT id, t, pk, sk, body, size FROM items WHERE ttl > ? AND ttl < ? LIMIT ?",
            (int(now) - FIVE_YEARS, int(now), AT_A_TIME),
        ).fetchall()
        for number, owner, pk, sk, body, size in expired:
            if owner in tables:
                replace_row(connection, tables[owner], (pk, sk), Row(number, body, size), None)
        return len(expired) == AT_A_TIME

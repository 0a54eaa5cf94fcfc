"""The methods of a database that work on many items, sync and async."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Never, TypeVar, Unpack

from holdall.core.port import run, wait
from holdall.core.traceback import ShortTracebacks
from holdall.transactions.read.reader import AsyncReader, Reader

if TYPE_CHECKING:
    from holdall.core.context import Context
    from holdall.models.fields.conditions import Clause
    from holdall.models.model import Model
    from holdall.transactions.bulk.api import AsyncBulk, Bulk
    from holdall.transactions.bulk.batch import Batches, BulkReport
    from holdall.transactions.bulk.chunk import ChangeReport, TransactionMaker
    from holdall.transactions.migration.bulk import MigrationArguments, MigrationReport
    from holdall.transactions.move.conversion import AsyncConvert, Convert
    from holdall.transactions.move.flow import MoveArguments, MoveReport

M = TypeVar("M", bound="Model")

_DELETION = object()


class BulkRunner(Reader):
    """Reads items, and works on many at a time."""

    def migrate(self, model: type[Model], **options: Unpack[MigrationArguments]) -> MigrationReport:
        """Bring all stored items of a model up to date: run conversions, rename fields, add attributes of new indexes.

        It is safe while other programs write, and safe to run twice. ``segments`` parts of the table are processed
        concurrently. ``rate`` is the most items written per second. ``dry_run`` only counts. An interrupted run is
        resumed where it stopped, unless ``restart`` is true. ``progress`` is called with a report after each page.
        """
        return run(_migrate(self._context, model, options), self._context)

    def move(
        self,
        source: type[M],
        target: type[Model],
        convert: Convert[M] | None = None,
        **options: Unpack[MoveArguments],
    ) -> MoveReport:
        """Copy all items of a model, in whatever layout, as items of another model in another table.

        Fields correspond by name; ``convert`` is a function that is called with each item and returns the values of the
        new one by field name, or None to leave it out. Times, versions and expiry are kept, unique values reserved, and
        hooks not called. The source is not changed, and items that are already there are not overwritten: the report
        counts those that differ. ``update=True`` replaces those that an earlier move wrote and no program has changed.
        You can run it while other programs write the source, and as often as you like; each run copies what is missing.

        ``where`` chooses items of the source, as in `scan`. ``segments``, ``rate``, ``dry_run``, ``restart`` and
        ``progress`` are as in `migrate`; a dry run also reports what the run would cost.
        """
        return run(_move(self._context, source, target, convert, options), self._context)

    def bulk(
        self,
        model: type[M],
        *,
        concurrency: int = 1,
        rate: float | None = None,
        progress: Callable[[BulkReport], Any] | None = None,
        **others: Never,
    ) -> Bulk[M]:
        """Write and delete many items in batches of 25: ``with db.bulk(Order) as bulk: bulk.put(order)``.

        A batch is cheaper than a transaction, but nothing is locked, and a put replaces whatever is stored. Up to
        ``concurrency`` batches are sent at the same time; ``rate`` is the most items written per second. ``progress``
        is called with a `BulkReport` after them. A model with unique fields, a version, attachments, an archive or
        a ``before_...`` hook is refused, because batches would leave its items inconsistent.
        """
        from holdall.transactions.bulk.api import Bulk

        with ShortTracebacks(self._context):
            batches = _make_batches(self._context, model, others, concurrency, rate, progress)
        return Bulk(self._context, batches)

    def update_all(
        self,
        model: type[M],
        change: Mapping[str, Any] | Callable[[M], Any],
        *,
        sort: Clause | None = None,
        where: Clause | None = None,
        index: str | None = None,
        scan: bool = False,
        segments: int = 1,
        chunk: int = 25,
        checkpoint: str | None = None,
        restart: bool = False,
        rate: float | None = None,
        progress: Callable[[ChangeReport], Any] | None = None,
        **components: Any,
    ) -> ChangeReport:
        """Change all items that a query or scan finds: set the fields of a mapping, or call a function with each item.

        Items are changed in transactions of up to ``chunk`` items, so locks, unique fields, attachments and the archive
        are handled as always; each item is changed exactly once, but not all at one moment. Pass the components of the
        partition key, with ``sort``, ``where`` and ``index`` as in `query`, or ``scan=True`` to read the whole table in
        ``segments`` concurrent parts. With ``checkpoint="name"`` an interrupted run resumes where it stopped, and a
        finished one does nothing; ``restart=True`` begins again. ``rate`` is the most items written per second.
        ``progress`` is called with a report after each chunk.
        """
        finding = components, sort, where, index, scan, segments
        options = chunk, checkpoint, restart, rate, progress
        flow = _change_all(self, model, change, finding, options)
        return run(flow, self._context)

    def delete_all(
        self,
        model: type[Model],
        *,
        sort: Clause | None = None,
        where: Clause | None = None,
        index: str | None = None,
        scan: bool = False,
        segments: int = 1,
        chunk: int = 25,
        checkpoint: str | None = None,
        restart: bool = False,
        rate: float | None = None,
        progress: Callable[[ChangeReport], Any] | None = None,
        **components: Any,
    ) -> ChangeReport:
        """Delete all items that a query or scan finds, in transactions of up to ``chunk`` items, as in `update_all`."""
        finding = components, sort, where, index, scan, segments
        options = chunk, checkpoint, restart, rate, progress
        flow = _change_all(self, model, _DELETION, finding, options)
        return run(flow, self._context)

    def _transaction_maker(self) -> TransactionMaker:
        from holdall.transactions.api import Transaction
        from holdall.transactions.bulk.chunk import TransactionMaker

        return TransactionMaker(partial(Transaction, self._context), finish_flow)


class AsyncBulkRunner(AsyncReader):
    """Reads items, and works on many at a time."""

    async def migrate(self, model: type[Model], **options: Unpack[MigrationArguments]) -> MigrationReport:
        """Bring all stored items of a model up to date: run conversions, rename fields, add attributes of new indexes.

        It is safe while other programs write, and safe to run twice. ``segments`` parts of the table are processed
        concurrently. ``rate`` is the most items written per second. ``dry_run`` only counts. An interrupted run is
        resumed where it stopped, unless ``restart`` is true. ``progress`` is called with a report after each page.
        """
        return await wait(_migrate(self._context, model, options), self._context)

    async def move(
        self,
        source: type[M],
        target: type[Model],
        convert: AsyncConvert[M] | None = None,
        **options: Unpack[MoveArguments],
    ) -> MoveReport:
        """Copy all items of a model, in whatever layout, as items of another model in another table.

        Fields correspond by name; ``convert`` is a function that is called with each item and returns the values of the
        new one by field name, or None to leave it out. Times, versions and expiry are kept, unique values reserved, and
        hooks not called. The source is not changed, and items that are already there are not overwritten: the report
        counts those that differ. ``update=True`` replaces those that an earlier move wrote and no program has changed.
        You can run it while other programs write the source, and as often as you like; each run copies what is missing.

        ``where`` chooses items of the source, as in `scan`. ``segments``, ``rate``, ``dry_run``, ``restart`` and
        ``progress`` are as in `migrate`; a dry run also reports what the run would cost.
        """
        return await wait(_move(self._context, source, target, convert, options), self._context)

    def bulk(
        self,
        model: type[M],
        *,
        concurrency: int = 1,
        rate: float | None = None,
        progress: Callable[[BulkReport], Any] | None = None,
        **others: Never,
    ) -> AsyncBulk[M]:
        """Write and delete many items in batches of 25: ``async with db.bulk(Order) as bulk: await bulk.put(order)``.

        A batch is cheaper than a transaction, but nothing is locked, and a put replaces whatever is stored. Up to
        ``concurrency`` batches are sent at the same time; ``rate`` is the most items written per second. ``progress``
        is called with a `BulkReport` after them. A model with unique fields, a version, attachments, an archive or
        a ``before_...`` hook is refused, because batches would leave its items inconsistent.
        """
        from holdall.transactions.bulk.api import AsyncBulk

        with ShortTracebacks(self._context):
            batches = _make_batches(self._context, model, others, concurrency, rate, progress)
        return AsyncBulk(self._context, batches)

    async def update_all(
        self,
        model: type[M],
        change: Mapping[str, Any] | Callable[[M], Any],
        *,
        sort: Clause | None = None,
        where: Clause | None = None,
        index: str | None = None,
        scan: bool = False,
        segments: int = 1,
        chunk: int = 25,
        checkpoint: str | None = None,
        restart: bool = False,
        rate: float | None = None,
        progress: Callable[[ChangeReport], Any] | None = None,
        **components: Any,
    ) -> ChangeReport:
        """Change all items that a query or scan finds: set the fields of a mapping, or call a function with each item.

        Items are changed in transactions of up to ``chunk`` items, so locks, unique fields, attachments and the archive
        are handled as always; each item is changed exactly once, but not all at one moment. Pass the components of the
        partition key, with ``sort``, ``where`` and ``index`` as in `query`, or ``scan=True`` to read the whole table in
        ``segments`` concurrent parts. With ``checkpoint="name"`` an interrupted run resumes where it stopped, and a
        finished one does nothing; ``restart=True`` begins again. ``rate`` is the most items written per second.
        ``progress`` is called with a report after each chunk.
        """
        finding = components, sort, where, index, scan, segments
        options = chunk, checkpoint, restart, rate, progress
        flow = _change_all(self, model, change, finding, options)
        return await wait(flow, self._context)

    async def delete_all(
        self,
        model: type[Model],
        *,
        sort: Clause | None = None,
        where: Clause | None = None,
        index: str | None = None,
        scan: bool = False,
        segments: int = 1,
        chunk: int = 25,
        checkpoint: str | None = None,
        restart: bool = False,
        rate: float | None = None,
        progress: Callable[[ChangeReport], Any] | None = None,
        **components: Any,
    ) -> ChangeReport:
        """Delete all items that a query or scan finds, in transactions of up to ``chunk`` items, as in `update_all`."""
        finding = components, sort, where, index, scan, segments
        options = chunk, checkpoint, restart, rate, progress
        flow = _change_all(self, model, _DELETION, finding, options)
        return await wait(flow, self._context)

    def _transaction_maker(self) -> TransactionMaker:
        from holdall.transactions.api import AsyncTransaction
        from holdall.transactions.bulk.chunk import TransactionMaker

        return TransactionMaker(partial(AsyncTransaction, self._context), lambda flow: flow)


def finish_flow(flow: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function that runs a flow to its end."""

    @wraps(flow)
    def call(*args: Any) -> Any:
        return run(flow(*args))

    return call


async def _migrate(context: Context, model: object, options: MigrationArguments) -> MigrationReport:
    """The flow of `migrate`, once the arguments are checked."""
    from holdall.transactions.migration.bulk import MigrationArguments, migrate
    from holdall.transactions.read.target import model_schema, refuse_others

    schema = model_schema(model)
    refuse_others("migrate", schema, options, MigrationArguments.__annotations__)
    return await migrate(context, schema, **options)


async def _move(
    context: Context, source: object, target: object, convert: Any, options: MoveArguments
) -> MoveReport:
    """The flow of `move`, once the arguments are checked."""
    from holdall.transactions.move.flow import MoveArguments, move
    from holdall.transactions.read.target import model_schema, refuse_others

    found = model_schema(source)
    refuse_others("move", found, options, MoveArguments.__annotations__)
    return await move(context, found, model_schema(target), convert=convert, **options)


def _make_batches(
    context: Context, model: object, others: Mapping[str, Any], concurrency: int, rate: Any, progress: Any
) -> Batches:
    """The batches of `bulk`, once the arguments are checked."""
    from holdall.transactions.bulk.batch import Batches
    from holdall.transactions.read.target import model_schema, refuse_others

    schema = model_schema(model)
    refuse_others("bulk", schema, others, BulkRunner.bulk.__kwdefaults__)
    return Batches(context, schema, concurrency=concurrency, rate=rate, progress=progress)


async def _change_all(
    db: BulkRunner | AsyncBulkRunner,
    model: object,
    change: Any,
    finding: tuple[Any, ...],
    options: tuple[Any, ...],
) -> ChangeReport:
    """The flow of `update_all`, or of `delete_all` with `_DELETION` as the change, once the arguments are checked."""
    from holdall.transactions.bulk import chunk as bulk
    from holdall.transactions.bulk.treatment import Assignment, Deletion, Revision, Treatment
    from holdall.transactions.read.target import model_schema

    schema = model_schema(model)
    checked = bulk.check_options(*options)
    treatment: Treatment
    if change is _DELETION:
        treatment = Deletion()
    else:
        treatment = Assignment(schema, change) if isinstance(change, Mapping) else Revision(change)
    components, sort, where, index, scan, segments = finding
    question = bulk.make_question(
        schema, scan=scan, segments=segments, where=where, sort=sort, index=index, components=components
    )
    return await bulk.change_all(db._context, db._transaction_maker(), question, treatment, checked)

"""Running functions in transactions, sync and async: the methods of a database that do so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, TypeVarTuple, Unpack, overload

from holdall.core.generator import refuse_generator_function
from holdall.core.port import run, wait
from holdall.errors import InvalidOptionsError
from holdall.transactions.reader import AsyncReader, Reader

if TYPE_CHECKING:
    from holdall.models.conditions import Clause
    from holdall.models.field_update import FieldUpdate
    from holdall.models.keys import ModelKey
    from holdall.models.model import Model
    from holdall.tables.commit.retry import RunArguments, TransactionArguments
    from holdall.transactions.api import AsyncTransaction, Transaction
    from holdall.transactions.bulk.api import AsyncBulk, Bulk
    from holdall.transactions.bulk.batch import BulkReport
    from holdall.transactions.bulk.chunk import ChangeReport, Shell
    from holdall.transactions.migration.bulk import MigrationReport
    from holdall.transactions.move.conversion import AsyncConvert, Convert
    from holdall.transactions.move.flow import MoveArguments, MoveReport

M = TypeVar("M", bound="Model")
P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Runner(Reader):
    """Reads items, and runs functions in transactions."""

    def run(
        self,
        function: Callable[[Transaction, *Ts], T],
        *args: *Ts,
        **options: Unpack[RunArguments],
    ) -> T:
        """Call ``function(tx, *args)`` in a transaction and commit; on contention, start again from the beginning.

        At most ``retries`` more attempts follow, after random waits that grow from ``initial_backoff`` to
        ``max_backoff`` seconds; by default 3, or after contention as many as can begin within 30 seconds. No attempt
        begins more than ``timeout`` seconds after the first. An error whose attribute ``retryable`` is true, including
        one of your own, is retried; any other error is raised unchanged. ``read_only`` and ``strict`` are as in
        `transaction`. Returns what the function returns.
        """
        return self._run(check_callable(function), args, {}, options)  # type: ignore[no-any-return]

    @overload
    def transactional(self, function: Callable[Concatenate[Transaction, P], T], /) -> Callable[P, T]: ...
    @overload
    def transactional(
        self, /, **options: Unpack[RunArguments]
    ) -> Callable[[Callable[Concatenate[Transaction, P], T]], Callable[P, T]]: ...
    def transactional(self, function: Any = None, /, **options: Any) -> Any:
        """Decorator that turns each call into a `run`; Holdall passes the transaction as the first argument."""
        from holdall.tables.commit.retry import run_options

        run_options(options)  # refuses invalid options now, rather than at the first call

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(check_callable(function))
            def call(*args: Any, **keywords: Any) -> Any:
                return self._run(function, args, keywords, options)

            return call

        return decorate if function is None else decorate(function)

    def _run(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any], options: Any) -> Any:
        from holdall.tables.commit.retry import run_options
        from holdall.transactions.api import Transaction
        from holdall.transactions.run import run_transaction

        call = bind_arguments(function, args, keywords)
        begin = partial(Transaction, self._context)
        flow = run_transaction(self._context, begin, call, run_options(options))
        return run(flow, self._context)

    @overload
    def create(self, model: Callable[P, M], /, *args: P.args, **values: P.kwargs) -> M: ...
    @overload
    def create(self, item: M, /) -> M: ...
    def create(self, model: Any, /, *args: Any, **values: Any) -> Any:
        """Create one item, in a transaction: from a model and its values, or from an instance.

        Raises `ModelAlreadyExistsError` if an item with its key exists.
        """
        from holdall.transactions.single import create_item, prepare_item

        return self._run(create_item, (prepare_item(model, args, values),), {}, {})

    def put(self, item: M, *, where: Clause | None = None) -> M:
        """Write one item, in a transaction, replacing any item with its key.

        Raises `InvalidModelUpdateError` if an existing item does not meet ``where=``.
        """
        from holdall.transactions.single import put_item

        return self._run(put_item, (item, where), {}, {})  # type: ignore[no-any-return]

    @overload
    def update(
        self,
        key: ModelKey[Any],
        update: FieldUpdate,
        /,
        *updates: FieldUpdate,
        where: Clause | None = None,
        create_if_missing: bool | Mapping[str, Any] = False,
    ) -> None: ...
    @overload
    def update(self, key: ModelKey[M], /, **values: Any) -> M: ...
    def update(self, key: Any, /, *updates: Any, **values: Any) -> Any:
        """Change one item, in a transaction.

        ``db.update(key, note="x")`` reads the item, assigns these values and commits; on contention, it starts again.
        Returns the item. Raises `RecordNotFound` if there is no item, and `InvalidFieldError` if a value does not fit.

        ``db.update(key, col(Order.tags).add("x"))`` changes the item without reading it, as ``tx.update`` does, and
        takes the same ``where=`` and ``create_if_missing=``.
        """
        if updates:
            from holdall.transactions.single import update_item

            return self._run(update_item, (key, *updates), values, {})

        def change(tx: Transaction) -> Any:
            item = tx.get_one(key)
            item.assign(values)
            return item

        return self._run(change, (), {}, {})

    def delete(self, *targets: Model | ModelKey[Any], where: Clause | None = None) -> None:
        """Delete items by their keys, in one transaction; a key without an item is ignored.

        With ``where=``, every item must exist and meet the condition; otherwise `InvalidModelUpdateError` is raised and
        nothing is deleted. To delete an item only if it has not changed since you read it, read and delete it in a
        transaction.
        """
        from holdall.transactions.single import is_blindly_deletable, list_keys

        keys = list_keys(targets)

        def remove(tx: Transaction) -> None:
            for key in keys:
                if where is not None or is_blindly_deletable(key):
                    tx.delete(key, where=where)
                elif (item := tx.get(key)) is not None:
                    tx.delete(item)

        self._run(remove, (), {}, {})

    def migrate(
        self,
        model: type[Model],
        *,
        segments: int = 1,
        rate: float | None = None,
        dry_run: bool = False,
        restart: bool = False,
        progress: Callable[[MigrationReport], Any] | None = None,
    ) -> MigrationReport:
        """Bring all stored items of a model up to date: run conversions, rename fields, add attributes of new indexes.

        It is safe while other programs write, and safe to run twice. ``segments`` parts of the table are processed
        concurrently. ``rate`` is the most items written per second. ``dry_run`` only counts. An interrupted run is
        resumed where it stopped, unless ``restart`` is true. ``progress`` is called with a report after each page.
        """
        from holdall.transactions.migration.bulk import migrate
        from holdall.transactions.target import model_schema

        return run(
            migrate(
                self._context,
                model_schema(model),
                segments=segments,
                rate=rate,
                dry_run=dry_run,
                restart=restart,
                progress=progress,
            ),
            self._context,
        )

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
        from holdall.transactions.move.flow import move
        from holdall.transactions.target import model_schema

        flow = move(self._context, model_schema(source), model_schema(target), convert=convert, **options)
        return run(flow, self._context)

    def bulk(
        self,
        model: type[M],
        *,
        concurrency: int = 1,
        rate: float | None = None,
        progress: Callable[[BulkReport], Any] | None = None,
    ) -> Bulk[M]:
        """Write and delete many items in batches of 25: ``with db.bulk(Order) as bulk: bulk.put(order)``.

        A batch is cheaper than a transaction, but nothing is locked, and a put replaces whatever is stored. Up to
        ``concurrency`` batches are sent at the same time; ``rate`` is the most items written per second. ``progress``
        is called with a `BulkReport` after them. A model with unique fields, attachments, an archive or a
        ``before_...`` hook is refused, because batches would leave its items inconsistent.
        """
        from holdall.transactions.bulk.api import Bulk
        from holdall.transactions.bulk.batch import Batches
        from holdall.transactions.target import model_schema

        schema = model_schema(model)
        batches = Batches(self._context, schema, concurrency=concurrency, rate=rate, progress=progress)
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
        from holdall.transactions.bulk import chunk as bulk
        from holdall.transactions.target import model_schema

        schema = model_schema(model)
        options = bulk.check_options(chunk, checkpoint, restart, rate, progress)
        action = bulk.make_change(schema, change)
        question = bulk.make_question(
            schema,
            scan=scan,
            segments=segments,
            where=where,
            sort=sort,
            index=index,
            components=components,
        )
        flow = bulk.change_all(self._context, self._shell(), question, action, options)
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
        """Delete all items that a query or scan finds.

        Items are changed in transactions of up to ``chunk`` items, so locks, unique fields, attachments and the archive
        are handled as always; each item is changed exactly once, but not all at one moment. Pass the components of the
        partition key, with ``sort``, ``where`` and ``index`` as in `query`, or ``scan=True`` to read the whole table in
        ``segments`` concurrent parts. With ``checkpoint="name"`` an interrupted run resumes where it stopped, and a
        finished one does nothing; ``restart=True`` begins again. ``rate`` is the most items written per second.
        ``progress`` is called with a report after each chunk.
        """
        from holdall.transactions.bulk import chunk as bulk
        from holdall.transactions.target import model_schema

        schema = model_schema(model)
        options = bulk.check_options(chunk, checkpoint, restart, rate, progress)
        question = bulk.make_question(
            schema,
            scan=scan,
            segments=segments,
            where=where,
            sort=sort,
            index=index,
            components=components,
        )
        flow = bulk.change_all(self._context, self._shell(), question, bulk.Deletion(), options)
        return run(flow, self._context)

    def _shell(self) -> Shell:
        from holdall.transactions.api import Transaction
        from holdall.transactions.bulk.chunk import Shell

        return Shell(partial(Transaction, self._context), finish_flow)

    def transaction(self, **options: Unpack[TransactionArguments]) -> Transaction:
        """A transaction for a ``with`` block, which commits at the end of the block. There is only one attempt.

        With ``read_only`` nothing may be written, and all items that were read, including every row of a query, are
        verified to have been true at one moment. Rows that other writers add meanwhile are not noticed. With
        ``strict``, reading the same item twice is refused.
        """
        from holdall.tables.commit.retry import check_transaction
        from holdall.transactions import api, unit
        from holdall.transactions import current as ambient

        return api.Transaction(
            self._context, unit.Unit(**check_transaction(**options), insist=ambient.is_retry())
        )


class AsyncRunner(AsyncReader):
    """Reads items, and runs functions in transactions."""

    async def run(
        self,
        function: Callable[[AsyncTransaction, *Ts], Awaitable[T]],
        *args: *Ts,
        **options: Unpack[RunArguments],
    ) -> T:
        """Call ``function(tx, *args)`` in a transaction and commit; on contention, start again from the beginning.

        At most ``retries`` more attempts follow, after random waits that grow from ``initial_backoff`` to
        ``max_backoff`` seconds; by default 3, or after contention as many as can begin within 30 seconds. No attempt
        begins more than ``timeout`` seconds after the first. An error whose attribute ``retryable`` is true, including
        one of your own, is retried; any other error is raised unchanged. ``read_only`` and ``strict`` are as in
        `transaction`. Returns what the function returns.
        """
        return await self._run(check_callable(function), args, {}, options)  # type: ignore[no-any-return]

    @overload
    def transactional(
        self, function: Callable[Concatenate[AsyncTransaction, P], Awaitable[T]], /
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def transactional(
        self, /, **options: Unpack[RunArguments]
    ) -> Callable[
        [Callable[Concatenate[AsyncTransaction, P], Awaitable[T]]], Callable[P, Coroutine[Any, Any, T]]
    ]: ...
    def transactional(self, function: Any = None, /, **options: Any) -> Any:
        """Decorator that turns each call into a `run`; Holdall passes the transaction as the first argument."""
        from holdall.tables.commit.retry import run_options

        run_options(options)  # refuses invalid options now, rather than at the first call

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(check_callable(function))
            async def call(*args: Any, **keywords: Any) -> Any:
                return await self._run(function, args, keywords, options)

            return call

        return decorate if function is None else decorate(function)

    async def _run(self, function: Any, args: tuple[Any, ...], keywords: dict[str, Any], options: Any) -> Any:
        from holdall.tables.commit.retry import run_options
        from holdall.transactions.api import AsyncTransaction
        from holdall.transactions.run import run_transaction

        call = bind_arguments(function, args, keywords)
        begin = partial(AsyncTransaction, self._context)
        flow = run_transaction(self._context, begin, call, run_options(options))
        return await wait(flow, self._context)

    @overload
    async def create(self, model: Callable[P, M], /, *args: P.args, **values: P.kwargs) -> M: ...
    @overload
    async def create(self, item: M, /) -> M: ...
    async def create(self, model: Any, /, *args: Any, **values: Any) -> Any:
        """Create one item, in a transaction: from a model and its values, or from an instance.

        Raises `ModelAlreadyExistsError` if an item with its key exists.
        """
        from holdall.transactions.single import create_item, prepare_item

        return await self._run(create_item, (prepare_item(model, args, values),), {}, {})

    async def put(self, item: M, *, where: Clause | None = None) -> M:
        """Write one item, in a transaction, replacing any item with its key.

        Raises `InvalidModelUpdateError` if an existing item does not meet ``where=``.
        """
        from holdall.transactions.single import put_item

        return await self._run(put_item, (item, where), {}, {})  # type: ignore[no-any-return]

    @overload
    async def update(
        self,
        key: ModelKey[Any],
        update: FieldUpdate,
        /,
        *updates: FieldUpdate,
        where: Clause | None = None,
        create_if_missing: bool | Mapping[str, Any] = False,
    ) -> None: ...
    @overload
    async def update(self, key: ModelKey[M], /, **values: Any) -> M: ...
    async def update(self, key: Any, /, *updates: Any, **values: Any) -> Any:
        """Change one item, in a transaction.

        ``db.update(key, note="x")`` reads the item, assigns these values and commits; on contention, it starts again.
        Returns the item. Raises `RecordNotFound` if there is no item, and `InvalidFieldError` if a value does not fit.

        ``db.update(key, col(Order.tags).add("x"))`` changes the item without reading it, as ``tx.update`` does, and
        takes the same ``where=`` and ``create_if_missing=``.
        """
        if updates:
            from holdall.transactions.single import update_item

            return await self._run(update_item, (key, *updates), values, {})

        async def change(tx: AsyncTransaction) -> Any:
            item = await tx.get_one(key)
            item.assign(values)
            return item

        return await self._run(change, (), {}, {})

    async def delete(self, *targets: Model | ModelKey[Any], where: Clause | None = None) -> None:
        """Delete items by their keys, in one transaction; a key without an item is ignored.

        With ``where=``, every item must exist and meet the condition; otherwise `InvalidModelUpdateError` is raised and
        nothing is deleted. To delete an item only if it has not changed since you read it, read and delete it in a
        transaction.
        """
        from holdall.transactions.single import is_blindly_deletable, list_keys

        keys = list_keys(targets)

        async def remove(tx: AsyncTransaction) -> None:
            for key in keys:
                if where is not None or is_blindly_deletable(key):
                    tx.delete(key, where=where)
                elif (item := await tx.get(key)) is not None:
                    tx.delete(item)

        await self._run(remove, (), {}, {})

    async def migrate(
        self,
        model: type[Model],
        *,
        segments: int = 1,
        rate: float | None = None,
        dry_run: bool = False,
        restart: bool = False,
        progress: Callable[[MigrationReport], Any] | None = None,
    ) -> MigrationReport:
        """Bring all stored items of a model up to date: run conversions, rename fields, add attributes of new indexes.

        It is safe while other programs write, and safe to run twice. ``segments`` parts of the table are processed
        concurrently. ``rate`` is the most items written per second. ``dry_run`` only counts. An interrupted run is
        resumed where it stopped, unless ``restart`` is true. ``progress`` is called with a report after each page.
        """
        from holdall.transactions.migration.bulk import migrate
        from holdall.transactions.target import model_schema

        return await wait(
            migrate(
                self._context,
                model_schema(model),
                segments=segments,
                rate=rate,
                dry_run=dry_run,
                restart=restart,
                progress=progress,
            ),
            self._context,
        )

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
        from holdall.transactions.move.flow import move
        from holdall.transactions.target import model_schema

        flow = move(self._context, model_schema(source), model_schema(target), convert=convert, **options)
        return await wait(flow, self._context)

    def bulk(
        self,
        model: type[M],
        *,
        concurrency: int = 1,
        rate: float | None = None,
        progress: Callable[[BulkReport], Any] | None = None,
    ) -> AsyncBulk[M]:
        """Write and delete many items in batches of 25: ``async with db.bulk(Order) as bulk: await bulk.put(order)``.

        A batch is cheaper than a transaction, but nothing is locked, and a put replaces whatever is stored. Up to
        ``concurrency`` batches are sent at the same time; ``rate`` is the most items written per second. ``progress``
        is called with a `BulkReport` after them. A model with unique fields, attachments, an archive or a
        ``before_...`` hook is refused, because batches would leave its items inconsistent.
        """
        from holdall.transactions.bulk.api import AsyncBulk
        from holdall.transactions.bulk.batch import Batches
        from holdall.transactions.target import model_schema

        schema = model_schema(model)
        batches = Batches(self._context, schema, concurrency=concurrency, rate=rate, progress=progress)
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
        from holdall.transactions.bulk import chunk as bulk
        from holdall.transactions.target import model_schema

        schema = model_schema(model)
        options = bulk.check_options(chunk, checkpoint, restart, rate, progress)
        action = bulk.make_change(schema, change)
        question = bulk.make_question(
            schema,
            scan=scan,
            segments=segments,
            where=where,
            sort=sort,
            index=index,
            components=components,
        )
        flow = bulk.change_all(self._context, self._shell(), question, action, options)
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
        """Delete all items that a query or scan finds.

        Items are changed in transactions of up to ``chunk`` items, so locks, unique fields, attachments and the archive
        are handled as always; each item is changed exactly once, but not all at one moment. Pass the components of the
        partition key, with ``sort``, ``where`` and ``index`` as in `query`, or ``scan=True`` to read the whole table in
        ``segments`` concurrent parts. With ``checkpoint="name"`` an interrupted run resumes where it stopped, and a
        finished one does nothing; ``restart=True`` begins again. ``rate`` is the most items written per second.
        ``progress`` is called with a report after each chunk.
        """
        from holdall.transactions.bulk import chunk as bulk
        from holdall.transactions.target import model_schema

        schema = model_schema(model)
        options = bulk.check_options(chunk, checkpoint, restart, rate, progress)
        question = bulk.make_question(
            schema,
            scan=scan,
            segments=segments,
            where=where,
            sort=sort,
            index=index,
            components=components,
        )
        flow = bulk.change_all(self._context, self._shell(), question, bulk.Deletion(), options)
        return await wait(flow, self._context)

    def _shell(self) -> Shell:
        from holdall.transactions.api import AsyncTransaction
        from holdall.transactions.bulk.chunk import Shell

        return Shell(partial(AsyncTransaction, self._context), lambda flow: flow)

    def transaction(self, **options: Unpack[TransactionArguments]) -> AsyncTransaction:
        """A transaction for an ``async with`` block, which commits at the end of the block. There is only one attempt.

        With ``read_only`` nothing may be written, and all items that were read, including every row of a query, are
        verified to have been true at one moment. Rows that other writers add meanwhile are not noticed. With
        ``strict``, reading the same item twice is refused.
        """
        from holdall.tables.commit.retry import check_transaction
        from holdall.transactions import api, unit
        from holdall.transactions import current as ambient

        return api.AsyncTransaction(
            self._context, unit.Unit(**check_transaction(**options), insist=ambient.is_retry())
        )


def finish_flow(flow: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A plain function that runs a flow to its end."""

    @wraps(flow)
    def call(tx: Any) -> Any:
        return run(flow(tx))

    return call


def check_callable(function: Any) -> Any:
    """Return the function; refuse it if it cannot be run in a transaction."""
    if not callable(function):
        raise InvalidOptionsError(
            f"{function!r:.80} is not callable",
            hint="pass a function that takes the transaction as its first argument",
        )
    refuse_generator_function(function, "the function of a transaction")
    return function


def bind_arguments(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Callable[[Any], Any]:
    """The call with everything but the transaction, under the function's own name."""

    def call(tx: Any) -> Any:
        return function(tx, *args, **keywords)

    call.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
    return call

"""The methods of a database that run functions in transactions, sync and async."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache, partial, wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Concatenate, Never, ParamSpec, TypeVar, TypeVarTuple, Unpack, overload

from holdall.core.generator import refuse_generator_function
from holdall.core.port import run, wait
from holdall.core.traceback import ShortTracebacks
from holdall.errors import InvalidOptionsError
from holdall.transactions.bulk.runner import AsyncBulkRunner, BulkRunner, finish_flow

if TYPE_CHECKING:
    from holdall.core.context import Context
    from holdall.models.fields.conditions import Clause
    from holdall.models.fields.update import FieldUpdate
    from holdall.models.keys.key import ModelKey
    from holdall.models.model import Model
    from holdall.tables.commit.retry import RunArguments, TransactionArguments
    from holdall.transactions.api import AsyncTransaction, Transaction
    from holdall.transactions.read.stored_item import StoredItem
    from holdall.transactions.unit import Unit

M = TypeVar("M", bound="Model")
P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Runner(BulkRunner):
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
        return run(self._run(function, args, {}, options), self._context)  # type: ignore[no-any-return]

    @overload
    def transactional(self, function: Callable[Concatenate[Transaction, P], T], /) -> Callable[P, T]: ...
    @overload
    def transactional(
        self, /, **options: Unpack[RunArguments]
    ) -> Callable[[Callable[Concatenate[Transaction, P], T]], Callable[P, T]]: ...
    def transactional(self, function: Any = None, /, **options: Any) -> Any:
        """Decorator that turns each call into a `run`; Holdall passes the transaction as the first argument."""
        with ShortTracebacks(self._context):
            _tools().run_options(options)  # refuses invalid options now, rather than at the first call

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(check_callable(function))
            def call(*args: Any, **keywords: Any) -> Any:
                return run(self._run(function, args, keywords, options), self._context)

            return call

        return decorate if function is None else decorate(function)

    def _run(
        self, function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], options: Any
    ) -> Coroutine[Any, Any, Any]:
        return run_function(self._context, _tools().Transaction, function, args, keywords, options)

    def _transact(self, flow: Any, *args: Any) -> Coroutine[Any, Any, Any]:
        return self._run(finish_flow(flow), args, {}, {})

    @overload
    def create(self, model: Callable[P, M], /, *args: P.args, **values: P.kwargs) -> M: ...
    @overload
    def create(self, item: M, /) -> M: ...
    def create(self, model: Any, /, *args: Any, **values: Any) -> Any:
        """Create one item, in a transaction: from a model and its values, or from an instance.

        Raises `ModelAlreadyExistsError` if an item with its key exists.
        """
        return run(_tools().single.create(self._transact, model, args, values), self._context)

    def put(self, item: M, *, where: Clause | None = None, **values: Never) -> M:
        """Write one item, in a transaction, replacing any item with its key.

        An item of a model with a hook, a version or a unique field is read first, so that they have their effect; only
        the fields that the model declares are replaced then. Raises `InvalidModelUpdateError` if an existing item does
        not meet ``where=``, or if a read-only field would change.
        """
        return run(_tools().single.put(self._transact, item, where, values), self._context)  # type: ignore[no-any-return]

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
        single = _tools().single
        if updates:
            return run(single.update(self._transact, key, updates, values), self._context)
        return run(single.assign(self._transact, key, values), self._context)

    def delete(
        self, *targets: Model | ModelKey[Any], where: Clause | None = None, **components: Never
    ) -> None:
        """Delete items by their keys, in one transaction; a key without an item is ignored.

        With ``where=``, every item must exist and meet the condition; otherwise `InvalidModelUpdateError` is raised and
        nothing is deleted. To delete an item only if it has not changed since you read it, read and delete it in a
        transaction.
        """
        run(_tools().single.delete(self._transact, targets, where, components), self._context)

    def get_stored(self, key: ModelKey[Any]) -> StoredItem | None:
        """Return an item exactly as its table stores it, or None: ``db.get_stored(Order.key("42"))``.

        Nothing is decoded, converted or fetched from the archive, and an expired item is returned too.
        """
        from holdall.transactions.read.stored_item import fetch_stored

        return run(fetch_stored(self._context, key), self._context)

    def transaction(self, **options: Unpack[TransactionArguments]) -> Transaction:
        """A transaction for a ``with`` block, which commits at the end of the block. There is only one attempt.

        With ``read_only`` nothing may be written, and all items that were read, including every row of a query, are
        verified to have been true at one moment. Rows that other writers add meanwhile are not noticed. With
        ``strict``, reading the same item twice is refused.
        """
        with ShortTracebacks(self._context):
            return _tools().Transaction(self._context, _open_unit(options))  # type: ignore[no-any-return]


class AsyncRunner(AsyncBulkRunner):
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
        return await wait(self._run(function, args, {}, options), self._context)

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
        with ShortTracebacks(self._context):
            _tools().run_options(options)  # refuses invalid options now, rather than at the first call

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(check_callable(function))
            async def call(*args: Any, **keywords: Any) -> Any:
                return await wait(self._run(function, args, keywords, options), self._context)

            return call

        return decorate if function is None else decorate(function)

    def _run(
        self, function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], options: Any
    ) -> Coroutine[Any, Any, Any]:
        return run_function(self._context, _tools().AsyncTransaction, function, args, keywords, options)

    def _transact(self, flow: Any, *args: Any) -> Coroutine[Any, Any, Any]:
        return self._run(flow, args, {}, {})

    @overload
    async def create(self, model: Callable[P, M], /, *args: P.args, **values: P.kwargs) -> M: ...
    @overload
    async def create(self, item: M, /) -> M: ...
    async def create(self, model: Any, /, *args: Any, **values: Any) -> Any:
        """Create one item, in a transaction: from a model and its values, or from an instance.

        Raises `ModelAlreadyExistsError` if an item with its key exists.
        """
        return await wait(_tools().single.create(self._transact, model, args, values), self._context)

    async def put(self, item: M, *, where: Clause | None = None, **values: Never) -> M:
        """Write one item, in a transaction, replacing any item with its key.

        An item of a model with a hook, a version or a unique field is read first, so that they have their effect; only
        the fields that the model declares are replaced then. Raises `InvalidModelUpdateError` if an existing item does
        not meet ``where=``, or if a read-only field would change.
        """
        return await wait(_tools().single.put(self._transact, item, where, values), self._context)

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
        single = _tools().single
        if updates:
            return await wait(single.update(self._transact, key, updates, values), self._context)
        return await wait(single.assign(self._transact, key, values), self._context)

    async def delete(
        self, *targets: Model | ModelKey[Any], where: Clause | None = None, **components: Never
    ) -> None:
        """Delete items by their keys, in one transaction; a key without an item is ignored.

        With ``where=``, every item must exist and meet the condition; otherwise `InvalidModelUpdateError` is raised and
        nothing is deleted. To delete an item only if it has not changed since you read it, read and delete it in a
        transaction.
        """
        await wait(_tools().single.delete(self._transact, targets, where, components), self._context)

    async def get_stored(self, key: ModelKey[Any]) -> StoredItem | None:
        """Return an item exactly as its table stores it, or None: ``db.get_stored(Order.key("42"))``.

        Nothing is decoded, converted or fetched from the archive, and an expired item is returned too.
        """
        from holdall.transactions.read.stored_item import fetch_stored

        return await wait(fetch_stored(self._context, key), self._context)

    def transaction(self, **options: Unpack[TransactionArguments]) -> AsyncTransaction:
        """A transaction for an ``async with`` block, which commits at the end of the block. There is only one attempt.

        With ``read_only`` nothing may be written, and all items that were read, including every row of a query, are
        verified to have been true at one moment. Rows that other writers add meanwhile are not noticed. With
        ``strict``, reading the same item twice is refused.
        """
        with ShortTracebacks(self._context):
            return _tools().AsyncTransaction(self._context, _open_unit(options))  # type: ignore[no-any-return]


def check_callable(function: Any) -> Any:
    """Return the function; refuse it if it cannot be run in a transaction."""
    if not callable(function):
        raise InvalidOptionsError(
            f"{function!r:.80} is not callable",
            hint="pass a function that takes the transaction as its first argument",
        )
    refuse_generator_function(function, "the function of a transaction")
    return function


def bind_arguments(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The call with everything but the transaction, under the function's own name."""

    def call(tx: Any) -> Any:
        return function(tx, *args, **keywords)

    call.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
    return call


async def run_function(
    context: Context,
    transaction: Callable[..., Any],
    function: Any,
    args: tuple[Any, ...],
    keywords: Mapping[str, Any],
    options: Any,
) -> Any:
    """Run ``function(tx, *args, **keywords)`` in transactions of this class; the flow of a runner's methods."""
    tools, call = _tools(), bind_arguments(check_callable(function), args, keywords)
    return await tools.run_transaction(
        context, partial(transaction, context), call, tools.run_options(options)
    )


@cache
def _tools() -> Any:
    """What transactions are made of, loaded on first use; import statements in each call would slow it down."""
    from holdall.tables.commit.retry import check_transaction, run_options
    from holdall.transactions.api import AsyncTransaction, Transaction
    from holdall.transactions.current import is_retry
    from holdall.transactions.run import single
    from holdall.transactions.run.flow import run_transaction
    from holdall.transactions.unit import Unit

    tools = check_transaction, run_options, AsyncTransaction, Transaction, is_retry, run_transaction, Unit
    return SimpleNamespace(single=single, **{tool.__name__: tool for tool in tools})


def _open_unit(options: TransactionArguments) -> Unit:
    """The unit of a ``with`` block."""
    tools = _tools()
    return tools.Unit(**tools.check_transaction(**options), insist=tools.is_retry())  # type: ignore[no-any-return]

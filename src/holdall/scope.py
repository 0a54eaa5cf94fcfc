"""A transaction around a part of an application, such as one web request. The middlewares of `holdall.web` use it.

An ASGI application has ``async def`` and ``def`` handlers, and a framework runs the latter in threads. Both use the
same transaction: as an `AsyncTransaction` on the event loop, and as a `Transaction` in threads. It is committed on the
event loop; handlers that were registered in a thread, and model hooks if a thread used the transaction, run in a
thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, cast

from holdall.core.context import Context
from holdall.core.frozen import replace
from holdall.core.generator import refuse_generator, refuse_generator_function
from holdall.core.internal import internal
from holdall.core.port import Port, run
from holdall.errors import ConfigurationError
from holdall.tables.commit.retry import run_options
from holdall.transactions.api import AsyncTransaction, Transaction
from holdall.transactions.run.flow import run_transaction
from holdall.transactions.unit import Unit

if TYPE_CHECKING:
    from holdall.async_database import AsyncDatabase
    from holdall.database import Database

__all__ = ["ScopedTransaction", "TransactionScope"]


class TransactionScope:
    """Runs functions in transactions as ``db.run`` does, for middlewares, with up to ``retries`` more attempts."""

    def __init__(self, db: Database | AsyncDatabase, *, retries: int | None = None) -> None:
        from holdall.async_database import AsyncDatabase
        from holdall.database import Database

        if not isinstance(db, Database | AsyncDatabase):
            raise ConfigurationError(
                f"{db!r:.80} is not a database",
                hint="pass the Database or AsyncDatabase of your application",
            )
        self._options = run_options({"retries": retries})
        self._blocking = (db if isinstance(db, Database) else db.sync)._context
        context = (db if isinstance(db, AsyncDatabase) else db.aio)._context
        self._awaiting = replace(context, port=cast("Port", _ScopePort(context.port)))
        self._store = db._backend

    def is_of_same_store(self, other: TransactionScope) -> bool:
        """Whether both scopes use the same store."""
        return self._store is other._store

    async def run(
        self, body: Callable[[ScopedTransaction], Awaitable[None]], may_repeat: Callable[[], bool]
    ) -> None:
        """Await ``body(tx)`` and commit; after contention, start again if ``may_repeat()`` returns true."""
        begin = partial(ScopedTransaction, self._awaiting, self._blocking)
        await run_transaction(self._awaiting, begin, body, self._options, may_repeat)

    def run_blocking(self, body: Callable[[Transaction], None], may_repeat: Callable[[], bool]) -> None:
        """Call ``body(tx)`` and commit; after contention, start again if ``may_repeat()`` returns true."""
        begin = partial(Transaction, self._blocking)
        run(run_transaction(self._blocking, begin, body, self._options, may_repeat))


class _ThreadTransaction(Transaction):
    """A scope's transaction as its threads use it. Its handlers are called in a thread, where they may block."""

    def after_commit(self, function: Callable[..., Any], *args: Any) -> None:
        """Call a function in a thread after the transaction has committed."""
        refuse_generator_function(function, "a handler")
        super().after_commit(_call_in_thread, function, *args)

    def after_failure(self, function: Callable[[Exception], Any]) -> None:
        """Call a function in a thread, with the error, after the transaction has failed for good."""
        refuse_generator_function(function, "a handler")

        async def call(error: Exception) -> Any:
            return await _call_in_thread(function, error)

        super().after_failure(call)


class ScopedTransaction(AsyncTransaction):
    """A scope's transaction on the event loop; `in_thread` returns its sync form for threads."""

    @internal
    def __init__(self, context: Context, blocking: Context, unit: Unit) -> None:
        super().__init__(context, unit)
        self._loop = asyncio.get_running_loop()
        self._blocking = blocking
        self._twin: _ThreadTransaction | None = None

    @property
    def is_used_in_threads(self) -> bool:
        """Whether a thread uses the transaction."""
        return self._twin is not None

    @property
    def is_used(self) -> bool:
        """Whether anything depends on the outcome."""
        unit = self._unit
        return bool(unit.entries or unit.participants or unit.on_commit)

    def in_thread(self) -> Transaction:
        """The same transaction as a sync `Transaction`, for threads."""
        if self._twin is None:
            self._twin = _ThreadTransaction(self._blocking, self._unit)
        return self._twin

    def _here(self) -> Any:
        try:
            return self if asyncio.get_running_loop() is self._loop else self.in_thread()
        except RuntimeError:  # no loop runs in this thread
            return self.in_thread()


class _ScopePort:
    """The async port, except that plain hooks run in a thread, with the sync transaction, if threads use it."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call one of the user's functions."""
        tx = args[0] if args else None
        if isinstance(tx, ScopedTransaction) and tx.is_used_in_threads and not iscoroutinefunction(function):
            return await _call_in_thread(function, tx.in_thread())
        return await self._port.call(function, *args)


async def _call_in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in a thread; if it returns an awaitable, that is awaited here."""
    result = await asyncio.to_thread(function, *args)
    if isawaitable(result):
        result = await result
    refuse_generator(result, function)
    return result
